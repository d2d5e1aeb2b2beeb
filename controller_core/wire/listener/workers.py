"""Threads for what takes long with one message: decoding it, lifting it, refusing it item by item, encoding its answer.

While one works, the event loop goes on. There are two threads, one for what brokers ask of their controller and one
for all the rest: whatever clients send, brokers wait for no client. More would only take turns with each other and
the loop. Names are resolved elsewhere, in asyncio's own threads, so a large request holds up no new connection
either.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Final, ParamSpec, TypeVar

from controller_core.gc_pauses import gc_paused

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BYTES: Final = 8 * 1024
"""What is smaller is done at once: some milliseconds at the most."""


class Lane(Enum):
    """Whose messages a thread works on."""

    BROKERS = "brokers"
    CLIENTS = "clients"


_THREADS: Final = {
    lane: ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"messages-{lane.value}") for lane in Lane
}


async def beside(lane: Lane, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the work returns or raises, done by the thread of a lane, in turn."""

    def worked() -> T:
        with gc_paused():
            return work(*args, **kwargs)

    return await asyncio.get_running_loop().run_in_executor(_THREADS[lane], worked)
