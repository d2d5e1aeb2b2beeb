"""The next server of a connection, its address, and the timeout for an answer."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionDropped, ConnectionHandler

from controller_core.names import Names
from controller_core.zk.kazoo.bridge import BridgedClient, Mailbox

Server = tuple[str, str, int]


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[Server]:
    """Note the attempts to connect, as name, address and port. Each of them fails."""
    made: list[Server] = []

    def refuse(_connection: object, host: str, address: str, port: int) -> None:
        made.append((host, address, port))
        raise ConnectionDropped("refused")

    monkeypatch.setattr(ConnectionHandler, "_connect", refuse)
    return made


@asynccontextmanager
async def connect(
    servers: str, resolve: Callable[[str], list[str]], session_timeout_ms: int = 6_000
) -> AsyncIterator[None]:
    """A client that tries to connect."""
    mailbox = Mailbox(asyncio.get_running_loop())
    client = BridgedClient(servers, session_timeout_ms=session_timeout_ms, mailbox=mailbox, names=Names(resolve))
    client.start_async()
    try:
        yield
    finally:
        await asyncio.to_thread(client.stop)


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in kazoo's thread
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("servers", ["zk:2181", "zk-1:2181,zk-2:2181,zk-3:2181"])
async def test_each_attempt_goes_to_an_address_that_was_resolved_for_it(servers: str, attempts: list[Server]) -> None:
    resolved: Counter[str] = Counter()

    def move(name: str) -> list[str]:
        resolved[name] += 1
        return [f"10.0.0.{resolved[name]}"]

    async with connect(servers, move):
        await wait_until(lambda: len(attempts) >= 6)
    assert len(set(attempts)) == len(attempts), "each name has another address each time that it is resolved"


async def test_all_addresses_are_tried_before_one_is_tried_again(attempts: list[Server]) -> None:
    async with connect("zk-1:2181,zk-2:2182", lambda name: [f"{name}.a", f"{name}.b"]):
        await wait_until(lambda: len(attempts) >= 8)
    expected = {(f"zk-{n}", f"zk-{n}.{part}", 2180 + n) for n in (1, 2) for part in "ab"}
    assert set(attempts[:4]) == set(attempts[4:8]) == expected


async def test_a_name_that_has_no_address_yet_is_tried_as_soon_as_it_has_one(attempts: list[Server]) -> None:
    asked: list[str] = []

    def resolve_later(name: str) -> list[str]:
        asked.append(name)
        if len(asked) < 3:
            raise OSError(f"{name} is not known")
        return ["10.0.0.1"]

    async with connect("zk:2181", resolve_later):
        await wait_until(lambda: bool(attempts))
    assert attempts[0] == ("zk", "10.0.0.1", 2181)


@pytest.mark.parametrize(("session_timeout_ms", "longest_s"), [(60_000, 2.0), (10_000, 2.0), (3_000, 1.0)])
async def test_an_address_that_never_answers_is_given_up_soon_however_long_a_session_may_last(
    session_timeout_ms: int, longest_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: list[float] = []

    def never_answer(_handler: object, *, timeout: float, **_how: Any) -> None:
        allowed.append(timeout)
        raise TimeoutError("timed out")

    monkeypatch.setattr(SequentialThreadingHandler, "create_connection", never_answer)
    async with connect("zk:2181", lambda _: ["10.0.0.1"], session_timeout_ms):
        await wait_until(lambda: bool(allowed))
    assert allowed[0] == longest_s
