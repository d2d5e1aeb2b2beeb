"""Answers that their clients do not read: they take no more memory than the budget, and hold up nobody for long."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import pytest
from kio.schema.errors import ErrorCode
from structlog.testing import capture_logs

from controller_core.model.access import parse_address
from controller_core.model.authorization.principal import NOBODY_IN_PARTICULAR, Caller
from controller_core.wire.codecs.frames import RequestHead, make_frame
from controller_core.wire.limits.budget import SMALL_ANSWER_BYTES, ByteBudget, Line
from controller_core.wire.limits.gate import OpenGate
from controller_core.wire.limits.request_limits import RequestLimits
from controller_core.wire.listener.listener import Listener
from tests.unit.wire.limits.test_listener_limits import peak_memory
from tests.unit.wire.listener.test_client_connections import Peer, connect, start_listener, warnings

MB = 1 << 20
METADATA, FETCH = 3, 1
ANSWER_BYTES = 12 * MB
"""More than the kernel's buffers of a connection hold."""
BUDGET_BYTES = 4 * ANSWER_BYTES
CLIENTS = 20
BROKER, ADMINISTRATOR = "127.0.0.2", "127.0.0.3"
HOUR_MS = 3_600_000


@dataclass
class LargeAnswers:
    """An API with large answers. `may_wait`: they are made at once, not one after the other."""

    key: int = METADATA
    may_wait: bool = False
    limits: RequestLimits = field(default_factory=RequestLimits)
    made: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def respond(self, head: RequestHead, content: bytes, caller: Caller = NOBODY_IN_PARTICULAR) -> bytes:
        async with self.changed:
            self.made += 1
            self.changed.notify_all()
        return make_frame(struct.pack(">i", head.correlation_id) + bytes(ANSWER_BYTES))

    async def make_refusal(self, head: RequestHead, content: bytes | None, error_code: ErrorCode) -> bytes | None:
        return None

    async def wait_until_made(self, number: int) -> None:
        async with asyncio.timeout(60), self.changed:
            await self.changed.wait_for(lambda: self.made >= number)

    def ask(self) -> bytes:
        return make_frame(struct.pack(">hhih", self.key, 9, 5, -1) + b"\0")


class _Ranks(OpenGate):
    """Knows a broker and an administrator by their addresses."""

    def is_broker(self, caller: Caller) -> bool:
        return caller.address == parse_address(BROKER)

    def is_administrator(self, caller: Caller) -> bool:
        return caller.address == parse_address(ADMINISTRATOR)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@asynccontextmanager
async def ask_and_never_read(listener: Listener, api: LargeAnswers) -> AsyncIterator[list[Peer]]:
    """Connect clients that ask for a large answer, and read nothing."""
    async with AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(connect(listener)) for _ in range(CLIENTS)]
        for peer in peers:
            peer.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a stream's transport can read
            peer.send(api.ask())
        yield peers


def listen(api: LargeAnswers, *, unread_patience_ms: int) -> AbstractAsyncContextManager[Listener]:
    return start_listener(
        apis=(api,),
        gate=_Ranks(),
        strangers_bytes=BUDGET_BYTES,
        brokers_bytes=BUDGET_BYTES,
        frame_timeout_ms=HOUR_MS,
        unread_patience_ms=unread_patience_ms,
    )


async def test_answers_that_nobody_reads_take_no_more_than_their_part_and_a_broker_is_served() -> None:
    api = LargeAnswers()
    async with listen(api, unread_patience_ms=HOUR_MS) as listener, ask_and_never_read(listener, api):
        await api.wait_until_made(2)
        async with connect(listener, source=BROKER) as broker:
            broker.send(api.ask())
            await broker.answer()
        assert api.made == 3, "two have the strangers' part, and one is the broker's"


@pytest.mark.parametrize("api", [LargeAnswers(), LargeAnswers(FETCH, may_wait=True)], ids=["in line", "that wait"])
async def test_memory_stays_bounded_and_clients_that_do_not_read_make_room(api: LargeAnswers) -> None:
    with capture_logs() as logged:
        async with listen(api, unread_patience_ms=20) as listener, peak_memory() as peak:
            async with ask_and_never_read(listener, api):
                await api.wait_until_made(CLIENTS)
            assert peak() < BUDGET_BYTES + 4 * ANSWER_BYTES < CLIENTS * ANSWER_BYTES
    assert set(warnings(logged)) == {("connection closed: its client does not read its answer", "")}


async def test_an_administrator_is_next_in_line_and_reads_its_answer_to_the_end() -> None:
    api = LargeAnswers()
    async with (
        listen(api, unread_patience_ms=1_000) as listener,
        connect(listener, source=ADMINISTRATOR) as administrator,
        ask_and_never_read(listener, api),
    ):
        await api.wait_until_made(2)
        administrator.send(api.ask())
        assert len(await administrator.answer()) == ANSWER_BYTES + 4
        assert api.made < CLIENTS


async def test_without_shortage_a_client_may_take_its_time() -> None:
    clock, closed = Clock(), list[int]()
    budget = ByteBudget(10 * SMALL_ANSWER_BYTES, most_requests=9, patience_s=1.0, now_s=clock)
    unread = budget.hold(2 * SMALL_ANSWER_BYTES, lambda: closed.append(1))
    clock.now_s = 100.0
    budget.hold(2 * SMALL_ANSWER_BYTES, lambda: closed.append(2))
    assert closed == []
    budget.hold(2 * SMALL_ANSWER_BYTES, lambda: closed.append(3))
    assert closed == [1], "now the memory is short"
    assert unread is not None
    unread.give_back()
    unread.give_back()
    assert budget.unread_bytes == 4 * SMALL_ANSWER_BYTES


async def test_progress_keeps_a_connection() -> None:
    clock, closed = Clock(), list[int]()
    budget = ByteBudget(4 * SMALL_ANSWER_BYTES, most_requests=9, patience_s=1.0, now_s=clock)
    slow = budget.hold(SMALL_ANSWER_BYTES + 1, lambda: closed.append(1))
    budget.hold(SMALL_ANSWER_BYTES - 1, lambda: closed.append(2))
    assert slow is not None
    clock.now_s = 0.9
    slow.note_progress()
    clock.now_s = 1.5
    budget.hold(2 * SMALL_ANSWER_BYTES, lambda: closed.append(3))
    assert closed == []
    clock.now_s = 1.9
    budget.hold(2 * SMALL_ANSWER_BYTES, lambda: closed.append(4))
    assert closed == [1]


async def test_a_large_request_that_waits_for_memory_ends_clients_that_do_not_read() -> None:
    budget = ByteBudget(10 * SMALL_ANSWER_BYTES, most_requests=9, patience_s=0.01)
    is_closed = asyncio.Event()
    unread = budget.hold(4 * SMALL_ANSWER_BYTES, is_closed.set)
    waiting = asyncio.create_task(_share(budget, 9 * SMALL_ANSWER_BYTES))
    async with asyncio.timeout(30):
        await is_closed.wait()
        assert unread is not None
        unread.give_back()
        await waiting


async def _share(budget: ByteBudget, amount: int) -> None:
    async with budget.share(amount):
        assert budget.unread_bytes == 0


async def test_callers_of_a_higher_rank_are_next_in_line_and_one_that_leaves_holds_up_nobody() -> None:
    line, order = Line(), list[str]()

    async def take(name: str, rank: int) -> None:
        async with line.turn(rank, name):
            order.append(name)
            await asyncio.sleep(0)

    names = [("first", 0), ("stranger", 0), ("leaves", 0), ("administrator", 1), ("broker", 2)]
    tasks = [asyncio.create_task(take(*each)) for each in names]
    await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == ["first", "broker", "administrator", "stranger"]
    async with line.turn(0, "later"):
        pass


async def test_an_address_with_many_callers_in_line_does_not_hold_up_the_others() -> None:
    line, order = Line(), list[str]()

    async def take(address: str) -> None:
        async with line.turn(0, address):
            order.append(address)
            await asyncio.sleep(0)

    greedy = [asyncio.create_task(take("greedy")) for _ in range(10)]
    await asyncio.sleep(0)
    await asyncio.gather(*greedy, *(asyncio.create_task(take(other)) for other in ("modest", "late")))
    assert order[:4] == ["greedy", "greedy", "modest", "late"]
