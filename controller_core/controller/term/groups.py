"""Work on very many partitions, done a group at a time.

A broker's death concerns half of all partitions. A group of them is decided, written and sent to the brokers while the
next ones are being decided: ZooKeeper, the brokers and this process work at the same time, leaders hear early that they
lead, and between two groups the event loop has time for sockets. The groups are independent of each other, and so is
what becomes of them. Where a request waits that may be let in, the groups that have begun are ended, and it is answered
before the next one.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

from controller_core.controller.term.term import Term

MOST_IN_A_GROUP: Final = 250
"""Each partition is one write of its state: a group is one transaction or two."""
GROUPS_AT_ONCE: Final = 4
"""So many groups may wait for ZooKeeper, and so many are waited for by a request that is let in."""
GROUPS_TOLD_TOGETHER: Final = 8
"""After so many groups the brokers are sent requests: each time is a request or two for every broker."""

T = TypeVar("T")


async def in_groups(term: Term, items: Sequence[T], work: Callable[[Sequence[T]], Coroutine[Any, Any, None]]) -> None:
    """Does the work for all items; where there are many groups, the brokers are sent some after some.

    An error of one group is raised when those that had begun have ended; no further group begins then."""
    if len(items) <= MOST_IN_A_GROUP:
        await work(items)
        return
    running: set[asyncio.Task[None]] = set()
    untold = 0
    try:
        for start in range(0, len(items), MOST_IN_A_GROUP):
            at_most = 0 if term.pauses.are_wanted(term) else GROUPS_AT_ONCE - 1
            while len(running) > at_most:
                running = await _one_of(running)
            if not running or untold >= GROUPS_TOLD_TOGETHER:
                term.send_requests()
                untold = 0
            if not running:
                await term.pauses.serve(term)
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
    """Waits for the first to end, and returns the others; raises what it raised."""
    done, others = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    return others
