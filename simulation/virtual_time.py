"""A clock that a test advances, and a wait for the moment when nothing can happen without an outside event.

Everything is simulated in one event loop, so that moment is exact: the loop has nothing left to run. Tests wait for it
instead of sleeping, and a controller that never comes to rest fails the test instead of hanging it.
"""

import asyncio
import heapq
from typing import Any, Final, cast
from uuid import UUID

from controller_core.journal.batches import Uptime
from controller_core.model.ids import TopicId

START_MS: Final = 1_700_000_000_000
_QUIET_TURNS: Final = 3
"""A timer that is due needs one turn to be noticed, and one to run."""
_MAX_TURNS: Final = 200_000


class VirtualClock:
    """A `Clock` that stands still until `pass_to_next`."""

    def __init__(self) -> None:
        self._elapsed_ms = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0
        self._topic_ids = 0

    def now_ms(self) -> int:
        return START_MS + int(self._elapsed_ms)

    def monotonic_ms(self) -> float:
        return self._elapsed_ms

    def uptime(self) -> Uptime:
        return Uptime("51a1a7ed", int(self.monotonic_ms() * 1000))

    async def sleep_ms(self, duration_ms: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._elapsed_ms + duration_ms, self._count, woken))
        await woken

    def new_topic_id(self) -> TopicId:
        self._topic_ids += 1
        return TopicId(UUID(int=(0xC0FFEE << 64) + self._topic_ids))

    def pass_to_next(self, latest_ms: float) -> bool:
        """Advance to the next sleeper and wake it. Return False if there is none until `latest_ms`."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        if not self._sleepers or self._sleepers[0][0] > latest_ms:
            return False
        self._elapsed_ms, _, woken = heapq.heappop(self._sleepers)
        woken.set_result(None)
        return True


async def wait_until_quiet() -> None:
    """Run the event loop until it has nothing left to run."""
    # asyncio has no public way to ask whether callbacks are ready.
    ready = cast(Any, asyncio.get_running_loop())._ready
    quiet_turns = 0
    for _ in range(_MAX_TURNS):
        await asyncio.sleep(0)
        quiet_turns = 0 if ready else quiet_turns + 1
        if quiet_turns == _QUIET_TURNS:
            return
    raise AssertionError(f"something runs in circles: no rest after {_MAX_TURNS} turns of the event loop")
