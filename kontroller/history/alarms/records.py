"""The input, the memory and the output of the watch: plain values that can be stored as rows, without Spark."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

Position = tuple[int, int]
"""The controller epoch and number of a record, which order a history."""

NOWHERE: Final = (-1, -1)
LEADERLESS: Final = "leaderless"
UNDER_MIN_ISR: Final = "under_min_isr"
SILENT: Final = "silent"
PROBLEMS: Final = (LEADERLESS, UNDER_MIN_ISR, SILENT)
RAISED: Final = "raised"
CLEARED: Final = "cleared"


class Seen(NamedTuple):
    """The fields of a record that the watch uses. `in_sync` and `assigned` are the sizes of ISR and AR; None:
    unchanged."""

    controller_epoch: int
    seq: int
    at_us: int
    kind: str
    cause: str | None = None
    topic: str | None = None
    partition: int | None = None
    leader: int | None = None
    in_sync: int | None = None
    min_isr: int | None = None
    assigned: int | None = None
    broker: int | None = None

    @property
    def position(self) -> Position:
        return self.controller_epoch, self.seq


class Replicas(NamedTuple):
    """A partition: its leader and ISR size as of one record, and the number of assigned replicas as of another.

    They are None if it was deleted, or if no record has stated them."""

    position: Position = NOWHERE
    leader: int | None = None
    in_sync: int | None = None
    assigned_position: Position = NOWHERE
    assigned: int | None = None

    @property
    def newest(self) -> Position:
        return max(self.position, self.assigned_position)

    def apply(self, record: Seen) -> "Replicas":
        """Return the partition after a record about it, unless a later one was applied."""
        if record.kind.startswith("assignment"):
            assigned = None if record.kind == "assignment_removed" else record.assigned
            is_new = record.position > self.assigned_position
            return self._replace(assigned_position=record.position, assigned=assigned) if is_new else self
        if record.position <= self.position:
            return self
        if record.kind == "leadership_removed":
            return self._replace(position=record.position, leader=None, in_sync=None)
        leader = self.leader if record.leader is None else record.leader
        in_sync = self.in_sync if record.in_sync is None else record.in_sync
        return self._replace(position=record.position, leader=leader, in_sync=in_sync)

    def rewind(self, position: Position) -> "Replicas":
        """Return the partition as stated at `position` or before, so that all records after it apply."""
        return self._replace(
            position=min(self.position, position), assigned_position=min(self.assigned_position, position)
        )

    def remove(self, position: Position) -> "Replicas":
        """Return the partition after its deletion. Later records stay valid."""
        leader, in_sync, at = self.leader, self.in_sync, self.position
        if at < position:
            leader, in_sync, at = None, None, position
        if self.assigned_position < position:
            return Replicas(at, leader, in_sync, position, None)
        return Replicas(at, leader, in_sync, self.assigned_position, self.assigned)


@dataclass(slots=True, kw_only=True)
class Topic:
    """A topic's partitions, and its own `min.insync.replicas`; None if it has none."""

    config_position: Position = NOWHERE
    min_isr: int | None = None
    partitions: dict[int, Replicas] = field(default_factory=dict)

    def rewind(self, position: Position) -> "Topic":
        """Return the topic as stated at `position` or before, so that all records after it apply."""
        partitions = {number: replicas.rewind(position) for number, replicas in self.partitions.items()}
        return Topic(config_position=min(self.config_position, position), min_isr=self.min_isr, partitions=partitions)


class Trouble(NamedTuple):
    """A present problem of a partition, and the record that it began with."""

    problem: str
    began_us: int
    """The event time of that record."""
    since_us: int
    """The watch's own time at that record."""
    cause: str | None
    position: Position
    is_raised: bool


class Alarm(NamedTuple):
    """A row of the table `alarms`, without its cluster. An alarm about the whole cluster has no topic and no
    partition."""

    topic: str | None
    partition: int | None
    problem: str
    state: str
    began_us: int
    at_us: int
    cause: str | None
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The time that each problem may last without an alarm, and the `min.insync.replicas` if no record states it.

    `alive_interval_us` is the longest time between two records of a live controller. Raises ValueError for
    contradictory times."""

    leaderless_after_us: int
    under_min_isr_after_us: int
    min_isr: int
    alive_interval_us: int = 10_000_000
    silent_after_us: int = 30_000_000

    def __post_init__(self) -> None:
        if min(self.leaderless_after_us, self.under_min_isr_after_us) < 0:
            raise ValueError(
                "the time before an alarm cannot be less than 0 seconds: give 0 for an alarm at every problem"
            )
        if not 0 < self.alive_interval_us <= self.silent_after_us:
            raise ValueError(
                "a cluster cannot be silent within its controller's alive interval: give an interval above 0, and a "
                "time until silence that is not shorter"
            )

    def patience_us(self, problem: str) -> int:
        return self.leaderless_after_us if problem == LEADERLESS else self.under_min_isr_after_us

    def due_us(self, trouble: Trouble) -> int:
        """Return the watch's own time at which the alarm is due."""
        return trouble.since_us + self.patience_us(trouble.problem)
