"""How often everything else in the event loop has its turn while something is done: what a stall is, without a clock."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def turns_during(work: Awaitable[T]) -> tuple[T, int]:
    """What the work returns, and how many turns others had meanwhile."""
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
