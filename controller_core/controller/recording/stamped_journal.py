"""Batches for the journal, stamped with their time, and a snapshot whenever one is due.

A controller records its own terms (`term_journal`), a recorder those of another one (`recorder.observed_journal`).
"""

from dataclasses import dataclass, field
from typing import Final

from controller_core.controller.loop.clock import Clock
from controller_core.journal.batches import Batch, Context, Journal, Snapshot, StateCopy, Uptime
from controller_core.model.authorization.principal import Caller
from controller_core.model.ids import BrokerId, ControllerEpoch

_READS: Final = 3
_AT_ONCE_US: Final = 1_000
"""The two times of a record are of one moment if no more time passes between their reads."""


@dataclass(slots=True, kw_only=True)
class StampedJournal:
    """Writes to a journal with the times of a clock."""

    journal: Journal
    clock: Clock
    snapshot_interval_ms: float
    _last_record_ms: float = field(init=False)
    _next_snapshot_ms: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._last_record_ms = self.clock.monotonic_ms()

    @property
    def silent_ms(self) -> float:
        """The time since the last record."""
        return self.clock.monotonic_ms() - self._last_record_ms

    @property
    def is_snapshot_due(self) -> bool:
        """True if it is time for a record of the whole state."""
        return self.clock.monotonic_ms() >= self._next_snapshot_ms

    def begin_silence(self) -> None:
        """Restart the time of silence, as if something had just been recorded."""
        self._last_record_ms = self.clock.monotonic_ms()

    def record(self, batch: Batch) -> None:
        self.begin_silence()
        self.journal.append(batch)

    def take_snapshot(self, context: Context, state: StateCopy) -> None:
        """Record the whole state. The next snapshot is due an interval later."""
        self._next_snapshot_ms = self.clock.monotonic_ms() + self.snapshot_interval_ms
        self.record(Snapshot(context=context, state=state))

    def make_context(
        self,
        *,
        cluster_id: str | None,
        controller_id: BrokerId,
        controller_epoch: ControllerEpoch,
        cause: str,
        event: object,
        took_ms: float | None = None,
        caller: Caller | None = None,
        is_inferred: bool = False,
    ) -> Context:
        """Return what the records of an event have in common, at this moment. `event` is unique within the epoch."""
        now_ms, uptime = self._read_times()
        return Context(
            cluster_id=cluster_id,
            controller_id=controller_id,
            controller_epoch=controller_epoch,
            event_time_us=now_ms * 1000,
            uptime=uptime,
            took_us=None if took_ms is None else int(took_ms * 1000),
            cause=cause,
            correlation_id=f"{controller_epoch}-{event}",
            caller=caller,
            is_inferred=is_inferred,
        )

    def _read_times(self) -> tuple[int, Uptime | None]:
        """Return the time of the day and the uptime at the same moment.

        The process may be stopped between the two reads; then both are read again."""
        for _ in range(_READS):
            before, now_ms, after = self.clock.uptime(), self.clock.now_ms(), self.clock.uptime()
            if before is None or after is None or after.us - before.us <= _AT_ONCE_US:
                break
        return now_ms, before
