"""Work that may wait for a disk, beside the event loop, and that is never left half done."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")


async def to_its_end(work: Callable[[], R]) -> R:
    """Does it in a thread. Whoever is cancelled meanwhile is so when it is done: nobody does the same beside it."""
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        raise
