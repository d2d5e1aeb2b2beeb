"""Findings about the numbers and clocks of a history: `gap`, `silence`, `clock_went_back`, `clock_not_believed`.

They concern the few records at which a history breaks, and those that are a little earlier than their predecessor.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f

from controller_core.model.wording import format_count, format_utc
from kontroller.history.schemas import FINDINGS, LONG, TEXT, columns
from kontroller.history.transforms.continuity.breaks import BACK, BREAK, END, MARKS, SILENCE, Mark, runs, sort_marks
from kontroller.history.transforms.continuity.clock_runs import Place, place_runs
from kontroller.history.transforms.in_groups import apply_to_groups
from kontroller.history.transforms.lines import LOGS

_DAY_US: Final = 86_400_000_000
_FOUND: Final = columns(
    cluster_id=TEXT, problem=TEXT, source=TEXT, controller_epoch=LONG, seq=LONG, time_us=LONG, count=LONG, detail=TEXT
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A finding about a record and its predecessor."""

    problem: str
    at: Mark
    count: int
    detail: str
    time_us: int | None = None
    """The time of the record; None if its clock is not believed."""


def doubts(marks: DataFrame) -> DataFrame:
    """Return `schemas.FINDINGS` from the `MARKS` of histories."""
    found = apply_to_groups(
        marks.where(f.col("mark").isin(BREAK, END)), ["cluster_id"], MARKS.fieldNames(), _doubt_cluster, _FOUND
    )
    found = found.withColumns({"event_time": f.timestamp_micros("time_us"), "line": f.lit(None).cast(LONG)})
    return found.select(*FINDINGS.schema.fieldNames())


def doubts_of(marks: Sequence[Mark]) -> Iterator[Doubt]:
    """Return the findings of a cluster from its marks in their order."""
    places = place_runs(runs(marks))
    by_run: list[list[Mark]] = []
    for mark in marks[:-1]:
        if mark.step or not by_run:
            by_run.append([])
        by_run[-1].append(mark)
        number = len(by_run) - 1
        place = places[number]
        found = (*_doubt_numbers(mark), *_doubt_clocks(mark, places[max(number - bool(mark.step), 0) : number + 1]))
        yield from (
            replace(doubt, time_us=place.clamp(mark.time_us)) if place.is_believed else doubt for doubt in found
        )
    for place, run, following in zip(places, by_run, [*(run[0] for run in by_run[1:]), marks[-1]], strict=True):
        if not place.is_believed:
            yield _doubt_run([*run, following])


def _doubt_numbers(mark: Mark) -> Iterator[Doubt]:
    if mark.dropped:
        detail = "the writer recorded that it was too slow or its disk was full"
        yield Doubt(problem="gap", at=mark, count=mark.dropped, detail=detail)
    if mark.missing:
        detail = f"{mark.missing} records before {mark.seq} are missing for an unknown reason"
        yield Doubt(problem="gap", at=mark, count=mark.missing, detail=detail)


def _doubt_clocks(mark: Mark, places: Sequence[Place]) -> Iterator[Doubt]:
    """Return the findings about a clock. `places`: of the previous run, and of the record's own run if it begins
    one."""
    if mark.time_us_before is None or not all(place.is_believed for place in places):
        return
    passed_us = mark.time_us - mark.time_us_before
    if mark.step == BACK:
        detail = f"by {_seconds(-passed_us)}: earlier records with a later timestamp count as of this time"
        yield Doubt(problem="clock_went_back", at=mark, count=1, detail=detail)
    elif passed_us < 0:
        detail = f"by {_seconds(-passed_us)}: it counts as of the latest time before it"
        yield Doubt(problem="clock_went_back", at=mark, count=1, detail=detail)
    is_silence = mark.step == SILENCE and mark.origin != LOGS
    if is_silence and (not mark.forgets or passed_us > _DAY_US):
        since = f"no record since {format_utc(mark.time_us_before)}, for {_seconds(passed_us)}: that time is unknown"
        why = "was the writer frozen or stopped, its clock set, or is a journal missing?"
        yield Doubt(problem="silence", at=mark, count=1, detail=f"{since}; {why}")


def _doubt_run(marks: Sequence[Mark]) -> Doubt:
    """Return the finding of a run that is not trusted, from its marks and the one after it."""
    first = marks[0]
    records = sum(1 + (after.seq_before or 0) - mark.seq for mark, after in pairwise(marks))
    detail = (
        f"the timestamps of controller {first.controller_id} from {format_utc(first.time_us)} on contradict the records "
        "before and after: check the clock of its machine. These records keep their order, and have no time"
    )
    return Doubt(problem="clock_not_believed", at=first, count=records, detail=detail)


def _seconds(time_us: int) -> str:
    return f"{format_count(round(time_us / 1e6), 'second')}" if time_us >= 1_000_000 else f"{time_us / 1000:g} ms"


def _doubt_cluster(marks: Sequence[Row]) -> Iterator[dict[str, object]]:
    for doubt in doubts_of(sort_marks(marks)):
        yield {
            "cluster_id": marks[0]["cluster_id"],
            "problem": doubt.problem,
            "source": doubt.at.source,
            "controller_epoch": doubt.at.controller_epoch,
            "seq": doubt.at.seq,
            "time_us": doubt.time_us,
            "count": doubt.count,
            "detail": doubt.detail,
        }
