"""Waits until a broker shows what the controllers have decided: it applies their log some moments later.

A broker says how far it has come as the epoch of the finalized features, which is that offset.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from controller_core.model.features import FinalizedFeatures

BEHIND_S: Final = 5.0
"""How long a broker may take to come as far as the controllers."""
PAUSE_S: Final = 0.03


async def caught_up(ask: Callable[[], Awaitable[FinalizedFeatures]], position: int) -> FinalizedFeatures | None:
    """What `ask` is told at the first time that the broker has come so far; None where it stays behind."""
    deadline_s = asyncio.get_running_loop().time() + BEHIND_S
    while (features := await ask()).epoch < position:
        if asyncio.get_running_loop().time() >= deadline_s:
            return None
        await asyncio.sleep(PAUSE_S)
    return features
