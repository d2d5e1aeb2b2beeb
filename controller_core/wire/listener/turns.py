"""Turns on the event loop, for answers that are computed at once in some milliseconds.

A thousand clients that ask at the same moment are a thousand ready tasks, and the loop would run them all before
anything else. With turns they take the loop for only a moment, and only one answer at a time is in memory while it
waits to be encoded.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

MOMENT_S: Final = 0.01
"""Seconds of answers after which the loop serves everything else."""


class Turns:
    """Gives one turn after the other."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._since_s = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and hold it until the end of the block."""
        async with self._lock:
            if time.monotonic() - self._since_s > MOMENT_S:
                await asyncio.sleep(0)
                self._since_s = time.monotonic()
            yield


class NoTurns(Turns):
    """For answers that wait for something, such as those to fetches: none of them waits for another."""

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Begin at once."""
        yield
