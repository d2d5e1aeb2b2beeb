"""The audit trail of a process: every record goes to the journal and to all sinks, none of which can hold it up.

Each sink has a thread and a bounded queue. A sink that fails is tried again each second while its queue fills; records
that find it full are dropped and counted, and the next record says how many. The log names a failing sink once a minute.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from prometheus_client import CollectorRegistry, Counter

from controller_core.audit.record import AuditRecord, Outcome
from controller_core.audit.sinks import Sink
from controller_core.audit.tally import RefusalTally
from controller_core.journal.segments import Unwritable
from controller_core.wire.limits.complaints import Complaints

log = structlog.get_logger()

CAPACITY: Final = 5_000
CLOSE_TIMEOUT_S: Final = 5.0
_RETRY_S: Final = 1.0
_MINUTE_S: Final = 60.0
_RECORDED: Final = frozenset({Outcome.DONE, Outcome.PARTLY_DONE, Outcome.ADMITTED})
"""The outcomes that are recorded each time. They changed something, so the callers had the right."""


class SinkWriter:
    """Feeds one sink from a thread."""

    def __init__(self, sink: Sink, counts: Counter, *, capacity: int = CAPACITY, retry_s: float = _RETRY_S) -> None:
        """`counts` has the labels `sink` and `outcome`."""
        self._sink = sink
        self._written, self._failed, self._dropped = (
            counts.labels(sink.name, outcome) for outcome in ("written", "failed", "dropped")
        )
        self._capacity = capacity
        self._retry_s = retry_s
        self._waiting: deque[AuditRecord] = deque()
        self._missing = 0
        """Records that were dropped since the last one that was queued."""
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._complaints = Complaints(log)
        self._thread = threading.Thread(target=self._run, name=f"audit-{sink.name}", daemon=True)
        self._thread.start()

    def put(self, record: AuditRecord) -> None:
        """Queue a record, or drop it if the queue is full. Never waits."""
        with self._changed:
            if len(self._waiting) >= self._capacity:
                self._missing += 1
                self._dropped.inc()
                return
            if self._missing:
                missing = f"{self._missing} records are missing here, because they were dropped"
                gap = AuditRecord(
                    time_ms=record.time_ms,
                    source=record.source,
                    api="",
                    outcome=Outcome.UNKNOWN,
                    message=missing,
                    count=self._missing,
                )
                self._waiting.append(gap)
                self._missing = 0
            self._waiting.append(record)
            self._changed.notify()

    def close(self) -> None:
        """Write the waiting records, and end the thread, unless the sink does not take them in time."""
        with self._changed:
            self._closing.set()
            self._changed.notify()
        self._thread.join(CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        for record in self._records():
            try:
                if not self._write(record.make_json()):
                    break
            except Exception:
                log.exception("an audit record could not be written, it is missing", sink=self._sink.name)
                self._failed.inc()
        self._sink.close()

    def _records(self) -> Iterator[AuditRecord]:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._closing.is_set():
                        return
                    self._changed.wait()
                record = self._waiting.popleft()
            yield record

    def _write(self, record: dict[str, Any]) -> bool:
        """Write a record, and retry until it succeeds. Return False if that fails while the process ends."""
        while True:
            try:
                self._sink.write(record)
            except Unwritable as error:
                self._complain(error)
                return True
            except OSError as error:
                self._complain(error)
                if self._closing.is_set():
                    return False
                self._closing.wait(self._retry_s)
                continue
            self._written.inc()
            return True

    def _complain(self, error: Exception) -> None:
        self._failed.inc()
        self._complaints.warn(
            self._sink.name, "audit record cannot be written, changes go on", sink=self._sink.name, error=str(error)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTrail:
    """Takes records from any thread, and bounds those of refused requests."""

    source: str
    """The name of this process in its records."""
    writers: tuple[SinkWriter, ...] = ()
    journal: Callable[[AuditRecord], None] = lambda record: None
    tally: RefusalTally = field(default_factory=RefusalTally)
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    _tallying: threading.Lock = field(default_factory=threading.Lock)

    def record(self, record: AuditRecord) -> None:
        """Record a request. If it changed nothing, and is not its caller's first in this minute, only count it."""
        if record.outcome not in _RECORDED:
            with self._tallying:
                if not self.tally.is_recorded(record):
                    return
        self._write(record)

    def sum_up(self) -> None:
        """Record the counted requests, and begin the next minute."""
        like = AuditRecord(time_ms=self.now_ms(), source=self.source, api="", outcome=Outcome.REFUSED)
        with self._tallying:
            sums = list(self.tally.take_sums(like))
        for record in sums:
            self._write(record)

    async def sum_up_each_minute(self) -> None:
        """Do that until cancelled."""
        while True:
            await asyncio.sleep(_MINUTE_S)
            self.sum_up()

    async def close(self) -> None:
        """Record what was counted, and close the sinks."""
        self.sum_up()
        await asyncio.gather(*(asyncio.to_thread(writer.close) for writer in self.writers))

    def _write(self, record: AuditRecord) -> None:
        self.journal(record)
        for writer in self.writers:
            writer.put(record)


NO_TRAIL: Final = AuditTrail(source="")
"""Records nothing."""


def open_trail(
    source: str,
    sinks: Iterable[Sink],
    registry: CollectorRegistry,
    journal: Callable[[AuditRecord], None] = lambda record: None,
) -> AuditTrail:
    """Begin to write to the sinks."""
    counts = Counter(
        "kontroller_audit_records_total",
        "Audit records by sink (file, syslog) and outcome (written, failed attempts, dropped)",
        ["sink", "outcome"],
        registry=registry,
    )
    writers = tuple(SinkWriter(sink, counts) for sink in sinks)
    return AuditTrail(source=source, writers=writers, journal=journal)
