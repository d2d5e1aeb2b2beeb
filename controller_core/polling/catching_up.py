"""Waits until a broker shows what the controllers have committed, which it applies a moment later.

A broker reports its applied offset as the epoch of the finalized features."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from controller_core.model.features import FinalizedFeatures

BEHIND_S: Final = 5.0
"""Seconds that a broker may take to catch up with the controllers."""
PAUSE_S: Final = 0.03


async def wait_until_caught_up(
    ask: Callable[[], Awaitable[FinalizedFeatures]], position: int
) -> FinalizedFeatures | None:
    """Return the first answer of `ask` in which the broker has caught up with `position`; None if it stays behind."""
    deadline_s = asyncio.get_running_loop().time() + BEHIND_S
    while (features := await ask()).epoch < position:
        if asyncio.get_running_loop().time() >= deadline_s:
            return None
        await asyncio.sleep(PAUSE_S)
    return features
