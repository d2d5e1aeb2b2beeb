"""The controller's knowledge of a cluster as values: brokers, assignments, and the leadership of partitions.

Each value is the content of one znode without its JSON. `controller_core.zk.codecs` reads and writes them, the state
machines and selectors of this package decide over them, and `controller_core.wire` sends them to the brokers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from controller_core.model.ids import (
    INITIAL_LEADER_EPOCH,
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicPartition,
)


class SecurityProtocol(IntEnum):
    """The security protocol of a listener: its name stands in a registration, its number in UpdateMetadata."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


def format_address(host: str, port: int) -> str:
    """Return `host:port`, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address of one listener of a broker."""

    listener: str
    security_protocol: str
    host: str
    port: int

    @property
    def address(self) -> str:
        return format_address(self.host, self.port)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRange:
    """The versions of one feature that a broker supports, both ends included (KIP-584)."""

    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A live broker: the content of `/brokers/ids/N`, and the czxid of that znode as its epoch."""

    id: BrokerId
    epoch: BrokerEpoch
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    features: Mapping[str, FeatureRange] = field(default_factory=dict)
    is_ours: bool = False
    """True for a broker of Kontroller's own, which says so in its registration; False for a stock broker."""
    unusable: tuple[str, ...] = ()
    """The reasons why endpoints of the registration are missing in `endpoints`."""

    def find_endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint of a listener by name; None if the broker has no such listener."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class LeaderRecoveryState(IntEnum):
    """RECOVERING: the leader was elected uncleanly and must recover first (KIP-704). RECOVERED: otherwise."""

    RECOVERED = 0
    RECOVERING = 1


class LogEnd(NamedTuple):
    """The end of a replica's log. The greater of two ends belongs to the log that has more of the latest writes."""

    leader_epoch: LeaderEpoch
    """The last leader epoch in the log; -1 if it has none."""
    offset: int
    """The first offset that the log does not have."""


EndsOfLogs: TypeAlias = Mapping[TopicPartition, Mapping[BrokerId, LogEnd]]
"""The ends of the logs of some replicas, by partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsr:
    """The leadership of a partition as its state znode holds it. The version of the znode is in `PartitionState`."""

    leader: BrokerId
    isr: tuple[BrokerId, ...]
    leader_epoch: LeaderEpoch = INITIAL_LEADER_EPOCH
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED

    def __hash__(self) -> int:
        """Hash the fields that differ in practice. Leaderships are looked up by the hundred thousand."""
        return hash((self.leader, self.leader_epoch, self.isr))

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A partition's leadership as ZooKeeper holds it.

    It includes the epoch of the controller that decided it, and the version that guards the next write.
    """

    leader_and_isr: LeaderAndIsr
    controller_epoch: ControllerEpoch
    partition_epoch: PartitionEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaAssignment:
    """The assigned replicas (AR) of a partition, preferred first, and those being added or removed (KIP-455).

    During a reassignment `replicas` is the target followed by the replicas that are removed. So `target` and `origin`
    follow from the three lists, and a new controller finds both in the topic's znode.
    """

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    origin_order: tuple[BrokerId, ...] = ()
    """The replicas from before the reassignment in their order, if `replicas` does not show that order."""

    @property
    def preferred(self) -> BrokerId | None:
        """The replica that should lead; None if somebody wrote an empty list."""
        return next(iter(self.replicas), None)

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[BrokerId, ...]:
        """RAR: the replicas after the reassignment."""
        if not self.removing:
            return self.replicas
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    @property
    def origin(self) -> tuple[BrokerId, ...]:
        """OAR: the replicas from before the reassignment, in the order of the znode if their own was not recorded."""
        replicas = tuple(replica for replica in self.replicas if replica not in self.adding)
        return self.origin_order if set(self.origin_order) == set(replicas) else replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableEntry:
    """An entry of a topic's znode for one partition that makes no sense."""

    key: str
    """The partition as the znode names it."""
    reason: str
    said: Mapping[str, object]
    """The fields of the entry as they are in the znode. They are written back unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAssignment:
    """The content of `/brokers/topics/T`. `topic_id` is None if an old tool wrote the znode without one."""

    topic_id: TopicId | None
    partitions: Mapping[PartitionId, ReplicaAssignment]
    unusable: tuple[UnusableEntry, ...] = ()
    """The entries that do not describe a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentPlan:
    """The target replicas of each partition, in the order of the document, and the reasons for rejected entries."""

    partitions: Mapping[TopicPartition, tuple[BrokerId, ...]]
    rejected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredElectionPlan:
    """The partitions that shall elect their preferred replica, and the reasons for rejected entries."""

    partitions: tuple[TopicPartition, ...]
    rejected: tuple[str, ...] = ()
