"""An event loop whose time jumps to the next timer as soon as nothing is ready.

It tests code that waits for seconds or hours in the loop's own time (`asyncio.sleep`, `asyncio.timeout`) in an instant
and in the real order. Use it only with simulated parts: it does not wait for sockets, threads or signals.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, Final, TypeVar, cast

from simulation.virtual_time import START_MS, VirtualClock

T = TypeVar("T")
_TURN_S: Final = 1e-7
"""Duration of each turn. Without it, code that finds its timer slightly early and resets it would loop for ever."""


class FastLoop(asyncio.SelectorEventLoop):
    """A loop that never waits. It raises if all tasks wait without a timer, because that would never end."""

    def __init__(self) -> None:
        self._elapsed_s = 0.0
        super().__init__(cast(selectors.BaseSelector, _JumpingSelector(self)))

    def time(self) -> float:
        return self._elapsed_s

    def jump(self, duration_s: float) -> None:
        self._elapsed_s += duration_s


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: FastLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("nothing will ever happen: all tasks wait, and no timer is set")
        self._loop.jump(max(0.0, timeout) + _TURN_S)
        return super().select(0)


class LoopClock(VirtualClock):
    """A `Clock` with the running loop's time."""

    def now_ms(self) -> int:
        return START_MS + int(self.monotonic_ms())

    def monotonic_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1000

    async def sleep_ms(self, duration_ms: float) -> None:
        await asyncio.sleep(duration_ms / 1000)


def run_fast(scenario: Coroutine[Any, Any, T]) -> T:
    """Run a scenario to its end in its own loop."""
    with asyncio.Runner(loop_factory=FastLoop) as runner:
        return runner.run(scenario)
