"""The times in which an account knows the state: from a snapshot on, without a missing record and without a silence.

A silence loses no record, so the state is known again after it. Only few records are collected in one place: those at
interruptions, at the ends of buckets, and at snapshots.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from kontroller.history.transforms.accounts.choice import Account, Known, Snapshot
from kontroller.history.transforms.continuity.breaks import BEGINS
from kontroller.history.transforms.continuity.neighbours import EPOCH, bucket, is_request, last_number, silence_us
from kontroller.history.transforms.lines import CONTROLLER, LOGS, RECORDER

_SNAPSHOT: Final = (Kind.SNAPSHOT_STARTED.value, Kind.SNAPSHOT_ENDED.value)
TRUST: Final = (CONTROLLER, RECORDER, LOGS)
"""The origins in the order of trust."""


class Mark(NamedTuple):
    """A record of an account, with the one before it in its bucket."""

    account: str
    origin: str
    silence_us: int
    """A longer time without a record means that the writer was not working. Logs are silent whenever nothing
    happens."""
    seq: int
    time_us: int
    kind: str
    through_seq: int
    """The last number that the record stands for."""
    seq_before: int | None
    time_us_before: int | None


def marks(told: DataFrame) -> DataFrame:
    """Return the few records of accounts that matter for their known times.

    The columns are those of `Mark` and of the epoch. `told` may have a record several times."""
    place = Window.partitionBy(*EPOCH, "account", bucket()).orderBy("seq", "event_time", "kind")
    stamp_us = f.unix_micros("event_time")
    # A request is no sign of life: it takes the time of the last one, as far as that is in its bucket.
    alive_us = f.last(f.when(~is_request(), stamp_us), ignorenulls=True).over(
        place.rowsBetween(Window.unboundedPreceding, 0)
    )
    rows = told.select(
        *EPOCH,
        "account",
        "origin",
        "seq",
        f.coalesce(alive_us, stamp_us).alias("time_us"),
        "kind",
        "event_time",
        last_number().alias("through_seq"),
    )
    rows = rows.join(f.broadcast(_silences(told)), [*EPOCH, "account"]).withColumns({
        "seq_before": f.max("through_seq").over(place.rowsBetween(Window.unboundedPreceding, -1)),
        "time_us_before": f.lag("time_us").over(place),
        "is_last": f.lead("seq").over(place).isNull(),
    })  # fmt: skip
    is_broken = f.col("seq_before").isNull() | (f.col("seq") > f.col("seq_before") + 1) | f.col("kind").isin(*BEGINS)
    is_silent = f.col("time_us") - f.col("time_us_before") > f.col("silence_us")
    of = rows.where(is_broken | is_silent | f.col("is_last") | f.col("kind").isin(*_SNAPSHOT))
    return of.select(*EPOCH, *Mark._fields)


def _silences(told: DataFrame) -> DataFrame:
    """Return `silence_us` of each account: from its own records, otherwise from the epoch's, otherwise from the
    cluster's."""
    of = told.groupBy(*EPOCH, "account").agg(f.max("alive_interval_ms").alias("interval_ms"))
    epoch, cluster = Window.partitionBy(*EPOCH), Window.partitionBy("cluster_id")
    known_ms = f.coalesce("interval_ms", f.max("interval_ms").over(epoch), f.max("interval_ms").over(cluster))
    return of.select(*EPOCH, "account", silence_us(known_ms).alias("silence_us"))


def account_of(name: str, of: Iterable[Mark]) -> Account:
    """Return an account from its marks in any order."""
    in_order = sorted(of, key=lambda mark: mark[3:6])
    reader = _Reader(is_of_logs=in_order[0].origin == LOGS, silence_us=in_order[0].silence_us)
    for mark in in_order:
        reader.read(mark)
    reader.close()
    return Account(name, TRUST.index(in_order[0].origin), reader.spans, reader.snapshots)


class _Reader:
    """Reads the marks of an account in their order."""

    def __init__(self, *, is_of_logs: bool, silence_us: int) -> None:
        self.spans: list[Known] = []
        self.snapshots: list[Snapshot] = []
        self._is_of_logs = is_of_logs
        self._silence_us = silence_us
        self._last: tuple[int, int] | None = None
        self._began: tuple[int, int] | None = None
        """The number and time of the first record of the open span, if the state is known."""
        self._started: Snapshot | None = None
        self._snapshot_seq: int | None = None

    def read(self, mark: Mark) -> None:
        if mark.seq_before is not None and mark.time_us_before is not None:
            self._last = (mark.seq_before, mark.time_us_before)
        self._continue(mark)
        if self._is_of_logs and self._snapshot_seq is None:
            self._begin_span(mark.seq, mark)
        if mark.kind == _SNAPSHOT[0]:
            self._started = Snapshot(mark.seq, mark.time_us) if mark.through_seq == mark.seq else None
        elif mark.kind == _SNAPSHOT[1] and self._started is not None:
            self.snapshots.append(self._started)
            if self._snapshot_seq is None:
                self._begin_span(self._started.seq, mark)
            self._started = None
        self._last = (mark.through_seq, mark.time_us)

    def close(self) -> None:
        """End the open span at the last record."""
        if self._began is not None and self._last is not None and self._snapshot_seq is not None:
            self.spans.append(Known(self._began[0], self._snapshot_seq, self._last[0], self._began[1], self._last[1]))
        self._began = None

    def _continue(self, mark: Mark) -> None:
        """End the open span at an interruption before this record. Forget the state if a record is missing."""
        if self._last is None:
            return
        is_lost = mark.seq > self._last[0] + 1 or mark.kind in BEGINS
        is_silent = mark.time_us - self._last[1] > self._silence_us and not self._is_of_logs
        if is_lost or is_silent:
            self.close()
        if is_lost:
            self._snapshot_seq = self._started = None
        elif is_silent and self._snapshot_seq is not None:
            self._began = (mark.seq, mark.time_us)

    def _begin_span(self, first_seq: int, mark: Mark) -> None:
        self._snapshot_seq, self._began = mark.seq, (first_seq, mark.time_us)
