"""Between kazoo's thread and the event loop: kazoo's client, with everything it reports delivered on the loop, in order.

kazoo runs one thread for the connection, and by default two more for callbacks, so that the order of a watch and of a
response is lost. Here there is one `Mailbox`: whatever the connection thread has to report goes into it in its order, and
one wake-up of the loop delivers all that has gathered. kazoo's thread never waits for the loop.

`BridgedClient` also closes seven gaps in kazoo: a request made while there is no connection is refused instead of queued,
no request slips in between the moment when kazoo fails all outstanding ones and the moment when it is seen to be
disconnected, one unanswered handshake does not take as long as a session lives, a server's name that hangs in the name
server does not keep it from the others, names are resolved at each attempt to connect and not once for all servers, an
error that kazoo does not expect does not end its thread, and with it all connecting, for good, and neither does a login
that is refused: a server that stops in the middle of one says the same.
There is a connection when the login is over, not before.
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
"""However long sessions live: the address of a server that was deleted may never answer. Room for one lost SYN."""
_RECONNECT_DELAY_S = 0.1
_RECONNECT_MAX_DELAY_S = 1.0
_OTHER_NAMES_S = 0.5
"""So long the names of all servers are waited for, although one of them has an address."""

_Server: TypeAlias = tuple[str, str, int]
"""Name, address and port."""
_Timeouts: TypeAlias = tuple[float, float]
"""How long may be read and be written, in milliseconds."""


class Request(Protocol):
    """What kazoo's connection sends: an opcode, its body, and how to read the body of the response."""

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
    """kazoo's end of a future: set from its thread, resolved on the loop."""

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
    """kazoo's watch callbacks go into the mailbox; no threads of its own."""

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
        """A socket for kazoo's loop. kazoo's own TLS is left alone: see `tls_socket`."""
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
    """A kazoo client for one event loop: requests in, futures out. It reconnects until it is stopped."""

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
        """Why the last connection was not made, or the one before it is no more."""
        self.refusals = 0
        """How many logins were refused since the last one that was not."""
        self._tried: set[_Server] = set()
        """The servers that were tried in this pass over all of them."""
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
        # kazoo waits for the answer to a handshake as long as the session may be silent, divided by the number of
        # addresses: a server that accepts one before it is up, and never answers, would cost the session.
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
        """Sends the requests one behind the other; their futures fail with kazoo's exceptions.

        Called on the loop. One byte per request wakes kazoo's thread; all go in one write, which the socket's buffer
        holds, so this does not wait either.
        """
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Any]] = [loop.create_future() for _ in requests]
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
        """Notes the data watches, by absolute path, that a request is about to arm. Called in kazoo's thread."""
        for path, callback in callbacks:
            self._data_watchers[path].add(callback)

    def arm_tree(self, path: str, watch: Callable[[str | None], None]) -> None:
        """Notes the watch of a tree, by absolute path, that a request is about to arm. Called in kazoo's thread."""
        self._tree_watches[path] = watch

    def disarm_tree(self, path: str, watch: Callable[[str | None], None]) -> bool:
        """The watch of a tree is notified of nothing more. False where it was lost before; there may be another by now."""
        if self._tree_watches.get(path) is not watch:
            return False
        self._tree_watches.pop(path, None)
        return True

    def _read_watch_event(self, buffer: bytes, offset: int) -> None:
        if self._tree_watches:
            event = Watch.deserialize(buffer, offset)[0]
            for root, watch in list(self._tree_watches.items()):
                # Changed children fire one-shot watches alone: the watch of the tree is notified of the child itself.
                if event.type != CHILD_EVENT and (event.path == root or event.path.startswith(f"{root}/")):
                    self._mailbox.put(partial(watch, self.unchroot(event.path)))
        self._fire_one_shot_watches(buffer, offset)

    def _reset_watchers(self) -> None:
        super()._reset_watchers()
        lost, self._tree_watches = self._tree_watches, {}
        for watch in lost.values():
            self._mailbox.put(partial(watch, None))

    def _keep_connecting(self, connect: Callable[[], None]) -> None:
        """kazoo's thread. What kazoo does not expect ends its loop, and with it the session: then another one begins."""
        while True:
            try:
                return connect()
            except Exception:  # noqa: BLE001 - without this thread there is no connection any more
                _log.exception("the connection to ZooKeeper failed unexpectedly, a new session begins")
            if self._stopped.wait(_RECONNECT_MAX_DELAY_S):
                return None

    def _be_admitted(self, connect: Callable[..., _Timeouts], *server: object) -> _Timeouts:
        """kazoo's thread: connects and logs in. Raises `ConnectionDropped` where it is refused: it is tried again."""
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
        self.refusals = 0
        self._session_callback(KeeperState.CONNECTED)
        return timeouts

    def _try_each(self, connect_loop: Callable[[object], object], retry: object) -> object:
        """kazoo's thread: one pass over all servers, with the names resolved anew for each.

        A pass goes on behind a connection that was lost, and that may have lasted for days: by then a server that moved
        has another address."""
        self._tried.clear()
        while True:
            try:
                return connect_loop(retry)
            except ForceRetryError:
                if not self._has_untried:
                    raise

    def _next_server(self) -> list[_Server]:
        """kazoo's thread, instead of kazoo's own, which resolves all names once for a pass: one server that was not tried
        yet, chosen at random, with the address that it has now. Empty if there is none."""
        untried = self._servers() - self._tried
        self._has_untried = len(untried) > 1
        chosen = random.sample(sorted(untried), min(1, len(untried)))
        self._tried.update(chosen)
        return chosen

    def _servers(self) -> set[_Server]:
        """The servers that have an address now. One whose name hangs holds up the others for a moment."""
        begun = {host: self._names.looked_up(host.strip()) for host, _ in self.hosts}
        wait(begun.values(), timeout=_OTHER_NAMES_S)
        if not any(map(_is_resolved, begun.values())):
            wait(begun.values(), timeout=self._session_timeout / 1000 / _HANDSHAKES_PER_SESSION)
        for host, found in begun.items():
            if not _is_resolved(found):
                error = found.exception() if found.done() else None
                self.trouble = f"{host} has no address now: {error or 'it takes too long'}"
        return {
            (host, address, port)
            for host, port in self.hosts
            if _is_resolved(begun[host])
            for address in begun[host].result()
        }

    def _take_security(self) -> None:
        """As it is now: passwords and certificates change while a process runs."""
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
        """kazoo's thread, instead of kazoo's own."""
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
