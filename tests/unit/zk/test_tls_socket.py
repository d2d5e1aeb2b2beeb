"""A TLS connection is ready when there is something to read, however it came, and not before."""

import selectors
import socket
import ssl
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from kazoo.handlers.utils import selector_select

from controller_core.zk.kazoo.tls_socket import Ready, TlsSocket, select_with_tls
from devcluster.clusters.certificates import make_certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A client, as kazoo uses it, and its server."""

    client: TlsSocket
    server: ssl.SSLSocket

    def is_ready(self, timeout_s: float) -> bool:
        return bool(select_with_tls(selector_select, [self.client], [], [], timeout_s)[0])

    def receive(self, size: int) -> bytes:
        """Return that many bytes, read as kazoo's loop does."""
        content = b""
        while len(content) < size:
            assert self.is_ready(5)
            content += self.client.recv(size - len(content))
        return content


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    files = make_certificate(tmp_path_factory.mktemp("certificate"), "localhost")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(files.certificate, files.key)
    return ssl.create_default_context(cafile=files.certificate), serving


@pytest.fixture
def pair(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> Iterator[Pair]:
    ends = socket.socketpair()
    with ThreadPoolExecutor(1) as other:
        accepted = other.submit(contexts[1].wrap_socket, ends[1], server_side=True)
        made = contexts[0].wrap_socket(ends[0], server_hostname="localhost")
        server = accepted.result(5)
    client = TlsSocket(made)
    client.setblocking(False)
    yield Pair(client=client, server=server)
    client.close()
    server.close()


def test_what_came_in_one_record_is_ready_though_nothing_more_arrives(pair: Pair) -> None:
    pair.server.sendall(b"one" + b"two")
    assert pair.receive(3) == b"one"
    assert pair.is_ready(0)
    assert pair.receive(3) == b"two"


def test_what_is_no_content_makes_nothing_ready(pair: Pair) -> None:
    """The server's tickets have come with its end of the handshake."""
    with selectors.DefaultSelector() as selector:
        selector.register(pair.client.fileno(), selectors.EVENT_READ)
        assert selector.select(5), "there is nothing that could be taken for content"
    assert not pair.is_ready(0)
    pair.server.sendall(b"content")
    assert pair.receive(7) == b"content"


@pytest.mark.parametrize("size", [0, 1, 16_384, 16_385, 3 << 20])
def test_everything_is_received_in_its_order(pair: Pair, size: int) -> None:
    content = bytes(number % 251 for number in range(size))
    with ThreadPoolExecutor(1) as other:
        sending = other.submit(pair.server.sendall, content)
        assert pair.receive(size) == content
        sending.result(5)


def test_the_end_is_ready_and_empty_when_all_before_it_is_read(pair: Pair) -> None:
    pair.server.sendall(b"last")
    pair.server.shutdown(socket.SHUT_RDWR)
    assert pair.receive(4) == b"last"
    assert pair.is_ready(5)
    assert pair.client.recv(1) == b""


def test_nothing_to_read_is_said_as_a_socket_that_does_not_block_says_it(pair: Pair) -> None:
    with pytest.raises(ssl.SSLWantReadError) as caught:
        pair.client.recv(1)
    assert caught.value.errno == ssl.SSL_ERROR_WANT_READ


def test_other_sockets_are_ready_beside_it(pair: Pair) -> None:
    woken, waking = socket.socketpair()
    with woken, waking:
        waking.sendall(b"x")
        assert select_with_tls(selector_select, [pair.client, woken], [], [], 5)[0] == [woken]
        pair.server.sendall(b"answer")
        while pair.client not in select_with_tls(selector_select, [pair.client], [], [], 5)[0]:
            pass
        assert select_with_tls(selector_select, [pair.client, woken], [], [], 5)[0] == [pair.client, woken]


def test_without_tls_it_is_asked_as_before() -> None:
    asked: list[tuple[Any, ...]] = []

    def select(readers: Sequence[Any], writers: Sequence[Any], errors: Sequence[Any], timeout_s: float | None) -> Ready:
        asked.append((readers, writers, errors, timeout_s))
        return [], [], []

    assert select_with_tls(select, ["a"], ["b"], [], 3.0) == ([], [], [])
    assert asked == [(["a"], ["b"], [], 3.0)]
