"""Limits the requests and the unread answers in memory at once, over all connections: their number and their bytes.

A request takes its share before it is read, and gives it back when it is answered, or when its answer only waits for
something else. If too little is left, reading waits in the order of arrival, and TCP keeps the bytes at the sender.
Requests of brokers and of administrators have budgets of their own, so strangers that send slowly delay neither.

An answer is in the same budget until its client has read it. Its size is known only when it has been made, so it takes
its share without waiting, and further answers that can be large wait in a line before they are made. Nobody holds up
others by not reading: while memory is short, connections whose client reads nothing are closed.
"""

import asyncio
import heapq
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Final

SMALL_BYTES: Final = 4 * 1024
"""Requests up to this size take no share, because the connection itself takes more memory."""
SMALL_ANSWER_BYTES: Final = 64 * 1024
"""Answers up to this size take no share. The memory of a connection holds one (`ledger`)."""


@dataclass(eq=False, slots=True, kw_only=True)
class Unread:
    """The share of an answer that its client has not read to the end."""

    budget: "ByteBudget"
    amount: int
    close: Callable[[], object]
    """Closes the connection."""
    since_s: float
    """The time of the last progress."""

    def note_progress(self) -> None:
        """Remember that the client has read a part."""
        self.budget.note_progress(self)

    def give_back(self) -> None:
        """Give the share back. Idempotent."""
        self.budget.forget(self)


class Line:
    """Callers who wait for an answer of one kind. One answer is made at a time, for callers of a higher rank first.

    Addresses take turns: in each round, each of them gets one answer.
    """

    def __init__(self) -> None:
        self._is_busy = False
        self._waiting: list[tuple[int, int, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self._round = 0
        self._last_round_of: dict[str, int] = {}

    @asynccontextmanager
    async def turn(self, rank: int, address: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it until the end of the block."""
        if self._is_busy:
            granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            its_round = max(self._round, self._last_round_of.get(address, -1) + 1)
            self._last_round_of[address] = its_round
            heapq.heappush(self._waiting, (-rank, its_round, next(self._numbers), granted))
            try:
                await granted
            except asyncio.CancelledError:
                if granted.done() and not granted.cancelled():
                    self._pass_on()
                raise
        self._is_busy = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """Give the turn to the next one that still waits."""
        while self._waiting:
            _, its_round, _, granted = heapq.heappop(self._waiting)
            if not granted.done():
                self._round = max(self._round, its_round)
                granted.set_result(None)
                return
        self._is_busy, self._round = False, 0
        self._last_round_of.clear()


class ByteBudget:
    """A number of bytes that requests take shares of. A request larger than the total waits until it has all of it.

    `most_requests` limits the number of requests with a share, whatever their size. Answers may have half of the bytes,
    so requests that wait for room for their answers cannot hold up each other.
    """

    def __init__(
        self,
        total: int,
        *,
        most_requests: int,
        patience_s: float = 5.0,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`patience_s`: see `ListenerLimits.unread_patience_ms`."""
        self._places = asyncio.Semaphore(most_requests)
        self._total = total
        self._left = total
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._lines: dict[int, Line] = defaultdict(Line)
        self._unread: dict[Unread, None] = {}  # the longest without progress first
        self._unread_bytes = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._patience_s = patience_s
        self._now_s = now_s
        self._watch: asyncio.TimerHandle | None = None

    @property
    def is_full(self) -> bool:
        """True if unread answers have all the bytes that they may have."""
        return self._unread_bytes >= self._total // 2

    @property
    def unread_bytes(self) -> int:
        """The bytes of answers that their clients have not read."""
        return self._unread_bytes

    def line_of(self, api_key: int) -> Line:
        """Return the line for answers of an API."""
        return self._lines[api_key]

    async def wait_for_room(self) -> None:
        """Wait until there is room for one more answer."""
        await self._has_room.wait()

    def hold(self, amount: int, close: Callable[[], object]) -> Unread | None:
        """Take the share of an answer, without waiting. Return None if it is small. `close` ends its connection."""
        if amount <= SMALL_ANSWER_BYTES:
            return None
        unread = Unread(budget=self, amount=amount, close=close, since_s=self._now_s())
        self._unread[unread] = None
        self._count_unread(amount)
        return unread

    def note_progress(self, unread: Unread) -> None:
        """See `Unread.note_progress`."""
        if unread in self._unread:
            del self._unread[unread]
            self._unread[unread] = None
            unread.since_s = self._now_s()

    def forget(self, unread: Unread) -> None:
        """See `Unread.give_back`."""
        self._unread.pop(unread, None)
        amount, unread.amount = unread.amount, 0
        self._count_unread(-amount)
        self._grant()

    def _count_unread(self, amount: int) -> None:
        self._unread_bytes += amount
        self._left -= amount
        if self.is_full:
            self._has_room.clear()
            self._end_silent()
        else:
            self._has_room.set()

    def _end_silent(self) -> None:
        """While memory is short, close the connections whose clients have read nothing for too long."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if not (self.is_full or self._waiting):
            return
        while self._unread:
            unread = next(iter(self._unread))
            left_s = unread.since_s + self._patience_s - self._now_s()
            if left_s > 0:
                self._watch = asyncio.get_running_loop().call_later(left_s, self._end_silent)
                return
            del self._unread[unread]  # its bytes are free when the connection has ended
            unread.close()

    @asynccontextmanager
    async def share(self, amount: int) -> AsyncIterator[Callable[[int], None]]:
        """Wait for a place and this many bytes, and hold them until the end of the block.

        Yield a function that gives back the bytes above a smaller amount.
        """
        held = self._size_share(amount)
        async with self._places:
            if held:
                await self._take(held)

            def shrink(amount: int) -> None:
                nonlocal held
                before, held = held, min(held, self._size_share(amount))
                self._give_back(before - held)

            try:
                yield shrink
            finally:
                self._give_back(held)

    def _size_share(self, amount: int) -> int:
        return 0 if amount <= SMALL_BYTES else min(amount, self._total)

    async def _take(self, amount: int) -> None:
        if not self._waiting and amount <= self._left:
            self._left -= amount
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((amount, granted))
        self._end_silent()
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
