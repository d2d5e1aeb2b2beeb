"""What the controller knows of a cluster, as values: brokers, assignments and the leadership of partitions.

Each of these is what one znode says, without its JSON: `controller_core.zk.codecs` reads and writes them, the state
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
    """What a listener speaks, by the name in a registration and the number in UpdateMetadata."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where one listener of a broker is reached."""

    listener: str
    security_protocol: str
    host: str
    port: int


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
    """Whether it is no stock broker but one of Kontroller's, which says so where it registers."""
    unusable: tuple[str, ...] = ()
    """What is wrong with those of its endpoints that are not among the endpoints."""

    def endpoint(self, listener: str) -> Endpoint | None:
        """The endpoint of a listener by name, or None where the broker has no such listener."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


class LeaderRecoveryState(IntEnum):
    """Whether the leader was elected cleanly, or must first recover from an unclean election (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


class LogEnd(NamedTuple):
    """How far a replica's log reaches. Of two replicas the one with the greater end has more of what was written last."""

    leader_epoch: LeaderEpoch
    """The last one that the log has; -1 where it has none."""
    offset: int
    """The first one that it does not have."""


EndsOfLogs: TypeAlias = Mapping[TopicPartition, Mapping[BrokerId, LogEnd]]
"""How far the logs of some replicas of partitions reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsr:
    """The leadership of a partition, as a state znode says it; its version stands beside it in `PartitionState`."""

    leader: BrokerId
    isr: tuple[BrokerId, ...]
    leader_epoch: LeaderEpoch = INITIAL_LEADER_EPOCH
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED

    def __hash__(self) -> int:
        """Of what distinguishes leaderships in practice: they are looked up by the hundred thousand."""
        return hash((self.leader, self.leader_epoch, self.isr))

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A partition's leadership as ZooKeeper holds it: who decided it, and the version that guards the next write."""

    leader_and_isr: LeaderAndIsr
    controller_epoch: ControllerEpoch
    partition_epoch: PartitionEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaAssignment:
    """The assigned replicas (AR) of a partition, preferred first, and which of them come and go (KIP-455).

    While a partition is reassigned, `replicas` is the target followed by what is being removed; so
    `target` and `origin` follow from the three lists, and a new controller finds both in the topic's znode.
    """

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    origin_order: tuple[BrokerId, ...] = ()
    """The replicas from before the reassignment in their order, where `replicas` does not say it."""

    @property
    def preferred(self) -> BrokerId | None:
        """The replica that should lead; None where somebody wrote an empty list."""
        return next(iter(self.replicas), None)

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[BrokerId, ...]:
        """RAR: the replicas when the reassignment is complete."""
        if not self.removing:
            return self.replicas
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    @property
    def origin(self) -> tuple[BrokerId, ...]:
        """OAR: the replicas from before the reassignment; in the order of the znode where nobody recorded theirs."""
        replicas = tuple(replica for replica in self.replicas if replica not in self.adding)
        return self.origin_order if set(self.origin_order) == set(replicas) else replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableEntry:
    """What a topic's znode says of one partition, and makes no sense."""

    key: str
    """The partition as the znode names it."""
    reason: str
    said: Mapping[str, object]
    """By the fields of the znode, as it stands there: it is written back unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAssignment:
    """The content of `/brokers/topics/T`. `topic_id` is None where an old tool wrote the znode without one."""

    topic_id: TopicId | None
    partitions: Mapping[PartitionId, ReplicaAssignment]
    unusable: tuple[UnusableEntry, ...] = ()
    """The entries that are no partitions as far as one can see."""
