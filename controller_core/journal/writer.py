"""A journal that a separate thread writes, so that a slow or full disk never holds up the controller.

A bounded queue connects the two threads. If it is full, new changes are dropped and counted. The count takes their
place in the queue and becomes a record, so a reader knows where and how much is missing. A failed write is retried
until it succeeds, while the queue fills. A record that the sink never takes, because it is too large, becomes a gap.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import structlog

from controller_core.journal.batches import Batch, Committed, Context, Dropped, Snapshot
from controller_core.journal.record_encoder import RecordEncoder
from controller_core.journal.segments import Block, Sink, Unwritable

log = structlog.get_logger()

CAPACITY: Final = 262_144
"""Changes that may wait for the disk. A single batch that is larger is accepted if the queue is empty."""
BLOCK_LINES: Final = 512
_RETRY_S: Final = 1.0
_PAUSE_S: Final = 0.001
"""Pause between two blocks, so that the event loop gets the interpreter lock in time."""

Waiting: TypeAlias = Batch | Dropped


@dataclass(slots=True)
class Counts:
    """Counts of the records so far. Only the journal changes them."""

    written: int = 0
    written_bytes: int = 0
    dropped: int = 0
    gaps: int = 0
    errors: int = 0
    is_failing: bool = False
    last_error_s: float = 0.0
    """Time of the last failed write, in seconds since 1970; 0 if none has failed."""


class JournalWriter:
    """A `Journal` that feeds a `Sink`. Only the event loop's thread may call `append`."""

    is_kept = True

    def __init__(
        self, sink: Sink, *, capacity: int = CAPACITY, retry_s: float = _RETRY_S, encoder: RecordEncoder | None = None
    ) -> None:
        self.counts = Counts()
        self._sink = sink
        self._encoder = encoder or RecordEncoder()
        self._capacity = capacity
        self._retry_s = retry_s
        self._waiting: deque[Waiting] = deque()
        self._size = 0
        self._is_broken = False
        """True if records were dropped since the last snapshot."""
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    @property
    def wants_snapshot(self) -> bool:
        return self._is_broken and self._size < self._capacity // 2

    @property
    def is_idle(self) -> bool:
        """True if everything handed over is written or dropped."""
        return self._size == 0

    def append(self, batch: Batch) -> None:
        with self._changed:
            if self._waiting and self._size + _size(batch) > self._capacity:
                self._drop(batch)
                return
            self._put(batch)
            if isinstance(batch, Snapshot):
                self._is_broken = False

    def close(self, timeout_s: float) -> bool:
        """Write the waiting batches and end the thread. Return False, and give up, if the disk does not take them in
        time."""
        with self._changed:
            self._closing.set()
            self._changed.notify()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _put(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)
        self._size += _size(waiting)
        self._changed.notify()

    def _drop(self, batch: Batch) -> None:
        if isinstance(batch, Snapshot):
            return  # nothing is lost, because another snapshot follows
        self._is_broken = True
        count = _size(batch)
        self.counts.dropped += count
        # The queue is not empty: `append` drops only if something waits.
        last = self._waiting[-1]
        if isinstance(last, Dropped) and last.context.controller_epoch == batch.context.controller_epoch:
            self._waiting[-1] = Dropped(context=last.context, count=last.count + count)
            return
        self.counts.gaps += 1
        log.warning("journal is too slow, changes are dropped", journal=str(self._sink), capacity=self._capacity)
        self._put(Dropped(context=batch.context, count=count))

    # Methods of the writer's thread

    def _run(self) -> None:
        for batch in self._batches():
            try:
                is_written = self._write_batch(self._encoder, batch)
            except Exception:
                log.exception("journal failed unexpectedly, a batch is missing", batch=type(batch).__name__)
                self._count_error()
                self._is_broken = True
                is_written = not self._closing.wait(self._retry_s)
            if not is_written:
                break
        # Even if waiting batches are lost, the written ones have to reach the disk.
        try:
            self._sink.close()
        except OSError as error:
            log.warning("journal was not closed cleanly", journal=str(self._sink), error=str(error))

    def _write_batch(self, encoder: RecordEncoder, batch: Waiting) -> bool:
        """Write a batch. Return False if the journal is closed while writing fails."""
        try:
            return self._write_blocks(encoder, batch)
        except Exception:
            log.exception("journal could not put a batch into words, it is missing", batch=type(batch).__name__)
            self._count_error()
            self._is_broken = True
        return self._write_blocks(encoder, Dropped(context=batch.context, count=_size(batch)))

    def _write_blocks(self, encoder: RecordEncoder, batch: Waiting) -> bool:
        for first_seq, lines in _blocks(encoder, batch):
            if not self._write_lines(encoder, batch, first_seq, lines):
                return False
            time.sleep(_PAUSE_S)
        return True

    def _write_lines(self, encoder: RecordEncoder, batch: Waiting, first_seq: int, lines: list[bytes]) -> bool:
        """Write lines, and a gap for each that the sink never takes. Return False as `_write` does."""
        try:
            return self._write(_block(batch.context, first_seq, lines))
        except Unwritable as error:
            if len(lines) == 1:
                return self._leave_out(encoder, batch, first_seq, error)
        half = len(lines) // 2
        return self._write_lines(encoder, batch, first_seq, lines[:half]) and self._write_lines(
            encoder, batch, first_seq + half, lines[half:]
        )

    def _leave_out(self, encoder: RecordEncoder, batch: Waiting, seq: int, error: Unwritable) -> bool:
        """Write a gap in the place of a record. Return False as `_write` does."""
        log.warning("journal leaves out a record that is too large", journal=str(self._sink), error=str(error))
        self._count_error()
        with self._changed:
            self.counts.dropped += 1
            self.counts.gaps += 1
            # Another snapshot would have the same record, and ask for the next one.
            self._is_broken |= not isinstance(batch, Snapshot)
        try:
            return self._write(_block(batch.context, seq, [encoder.encode_gap(batch.context, seq)]))
        except Unwritable:
            return True  # a reader finds that a number is missing

    def _batches(self) -> Iterator[Waiting]:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._closing.is_set():
                        return
                    self._changed.wait()
                batch = self._waiting.popleft()
            yield batch
            with self._changed:
                self._size -= _size(batch)

    def _write(self, block: Block) -> bool:
        """Write a block and retry until it succeeds. Return False if the journal is closed while writing fails.

        Raises `Unwritable`."""
        while True:
            try:
                self._sink.write(block)
            except OSError as error:
                self._count_error(error)
                if self._closing.wait(self._retry_s):
                    log.warning("journal is closed, what waited is lost", journal=str(self._sink), error=str(error))
                    return False
                continue
            if self.counts.is_failing:
                self.counts.is_failing = False
                log.info("journal is written again", journal=str(self._sink))
            self.counts.written += block.data.count(b"\n")
            self.counts.written_bytes += len(block.data)
            return True

    def _count_error(self, error: OSError | None = None) -> None:
        self.counts.errors += 1
        self.counts.last_error_s = time.time()
        if error is not None and not self.counts.is_failing:
            self.counts.is_failing = True
            log.warning(
                "journal cannot be written, the controller goes on without", journal=str(self._sink), error=str(error)
            )


def _size(waiting: Waiting) -> int:
    """Return the number of queue places that a batch takes. A snapshot and a gap take only one: they are copies and a
    number."""
    return max(len(waiting.changes), 1) if isinstance(waiting, Committed) else 1


def _blocks(encoder: RecordEncoder, batch: Waiting) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the lines of each block, with the number of the first."""
    lines: list[bytes] = []
    first: int | None = None
    for line in encoder.lines(batch):
        if first is None:
            first = encoder.next_seq - 1  # the other numbers of a gap are skipped after its line
        lines.append(line)
        if len(lines) == BLOCK_LINES:
            yield first, lines
            lines, first = [], None
    if lines and first is not None:
        yield first, lines


def _block(context: Context, first_seq: int, lines: list[bytes]) -> Block:
    return Block(
        epoch=context.controller_epoch, first_seq=first_seq, data=b"".join(lines), cluster_id=context.cluster_id
    )
