"""Work on very many items, with time for the event loop in between.

What a request names may be a hundred thousand things, each to be looked at for a few microseconds. Nothing else may
happen in the controller meanwhile, as one event is handled at a time; but sockets are served, and sessions kept
alive.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")

SLICE: Final = 500
"""So many items are looked at before the event loop has its turn: some milliseconds."""


async def turn_after(items: int) -> None:
    """The event loop has its turn where so many items were looked at in one step that they are a slice."""
    if items >= SLICE:
        await asyncio.sleep(0)


async def sliced(items: Iterable[T], weight: Callable[[T], int] = lambda _: 1) -> AsyncIterator[T]:
    """The items one by one. `weight`: as how many an item counts, where some are far more work than others."""
    looked_at = 0
    for item in items:
        yield item
        looked_at += weight(item)
        if looked_at >= SLICE:
            looked_at = 0
            await asyncio.sleep(0)
