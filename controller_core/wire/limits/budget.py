"""Limits the number of requests, and of their bytes, in memory at once, over all connections.

A request takes its share before it is read, and gives it back when it is answered. If too little is left, reading waits
in the order of arrival, and TCP keeps the bytes at the sender. Requests of brokers and of administrators have budgets
of their own, so strangers that send slowly delay neither.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

SMALL_BYTES: Final = 4 * 1024
"""Requests up to this size take no share, because the connection itself takes more memory."""


class ByteBudget:
    """A number of bytes that requests take shares of. A request larger than the total waits until it has all of it.

    `most_requests` limits the number of requests with a share, whatever their size.
    """

    def __init__(self, total: int, *, most_requests: int) -> None:
        self._places = asyncio.Semaphore(most_requests)
        self._total = total
        self._left = total
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def share(self, amount: int) -> AsyncIterator[None]:
        """Wait for a place and this many bytes, and hold them until the end of the block."""
        amount = 0 if amount <= SMALL_BYTES else min(amount, self._total)
        async with self._places:
            if amount:
                await self._take(amount)
            try:
                yield
            finally:
                self._give_back(amount)

    async def _take(self, amount: int) -> None:
        if not self._waiting and amount <= self._left:
            self._left -= amount
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((amount, granted))
        try:
            await granted
        except asyncio.CancelledError:
            # Cancelled after the grant: give the bytes back.
            if granted.done() and not granted.cancelled():
                self._give_back(amount)
            else:
                with suppress(ValueError):  # already skipped by `_grant`
                    self._waiting.remove((amount, granted))
                self._grant()
            raise

    def _give_back(self, amount: int) -> None:
        self._left += amount
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._left:
            amount, granted = self._waiting.popleft()
            if not granted.cancelled():
                self._left -= amount
                granted.set_result(None)
