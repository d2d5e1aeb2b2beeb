"""A looker that polls brokers, using less than a hundredth of their time.

A change between two looks is seen at the second one. If a state was written twice in between, only the last version is
seen. Changes while no broker answered are `unobserved`."""

import asyncio
from contextlib import suppress
from typing import Final

from controller_core.controller.loop.clock import Clock
from controller_core.journal.batches import StateCopy
from controller_core.journal.changes import Change
from controller_core.model.ids import TopicName
from controller_core.model.snapshot import Controller
from controller_core.polling.pace import Pace
from controller_core.polling.paced_looks import LookFailed, OpenKept, PacedLooks
from controller_core.polling.questions import NoKRaftError
from controller_core.recorder.looker import ClusterLost, OutOfSight, View
from controller_core.recorder.polled.states import renew_state

_NO_TOPICS: Final[frozenset[TopicName]] = frozenset()


class PolledLooker:
    """Implements `Looker`. `timeout_ms`: how long all brokers may be away. `close` it at the end."""

    def __init__(self, open_kept: OpenKept, clock: Clock, *, timeout_ms: int, pace: Pace | None = None) -> None:
        self._looks = PacedLooks(open_kept, pace=pace)
        self._state = StateCopy()
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._blind_since_ms: float | None = None
        self._was_blind = False
        """True if the look before the last successful one had failed."""

    @property
    def reads(self) -> int:
        return self._looks.answers

    async def look(self, *, everything: bool = False) -> View:
        """Implement `Looker`. With `everything` all configurations are read; otherwise only some each time."""
        known = self._looks.known
        try:
            await self._looks.look(frozenset(known.topics) if everything else _NO_TOPICS)
        except LookFailed as error:
            raise self._lose_sight(error) from error
        self._was_blind, self._blind_since_ms = self._blind_since_ms is not None, None
        if known.has_news:
            self._state = renew_state(self._state, known.take_snapshot())
        return View(cluster_id=known.cluster_id, role=known.controller, state=self._state)

    def is_unobserved(self, change: Change) -> bool:
        """Implement `Looker`."""
        return self._was_blind

    async def wait(self, timeout_ms: float) -> None:
        """Implement `Looker`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._looks.rest(asyncio.Event())

    async def read_role(self) -> Controller | None:
        """Implement `Looker`. Each look asks for the leader of the controllers, so this is the answer of the last
        one."""
        return self._looks.known.controller

    async def regain_sight(self) -> None:
        """Implement `Looker`."""
        blind_ms = self._clock.monotonic_ms() - (self._blind_since_ms or self._clock.monotonic_ms())
        if blind_ms >= self._timeout_ms:
            raise ClusterLost(f"no broker answered for {self._timeout_ms} ms: check the brokers, and the network")
        await self._looks.rest(asyncio.Event())

    def close(self) -> None:
        """Close the connection."""
        self._looks.close()

    def _lose_sight(self, error: LookFailed) -> OutOfSight | ClusterLost:
        if isinstance(error.__cause__, NoKRaftError):
            return ClusterLost(f"{error}: give --zookeeper, or brokers of Kafka 4")
        if self._blind_since_ms is None:
            self._blind_since_ms = self._clock.monotonic_ms()
        return OutOfSight(str(error))
