"""Counts the turns of the event loop during some work, which detects stalls without a clock."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def turns_during(work: Awaitable[T]) -> tuple[T, int]:
    """Return the result of the work, and the number of turns that other tasks had during it."""
    turns = 0
    is_over = False

    def turn() -> None:
        nonlocal turns
        if not is_over:
            turns += 1
            asyncio.get_running_loop().call_soon(turn)

    asyncio.get_running_loop().call_soon(turn)
    try:
        return await work, turns
    finally:
        is_over = True
