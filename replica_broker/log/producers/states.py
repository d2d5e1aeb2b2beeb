"""What a log knows of idempotent producers: the epoch of each, and its last five batches (KIP-98).

A producer sends a batch again when it got no answer. One that was appended already, which is among the last five, is
answered as it was then; one that leaves something out is refused, and so is a producer of an earlier epoch. All of it comes
from the batches in the log, so what is kept on the disk besides (`kept`) only saves reading them.

Whether a producer's transaction is open is known as well: nothing here asks for it, but who takes the log over does.

Nothing is known of a producer that wrote nothing for long, or whose batches are all gone: it may go on with any sequence.
"""

from collections import deque
from collections.abc import Iterator, Mapping
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


NO_COORDINATOR_EPOCH: Final = -1


@dataclass(slots=True, kw_only=True)
class ProducerState:
    """The present epoch of a producer, its last batches in that, and when it wrote the last one."""

    epoch: int
    last_timestamp_ms: int
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    """Of the last marker of a transaction, as a snapshot said it; what later markers say of it is not read."""
    transaction_first_offset: int | None = None
    """Where the open transaction began; None where none is open."""
    batches: deque[AppendedBatch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))


class ProducerStates:
    """The producers of one log."""

    def __init__(self) -> None:
        self._states: dict[int, ProducerState] = {}

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[tuple[int, ProducerState]]:
        """The id of each producer, and its state."""
        return iter(self._states.items())

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
        self.require_epoch(batch.producer_id, batch.producer_epoch)
        state = self._states.get(batch.producer_id)
        if state is None:
            return
        if batch.producer_epoch > state.epoch:
            expected = 0
        else:
            expected = following(state.batches[-1].last_sequence) if state.batches else batch.base_sequence
        if batch.base_sequence != expected:
            raise OutOfOrderSequence(
                f"producer {batch.producer_id} in epoch {batch.producer_epoch} goes on with sequence "
                f"{batch.base_sequence}, {expected} is the next"
            )

    def require_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """That a producer has not begun anew since. Raises `InvalidProducerEpoch`."""
        state = self._states.get(producer_id)
        if state is not None and producer_epoch < state.epoch:
            raise InvalidProducerEpoch(
                f"producer {producer_id} has epoch {producer_epoch}, there is one of epoch {state.epoch}"
            )

    def learn(self, batch: RecordBatch) -> None:
        """Remembers a batch that is in the log."""
        if not batch.has_producer:
            return
        state = self._states.get(batch.producer_id)
        if state is None:
            state = ProducerState(epoch=batch.producer_epoch, last_timestamp_ms=batch.max_timestamp_ms)
            self._states[batch.producer_id] = state
        elif state.epoch != batch.producer_epoch:
            state.epoch = batch.producer_epoch
            state.batches.clear()
        state.last_timestamp_ms = batch.max_timestamp_ms
        if batch.is_control:
            state.transaction_first_offset = None
            return
        if batch.is_transactional and state.transaction_first_offset is None:
            state.transaction_first_offset = batch.base_offset
        appended = AppendedBatch(
            batch.base_sequence,
            batch.last_sequence,
            batch.base_offset,
            batch.last_offset,
            batch.max_timestamp_ms,
            batch.has_log_append_time,
        )
        state.batches.append(appended)

    def replace(self, states: Mapping[int, ProducerState]) -> None:
        """Forgets all, and takes those."""
        self._states = dict(states)

    def forget_old(self, before_ms: int) -> None:
        """Forgets those that wrote nothing since, but for those whose transaction is open."""
        self._states = {
            producer_id: state
            for producer_id, state in self._states.items()
            if state.last_timestamp_ms >= before_ms or state.transaction_first_offset is not None
        }


def following(sequence: int) -> int:
    """Sequences begin at 0 again behind the largest."""
    return (sequence + 1) & INT32_MAX
