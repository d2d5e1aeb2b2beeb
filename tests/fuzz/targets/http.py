"""Bytes of strangers for the HTTP ports. The first byte chooses the port: that of metrics, journal and report, or the
webhook.

The ports are real ones, without TLS, in an event loop of another thread. An answer 500, and an error that aiohttp or the
event loop reports, is a finding.
"""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread
from typing import Any, Final

import orjson
from prometheus_client import CollectorRegistry

from controller_core.process.bounded_http import serve_http
from controller_core.process.http import HttpAccess, serve_metrics
from controller_core.process.http_access.door import Door
from controller_core.process.journal_http import make_journal_routes
from controller_core.security.token_file import TokenFile
from controller_operator.admission.server import PATH, make_application
from devcluster.running.ports import reserve_port
from kontroller.history.serving.process import make_routes
from tests.fuzz.target import Target
from tests.unit.operator.admission.test_server import review

_TOKEN: Final = "token-of-the-fuzz-target"
_SILENCE_S: Final = 0.01
"""Seconds without an answer after which the client leaves: most inputs are no whole request."""
_SEGMENT: Final = f"journal-{0:020}.jsonl"
_HEADS: Final = (
    "GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n",
    f"GET /metrics HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {_TOKEN}\r\n\r\n",
    f"GET /journal HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {_TOKEN}\r\n\r\n",
    f"GET /journal/{_SEGMENT} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {_TOKEN}\r\nRange: bytes=1-3\r\n\r\n",
    "GET /journal/../x HTTP/1.1\r\nHost: here\r\nAuthorization: Basic eA==\r\nConnection: close\r\n\r\n",
    f'GET / HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {_TOKEN}\r\nIf-None-Match: "x"\r\n\r\n',
    f"HEAD /tables/topics.json HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {_TOKEN}\r\n\r\n",
    f"GET /clusters/%0d%0a HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {_TOKEN}\r\n\r\n",
    "POST /metrics HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
)


class _Errors(logging.Handler):
    """Keeps the errors that were reported since the last look."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.kept: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(self.format(record))

    def take(self) -> list[str]:
        kept, self.kept = self.kept, []
        return kept


_ERRORS: Final = _Errors()


@cache
def _find_ports() -> tuple[int, int]:
    """Serve both ports from now on. Return their numbers."""
    logging.getLogger("aiohttp.server").addHandler(_ERRORS)
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _, context: _ERRORS.kept.append(str(context)))
    Thread(target=loop.run_forever, name="HTTP ports", daemon=True).start()
    return asyncio.run_coroutine_threadsafe(_serve(), loop).result()


async def _serve() -> tuple[int, int]:
    folder = Path(mkdtemp(prefix="fuzz-http-"))
    (folder / "token").write_text(_TOKEN)
    (folder / _SEGMENT).write_text('{"kind": "term"}\n')
    report = folder / "report"
    (report / "tables").mkdir(parents=True)
    (report / "index.html").write_text("<html>")
    (report / "tables" / "topics.json").write_text("{}\n")
    ports = reserve_port(), reserve_port()
    access = HttpAccess(door=Door(TokenFile(path=folder / "token"), option="--metrics-token-file"))
    routes = [*make_journal_routes(folder, door=access.door), *make_routes(report, access)]
    await serve_metrics("127.0.0.1", ports[0], CollectorRegistry(), routes, access)
    await serve_http(make_application(_allow), "127.0.0.1", ports[1])
    return ports


async def _allow(request: Any, **_: Any) -> Any:
    return {"response": {"uid": request["request"]["uid"], "allowed": True, "warnings": []}}


def examples() -> Iterator[bytes]:
    for head in _HEADS:
        yield b"\0" + head.encode()
    body = orjson.dumps(review())
    yield b"\x01" + f"POST {PATH} HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    yield b"\x01" + f"POST {PATH} HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\n{{}}".encode()


def read(data: bytes) -> None:
    port = _find_ports()[data[0] % 2 if data else 0]
    answer = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection, suppress(ConnectionError):
        connection.sendall(data[1:])
        connection.settimeout(_SILENCE_S)
        with suppress(TimeoutError):
            while part := connection.recv(1 << 16):
                answer += part
    assert b"HTTP/1.1 500" not in answer
    kept = _ERRORS.take()
    assert not kept, kept


TARGET: Final = Target(name="http", examples=examples, read=read)
