"""The facts of a page as plain values, without Spark. Their number is bounded for a history of any length.

Times are microseconds since 1970, and sums of durations are microseconds. `seconds` in a name means seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from typing import Literal

from kontroller.history.reports.names import Names
from kontroller.history.reports.objective import Objective
from kontroller.history.reports.period import SECOND, Grid, Period
from kontroller.history.reports.service_levels import Level
from kontroller.history.reports.stories import Story

Kind = Literal["text", "id", "count", "seconds", "time", "ratio", "share", "spent", "rate", "brokers", "flag", "lines"]
Bounds = tuple[float, float]
"""The least and the most that a ratio can have been."""
Value = str | int | float | bool | tuple[int, ...] | tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Uptime:
    """Sums over partitions, in microseconds. `known` includes leaderless time, time under min ISR, and detection."""

    known_us: int = 0
    unknown_us: int = 0
    leaderless_us: int = 0
    under_us: int = 0
    detection_us: int = 0
    """An upper bound of the time under a lost leader before the controller elected another."""
    detection_writable_us: int = 0
    """The part of the detection time in which the ISR was not under min ISR."""
    silent_us: int = 0
    """The time of the period before the history begins and after it ends, for the mean number of partitions. If all of
    the period is after the history, for the last number of partitions."""

    def __add__(self, other: "Uptime") -> "Uptime":
        return Uptime(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})

    @property
    def availability(self) -> float | None:
        """None if nothing is known."""
        return None if self.known_us <= 0 else 1 - self.leaderless_us / self.known_us

    @property
    def bounds(self) -> "Bounds | None":
        """The availability if all unknown time was down, and if all of it was up. None if nothing is known."""
        return self._find_bounds(self.leaderless_us)

    @property
    def write_bounds(self) -> "Bounds | None":
        return self._find_bounds(self.leaderless_us + self.under_us)

    def _find_bounds(self, lost_us: int) -> "Bounds | None":
        unknown_us = self.unknown_us + self.silent_us
        whole_us = self.known_us + unknown_us
        return None if self.known_us <= 0 else (1 - (lost_us + unknown_us) / whole_us, 1 - lost_us / whole_us)

    @property
    def write_availability(self) -> float | None:
        return None if self.known_us <= 0 else 1 - (self.leaderless_us + self.under_us) / self.known_us

    @property
    def availability_with_detection(self) -> float | None:
        """A lower bound."""
        return None if self.known_us <= 0 else 1 - (self.leaderless_us + self.detection_us) / self.known_us

    @property
    def write_availability_with_detection(self) -> float | None:
        """A lower bound."""
        lost_us = self.leaderless_us + self.under_us + self.detection_writable_us
        return None if self.known_us <= 0 else 1 - lost_us / self.known_us

    @property
    def unknown_share(self) -> float:
        whole = self.known_us + self.unknown_us
        return self.unknown_us / whole if whole else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a listing: a `field` of its rows, and its format."""

    title: str
    field: str
    kind: Kind = "text"
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The first of `total` rows of a table, worst first. `table` is the name of the file with all rows."""

    name: str
    table: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Value], ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A time in which nothing is known of a cluster. `reason` is for people."""

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
    """A row of a picture over time."""

    cluster: str
    label: str
    cells: tuple[Uptime, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    label: str
    values: tuple[float | None, ...]
    """A value for each piece of the grid; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    cluster: str
    rows: tuple[HeatRow, ...]
    total: int
    """The number of all rows, which is more than `rows` if some were left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A state that lasted. `state` is a class of the style sheet."""

    began_us: int
    ended_us: int
    state: str
    label: str
    tip: str
    term: tuple[str, int] | None = None
    """The cluster and the controller epoch of a controller's bar."""
    row: str = ""
    """The id of the page's row with details."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    label: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """An action of the controller in an episode."""

    at_us: int
    cause: str
    partitions: int
    places: str
    """The topics and partitions in words."""
    leaderless: int
    unclean: int
    inferred: bool
    asked_by: str = ""
    """The client whose request was the cause, such as `User:alice from 10.0.0.7`. Empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The number `value` from this time on. Shorter than a pixel, up to `peak` were counted."""

    at_us: int
    peak: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """Incidents of one cluster that began soon after each other."""

    cluster: str
    began_us: int
    ended_us: int
    """The end of its last incident. The picture may end earlier, at `shown_until_us`."""
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
    """The figures of the previous period."""

    period: Period
    uptime: Uptime
    exposed_us: int
    """The partition time with one replica in sync."""
    known_clock_us: int
    """The known time by the clock, summed over clusters."""
    counts: Mapping[str, int]
    """The numbers of incidents, failovers and so on, except those whose table was not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All facts of the page."""

    period: Period
    grid: Grid
    day_grid: Grid
    clusters: tuple[ClusterFacts, ...]
    """The clusters that are drawn over time."""
    clusters_total: int
    """The number of clusters with data in the period. The listing `clusters` also has those that fell silent before."""
    silent_clusters: int
    """The number of clusters that fell silent before the period. All of it is unknown of them."""
    uptime: Uptime
    partitions: int
    topics_total: int
    unknown_us: int
    """The unknown time by the clock, summed over clusters."""
    unknowns: tuple[Unknown, ...]
    """The longest gaps, longest first. `unknowns_total` counts all."""
    unknowns_total: int
    strips: tuple[Strip, ...]
    leaders: tuple[Heat, ...]
    out_of_sync: tuple[Heat, ...]
    flaps: tuple[Heat, ...]
    exposure: Mapping[date, tuple[int, int]]
    """The partition time with one replica in sync, and within one rack, in microseconds, by day."""
    failover_bins: Mapping[int, int]
    """The number of failovers from 10 ** (bin / 4) seconds up to the next bin."""
    tallies: Mapping[str, int]
    controllers: tuple[Lane, ...]
    episodes: tuple[Episode, ...]
    episodes_total: int
    listings: Mapping[str, Listed]
    missing: tuple[str, ...]
    """The tables that were not given."""
    quiet_us: int
    """The time without a new incident that ends an episode."""
    broker_session_timeout_ms: int = 0
    """The longest time that a broker can have been dead before the controller noticed."""
    has_whole_days: bool = False
    """True if sums cover the whole days that the period touches."""
    before: Before | None = None
    objective: Objective | None = None
    level: Level | None = None
    """The service level of all clusters together; None if it is not known."""
    levels: tuple[Level, ...] = ()
    """The service level of each cluster."""
    names: Names = field(default_factory=Names)

    @property
    def is_known(self) -> bool:
        return self.uptime.known_us > 0

    @property
    def has_many_clusters(self) -> bool:
        return self.listings["clusters"].total > 1

    @property
    def clock_us(self) -> int:
        """The length of the period, summed over clusters."""
        return (self.clusters_total + self.silent_clusters) * (self.period.ended_us - self.period.began_us)

    @property
    def known_clock_us(self) -> int:
        return max(0, self.clock_us - self.unknown_us)


def seconds(micros: int) -> float:
    return micros / SECOND
