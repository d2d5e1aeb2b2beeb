"""The recorder at work: it looks whenever there is something to see, not more often than is set, and records what it saw.

From time to time it looks at everything, whatever it was told, and the snapshot after that is of what there really is. What
differs then without anyone having told of it is `unobserved`, as is what changed while nothing could be seen.
"""

from typing import Final, Protocol

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.journal.batches import Journal
from controller_core.recorder.directory import NOTHING_YET, Ended
from controller_core.recorder.looker import Looker, OutOfSight
from controller_core.recorder.observed_journal import ObservedJournal

log = structlog.get_logger()


_REST: Final = 3
"""How much longer than the last look took nothing is looked at: many small looks take a quarter of a processor at most."""
_LONGEST_REST_MS: Final = 1000
"""A long look is a rare one: the first, or one at very many changes."""


class RecorderSettings(Protocol):
    """What a recorder needs to know of its process's settings."""

    @property
    def look_interval_ms(self) -> int: ...

    @property
    def journal_snapshot_interval_seconds(self) -> int: ...

    @property
    def journal_alive_interval_seconds(self) -> int: ...


class Recorder:
    """Records one cluster. `ended`: where the journal ended before; `records_clock`: whose time records have."""

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
        """When the cluster was last looked at, in seconds since 1970."""
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
        """Records until it is cancelled. Raises `ClusterLost`, `AnotherCluster`, and what ends looking for good."""
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
        """Has another one look from now on, who knows nothing of what was seen: it is recorded as after a restart."""
        self.looker = looker
        self.observed_journal = self.observed_journal.begun_anew(records_clock)

    async def look(self) -> bool:
        """Looks once and records what has changed; whether that was all there is. After `OutOfSight` the next look does."""
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
        """Where nothing else was recorded for long, and the cluster still names the same controller."""
        role = self.observed_journal.role
        is_silent = self.observed_journal.silent_ms >= self._alive_interval_ms
        if role is not None and is_silent and await self.looker.read_role() == role:
            self.observed_journal.record_alive()

    @property
    def _alive_interval_ms(self) -> int:
        return self._settings.journal_alive_interval_seconds * 1000
