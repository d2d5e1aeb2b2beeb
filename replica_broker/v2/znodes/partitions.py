"""The znodes of one partition, with fenced writes.

`getNewEpoch` and the election are one transaction: it writes the counter `epoch` on the version that was read, and
creates the leader's znode. The counter's new version is the leader epoch. All later writes of that leader check that
the counter still has its epoch, so a replaced leader can change neither the ISR nor the assignment. An election also
checks the version of the ISR that it is based on.
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
"""The counter of epochs starts at version 0; the first leader raises it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionZnodes:
    """The state of a partition in ZooKeeper."""

    topic_partition: TopicPartition
    topic_id: TopicId | None
    replicas: tuple[BrokerId, ...] | None
    """AR; None until the partition is created."""
    leader: Leader | None
    leader_session: SessionId
    isr: tuple[BrokerId, ...]
    isr_version: ZkVersion
    epoch_version: ZkVersion
    reassigned: tuple[BrokerId, ...] | None
    """RAR; empty for a deletion, None if nothing changes."""

    @property
    def assigned(self) -> tuple[BrokerId, ...]:
        """AR. During a creation it is the requested assignment.

        The admin writes `replicas` only after the replicas have started, and they need an assignment to start.
        """
        return self.replicas if self.replicas is not None else self.reassigned or ()

    @property
    def hosts(self) -> tuple[BrokerId, ...]:
        """AR and RAR: all current and future replicas."""
        return tuple(dict.fromkeys((*self.assigned, *(self.reassigned or ()))))

    @property
    def epoch(self) -> LeaderEpoch:
        """The epoch of the last leader."""
        return LeaderEpoch(self.epoch_version)

    @property
    def partition_epoch(self) -> PartitionEpoch:
        """The version of the ISR, as the replicas call it."""
        return PartitionEpoch(self.isr_version)

    def is_first_led_by(self, session: SessionId) -> bool:
        """Return True if the partition has its first leader, elected in this session."""
        return self.leader is not None and self.leader.epoch == FIRST_EPOCH and self.leader_session == session

    def make_epoch_check(self, epoch: LeaderEpoch) -> Check:
        """Return a check that fails the transaction of a replaced leader."""
        return Check(path=paths.epoch(self.topic_partition), version=ZkVersion(epoch))

    def make_isr_writes(self, isr: tuple[BrokerId, ...], assigned: tuple[BrokerId, ...]) -> list[WriteOp]:
        """Return the writes of the ISR and of CUR = AR - ISR."""
        cur = tuple(broker for broker in assigned if broker not in isr)
        return [
            SetData(path=paths.isr(self.topic_partition), data=codecs.encode_brokers(isr), version=self.isr_version),
            SetData(path=paths.cur(self.topic_partition), data=codecs.encode_brokers(cur)),
        ]


async def read_partition(zk: ZkSession, topic_partition: TopicPartition) -> PartitionZnodes:
    """Read a partition. Raises the errors of ZooKeeper, and `MalformedZnode`."""
    (read,) = await read_partitions(zk, [topic_partition])
    return read


async def read_partitions(zk: ZkSession, topic_partitions: Iterable[TopicPartition]) -> list[PartitionZnodes]:
    """Read partitions. Raises the errors of ZooKeeper, and `MalformedZnode`."""
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
                reassigned=None if reassigned is None else _parse_reassigned(names[first + 5], reassigned.data),
            )
        )
    return found


def _parse_reassigned(path: str, data: bytes) -> tuple[BrokerId, ...] | None:
    """Return the RAR. An unreadable one counts as none, so that it does not block the partition."""
    try:
        return codecs.decode_brokers(path, data)
    except MalformedZnode as error:
        log.error("unreadable reassignment is not started", path=path, reason=str(error))
        return None


def _paths(topic_partition: TopicPartition) -> Sequence[str]:
    return (
        paths.topic(topic_partition.topic),
        paths.replicas(topic_partition),
        paths.leader(topic_partition),
        paths.isr(topic_partition),
        paths.epoch(topic_partition),
        paths.reassignment(topic_partition),
    )


async def ensure_counter(zk: ZkSession, topic_partition: TopicPartition) -> None:
    """Create the counter of epochs and its parent. Raises `NoNode` if the topic does not exist."""
    needed = [Create(path=paths.partition(topic_partition)), Create(path=paths.epoch(topic_partition))]
    await ensure_znodes(zk, needed, zk.transact)


async def write_leader(zk: ZkSession, znodes: PartitionZnodes, broker: BrokerId) -> None:
    """Run `write r as the current leader of r.partition in ZK`, in a new epoch.

    Raises `Conflict` for a lost election.
    """
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
