"""What a page says, as plain values: bounded in number, however long the history is, and free of Spark.

Times are microseconds since 1970, durations of sums as well; `seconds` in a name means seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal

from kontroller.history.reports.objective import Objective
from kontroller.history.reports.period import SECOND, Grid, Period
from kontroller.history.reports.stories import Story

Kind = Literal["text", "id", "count", "seconds", "time", "ratio", "share", "spent", "brokers", "flag", "lines"]
Value = str | int | float | bool | tuple[int, ...] | tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Uptime:
    """Sums over partitions, in microseconds. `known` contains what is leaderless, what is under min ISR, and detection."""

    known_us: int = 0
    unknown_us: int = 0
    leaderless_us: int = 0
    under_us: int = 0
    detection_us: int = 0
    """At most: led by a broker that had gone, and nobody had elected another yet."""
    detection_writable_us: int = 0
    """Of that, not under min ISR."""

    def __add__(self, other: "Uptime") -> "Uptime":
        return Uptime(
            known_us=self.known_us + other.known_us,
            unknown_us=self.unknown_us + other.unknown_us,
            leaderless_us=self.leaderless_us + other.leaderless_us,
            under_us=self.under_us + other.under_us,
            detection_us=self.detection_us + other.detection_us,
            detection_writable_us=self.detection_writable_us + other.detection_writable_us,
        )

    @property
    def availability(self) -> float | None:
        """None where nothing is known."""
        return None if self.known_us <= 0 else 1 - self.leaderless_us / self.known_us

    @property
    def write_availability(self) -> float | None:
        return None if self.known_us <= 0 else 1 - (self.leaderless_us + self.under_us) / self.known_us

    @property
    def availability_with_detection(self) -> float | None:
        """At least."""
        return None if self.known_us <= 0 else 1 - (self.leaderless_us + self.detection_us) / self.known_us

    @property
    def write_availability_with_detection(self) -> float | None:
        """At least."""
        lost_us = self.leaderless_us + self.under_us + self.detection_writable_us
        return None if self.known_us <= 0 else 1 - lost_us / self.known_us

    @property
    def unknown_share(self) -> float:
        whole = self.known_us + self.unknown_us
        return self.unknown_us / whole if whole else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`field` of a listing's rows, and how to write it."""

    title: str
    field: str
    kind: Kind = "text"
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The first rows of a table, worst first, of `total`. `table`: where all of them are."""

    name: str
    table: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Value], ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Nothing is known of this cluster from `began_us` to `ended_us`; `reason` is for people."""

    cluster: str
    began_us: int
    ended_us: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    name: str
    uptime: Uptime
    days: Mapping[date, Uptime]
    strip: "Strip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """One row of a picture over time."""

    cluster: str
    label: str
    cells: tuple[Uptime, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    label: str
    values: tuple[float | None, ...]
    """One for each piece of the grid; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    cluster: str
    rows: tuple[HeatRow, ...]
    total: int
    """Rows that there are; more than `rows` where these were cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A state that lasted. `state` is a class of the style sheet."""

    began_us: int
    ended_us: int
    state: str
    label: str
    tip: str
    term: tuple[str, int] | None = None
    """The cluster and controller epoch that it is of, where it is of one."""
    row: str = ""
    """The id of the row of the page that says more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    label: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something that the controller did at one moment, in an episode."""

    at_us: int
    cause: str
    partitions: int
    places: str
    """The topics and partitions, in words."""
    leaderless: int
    unclean: int
    inferred: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """From here on there were so many; in between, shorter than a pixel, there were at most `peak`."""

    at_us: int
    peak: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """Incidents of one cluster that began soon after one another."""

    cluster: str
    began_us: int
    ended_us: int
    """When the last of its incidents ended; the picture may end before, at `shown_until_us`."""
    shown_until_us: int
    incidents: int
    partitions: int
    uptime: Uptime
    unclean: int
    brokers: tuple[Lane, ...]
    brokers_total: int
    controllers: tuple[Bar, ...]
    unknowns: tuple[Unknown, ...]
    leaderless: tuple[Step, ...]
    under: tuple[Step, ...]
    marks: tuple[Mark, ...]
    marks_total: int
    story: Story


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The figures of the period before."""

    period: Period
    uptime: Uptime
    exposed_us: int
    """Partition time with one replica in sync."""
    known_clock_us: int
    """By the clock, summed over clusters."""
    counts: Mapping[str, int]
    """Of incidents, failovers, ...; without those whose table was not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that the page shows."""

    period: Period
    grid: Grid
    day_grid: Grid
    clusters: tuple[ClusterFacts, ...]
    """Those that are drawn over time."""
    clusters_total: int
    """Of which anything lies in the period; the listing `clusters` has those that fell silent before as well."""
    uptime: Uptime
    partitions: int
    topics_total: int
    unknown_us: int
    """By the clock, summed over clusters."""
    unknowns: tuple[Unknown, ...]
    """The longest, of `unknowns_total`, longest first."""
    unknowns_total: int
    strips: tuple[Strip, ...]
    leaders: tuple[Heat, ...]
    out_of_sync: tuple[Heat, ...]
    flaps: tuple[Heat, ...]
    exposure: Mapping[date, tuple[int, int]]
    """Partition time with one replica in sync, and within one rack, in microseconds."""
    failover_bins: Mapping[int, int]
    """How many took 10 ** (bin / 4) seconds or more, to the next bin."""
    tallies: Mapping[str, int]
    controllers: tuple[Lane, ...]
    episodes: tuple[Episode, ...]
    episodes_total: int
    listings: Mapping[str, Listed]
    missing: tuple[str, ...]
    """Tables that were not given."""
    quiet_us: int
    """So long without a new incident, and the next one belongs to another episode."""
    broker_session_timeout_ms: int = 0
    """For so long at most a broker had been dead when the controller heard of it."""
    has_whole_days: bool = False
    """Whether sums are of the whole days that the period touches."""
    before: Before | None = None
    objective: Objective | None = None

    @property
    def is_known(self) -> bool:
        return self.uptime.known_us > 0

    @property
    def has_many_clusters(self) -> bool:
        return self.listings["clusters"].total > 1

    @property
    def known_clock_us(self) -> int:
        return max(0, self.clusters_total * (self.period.ended_us - self.period.began_us) - self.unknown_us)


def seconds(micros: int) -> float:
    return micros / SECOND
