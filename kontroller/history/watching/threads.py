"""Blocking work outside of the event loop that is never left half done."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")


async def run_to_end(work: Callable[[], R]) -> R:
    """Run the work in a thread. Cancellation is delivered after the work ends, so the work never runs twice at once."""
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        raise
