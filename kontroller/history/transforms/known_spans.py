"""The known spans of a cluster: from a snapshot to the last record before a lost record or a silence.

A history breaks (`continuity.breaks`) at a missing record, a gap, a new term or recorder, or an unsteady clock. After a
lost record the state is unknown until the next snapshot. A set clock, a silence, or a time without observation loses no
record: the state continues, and only the time between is unknown. Text logs have no snapshots, so a span is an epoch;
states are known from their first mention on, and over consecutive epochs; silence breaks nothing.

Example: records 1 to 3 are a snapshot, 4 is at 10:00:10; the controller is frozen for an hour, and 5 is at 11:00:10.
The spans are [10:00:00, 10:00:10) and [11:00:10, ...). Nothing is known of the hour between.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f

from kontroller.history.schemas import KNOWN_SPANS, LONG, columns
from kontroller.history.transforms.continuity.breaks import (
    BREAK,
    END,
    MARKS,
    SILENCE,
    SNAPSHOT,
    UNSEEN,
    Mark,
    runs,
    sort_marks,
)
from kontroller.history.transforms.continuity.clock_runs import Place, place_runs
from kontroller.history.transforms.continuity.neighbours import EPOCH
from kontroller.history.transforms.in_groups import apply_to_groups
from kontroller.history.transforms.lines import LOGS

_SPANS: Final = columns(**{
    field.name: LONG if field.name in ("began", "ended", "known_again") else field.dataType
    for field in KNOWN_SPANS.schema
})  # fmt: skip
"""The same columns, with times in microseconds."""


def find_known_spans(marks: DataFrame) -> DataFrame:
    """Return `schemas.KNOWN_SPANS` from the `MARKS` of histories."""
    spans = apply_to_groups(marks, ["cluster_id"], MARKS.fieldNames(), _find_cluster_spans, _SPANS)
    times = {name: f.timestamp_micros(name) for name in ("began", "ended", "known_again")}
    return spans.withColumns(times).select(*KNOWN_SPANS.schema.fieldNames())


def states(spans: DataFrame) -> DataFrame:
    """Return the spans of each snapshot as one row, in which the state is known from record to record, whatever the
    clock was.

    `span` is the first of them."""
    return spans.groupBy(*EPOCH, "snapshot_seq").agg(
        f.min("span").alias("span"), f.min("first_seq").alias("first_seq"), f.max("last_seq").alias("last_seq")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A row of KNOWN_SPANS without its cluster and number. Times are microseconds since 1970."""

    controller_epoch: int
    controller_id: int | None
    origin: str | None
    first_seq: int
    snapshot_seq: int
    last_seq: int
    began: int
    ended: int
    has_time: bool
    ended_by: str
    known_again: int | None = None
    is_steady: bool
    """True if the clock is steady from its last record to the next one. This field and the next one are no columns."""
    is_last: bool
    """True if the history ends with it."""


def spans_of(marks: Sequence[Mark]) -> list[Span]:
    """Return the known spans of a cluster from its marks in their order. The first mark is a break, the last the
    end."""
    places = place_runs(runs(marks))
    spans = [*_never_backwards(_spans(marks, places))]
    return [*_add_known_again(spans, places[-1].ended_us)]


class _Snapshot(NamedTuple):
    """The beginning of a known state: a snapshot, or the first record of an epoch of logs."""

    first_seq: int
    seq: int


class _Opened(NamedTuple):
    """The beginning of an open span: the record that began its term, its first number, and its time."""

    begin: Mark
    first_seq: int
    began_us: int
    latest_us: int
    """The latest time before small backward steps of the clock. The state was known until then."""

    def extend(self, time_us: int) -> "_Opened":
        return self._replace(latest_us=max(self.latest_us, time_us))


def _spans(marks: Sequence[Mark], places: list[Place]) -> Iterator[Span]:
    """Read the marks. A span ends at a break, and begins at the end of a snapshot, or if the state continues."""
    run, begin = -1, marks[0]
    snapshot: _Snapshot | None = None
    started: int | None = None
    opened: _Opened | None = None
    for mark in marks:
        if mark.mark == SNAPSHOT[0]:
            started = mark.seq
        elif mark.mark == SNAPSHOT[1]:
            if started is not None and snapshot is None:
                snapshot = _Snapshot(started, mark.seq)
                began_us = places[run].clamp(mark.time_us)
                opened = _Opened(begin, started, began_us, began_us)
            started = None
        elif _is_little_earlier(mark):
            assert mark.time_us_before is not None
            opened = opened and opened.extend(places[run].clamp(mark.time_us_before))
        else:
            next_run = run + (run < 0 or mark.step is not None)
            if opened and snapshot and not _says_nothing(mark, begin, places[run : next_run + 1]):
                yield _close(opened, snapshot, mark, places[run : next_run + 1])
                opened = None
            run = next_run
            if mark.forgets:
                begin, started = mark, None
                snapshot = _Snapshot(mark.seq, mark.seq) if mark.origin == LOGS else None
            if snapshot and not opened and mark.mark == BREAK:
                began_us = places[run].clamp(mark.time_us)
                opened = _Opened(begin, mark.seq, began_us, began_us)


def _is_little_earlier(mark: Mark) -> bool:
    return mark.mark == BREAK and not mark.forgets and mark.step is None


def _says_nothing(mark: Mark, begin: Mark, places: list[Place]) -> bool:
    """Return True for a silence of logs, which breaks nothing."""
    is_silence = mark.step == SILENCE and not mark.forgets and begin.origin == LOGS
    return is_silence and all(place.is_believed for place in places)


def _close(opened: _Opened, snapshot: _Snapshot, by: Mark, places: list[Place]) -> Span:
    assert by.seq_before is not None
    assert by.time_us_before is not None
    is_steady = by.step in (None, SILENCE) and all(place.is_believed for place in places)
    return Span(
        controller_epoch=opened.begin.controller_epoch,
        controller_id=opened.begin.controller_id,
        origin=opened.begin.origin,
        first_seq=opened.first_seq,
        snapshot_seq=snapshot.seq,
        last_seq=by.seq_before,
        began=opened.began_us,
        ended=max(opened.latest_us, places[0].clamp(by.time_us_before)),
        has_time=places[0].is_believed,
        ended_by=_find_end_reason(opened.begin, by, is_steady=is_steady),
        is_steady=is_steady,
        is_last=by.mark == END,
    )


def _find_end_reason(begin: Mark, by: Mark, *, is_steady: bool) -> str:
    if by.was_resigned:
        return "resigned"
    if by.mark == END:
        return "end"
    if by.forgets:
        return "gap" if by.controller_epoch == begin.controller_epoch else "silence"
    if by.step == UNSEEN:
        return "unobserved"
    return "silence" if is_steady else "clock"


def _never_backwards(spans: Iterable[Span]) -> Iterator[Span]:
    """Replace times that are a little earlier than their predecessors within a run by those."""
    latest_us: int | None = None
    for span in spans:
        began = span.began if latest_us is None else max(span.began, latest_us)
        latest_us = max(began, span.ended)
        yield replace(span, began=began, ended=latest_us)


def _add_known_again(spans: list[Span], history_ended_us: int) -> Iterator[Span]:
    """Add `known_again`. A state from logs is known until the next epoch begins."""
    for span, following in pairwise(spans):
        goes_on = span.origin == LOGS == following.origin and span.is_steady
        goes_on = goes_on and following.controller_epoch == span.controller_epoch + 1
        yield replace(span, ended=following.began if goes_on else span.ended, known_again=following.began)
    for span in spans[-1:]:
        yield replace(span, known_again=None if span.is_last else max(span.ended, history_ended_us))


def _find_cluster_spans(marks: Sequence[Row]) -> Iterator[dict[str, object]]:
    names = [name for name in _SPANS.fieldNames() if name not in ("cluster_id", "span")]
    for number, span in enumerate(spans_of(sort_marks(marks))):
        place = {"cluster_id": marks[0]["cluster_id"], "span": number}
        yield place | {name: getattr(span, name) for name in names}
