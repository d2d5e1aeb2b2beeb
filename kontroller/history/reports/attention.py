"""The clusters that need attention, the reasons, and their order, for the top of a page of many clusters.

Only the row of a cluster decides. An objective, if given, sets the allowed loss; otherwise fixed steps of availability
do. Clusters are sorted by tone, then by lost data and lost time. A silent cluster may be in any state, so it comes
before one that was only slow.

For example, the reasons of `{"unclean": 1, "availability": 0.98}` are the unclean election and the lost time, and its
tone is bad. A cluster that has been silent for an hour is unknown, whatever was known of it before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from kontroller.history.reports import words
from kontroller.history.reports.facts import Listed, Value
from kontroller.history.reports.objective import Objective
from kontroller.history.reports.period import MINUTE, Period
from kontroller.history.reports.tones import MOSTLY_KNOWN, Tone, tone_of, tone_of_budget

Kind = Literal["data", "violations", "lost", "clock", "silent", "unknown", "writers"]
SILENT_AFTER_US: Final = 10 * MINUTE
"""The tolerated silence before the end of the period: journals are fetched in turn, and a term begins with a
snapshot. A clock may be ahead by as much."""
MOST_URGENT: Final[tuple[Tone, ...]] = ("bad", "unknown", "warn", "good")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A reason to look at a cluster, in words."""

    kind: Kind
    tone: Tone
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The reasons to look at a cluster; none if it needs no attention. `tone` is the most urgent one of them."""

    reasons: tuple[Reason, ...]

    @property
    def tone(self) -> Tone:
        return min((reason.tone for reason in self.reasons), key=MOST_URGENT.index, default="good")


def need_of(row: Mapping[str, Value], objective: Objective | None, period: Period) -> Need:
    """Return the need of a row of the listing `clusters`."""
    return Need(
        reasons=(
            *_find_data_reasons(row),
            *_find_lost_time_reasons(row, objective),
            *_find_silence_reasons(row, period),
        )
    )


def sort_by_need(clusters: Listed, objective: Objective | None, period: Period) -> Listed:
    """Return the same rows with the most urgent clusters first."""
    rows = sorted(clusters.rows, key=lambda row: _order(row, need_of(row, objective, period)))
    return replace(clusters, rows=tuple(rows))


def _order(row: Mapping[str, Value], need: Need) -> tuple[float | str, ...]:
    amounts = ("unclean", "leaderless_seconds", "violations", "unknown_share", "under_seconds")
    return MOST_URGENT.index(need.tone), *(-_figure(row, name) for name in amounts), str(row["cluster_id"])


def _find_data_reasons(row: Mapping[str, Value]) -> Iterator[Reason]:
    if unclean := _figure(row, "unclean"):
        said = f"{words.format_count(int(unclean), 'unclean election')}: data may be lost"
        yield Reason(kind="data", tone="bad", said=said)
    if broken := _figure(row, "violations"):
        yield Reason(kind="violations", tone="bad", said=words.format_count(int(broken), "violation"))


def _find_lost_time_reasons(row: Mapping[str, Value], objective: Objective | None) -> Iterator[Reason]:
    ratio, writable = row["availability"], row["writable"]
    if not isinstance(ratio, float) or not isinstance(writable, float):
        return
    spent = None if objective is None else objective.compute_spent_share(ratio)
    tone = tone_of(ratio) if spent is None else tone_of_budget(spent)
    if tone != "good":
        budget = "" if spent is None else f", {words.format_spent(spent)} of its budget"
        said = f"{words.duration(_figure(row, 'leaderless_seconds'))} without a leader{budget}"
        yield Reason(kind="lost", tone=tone, said=said)
    if _figure(row, "under_seconds") and tone_of(writable, warned_from=0.99) != "good":
        said = f"{words.duration(_figure(row, 'under_seconds'))} under min ISR"
        yield Reason(kind="writers", tone="warn", said=said)


def _find_silence_reasons(row: Mapping[str, Value], period: Period) -> Iterator[Reason]:
    until = row["known_until"]
    if not isinstance(until, int):
        # Without the known spans the beginning of the silence is unknown, but something was known.
        if row["availability"] is None:
            yield Reason(kind="silent", tone="unknown", said="no known history")
    elif until > period.ended_us:
        yield Reason(
            kind="clock",
            tone="unknown",
            said=f"its clock is ahead of the clock here: records until {words.moment(until)}",
        )
    elif period.ended_us - until > SILENT_AFTER_US:
        yield Reason(kind="silent", tone="unknown", said=f"silent since {words.moment(until)}")
    elif (unknown := _figure(row, "unknown_share")) > 1 - MOSTLY_KNOWN:
        yield Reason(kind="unknown", tone="unknown", said=f"{words.share(unknown)} of the period unknown")


def _figure(row: Mapping[str, Value], name: str) -> float:
    value = row[name]
    return value if isinstance(value, int | float) else 0.0
