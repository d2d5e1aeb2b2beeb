"""Work on very many partitions, done in groups.

A broker's death concerns half of all partitions. One group is written and sent while the next ones are being decided,
so ZooKeeper, the brokers and this process work at the same time. Leaders learn early that they lead, and the event loop
has time for sockets between two groups. Groups and their errors are independent. If a request waits that may be
answered in a pause, no group begins until those in progress have ended and the request is answered.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

from controller_core.controller.term.rights import Sends

MOST_IN_A_GROUP: Final = 250
"""Each partition is one write of its state, so a group is one transaction or two."""
GROUPS_AT_ONCE: Final = 4
"""The maximum of groups that wait for ZooKeeper. A request that waits for a pause waits for no more than these."""
GROUPS_TOLD_TOGETHER: Final = 8
"""The number of groups after which the brokers are sent requests: each time one or two for every broker."""

T = TypeVar("T")


async def run_in_groups(
    term: Sends, items: Sequence[T], work: Callable[[Sequence[T]], Coroutine[Any, Any, None]]
) -> None:
    """Do the work for all items in groups, and send the brokers requests after every few groups.

    If a group fails, no further group begins, those in progress are cancelled, and the error is raised.
    """
    if len(items) <= MOST_IN_A_GROUP:
        await work(items)
        return
    running: set[asyncio.Task[None]] = set()
    untold = 0
    try:
        for start in range(0, len(items), MOST_IN_A_GROUP):
            # If a request waits for a pause, all groups in progress have to end before the next one begins.
            at_most = 0 if term.pauses.are_wanted() else GROUPS_AT_ONCE - 1
            while len(running) > at_most:
                running = await _one_of(running)
            if not running or untold >= GROUPS_TOLD_TOGETHER:
                term.send_requests()
                untold = 0
            if not running:
                await term.pauses.serve()
            running.add(asyncio.create_task(work(items[start : start + MOST_IN_A_GROUP])))
            untold += 1
        while running:
            running = await _one_of(running)
        term.send_requests()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _one_of(running: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    """Wait for the first task to end, and return the others. Raises its error."""
    done, others = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    return others
