"""Which clusters need a look, why, and which of them first: what a page of very many clusters begins with.

What is in the row of a cluster alone decides. Where an objective was given it says how much may be lost, else the steps of
the availability do. Data comes before time, and time that was lost before time of which nobody knows; a cluster of which
nothing comes any more may be in any state, so silence comes before what was merely slow.

For example: of `{"unclean": 1, "availability": 0.98}` the reasons are the unclean election and the lost time, and the tone
is bad; of a cluster that is silent for an hour it is unknown, whatever was known of it before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from kontroller.history.reports import words
from kontroller.history.reports.facts import Listed, Value
from kontroller.history.reports.objective import Objective
from kontroller.history.reports.period import MINUTE, Period
from kontroller.history.reports.tones import MOSTLY_KNOWN, Tone, tone_of, tone_of_budget

Kind = Literal["data", "violations", "lost", "silent", "unknown", "writers"]
SILENT_AFTER_US: Final = 10 * MINUTE
"""Before the end of the period: journals are fetched one after the other, and a term begins with a snapshot."""
MOST_URGENT: Final[tuple[Tone, ...]] = ("bad", "unknown", "warn", "good")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """To look at a cluster, in words."""

    kind: Kind
    tone: Tone
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Why a cluster needs a look: nothing, if it needs none. `tone` is the most urgent of the reasons'."""

    reasons: tuple[Reason, ...]

    @property
    def tone(self) -> Tone:
        return min((reason.tone for reason in self.reasons), key=MOST_URGENT.index, default="good")


def need_of(row: Mapping[str, Value], objective: Objective | None, period: Period) -> Need:
    """Of a row of the listing `clusters`."""
    return Need(reasons=(*_of_data(row), *_of_lost_time(row, objective), *_of_silence(row, period)))


def by_need(clusters: Listed, objective: Objective | None, period: Period) -> Listed:
    """The same rows: those that need a look first, the most urgent of them before the others."""
    rows = sorted(clusters.rows, key=lambda row: _order(row, need_of(row, objective, period)))
    return replace(clusters, rows=tuple(rows))


def _order(row: Mapping[str, Value], need: Need) -> tuple[float | str, ...]:
    amounts = ("unclean", "leaderless_seconds", "violations", "unknown_share", "under_seconds")
    return MOST_URGENT.index(need.tone), *(-_figure(row, name) for name in amounts), str(row["cluster_id"])


def _of_data(row: Mapping[str, Value]) -> Iterator[Reason]:
    if unclean := _figure(row, "unclean"):
        said = f"{words.counted(int(unclean), 'unclean election')}: data may be lost"
        yield Reason(kind="data", tone="bad", said=said)
    if broken := _figure(row, "violations"):
        yield Reason(kind="violations", tone="bad", said=words.counted(int(broken), "violation"))


def _of_lost_time(row: Mapping[str, Value], objective: Objective | None) -> Iterator[Reason]:
    ratio, writable = row["availability"], row["writable"]
    if not isinstance(ratio, float) or not isinstance(writable, float):
        return
    spent = None if objective is None else objective.spent_at(ratio)
    tone = tone_of(ratio) if spent is None else tone_of_budget(spent)
    if tone != "good":
        budget = "" if spent is None else f", {words.spent(spent)} of its budget"
        said = f"{words.duration(_figure(row, 'leaderless_seconds'))} without a leader{budget}"
        yield Reason(kind="lost", tone=tone, said=said)
    if _figure(row, "under_seconds") and tone_of(writable, warned_from=0.99) != "good":
        said = f"{words.duration(_figure(row, 'under_seconds'))} under min ISR"
        yield Reason(kind="writers", tone="warn", said=said)


def _of_silence(row: Mapping[str, Value], period: Period) -> Iterator[Reason]:
    until = row["known_until"]
    if not isinstance(until, int):
        # Without the known spans nobody can say since when, but something was known.
        if row["availability"] is None:
            yield Reason(kind="silent", tone="unknown", said="nothing is known of it")
    elif period.ended_us - until > SILENT_AFTER_US:
        yield Reason(kind="silent", tone="unknown", said=f"silent since {words.moment(until)}")
    elif (unknown := _figure(row, "unknown_share")) > 1 - MOSTLY_KNOWN:
        yield Reason(kind="unknown", tone="unknown", said=f"{words.share(unknown)} of the period unknown")


def _figure(row: Mapping[str, Value], name: str) -> float:
    value = row[name]
    return value if isinstance(value, int | float) else 0.0
