"""When the state of a cluster is known: from a snapshot to the last record before something is missing, or nobody wrote.

A history breaks (`continuity.breaks`) wherever a record is missing, is a gap, says that a recorder or a term began, or
where the clock did not run on steadily. What was known before a missing record is forgotten until the next snapshot. A
clock that is set, a silence, or a time in which nobody looked takes no record away: the state goes on behind it, and only
the time between is unknown. Breaks and snapshots are few: one function goes through those of a cluster in their order.

Text logs have no snapshots. There a span is a whole epoch, in which a thing is known from its first mention on, and what
was known in the epoch before is still known if that is the one before: nobody else can have changed it. They say nothing
while nothing happens, so silence breaks nothing there.

An example, of one controller that writes a record each ten seconds, and is frozen for an hour:

    record              0 elected, 1 2 3 a snapshot, 4 a leader is gone, | 5 another is elected, ...
    time                10:00:00                     10:00:10            | 11:00:10
    known spans         [10:00:00, 10:00:10), which has the records 1 to 4, and [11:00:10, ...), from record 5 on
    between them        nothing: whether the partition had no leader for an hour is not known
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
    in_order,
    runs,
)
from kontroller.history.transforms.continuity.clock_runs import Place, placed
from kontroller.history.transforms.continuity.neighbours import EPOCH
from kontroller.history.transforms.in_groups import of_each
from kontroller.history.transforms.lines import LOGS

_SPANS: Final = columns(**{
    field.name: LONG if field.name in ("began", "ended", "known_again") else field.dataType
    for field in KNOWN_SPANS.schema
})  # fmt: skip
"""Times as microseconds."""


def known_spans(marks: DataFrame) -> DataFrame:
    """`schemas.KNOWN_SPANS`, of the `MARKS` of histories."""
    spans = of_each(marks, ["cluster_id"], MARKS.fieldNames(), _of_a_cluster, _SPANS)
    times = {name: f.timestamp_micros(name) for name in ("began", "ended", "known_again")}
    return spans.withColumns(times).select(*KNOWN_SPANS.schema.fieldNames())


def states(spans: DataFrame) -> DataFrame:
    """The spans of each snapshot together, as one: within it the state is known from record to record, whatever the clock
    did. `span` is the first of them."""
    return spans.groupBy(*EPOCH, "snapshot_seq").agg(
        f.min("span").alias("span"), f.min("first_seq").alias("first_seq"), f.max("last_seq").alias("last_seq")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A row of KNOWN_SPANS without its cluster and number; times are microseconds since 1970."""

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
    """Whether the clock goes on steadily from its last record to the next one; this and the next are no columns."""
    is_last: bool
    """Whether the history ends with it."""


def spans_of(marks: Sequence[Mark]) -> list[Span]:
    """The known spans of a cluster, of its marks in their order: the first is a break, the last the end."""
    places = placed(runs(marks))
    spans = [*_never_backwards(_spans(marks, places))]
    return [*_followed(spans, places[-1].ended_us)]


class _Snapshot(NamedTuple):
    """What a known state begins with: a snapshot, or in logs the first record."""

    first_seq: int
    seq: int


class _Opened(NamedTuple):
    """Where a span began: at which record, in whose epoch, when."""

    begin: Mark
    first_seq: int
    began_us: int
    latest_us: int
    """The latest time so far at which the clock was set back a little: the state was known until then."""

    def until(self, time_us: int) -> "_Opened":
        return self._replace(latest_us=max(self.latest_us, time_us))


def _spans(marks: Sequence[Mark], places: list[Place]) -> Iterator[Span]:
    """Goes through the marks; a span ends at a break, and begins at the end of a snapshot, or where the state goes on."""
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
                began_us = places[run].bounded(mark.time_us)
                opened = _Opened(begin, started, began_us, began_us)
            started = None
        elif _is_little_earlier(mark):
            assert mark.time_us_before is not None
            opened = opened and opened.until(places[run].bounded(mark.time_us_before))
        else:
            next_run = run + (run < 0 or mark.step is not None)
            if opened and snapshot and not _says_nothing(mark, begin, places[run : next_run + 1]):
                yield _closed(opened, snapshot, mark, places[run : next_run + 1])
                opened = None
            run = next_run
            if mark.forgets:
                begin, started = mark, None
                snapshot = _Snapshot(mark.seq, mark.seq) if mark.origin == LOGS else None
            if snapshot and not opened and mark.mark == BREAK:
                began_us = places[run].bounded(mark.time_us)
                opened = _Opened(begin, mark.seq, began_us, began_us)


def _is_little_earlier(mark: Mark) -> bool:
    return mark.mark == BREAK and not mark.forgets and mark.step is None


def _says_nothing(mark: Mark, begin: Mark, places: list[Place]) -> bool:
    """Whether it is silence of logs, which breaks nothing."""
    is_silence = mark.step == SILENCE and not mark.forgets and begin.origin == LOGS
    return is_silence and all(place.is_believed for place in places)


def _closed(opened: _Opened, snapshot: _Snapshot, by: Mark, places: list[Place]) -> Span:
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
        ended=max(opened.latest_us, places[0].bounded(by.time_us_before)),
        has_time=places[0].is_believed,
        ended_by=_ended_by(opened.begin, by, is_steady=is_steady),
        is_steady=is_steady,
        is_last=by.mark == END,
    )


def _ended_by(begin: Mark, by: Mark, *, is_steady: bool) -> str:
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
    """Within a run stamps may be a little earlier than those before them: those count."""
    latest_us: int | None = None
    for span in spans:
        began = span.began if latest_us is None else max(span.began, latest_us)
        latest_us = max(began, span.ended)
        yield replace(span, began=began, ended=latest_us)


def _followed(spans: list[Span], history_ended_us: int) -> Iterator[Span]:
    """With `known_again`. What is known from logs is known until the next epoch begins."""
    for span, following in pairwise(spans):
        goes_on = span.origin == LOGS == following.origin and span.is_steady
        goes_on = goes_on and following.controller_epoch == span.controller_epoch + 1
        yield replace(span, ended=following.began if goes_on else span.ended, known_again=following.began)
    for span in spans[-1:]:
        yield replace(span, known_again=None if span.is_last else max(span.ended, history_ended_us))


def _of_a_cluster(marks: Sequence[Row]) -> Iterator[dict[str, object]]:
    names = [name for name in _SPANS.fieldNames() if name not in ("cluster_id", "span")]
    for number, span in enumerate(spans_of(in_order(marks))):
        place = {"cluster_id": marks[0]["cluster_id"], "span": number}
        yield place | {name: getattr(span, name) for name in names}
