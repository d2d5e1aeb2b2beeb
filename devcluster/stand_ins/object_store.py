"""An S3 server on this machine (moto's), and a gate before it at which a test stops single requests.

The gate lets one request through at a time, so that moto checks a condition and writes as one step, as S3 does. The
server's distributions have versions of their own (locks/s3.txt), so they are installed into the cache.
"""

import http.client
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final

from devcluster.building import progress
from devcluster.building.cache import Entry
from devcluster.building.toolchain import run
from devcluster.running.places import LOOPBACK
from devcluster.running.ports import accepts, release_port, reserve_port
from devcluster.running.processes import ManagedProcess

BUCKET: Final = "history"
_LOCK: Final = Path(__file__).resolve().parents[2] / "locks" / "s3.txt"
_BETWEEN_NEIGHBOURS: Final = {"connection", "expect", "keep-alive", "transfer-encoding", "content-length"}
"""Headers that the gate and its two neighbours each set for themselves."""


def moto() -> Entry:
    """Return the cache entry of the folder with moto and all that it imports."""

    def build(folder: Path) -> None:
        with progress.step("Fetching an S3 server for tests (moto)"):
            options = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--requirement", str(_LOCK)]
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *options]
            run([*command, "--target", str(folder)], what="fetching moto")

    version = ".".join(map(str, sys.version_info[:2]))
    return Entry(name=f"moto-{version}", inputs=(_LOCK.read_text(),), build=build)


@dataclass(slots=True)
class Held:
    """A request that the gate stops."""

    has_come: Event = field(default_factory=Event)
    _is_decided: Event = field(default_factory=Event)
    _is_dropped: bool = False

    def let_through(self) -> None:
        self._is_decided.set()

    def drop(self) -> None:
        """Let the request never arrive, as if its sender had died before."""
        self._is_dropped = True
        self._is_decided.set()

    def wait(self) -> bool:
        """Wait for the test's decision. Return True if the request may go through."""
        self.has_come.set()
        self._is_decided.wait()
        return not self._is_dropped


@dataclass(slots=True)
class ObjectStore:
    """The running store. It has the bucket `BUCKET`."""

    port: int
    _moto_port: int
    _held: dict[str, Held] = field(default_factory=dict)
    _lost: set[str] = field(default_factory=set)
    _one_at_a_time: Lock = field(default_factory=Lock)

    def hold(self, name: str) -> Held:
        """Stop the next PUT of an object whose name ends with `name`, until the test decides."""
        self._held[name] = Held()
        return self._held[name]

    def lose_answer(self, name: str) -> None:
        """Carry out the next PUT of an object whose name ends with `name`, and let its answer get lost."""
        self._lost.add(name)

    def settings(self) -> dict[str, str]:
        """Return Hadoop's settings for clients."""
        return {
            "fs.s3a.endpoint": f"http://{LOOPBACK}:{self.port}",
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
            "fs.s3a.access.key": "anybody",
            "fs.s3a.secret.key": "anything",
        }

    def list_keys(self, prefix: str) -> list[str]:
        """Return the names of all objects that begin with `prefix`."""
        _, _, listed = self.forward("GET", f"/{BUCKET}?prefix={prefix}", {}, b"")
        return [part.partition("</Key>")[0] for part in listed.decode().split("<Key>")[1:]]

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any, bytes] | None:
        """Return the server's status, headers and content for a request, or None if no answer may arrive."""
        held = self._held.pop(_find_name(self._held, method, path), None)
        if held is not None and not held.wait():
            return None
        answered = self.forward(method, path, headers, body)
        lost = _find_name(self._lost, method, path)
        self._lost.discard(lost)
        return None if lost else answered

    def forward(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any, bytes]:
        with self._one_at_a_time:
            connection = http.client.HTTPConnection(LOOPBACK, self._moto_port)
            try:
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                return response.status, response.headers, response.read()
            finally:
                connection.close()


def _find_name(names: Iterable[str], method: str, path: str) -> str:
    """Return the name that a PUT's object ends with, or "" if there is none."""
    key = path.partition("?")[0] if method == "PUT" else ""
    return next((name for name in names if key.endswith(name)), "")


@contextmanager
def run_object_store(folder: Path) -> Iterator[ObjectStore]:
    """Run a store while the block runs. `folder` gets its log."""
    moto_port, log = reserve_port(), folder / "moto.log"
    command = [sys.executable, "-S", "-m", "moto.server", "-H", LOOPBACK, "-p", str(moto_port)]
    env = {"PYTHONPATH": str(moto().folder())}
    server = ManagedProcess("moto", command, log_path=log, ready=lambda: accepts(moto_port), env=env)
    gate = ThreadingHTTPServer((LOOPBACK, 0), _Gate)
    gate.daemon_threads = True
    store = gate.store = ObjectStore(gate.server_port, moto_port)  # type: ignore[attr-defined]  # for its handlers
    try:
        server.start()
        store.forward("PUT", f"/{BUCKET}", {}, b"")
        Thread(target=gate.serve_forever, daemon=True).start()
        yield store
        gate.shutdown()
    finally:
        gate.server_close()
        server.stop()
        release_port(moto_port)


class _Gate(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _BETWEEN_NEIGHBOURS}
        store: ObjectStore = self.server.store  # type: ignore[attr-defined]
        answered = store.answer(self.command, self.path, headers, body)
        if answered is None:
            self.close_connection = True
            return
        status, answer_headers, content = answered
        self.send_response_only(status)
        for name, value in answer_headers.items():
            if name.lower() not in _BETWEEN_NEIGHBOURS:
                self.send_header(name, value)
        length = answer_headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815  # the names that http.server calls

    def log_message(self, *_: object) -> None:
        pass
