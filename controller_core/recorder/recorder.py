"""The recorder: looks when there is something to see, at most as often as configured, and records what it saw.

Periodically it looks at everything, even without notifications, and takes a snapshot of the true state. Differences
found this way without a notification are `unobserved`, as are changes while the cluster was out of sight."""

from typing import Final, Protocol

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.journal.batches import Journal
from controller_core.recorder.directory import NOTHING_YET, Ended
from controller_core.recorder.looker import Looker, OutOfSight
from controller_core.recorder.observed_journal import ObservedJournal

log = structlog.get_logger()


_REST: Final = 3
"""Pause after a look, as a multiple of its duration, so that many small looks use at most a quarter of a processor."""
_LONGEST_REST_MS: Final = 1000
"""Upper limit of that pause. Long looks are rare: the first one, or one after very many changes."""


class RecorderSettings(Protocol):
    """The settings of a recorder."""

    @property
    def look_interval_ms(self) -> int: ...

    @property
    def journal_snapshot_interval_seconds(self) -> int: ...

    @property
    def journal_alive_interval_seconds(self) -> int: ...


class Recorder:
    """Records one cluster. `ended`: the end of the existing journal. `records_clock`: the clock of records."""

    def __init__(
        self,
        looker: Looker,
        journal: Journal,
        clock: Clock,
        settings: RecorderSettings,
        *,
        ended: Ended = NOTHING_YET,
        records_clock: Clock | None = None,
    ) -> None:
        self.looks = 0
        self.last_look_s = 0.0
        """The time of the last look, in seconds since 1970."""
        self.looker = looker
        self.observed_journal = ObservedJournal(
            journal,
            records_clock or clock,
            snapshot_interval_ms=settings.journal_snapshot_interval_seconds * 1000,
            alive_interval_ms=settings.journal_alive_interval_seconds * 1000,
            ended=ended,
        )
        self._clock = clock
        self._settings = settings

    async def run(self) -> None:
        """Record until cancelled. Raises `ClusterLost`, `AnotherCluster`, and errors that end looking for good."""
        while True:
            began_ms = self._clock.monotonic_ms()
            try:
                if not await self.look():
                    continue
            except OutOfSight as error:
                log.warning("out of sight", error=str(error))
                await self.looker.regain_sight()
            took_ms = self._clock.monotonic_ms() - began_ms
            await self._clock.sleep_ms(max(self._settings.look_interval_ms, min(_REST * took_ms, _LONGEST_REST_MS)))
            await self.looker.wait(self._alive_interval_ms)

    def go_on_with(self, looker: Looker, records_clock: Clock) -> None:
        """Switch to another looker. It knows nothing of earlier looks, so the recording goes on as after a restart."""
        self.looker = looker
        self.observed_journal = self.observed_journal.restart(records_clock)

    async def look(self) -> bool:
        """Look once and record the changes. Return True if nothing else is waiting. After `OutOfSight`, the next look
        catches up."""
        is_complete = self.observed_journal.is_snapshot_due
        view = await self.looker.look(everything=is_complete)
        self.looks += 1
        self.last_look_s = self._clock.now_ms() / 1000
        self.observed_journal.follow(view, self.looker.is_unobserved)
        if is_complete:
            self.observed_journal.take_snapshot()
        await self._record_alive()
        return view.is_last

    async def _record_alive(self) -> None:
        """Record a heartbeat if nothing was recorded for long and the cluster still names the same controller."""
        role = self.observed_journal.role
        is_silent = self.observed_journal.silent_ms >= self._alive_interval_ms
        if role is not None and is_silent and await self.looker.read_role() == role:
            self.observed_journal.record_alive()

    @property
    def _alive_interval_ms(self) -> int:
        return self._settings.journal_alive_interval_seconds * 1000
