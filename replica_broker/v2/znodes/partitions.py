"""The znodes of one partition: read together, and written in transactions that a stale leader cannot make.

`getNewEpoch` and the race to be leader are one transaction: whoever writes the counter `epoch` with the version that
it read creates the leader's znode as well, and the counter's new version is the epoch. So every later write of that
leader is made on the condition that the counter is still at its epoch: a leader that was replaced while it was not
looking can change neither the ISR nor the assignment. The election is made on the condition of the ISR that it was
decided from.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import structlog

from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionEpoch, TopicId, TopicPartition
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import ensure_znodes
from controller_core.zk.session import Check, Create, CreateMode, SessionId, SetData, WriteOp, ZkSession, ZkVersion
from replica_broker.v2.znodes import codecs, paths
from replica_broker.v2.znodes.codecs import Leader

log = structlog.get_logger()

NO_VERSION = ZkVersion(-1)
FIRST_EPOCH = LeaderEpoch(1)
"""The counter of epochs is created with version 0, which the first leader raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionZnodes:
    """What ZooKeeper says of a partition."""

    topic_partition: TopicPartition
    topic_id: TopicId | None
    replicas: tuple[BrokerId, ...] | None
    """AR; None where the partition is not created, or not yet."""
    leader: Leader | None
    leader_session: SessionId
    isr: tuple[BrokerId, ...]
    isr_version: ZkVersion
    epoch_version: ZkVersion
    reassigned: tuple[BrokerId, ...] | None
    """RAR; empty where the partition is to be deleted, None where nothing is to change."""

    @property
    def assigned(self) -> tuple[BrokerId, ...]:
        """AR. While a partition is being created it is what was written for that: the admin writes `replicas` only
        when the replicas have started, and they could not start without it."""
        return self.replicas if self.replicas is not None else self.reassigned or ()

    @property
    def hosts(self) -> tuple[BrokerId, ...]:
        """AR and RAR: who has a replica, or is to have one."""
        return tuple(dict.fromkeys((*self.assigned, *(self.reassigned or ()))))

    @property
    def epoch(self) -> LeaderEpoch:
        """That of the last leader."""
        return LeaderEpoch(self.epoch_version)

    @property
    def partition_epoch(self) -> PartitionEpoch:
        """The version of the ISR, by the name that replicas have for it."""
        return PartitionEpoch(self.isr_version)

    def is_first_led_by(self, session: SessionId) -> bool:
        """Whether the partition has its first leader, and that is of this session."""
        return self.leader is not None and self.leader.epoch == FIRST_EPOCH and self.leader_session == session

    def fenced(self, epoch: LeaderEpoch) -> Check:
        """Fails a transaction of a leader that was replaced."""
        return Check(path=paths.epoch(self.topic_partition), version=ZkVersion(epoch))

    def with_isr(self, isr: tuple[BrokerId, ...], assigned: tuple[BrokerId, ...]) -> list[WriteOp]:
        """Writes the ISR, and CUR = AR - ISR."""
        cur = tuple(broker for broker in assigned if broker not in isr)
        return [
            SetData(path=paths.isr(self.topic_partition), data=codecs.encode_brokers(isr), version=self.isr_version),
            SetData(path=paths.cur(self.topic_partition), data=codecs.encode_brokers(cur)),
        ]


async def read_partition(zk: ZkSession, topic_partition: TopicPartition) -> PartitionZnodes:
    """Raises the errors of ZooKeeper, and `MalformedZnode`."""
    (read,) = await read_partitions(zk, [topic_partition])
    return read


async def read_partitions(zk: ZkSession, topic_partitions: Iterable[TopicPartition]) -> list[PartitionZnodes]:
    """Raises the errors of ZooKeeper, and `MalformedZnode`."""
    asked = list(topic_partitions)
    names = [name for each in asked for name in _paths(each)]
    nodes = await zk.read_many(names)
    found = []
    for number, each in enumerate(asked):
        first = number * len(_paths(each))
        topic, replicas, leader, isr, epoch, reassigned = nodes[first : first + 6]
        found.append(
            PartitionZnodes(
                topic_partition=each,
                topic_id=codecs.decode_topic_id(names[first], topic.data) if topic and topic.data else None,
                replicas=None if replicas is None else codecs.decode_brokers(names[first + 1], replicas.data),
                leader=None if leader is None else codecs.decode_leader(names[first + 2], leader.data),
                leader_session=SessionId(0) if leader is None else leader.ephemeral_owner,
                isr=() if isr is None else codecs.decode_brokers(names[first + 3], isr.data),
                isr_version=NO_VERSION if isr is None else isr.version,
                epoch_version=NO_VERSION if epoch is None else epoch.version,
                reassigned=None if reassigned is None else _reassigned(names[first + 5], reassigned.data),
            )
        )
    return found


def _reassigned(path: str, data: bytes) -> tuple[BrokerId, ...] | None:
    """What nobody can make sense of asks for nothing, and hinders nothing."""
    try:
        return codecs.decode_brokers(path, data)
    except MalformedZnode as error:
        log.error("a reassignment makes no sense, and is not begun", path=path, reason=str(error))
        return None


def _paths(topic_partition: TopicPartition) -> Sequence[str]:
    return (
        paths.topic(topic_partition.topic),
        paths.replicas(topic_partition),
        paths.leader(topic_partition),
        paths.isr(topic_partition),
        paths.epoch(topic_partition),
        paths.reassigned(topic_partition),
    )


async def ensure_counter(zk: ZkSession, topic_partition: TopicPartition) -> None:
    """The counter of epochs, and what it stands in. Raises `NoNode` where there is no such topic."""
    needed = [Create(path=paths.partition(topic_partition)), Create(path=paths.epoch(topic_partition))]
    await ensure_znodes(zk, needed, zk.transact)


async def write_leader(zk: ZkSession, znodes: PartitionZnodes, broker: BrokerId) -> None:
    """`write r as the current leader of r.partition in ZK`, in a new epoch. Raises `Conflict` for who lost the race."""
    where = znodes.topic_partition
    epoch = LeaderEpoch(znodes.epoch_version + 1)
    operations: list[WriteOp] = [
        SetData(path=paths.epoch(where), data=b"", version=znodes.epoch_version),
        Create(path=paths.leader(where), data=codecs.encode_leader(Leader(broker, epoch)), mode=CreateMode.EPHEMERAL),
    ]
    if znodes.isr_version != NO_VERSION:
        operations.append(Check(path=paths.isr(where), version=znodes.isr_version))
    else:
        operations += [
            Create(path=paths.isr(where), data=codecs.encode_brokers((broker,))),
            Create(path=paths.cur(where)),
        ]
    await zk.transact(operations)
