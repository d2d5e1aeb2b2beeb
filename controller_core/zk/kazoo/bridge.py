"""Connects kazoo's thread with the event loop: everything that kazoo reports is delivered on the loop, in order.

kazoo's own callback threads lose the order of watches and responses. Here the connection thread puts all reports into
one `Mailbox`, and one wake-up of the loop delivers all that have gathered. kazoo's thread never waits for the loop.

`BridgedClient` also changes kazoo in seven ways. A request without a connection fails instead of being queued, and none
slips in while kazoo fails the outstanding ones. An unanswered handshake ends early. Server names are resolved at each
attempt to connect, and one that hangs does not delay the others. Neither an unexpected error nor a refused login ends
the thread: a server that stops during a login looks the same. The client counts as connected after the login.
"""

import asyncio
import random
import ssl
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from math import ceil
from threading import RLock
from typing import Any, Protocol, TypeAlias

import structlog
from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionLoss,
    SessionExpiredError,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import CHILD_EVENT, ConnectionDropped
from kazoo.protocol.serialization import Watch
from kazoo.protocol.states import KeeperState
from kazoo.retry import ForceRetryError, KazooRetry

from controller_core.names import NAMES, Names
from controller_core.security.jaas import NameAndPassword
from controller_core.security.properties_file import InvalidProperties
from controller_core.zk.kazoo.login import log_in
from controller_core.zk.kazoo.tls_socket import Ready, TlsSocket, select_with_tls
from controller_core.zk.secured.properties import NO_ZK_SECURITY, ZkSecuritySource

_log = structlog.get_logger(__name__)

_HANDSHAKES_PER_SESSION = 3
_LONGEST_TCP_CONNECT_S = 2.0
"""Upper limit of a TCP connect, whatever the session timeout: a deleted server may never answer. Allows for one lost
SYN."""
_RECONNECT_DELAY_S = 0.1
_RECONNECT_MAX_DELAY_S = 1.0
_OTHER_NAMES_S = 0.5
"""Seconds to wait for the names of all servers after one of them has an address."""

_Server: TypeAlias = tuple[str, str, int]
"""The name, address and port."""
_Timeouts: TypeAlias = tuple[float, float]
"""Read and write timeouts in milliseconds."""


class Request(Protocol):
    """A request on kazoo's connection: an opcode, its body, and a decoder for the body of the response."""

    @property
    def type(self) -> int: ...

    def serialize(self) -> bytes: ...

    def deserialize(self, buffer: bytes, offset: int) -> Any: ...


class Mailbox:
    """Calls functions on the loop, in the order in which other threads put them in."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._letters: deque[Callable[[], object]] = deque()
        self._is_awake = False

    def put(self, letter: Callable[[], object]) -> None:
        self._letters.append(letter)
        if not self._is_awake:
            self._is_awake = True
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_awake = False
        while self._letters:
            self._loop.call_soon(self._letters.popleft())


class Reply:
    """kazoo's end of a future: set in its thread, resolved on the loop."""

    def __init__(self, mailbox: Mailbox, future: "asyncio.Future[Any]") -> None:
        self._mailbox = mailbox
        self._future = future

    def set(self, value: object = None) -> None:
        self._mailbox.put(partial(self._resolve, value, None))

    def set_exception(self, error: Exception) -> None:
        self._mailbox.put(partial(self._resolve, None, error))

    def _resolve(self, value: object, error: Exception | None) -> None:
        if self._future.done():
            return
        if error is None:
            self._future.set_result(value)
        else:
            self._future.set_exception(error)


class _MailboxHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo is not typed
    """Puts kazoo's watch callbacks into the mailbox. It has no threads of its own."""

    def __init__(self, mailbox: Mailbox) -> None:
        super().__init__()
        self._mailbox = mailbox
        self.tls: ssl.SSLContext | None = None

    def start(self) -> None:
        self._running = True

    def stop(self) -> None:
        self._running = False

    def dispatch_callback(self, callback: Any) -> None:
        self._mailbox.put(partial(callback.func, *callback.args))

    def create_connection(self, *, hostname: str, timeout: float, **how: Any) -> Any:
        """Connect a socket for kazoo's loop. kazoo's own TLS is not used: see `tls_socket`."""
        connect_s = min(timeout / _HANDSHAKES_PER_SESSION, _LONGEST_TCP_CONNECT_S)
        plain = super().create_connection(hostname=hostname, timeout=connect_s, **how)
        if self.tls is None:
            return plain
        try:
            plain.settimeout(timeout / _HANDSHAKES_PER_SESSION)
            return TlsSocket(self.tls.wrap_socket(plain, server_hostname=hostname))
        except BaseException:
            plain.close()
            raise

    def select(self, readers: Any, writers: Any, errors: Any, timeout: float | None = None) -> Ready:
        return select_with_tls(super().select, readers, writers, errors, timeout)


class BridgedClient(KazooClient):  # type: ignore[misc]  # kazoo is not typed
    """A kazoo client for one event loop: it takes requests and returns futures. It reconnects until it is stopped."""

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int,
        mailbox: Mailbox,
        security: ZkSecuritySource = lambda: NO_ZK_SECURITY,
        names: Names = NAMES,
    ) -> None:
        self._names = names
        self._gate = RLock()
        self._mailbox = mailbox
        self._security = security
        self._login: NameAndPassword | None = None
        self._is_being_admitted = False
        self.trouble: str | None = None
        """The reason why the last attempt to connect failed; None if it did not."""
        self.refusals = 0
        """Refused logins since the last successful one."""
        self._tried: set[_Server] = set()
        """The servers that were tried in the current pass over all servers."""
        self._has_untried = False
        self._tree_watches: dict[str, Callable[[str | None], None]] = {}
        super().__init__(
            hosts=connect,
            timeout=session_timeout_ms / 1000,
            handler=_MailboxHandler(mailbox),
            connection_retry=KazooRetry(
                max_tries=-1, delay=_RECONNECT_DELAY_S, max_delay=_RECONNECT_MAX_DELAY_S, max_jitter=0.4
            ),
        )
        # kazoo waits for the answer to a handshake for the session's read timeout divided by the number of addresses. A
        # server that accepts connections before it is up, and never answers, would cost the session. So the list is
        # lengthened.
        hosts: list[tuple[str, int]] = self.hosts  # type: ignore[has-type]  # kazoo is not typed
        self.hosts = hosts * ceil(_HANDSHAKES_PER_SESSION / len(hosts))
        self._fire_one_shot_watches = self._connection._read_watch_event
        self._connection._read_watch_event = self._read_watch_event  # kazoo knows no watches of trees
        self._connection._authenticate_with_sasl = self._log_in
        self._connection._expand_client_hosts = self._next_server
        self._connection._connect_loop = partial(self._try_each, self._connection._connect_loop)
        self._connection._connect = partial(self._be_admitted, self._connection._connect)
        self._connection.zk_loop = partial(self._keep_connecting, self._connection.zk_loop)

    def submit(self, requests: Sequence[Request]) -> "list[asyncio.Future[Any]]":
        """Send the requests one after the other. Their futures fail with kazoo's exceptions.

        Called on the loop. One byte per request wakes kazoo's thread. All bytes go in one write, which fits into the
        socket's buffer, so this does not block.
        """
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Any]] = [loop.create_future() for _ in requests]
        # kazoo changes its state under the same lock, so no request is queued after it failed the outstanding ones.
        with self._gate:
            refusal = _REFUSALS.get(self._state, ConnectionLoss) if self._state != KeeperState.CONNECTED else None
            if refusal is None:
                self._queue.extend(
                    (request, Reply(self._mailbox, future)) for request, future in zip(requests, futures, strict=True)
                )
        if refusal is not None:
            for future in futures:
                future.set_exception(refusal())
            return futures
        self._connection._write_sock.sendall(b"\0" * len(requests))  # as kazoo does in `_call`
        return futures

    def arm(self, callbacks: Iterable[tuple[str, Callable[[Any], None]]]) -> None:
        """Register data watches, by absolute path, that a request is about to arm. Called in kazoo's thread."""
        for path, callback in callbacks:
            self._data_watchers[path].add(callback)

    def arm_tree(self, path: str, watch: Callable[[str | None], None]) -> None:
        """Register a tree watch, by absolute path, that a request is about to arm. Called in kazoo's thread."""
        self._tree_watches[path] = watch

    def disarm_tree(self, path: str, watch: Callable[[str | None], None]) -> bool:
        """Stop notifying a tree watch. Return False if it was lost before; another one may be armed by now."""
        if self._tree_watches.get(path) is not watch:
            return False
        self._tree_watches.pop(path, None)
        return True

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        if self._tree_watches:
            event = Watch.deserialize(buffer, offset)[0]
            for root, watch in list(self._tree_watches.items()):
                # Ignore changed children, which concern only one-shot watches. The tree watch gets an event for the
                # child itself.
                if event.type != CHILD_EVENT and (event.path == root or event.path.startswith(f"{root}/")):
                    self._mailbox.put(partial(watch, self.unchroot(event.path)))
        self._fire_one_shot_watches(buffer, offset)

    def _reset_watchers(self) -> None:
        super()._reset_watchers()
        lost, self._tree_watches = self._tree_watches, {}
        for watch in lost.values():
            self._mailbox.put(partial(watch, None))

    def _keep_connecting(self, connect: Callable[[], None]) -> None:
        """Run kazoo's connection loop in its thread. An unexpected error ends that loop and the session, so begin
        another one."""
        while True:
            try:
                return connect()
            except Exception:  # noqa: BLE001 - without this thread there is no connection
                _log.exception("the connection to ZooKeeper failed unexpectedly, a new session begins")
            if self._stopped.wait(_RECONNECT_MAX_DELAY_S):
                return None

    def _be_admitted(self, connect: Callable[..., _Timeouts], *server: object) -> _Timeouts:
        """Connect and log in, in kazoo's thread. Raises `ConnectionDropped` if the login is refused, so that kazoo
        retries."""
        self._is_being_admitted = True
        try:
            self._take_security()
            timeouts = connect(*server)
        except AuthFailedError as error:
            self.refusals += 1
            self.trouble = f"{server[0]} refuses the login: {error}"
            raise ConnectionDropped(self.trouble) from error
        except Exception as error:
            self.trouble = str(error)
            raise
        finally:
            self._is_being_admitted = False
        # Only now the client counts as connected: the login is over.
        self.refusals = 0
        self.trouble = None
        self._session_callback(KeeperState.CONNECTED)
        return timeouts

    def _try_each(self, connect_loop: Callable[[object], object], retry: object) -> object:
        """Try all servers once, in kazoo's thread, and resolve the names for each attempt.

        A pass continues after a connection that was lost, possibly after days. A server that moved has another address
        by then.
        """
        self._tried.clear()
        while True:
            try:
                return connect_loop(retry)
            except ForceRetryError:
                if not self._has_untried:
                    raise

    def _next_server(self) -> list[_Server]:
        """Return one untried server, chosen at random, with its current address, or none. Called in kazoo's thread.

        It replaces kazoo's method, which resolves all names once for a pass.
        """
        untried = self._servers() - self._tried
        self._has_untried = len(untried) > 1
        chosen = random.sample(sorted(untried), min(1, len(untried)))
        self._tried.update(chosen)
        return chosen

    def _servers(self) -> set[_Server]:
        """Return the servers that have an address now. A name that hangs delays the others only briefly."""
        begun = {host: self._names.look_up(host.strip()) for host, _ in self.hosts}
        wait(begun.values(), timeout=_OTHER_NAMES_S)
        if not any(map(_is_resolved, begun.values())):
            wait(begun.values(), timeout=self._session_timeout / 1000 / _HANDSHAKES_PER_SESSION)
        for host, found in begun.items():
            if not _is_resolved(found):
                error = found.exception() if found.done() else None
                self.trouble = f"{host} cannot be resolved: {error or 'the name server does not answer'}"
        return {
            (host, address, port)
            for host, port in self.hosts
            if _is_resolved(begun[host])
            for address in begun[host].result()
        }

    def _take_security(self) -> None:
        """Read the security settings for this connection, because passwords and certificates change while a process
        runs."""
        try:
            security = self._security()
            self.handler.tls = security.tls
        except InvalidProperties as error:
            raise ConnectionDropped(str(error)) from error
        login, digest = security.sasl, security.digest
        self._connection.sasl_options = {} if login else None
        self._login = login
        self.auth_data = {("digest", f"{digest.username}:{digest.password}")} if digest else set()

    def _log_in(self, host: str, timeout: float) -> None:
        """Log in, in kazoo's thread, instead of kazoo's own method."""
        if self._login is not None:
            log_in(self._connection, self._login, timeout)

    def _session_callback(self, state: str) -> None:
        if state == KeeperState.CONNECTED and self._is_being_admitted:
            return
        with self._gate:
            super()._session_callback(state)


def _is_resolved(found: "Future[list[str]]") -> bool:
    return found.done() and found.exception() is None


_REFUSALS: dict[str, type[Exception]] = {
    KeeperState.AUTH_FAILED: AuthFailedError,
    KeeperState.EXPIRED_SESSION: SessionExpiredError,
    KeeperState.CLOSED: SessionExpiredError,
}
