"""What the controller hands to its journal, and the seam that it hands it to.

A batch is what one event changed. It holds references to immutable values and copies of collections, so that it can be
read by another thread while the controller goes on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from controller_core.journal.changes import Change
from controller_core.journal.configs import RecordedConfig, StaticConfig
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerId, ControllerEpoch, PartitionId, TopicId, TopicName, TopicPartition
from controller_core.model.metadata import Broker, PartitionState, ReplicaAssignment


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Who changed something, when, and why."""

    cluster_id: str | None
    """None where ZooKeeper does not say it yet: brokers write it when the first of them starts."""
    controller_id: BrokerId
    controller_epoch: ControllerEpoch
    event_time_us: int
    took_us: int | None = None
    """Since the controller heard of the event; None where nothing arrived that could be timed."""
    cause: str
    correlation_id: str
    """The same for all that one event changed."""
    is_inferred: bool = False
    """Whether the cause is a guess of someone who only looks on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCopy:
    """A topic as it was when it was copied."""

    topic_id: TopicId | None
    czxid: int
    partitions: Mapping[PartitionId, ReplicaAssignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCopy:
    """All that the journal knows of a cluster, at one moment."""

    brokers: Mapping[BrokerId, Broker] = field(default_factory=dict)
    topics: Mapping[TopicName, TopicCopy] = field(default_factory=dict)
    states: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    features: FinalizedFeatures | None = None
    topic_configs: Mapping[TopicName, RecordedConfig] = field(default_factory=dict)
    """Of those topics that have overrides which are recorded."""
    broker_configs: Mapping[BrokerId | None, RecordedConfig] = field(default_factory=dict)
    """As `topic_configs`; None is the default of all brokers."""
    failed_replicas: Mapping[BrokerId, frozenset[TopicPartition]] = field(default_factory=dict)
    """The replicas of live brokers that are in failed log directories; without brokers that have none."""
    static_configs: Mapping[BrokerId, StaticConfig] = field(default_factory=dict)
    """Of those registered brokers that were asked and answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elected:
    """A term began."""

    context: Context
    config: RecordedConfig = field(default_factory=dict)
    """What the controller's own settings say where no configuration does; none where they are not known."""
    alive_interval_ms: int | None = None
    """After how long without a record there is an `Alive`, here as in the others that say it; None: not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resigned:
    """A term ended."""

    context: Context
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive:
    """The controller still had its role, and had nothing else to record for a while."""

    context: Context
    alive_interval_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderStarted:
    """Someone who only looks on began to: what was before it in this epoch, and not recorded, is unknown."""

    context: Context
    alive_interval_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Changes that ZooKeeper has, in their order."""

    context: Context
    changes: Sequence[Change]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole live state."""

    context: Context
    state: StateCopy


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """So many records were not written; `context` is that of the first of them."""

    context: Context
    count: int


Batch: TypeAlias = Elected | Resigned | Alive | RecorderStarted | Committed | Snapshot
"""What the controller hands over."""


class Journal(Protocol):
    """Takes what changed. Nothing here blocks, waits or raises: the controller never notices its journal."""

    @property
    def is_kept(self) -> bool:
        """Whether there is a journal at all; without one, nothing needs to be recorded."""
        ...

    @property
    def wants_snapshot(self) -> bool:
        """Whether something was dropped since the last snapshot, and there is room for another one."""
        ...

    def append(self, batch: Batch) -> None: ...


class EachJournal:
    """Several journals that are kept side by side; what one of them misses, the others have. Perhaps none."""

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
    """No journal is kept."""

    is_kept = False
    wants_snapshot = False

    def append(self, batch: Batch) -> None:
        """Nobody reads it."""
