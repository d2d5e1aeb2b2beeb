"""What a log knows of idempotent producers: the epoch of each, and its last five batches (KIP-98).

A producer sends a batch again when it got no answer. One that was appended already, which is among the last five, is
answered as it was then; one that leaves something out is refused, and so is a producer of an earlier epoch. The batches in
the log are all that is needed to know this, so nothing else is kept on the disk.

Nothing is known of a producer that wrote nothing for long, or whose batches are all gone: it may go on with any sequence.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from replica_broker.log.errors import InvalidProducerEpoch, InvalidRecord, OutOfOrderSequence
from replica_broker.log.record_batches import INT32_MAX, RecordBatch

REMEMBERED_BATCHES: Final = 5
"""As many as a producer may have in flight."""


class AppendedBatch(NamedTuple):
    """A batch of a producer that is in the log."""

    base_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    max_timestamp_ms: int
    has_log_append_time: bool


@dataclass(slots=True, kw_only=True)
class ProducerState:
    """The present epoch of a producer, its last batches in that, and when it wrote the last one."""

    epoch: int
    last_timestamp_ms: int
    last_offset: int
    batches: deque[AppendedBatch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))


class ProducerStates:
    """The producers of one log."""

    def __init__(self) -> None:
        self._states: dict[int, ProducerState] = {}

    def __len__(self) -> int:
        return len(self._states)

    @property
    def last_offset(self) -> int:
        """The largest offset that any state is of; -1 where there is none."""
        return max((state.last_offset for state in self._states.values()), default=-1)

    def duplicate_of(self, batch: RecordBatch) -> AppendedBatch | None:
        """The batch as it was appended before, where it is among those that are remembered."""
        state = self._states.get(batch.producer_id)
        if state is None or state.epoch != batch.producer_epoch:
            return None
        wanted = (batch.base_sequence, batch.last_sequence)
        return next((known for known in state.batches if (known.base_sequence, known.last_sequence) == wanted), None)

    def require_next(self, batch: RecordBatch) -> None:
        """That a leader may append it. Raises `InvalidProducerEpoch`, `OutOfOrderSequence`, `InvalidRecord`."""
        if batch.base_sequence < 0 or batch.producer_epoch < 0 or batch.producer_id < 0:
            raise InvalidRecord(
                f"producer {batch.producer_id} says epoch {batch.producer_epoch} and sequence {batch.base_sequence}"
            )
        state = self._states.get(batch.producer_id)
        if state is None:
            return
        if batch.producer_epoch < state.epoch:
            raise InvalidProducerEpoch(
                f"producer {batch.producer_id} has epoch {batch.producer_epoch}, there is one of epoch {state.epoch}"
            )
        if batch.producer_epoch > state.epoch:
            expected = 0
        else:
            expected = following(state.batches[-1].last_sequence) if state.batches else batch.base_sequence
        if batch.base_sequence != expected:
            raise OutOfOrderSequence(
                f"producer {batch.producer_id} in epoch {batch.producer_epoch} goes on with sequence "
                f"{batch.base_sequence}, {expected} is the next"
            )

    def learn(self, batch: RecordBatch) -> None:
        """Remembers a batch that is in the log."""
        if not batch.has_producer:
            return
        state = self._states.get(batch.producer_id)
        if state is None or state.epoch != batch.producer_epoch:
            state = ProducerState(
                epoch=batch.producer_epoch, last_timestamp_ms=batch.max_timestamp_ms, last_offset=batch.last_offset
            )
            self._states[batch.producer_id] = state
        state.last_timestamp_ms = batch.max_timestamp_ms
        state.last_offset = batch.last_offset
        if not batch.is_control:
            appended = AppendedBatch(
                batch.base_sequence,
                batch.last_sequence,
                batch.base_offset,
                batch.last_offset,
                batch.max_timestamp_ms,
                batch.has_log_append_time,
            )
            state.batches.append(appended)

    def rebuild(self, batches: Iterable[RecordBatch]) -> None:
        """Forgets all, and learns what the batches of the log say."""
        self._states.clear()
        for batch in batches:
            self.learn(batch)

    def forget_old(self, before_ms: int) -> None:
        """Forgets those that wrote nothing since."""
        self._states = {
            producer_id: state for producer_id, state in self._states.items() if state.last_timestamp_ms >= before_ms
        }

    def clear(self) -> None:
        self._states.clear()


def following(sequence: int) -> int:
    """Sequences begin at 0 again behind the largest."""
    return (sequence + 1) & INT32_MAX
