"""The batches that the controller hands to its journal, and the interface that takes them.

A batch is the effect of one event. It holds references to immutable values and copies of collections, so another thread
can read it while the controller continues.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from controller_core.journal.changes import Change
from controller_core.journal.configs import RecordedConfig, StaticConfig
from controller_core.model.authorization.principal import Caller
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerId, ControllerEpoch, PartitionId, TopicId, TopicName, TopicPartition
from controller_core.model.metadata import Broker, PartitionState, ReplicaAssignment


class Uptime(NamedTuple):
    """The time since a machine was started. Nobody can set it, so it measures what the clock of the day cannot."""

    boot: str
    """Names the start of the machine: times of one name can be compared."""
    us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The controller, time and cause of a change."""

    cluster_id: str | None
    """None if ZooKeeper does not have it yet: the first broker to start writes it."""
    controller_id: BrokerId
    controller_epoch: ControllerEpoch
    event_time_us: int
    uptime: Uptime | None = None
    """The same moment by the machine's uptime; None if the time is of no machine's clock."""
    took_us: int | None = None
    """Time since the controller learned of the event, or None if no arrival time is known."""
    cause: str
    correlation_id: str
    """The same for all changes of one event."""
    caller: Caller | None = None
    """The client whose request is the cause; None if it is none of a client."""
    is_inferred: bool = False
    """True if a recorder guessed the cause by observing the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCopy:
    """A topic as it was at the time of the copy."""

    topic_id: TopicId | None
    czxid: int
    partitions: Mapping[PartitionId, ReplicaAssignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCopy:
    """The complete state that the journal records, at one moment."""

    brokers: Mapping[BrokerId, Broker] = field(default_factory=dict)
    topics: Mapping[TopicName, TopicCopy] = field(default_factory=dict)
    states: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    features: FinalizedFeatures | None = None
    topic_configs: Mapping[TopicName, RecordedConfig] = field(default_factory=dict)
    """Only topics with overrides that are recorded."""
    broker_configs: Mapping[BrokerId | None, RecordedConfig] = field(default_factory=dict)
    """Like `topic_configs`. The key None is the default of all brokers."""
    failed_replicas: Mapping[BrokerId, frozenset[TopicPartition]] = field(default_factory=dict)
    """The replicas of live brokers in failed log directories. Brokers without such replicas are absent."""
    static_configs: Mapping[BrokerId, StaticConfig] = field(default_factory=dict)
    """Only registered brokers that answered the question for their configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elected:
    """A term began."""

    context: Context
    config: RecordedConfig = field(default_factory=dict)
    """The controller's own settings, used where no configuration overrides them. Empty if unknown."""
    alive_interval_ms: int | None = None
    """Milliseconds without a record after which an `Alive` follows, here and in the other batches. None if not
    stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resigned:
    """A term ended."""

    context: Context
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive:
    """The controller still has its role, and has had nothing else to record for a while."""

    context: Context
    alive_interval_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderStarted:
    """A recorder began to observe the cluster. Unrecorded changes of this epoch before that are unknown."""

    context: Context
    alive_interval_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """Somebody asked for a change, and was answered."""

    context: Context
    request: Mapping[str, object]
    """The fields of its audit record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Changes that ZooKeeper has committed, in their order."""

    context: Context
    changes: Sequence[Change]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole live state of the cluster."""

    context: Context
    state: StateCopy


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A number of records that were not written. `context` is that of the first one."""

    context: Context
    count: int


Batch: TypeAlias = Elected | Resigned | Alive | RecorderStarted | Requested | Committed | Snapshot
"""The batches that the controller hands over."""


class Journal(Protocol):
    """Takes changes. No method blocks, waits or raises, so the journal never disturbs the controller."""

    @property
    def is_kept(self) -> bool:
        """False if there is no journal, so nothing needs to be recorded."""
        ...

    @property
    def wants_snapshot(self) -> bool:
        """True if records were dropped since the last snapshot, and the queue has room for a new one."""
        ...

    def append(self, batch: Batch) -> None: ...


class EachJournal:
    """Several independent journals, possibly none. A record that one of them misses can be in another."""

    def __init__(self, journals: Sequence[Journal]) -> None:
        self._journals = journals

    @property
    def is_kept(self) -> bool:
        return any(journal.is_kept for journal in self._journals)

    @property
    def wants_snapshot(self) -> bool:
        return any(journal.wants_snapshot for journal in self._journals)

    def append(self, batch: Batch) -> None:
        for journal in self._journals:
            journal.append(batch)


class NoJournal:
    """A journal that records nothing."""

    is_kept = False
    wants_snapshot = False

    def append(self, batch: Batch) -> None:
        """Ignore the batch."""
