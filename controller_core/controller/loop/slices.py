"""Work on very many items, with pauses for the event loop.

A request may name a hundred thousand things that each take a few microseconds. The controller handles one event at a
time, so its other events have to wait for that. But sockets must be served, and sessions kept alive.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")

SLICE: Final = 500
"""The number of items between two pauses: some milliseconds of work."""


async def turn_after(items: int) -> None:
    """Pause for the event loop if a step has handled so many items that they are a slice."""
    if items >= SLICE:
        await asyncio.sleep(0)


async def slice_up(items: Iterable[T], weight: Callable[[T], int] = lambda _: 1) -> AsyncIterator[T]:
    """Yield the items one by one, with pauses for the event loop.

    `weight` is larger than 1 for items that are more work.
    """
    looked_at = 0
    for item in items:
        yield item
        looked_at += weight(item)
        if looked_at >= SLICE:
            looked_at = 0
            await asyncio.sleep(0)
