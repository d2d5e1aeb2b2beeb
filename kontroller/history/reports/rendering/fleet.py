"""The overview of many clusters: the number that needs attention and why, the most urgent ones, and a tile for each."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kontroller.history.reports import words
from kontroller.history.reports.attention import Kind, Need, need_of
from kontroller.history.reports.facts import Report, Value
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.names import Names
from kontroller.history.reports.plots.scales import ratio_class, ratio_digit
from kontroller.history.reports.rendering.leads import row_id
from kontroller.history.reports.tones import SIGNS, Tone

CLUSTERS: Final = "clusters"
KINDS: Final[Mapping[Kind, str]] = {
    "data": "may have lost data",
    "violations": "violated an invariant",
    "lost": "exceeded the allowed downtime",
    "writers": "blocked writers",
    "clock": "have a clock that is ahead",
    "silent": "silent",
    "unknown": "partly unknown",
}
"""Kinds of reasons, in the order of the page."""

AT_LEAST: Final[Mapping[Tone, int]] = {"bad": 3, "unknown": 2, "warn": 1}
"""The lowest number of concerns of each tone at the top of the page, if there are so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """A cluster that needs attention, and the id of its row."""

    row: str
    cluster: str
    available: str
    reasons: str
    tone: Tone

    @property
    def sign(self) -> str:
        return SIGNS[self.tone]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A cluster as a small square. `state` is a class of the style sheet."""

    row: str
    state: str
    digit: str
    tip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    said: str
    kinds: str
    """The number of clusters for each reason; "" if none needs attention."""
    concerns: tuple[Concern, ...]
    rest: int
    """The number of further clusters that need attention."""
    tiles: tuple[Tile, ...]
    """Sorted by the names of the clusters."""


def fleet(report: Report, limits: Limits) -> Fleet | None:
    """Return the overview, or None for a single cluster. The rows of the listing come from `by_need`."""
    listed = report.listings[CLUSTERS]
    if listed.total <= 1:
        return None
    needs = [need_of(row, report.objective, report.period) for row in listed.rows]
    wanting = sum(bool(need.reasons) for need in needs)
    # If even the last listed cluster needs attention, clusters that are not listed may need it as well.
    at_least = "At least " if wanting == len(needs) < listed.total else ""
    return Fleet(
        said=f"{at_least}{wanting:,} of {words.format_count(listed.total, 'cluster')} need{'s' * (wanting == 1)} attention"
        if wanting
        else f"None of {words.format_count(listed.total, 'cluster')} needs attention",
        kinds=_kinds(needs),
        concerns=tuple(
            _concern(index, listed.rows[index], needs[index], report.names)
            for index in _select_concerns(needs, limits.concerns)
        ),
        rest=max(0, wanting - limits.concerns),
        tiles=_tiles(listed.rows, needs),
    )


def reasons_of(report: Report) -> Mapping[str, str]:
    """Return the reasons of the listed clusters that need attention, by the id of their rows."""
    rows = enumerate(report.listings[CLUSTERS].rows)
    return {
        row_id(CLUSTERS, index): _join_reasons(need_of(row, report.objective, report.period)) for index, row in rows
    }


def _select_concerns(needs: list[Need], most: int) -> list[int]:
    """Return the most urgent concerns, with some of each tone, so that many bad clusters do not hide a silent one."""
    by_tone: dict[Tone, list[int]] = {tone: [] for tone in AT_LEAST}
    for index, need in enumerate(needs):
        if need.reasons:
            by_tone[need.tone].append(index)
    kept = [index for tone, count in AT_LEAST.items() for index in by_tone[tone][:count]]
    others = sorted({index for its in by_tone.values() for index in its}.difference(kept))
    return sorted([*kept, *others][:most])


def _kinds(needs: list[Need]) -> str:
    counts = Counter(reason.kind for need in needs for reason in need.reasons)
    return ", ".join(f"{counts[kind]:,} {said}" for kind, said in KINDS.items() if counts[kind])


def _concern(index: int, row: Mapping[str, Value], need: Need, names: Names) -> Concern:
    return Concern(
        row=row_id(CLUSTERS, index),
        cluster=names.say(str(row["cluster_id"])),
        available=_available(row),
        reasons=_join_reasons(need),
        tone=need.tone,
    )


def _tiles(rows: tuple[Mapping[str, Value], ...], needs: list[Need]) -> tuple[Tile, ...]:
    in_order = sorted(enumerate(zip(rows, needs, strict=True)), key=lambda one: str(one[1][0]["cluster_id"]))
    return tuple(_tile(index, row, need) for index, (row, need) in in_order)


def _tile(index: int, row: Mapping[str, Value], need: Need) -> Tile:
    ratio, tip = (
        row["availability"],
        f"{row['cluster_id']}: {_available(row)}; {_join_reasons(need) or 'needs no attention'}",
    )
    is_silent = any(reason.kind == "silent" for reason in need.reasons)
    if is_silent or not isinstance(ratio, float):
        return Tile(row=row_id(CLUSTERS, index), state="u", digit="?", tip=tip)
    digit = "!" if need.tone == "bad" and ratio >= 1 else ratio_digit(ratio)
    return Tile(row=row_id(CLUSTERS, index), state=ratio_class(ratio), digit=digit, tip=tip)


def _available(row: Mapping[str, Value]) -> str:
    least, most = row["at_least"], row["at_most"]
    if not isinstance(least, float) or not isinstance(most, float):
        return words.NOT_KNOWN
    return f"{words.format_bounds((least, most))} available"


def _join_reasons(need: Need) -> str:
    return "; ".join(reason.said for reason in need.reasons)
