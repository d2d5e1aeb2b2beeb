"""The idempotent producers of a log: the epoch of each, and its last five batches (KIP-98).

A producer sends a batch again if it got no response. If the batch is among the last five, it gets the original
response. A gap in the sequences and an earlier epoch are refused. All of this can be read from the log's batches; the
snapshots (`kept`) only save reading them.

Open transactions are recorded too. Nothing here uses them, but a stock broker that takes the log over does. A producer
that was idle for long, or whose batches are all gone, is unknown and may continue with any sequence.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from replica_broker.log.errors import InvalidProducerEpoch, InvalidRecord, OutOfOrderSequence
from replica_broker.log.record_batches import INT32_MAX, RecordBatch

REMEMBERED_BATCHES: Final = 5
"""Kafka's limit of a producer's requests in flight."""


class AppendedBatch(NamedTuple):
    """A producer's batch in the log."""

    base_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    max_timestamp_ms: int
    has_log_append_time: bool


NO_COORDINATOR_EPOCH: Final = -1


@dataclass(slots=True, kw_only=True)
class ProducerState:
    """The current epoch of a producer, its last batches in that epoch, and the timestamp of the last one."""

    epoch: int
    last_timestamp_ms: int
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    """The coordinator epoch of the last transaction marker, as read from a snapshot. Later markers do not update it."""
    transaction_first_offset: int | None = None
    """The start of the open transaction, or None."""
    batches: deque[AppendedBatch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))


class ProducerStates:
    """The producers of one log."""

    def __init__(self) -> None:
        self._states: dict[int, ProducerState] = {}

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[tuple[int, ProducerState]]:
        """Yield the id and state of each producer."""
        return iter(self._states.items())

    def find_duplicate(self, batch: RecordBatch) -> AppendedBatch | None:
        """Return the earlier append of this batch if it is among the remembered ones."""
        state = self._states.get(batch.producer_id)
        if state is None or state.epoch != batch.producer_epoch:
            return None
        wanted = (batch.base_sequence, batch.last_sequence)
        return next((known for known in state.batches if (known.base_sequence, known.last_sequence) == wanted), None)

    def require_next(self, batch: RecordBatch) -> None:
        """Require that the batch is the producer's next.

        Raises `InvalidProducerEpoch`, `OutOfOrderSequence`, `InvalidRecord`.
        """
        if batch.base_sequence < 0 or batch.producer_epoch < 0 or batch.producer_id < 0:
            raise InvalidRecord(
                f"producer {batch.producer_id} sent the impossible epoch {batch.producer_epoch} "
                f"or sequence {batch.base_sequence}"
            )
        self.require_epoch(batch.producer_id, batch.producer_epoch)
        state = self._states.get(batch.producer_id)
        if state is None:
            return
        if batch.producer_epoch > state.epoch:
            expected = 0
        else:
            expected = increment_sequence(state.batches[-1].last_sequence) if state.batches else batch.base_sequence
        if batch.base_sequence != expected:
            raise OutOfOrderSequence(
                f"producer {batch.producer_id} in epoch {batch.producer_epoch} sent sequence "
                f"{batch.base_sequence}, but {expected} is the next"
            )

    def require_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Require that the producer has no later epoch. Raises `InvalidProducerEpoch`."""
        state = self._states.get(producer_id)
        if state is not None and producer_epoch < state.epoch:
            raise InvalidProducerEpoch(
                f"producer {producer_id} has epoch {producer_epoch}, but its latest epoch is {state.epoch}"
            )

    def learn(self, batch: RecordBatch) -> None:
        """Remember a batch that is in the log."""
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
        """Replace all states."""
        self._states = dict(states)

    def forget_old(self, before_ms: int) -> None:
        """Forget the producers that are idle since that time, unless they have an open transaction."""
        self._states = {
            producer_id: state
            for producer_id, state in self._states.items()
            if state.last_timestamp_ms >= before_ms or state.transaction_first_offset is not None
        }


def increment_sequence(sequence: int) -> int:
    """Return the next sequence. Sequences wrap around to 0 after the largest."""
    return (sequence + 1) & INT32_MAX
