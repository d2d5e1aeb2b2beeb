"""Threads for slow work on one message: decoding, converting, refusing item by item, encoding the answer.

The event loop runs during this work. There are two threads, one for requests of brokers and one for all others, so
brokers never wait for clients. More threads would only compete with each other and the loop for the interpreter. Names
are resolved in asyncio's own threads, so a large request does not delay new connections either.
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
"""Smaller messages are processed at once, in a few milliseconds at most."""


class Lane(Enum):
    """The thread for messages of one group of senders."""

    BROKERS = "brokers"
    CLIENTS = "clients"


_THREADS: Final = {
    lane: ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"messages-{lane.value}") for lane in Lane
}


async def run_in_thread(lane: Lane, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run the work in the thread of a lane, in turn. Return its result or raise its error."""

    def run() -> T:
        with gc_paused():
            return work(*args, **kwargs)

    return await asyncio.get_running_loop().run_in_executor(_THREADS[lane], run)
