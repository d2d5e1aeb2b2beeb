"""Turns on the event loop, for answers that are made at once and each of which takes some milliseconds.

A thousand clients that ask in the same moment are a thousand tasks that are all ready, and the loop would run all of them
before it looks at anything else. In turns it does so for a moment at the most, and only one answer at a time is in memory
while it waits to be encoded.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

MOMENT_S: Final = 0.01
"""After so much time spent on answers the loop goes on with all else."""


class Turns:
    """One takes a turn after the other."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._since_s = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits for a turn, and has it until the end of the block."""
        async with self._lock:
            if time.monotonic() - self._since_s > MOMENT_S:
                await asyncio.sleep(0)
                self._since_s = time.monotonic()
            yield


class NoTurns(Turns):
    """For answers that wait for something, as those to fetches do: none of them waits for another."""

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Begins at once."""
        yield
