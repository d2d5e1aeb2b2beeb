"""A port accepts few connections at a time, and failed attempts fill no log."""

import asyncio
import errno
import os
import resource
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from controller_core.wire.limits.accepting import AcceptingPort, open_port
from devcluster.running.ports import release_port, reserve_port

DEADLINE_S = 20


class Failing(socket.socket):
    """A listening socket whose first attempts to accept fail."""

    errors: list[int]

    def accept(self) -> tuple[socket.socket, object]:
        if self.errors:
            number = self.errors.pop(0)
            raise OSError(number, os.strerror(number))
        return super().accept()


@asynccontextmanager
async def open_failing_port(*errors: int) -> AsyncIterator[tuple[AcceptingPort, list[str]]]:
    listening = Failing()
    listening.errors = [*errors]
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    listening.setblocking(False)
    taken: list[str] = []

    def take(accepted: socket.socket, address: str) -> None:
        accepted.close()
        taken.append(address)

    port = AcceptingPort([listening], take)
    try:
        yield port, taken
    finally:
        port.close()


async def wait_for(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "errors", [[errno.EMFILE], [errno.ENFILE, errno.ENOBUFS], [errno.ECONNABORTED] * 5], ids=["own", "others", "left"]
)
async def test_a_connection_is_accepted_after_failed_attempts_of_which_the_log_has_one(errors: list[int]) -> None:
    with capture_logs() as logged:
        async with open_failing_port(*errors) as (port, taken):
            _, writer = await asyncio.open_connection("127.0.0.1", port.port)
            await wait_for(lambda: taken == ["127.0.0.1"])
            writer.close()
    assert [(line["reason"], line["times"]) for line in logged] == [(os.strerror(errors[0]), 1)]


async def test_all_connections_are_served_after_a_time_without_descriptors() -> None:
    taken: list[socket.socket] = []
    number = reserve_port()
    port = await open_port("127.0.0.1", number, lambda accepted, _: taken.append(accepted))
    clients = [socket.socket() for _ in range(20)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with capture_logs() as logged:
        for client in clients:
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", number))
        lowest_free = os.dup(clients[0].fileno())
        os.close(lowest_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
        try:
            await wait_for(lambda: bool(logged))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        await wait_for(lambda: len(taken) == len(clients))
    assert [line["reason"] for line in logged] == ["Too many open files"]
    for each in (*taken, *clients):
        each.close()
    port.close()
    release_port(number)


async def test_a_port_that_is_taken_is_refused() -> None:
    async with open_failing_port() as (port, _):
        with pytest.raises(OSError, match="address already in use"):
            await open_port("127.0.0.1", port.port, lambda *_: None)
