"""A way to a server passes everything on, and stops passing one direction when that is silenced."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from devcluster.running.ways import Silence, Way


@pytest.fixture
def ends() -> Iterator[tuple[Way, socket.socket, socket.socket]]:
    """A way, and both ends of a connection over it."""
    with ExitStack() as opened:
        listening = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        way = opened.enter_context(Way(listening.getsockname()[1]))
        client = opened.enter_context(socket.create_connection(("127.0.0.1", way.port), timeout=10))
        server, _ = listening.accept()
        opened.enter_context(server)
        server.settimeout(10)
        yield way, client, server


def test_both_directions_are_passed_on(ends: tuple[Way, socket.socket, socket.socket]) -> None:
    _, client, server = ends
    client.sendall(b"question")
    assert server.recv(100) == b"question"
    server.sendall(b"answer")
    assert client.recv(100) == b"answer"


def test_one_direction_is_swallowed_and_the_other_goes_on(ends: tuple[Way, socket.socket, socket.socket]) -> None:
    way, client, server = ends
    way.swallows = Silence.ANSWERS
    server.sendall(b"answer")
    client.sendall(b"question")
    assert server.recv(100) == b"question"
    client.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.recv(100)


def test_a_way_that_is_closed_cuts_its_connections(ends: tuple[Way, socket.socket, socket.socket]) -> None:
    way, client, server = ends
    client.sendall(b"question")
    assert server.recv(100) == b"question", "the way knows of the connection"
    way.close()
    assert (client.recv(100), server.recv(100)) == (b"", b"")
