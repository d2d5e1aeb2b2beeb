"""A `Looker` that follows the metadata log: one look for each event, in order, so that no version is missed.

The first look has the newest state. If a journal is continued and the log still goes back far enough, it has the state
before that journal's last event instead, so that everything after it can be recorded. The leader of the quorum is the
controller, from its first record to its last."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.journal.changes import Change
from controller_core.model.ids import ControllerEpoch
from controller_core.model.snapshot import Controller
from controller_core.recorder.looker import ClusterLost, OutOfSight, View
from controller_core.recorder.metadata_log.batches import LogBatch, LogUnreadable
from controller_core.recorder.metadata_log.events import Event, EventReader
from controller_core.recorder.metadata_log.following import MetadataLog, SnapshotDue
from controller_core.recorder.metadata_log.image import MetadataImage
from controller_core.recorder.metadata_log.log_clock import LogClock
from controller_core.recorder.metadata_log.undecided import START, DecidedOtherwise, Place

log = structlog.get_logger()

_LONGEST_WAIT_MS: Final = 500
"""Longest wait of one request. Leaders report a commit with the next record or at the end of the wait."""
_PAUSE_MS: Final = 250
_QUIET_MS: Final = 1_000
"""Log time without a change after which a look returns anyway."""
_BATCHES_AT_ONCE: Final = 500
"""Batches between two turns of the event loop."""


class MetadataLogLooker:
    """A `Looker`. `since`: the offset and the controller of the last event of the journal to continue."""

    def __init__(
        self,
        metadata_log: MetadataLog,
        real: Clock,
        *,
        cluster_id: str | None,
        timeout_ms: int,
        since: tuple[int, Controller] | None = None,
    ) -> None:
        self.clock = LogClock(real)
        """The clock for records from this log."""
        self.events = EventReader()
        self.position = -1
        """The offset of the last applied event."""
        self._log = metadata_log
        self._real = real
        self._cluster_id = cluster_id
        self._timeout_ms = timeout_ms
        self._since = since
        self._image = MetadataImage()
        self._ready: deque[Event] = deque()
        self._role: Controller | None = None
        self._has_begun = False
        self._first: View | None = None
        """The result of the first look."""
        self._is_blind = False
        """True if the last look was based on a snapshot instead of events."""
        self._trouble: OutOfSight | None = None
        self._unreadable: LogUnreadable | None = None
        """The reason why the log cannot be followed beyond the ready events."""
        self._seen_at_ms = real.monotonic_ms()

    @property
    def reads(self) -> int:
        return self.events.records_read

    async def begin(self, within_ms: float) -> None:
        """Read to the place of the first look.

        Raises `OutOfSight` if that fails for `within_ms`, `LogRefused`, `LogUnreadable` and `AnotherCluster`."""
        until_ms = self._real.monotonic_ms() + within_ms
        while self._first is None:
            try:
                self._first = await self._begin()
            except OutOfSight:
                if self._real.monotonic_ms() >= until_ms:
                    raise
                await self._real.sleep_ms(_PAUSE_MS)

    async def look(self, *, everything: bool = False) -> View:
        """Implement `Looker`. The log has every change, so `everything` makes no difference."""
        # Looks at ready events never wait, so give other tasks a turn.
        await asyncio.sleep(0)
        if self._first is not None:
            first, self._first = self._first, None
            return first
        if self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            raise trouble
        if not self._has_begun:
            return await self._begin()
        self._is_blind = False
        if not self._ready:
            await self._fetch(0)
        if not self._has_begun:
            return await self._begin()
        if self._ends_term:
            self._role = None
            return self._make_view()
        self._apply_next()
        return self._make_view()

    def is_unobserved(self, change: Change) -> bool:
        return self._is_blind

    async def wait(self, timeout_ms: float) -> None:
        """Implement `Looker`. The next look raises errors of the wait."""
        until_ms = self._real.monotonic_ms() + timeout_ms
        while not self._ready and self._trouble is None and self._real.monotonic_ms() < until_ms:
            try:
                await self._fetch(_LONGEST_WAIT_MS)
            except OutOfSight as error:
                self._trouble = error

    async def read_role(self) -> Controller | None:
        """Implement `Looker`. The log has just said so, or its leader has confirmed that it is read to its end."""
        return self._role

    async def regain_sight(self) -> None:
        """Implement `Looker`."""
        if self._real.monotonic_ms() - self._seen_at_ms > self._timeout_ms:
            raise ClusterLost(
                f"the quorum of controllers was out of sight for {self._timeout_ms} ms: check its brokers and "
                "controllers "
                "and the network, or allow more time with --bootstrap-timeout-ms"
            )
        await self._real.sleep_ms(_PAUSE_MS)

    def close(self) -> None:
        """Close the connections."""
        self._log.close()

    @property
    def _ends_term(self) -> bool:
        """True if the next event has another leader. The former leader's term lasts until the last event before it."""
        following = self._ready[0].role if self._ready else None
        return following is not None and self._role is not None and following != self._role

    async def _begin(self) -> View:
        """Read to the place of the first look. After `OutOfSight`, another call continues."""
        while not (self._is_at_the_end_of_the_journal or self._is_read):
            if not self._ready:
                await self._fetch(_LONGEST_WAIT_MS)
            await self._apply_until_the_end_of_the_journal()
        self._has_begun = True
        is_recorded = self._is_at_the_end_of_the_journal
        if is_recorded and self._since is not None:
            self._role = self._since[1]
        elif self._role is None:
            self._role = self._find_last_writer()
        log.info("following the metadata log", offset=self._log.decided.offset, goes_on=is_recorded)
        return self._make_view(is_recorded=is_recorded)

    @property
    def _is_read(self) -> bool:
        return self._log.is_read and not self._ready and self._unreadable is None

    @property
    def _is_at_the_end_of_the_journal(self) -> bool:
        return self._since is not None and bool(self._ready) and self._ready[0].position == self._since[0]

    async def _apply_until_the_end_of_the_journal(self) -> None:
        applied = 0
        while self._ready and not self._is_at_the_end_of_the_journal:
            self._apply(self._ready.popleft())
            applied += 1
            if applied % _BATCHES_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _find_last_writer(self) -> Controller | None:
        """Return the present leader if the last record is of its epoch. Its own first record may have been replaced by
        a snapshot."""
        leader = self._log.leader
        if leader is None or leader.epoch != self._log.decided.epoch:
            return None
        return Controller(id=leader.node_id, epoch=ControllerEpoch(leader.epoch))

    def _apply_next(self) -> None:
        """Apply the next events until something changes or some time has passed."""
        began_ms = self.clock.monotonic_ms()
        is_over = False
        while self._ready and not is_over and not self._ends_term:
            known, role = self._since, self._role
            self._apply(self._ready.popleft())
            is_over = self._image.has_changed or self._role != role
            is_over |= self.clock.monotonic_ms() - began_ms >= _QUIET_MS
            is_over |= known is not None and known[0] == self.position

    def _apply(self, event: Event) -> None:
        for record in event.records:
            self._image.apply(record)
        if event.role is not None:
            self._role = event.role
        self.position = event.position
        self.clock.show(event.time_ms)

    async def _fetch(self, max_wait_ms: int) -> None:
        """Fetch more events. Called when all ready ones are applied, so that no event before an unreadable one is
        missed."""
        if self._unreadable is not None:
            raise self._unreadable
        try:
            self._take(await self._log.fetch(max_wait_ms))
        except SnapshotDue as due:
            await self._read_snapshot(due.end)
        except DecidedOtherwise as error:
            log.error("reading the metadata log again from its start", error=str(error))
            self._begin_at(START, MetadataImage())
        self._seen_at_ms = self._real.monotonic_ms()
        if self._is_read:
            self.clock.stand_still()

    def _take(self, batches: Iterable[LogBatch]) -> None:
        try:
            self._ready.extend(self.events.read(batch) for batch in batches)
        except LogUnreadable as error:
            self._unreadable = error

    async def _read_snapshot(self, end: Place) -> None:
        """Read the state at the end of a snapshot, which replaces the log before it."""
        self.events.reset()
        image, time_ms = MetadataImage(), 0
        async for batch in self._log.snapshot(end):
            event = self.events.read(batch)
            for record in event.records:
                image.apply(record)
            time_ms = max(time_ms, event.time_ms)
        self._begin_at(end, image)
        self.position = end.offset - 1
        self.clock.show(time_ms)

    def _begin_at(self, place: Place, image: MetadataImage) -> None:
        """Continue at a place with another image. Differences between the two images were not seen when they
        happened, and neither were elections of another leader."""
        self._log.begin_at(place)
        self.events.reset()
        self._ready.clear()
        self._image = image
        self._role = None
        self._is_blind = True
        if self._has_begun:
            self._has_begun = False
            self._since = None

    def _make_view(self, *, is_recorded: bool = False) -> View:
        state = self._image.copy()
        return View(
            cluster_id=self._cluster_id,
            role=self._role,
            state=state,
            touched=self._image.touched,
            shutting_down=self._image.shutting_down,
            is_last=not self._ready,
            position=self.position,
            is_recorded=is_recorded,
        )
