"""The client's end of the simulated ZooKeeper: a `ZkSession` over a queue of requests."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from controller_core.zk.request_size import too_large, transaction_bytes
from controller_core.zk.session import (
    ConnectionLost,
    NoWatcher,
    SessionExpired,
    SessionId,
    SessionListener,
    SessionState,
    TreeWatch,
    Watch,
    WatchEvent,
    WriteOp,
    ZkError,
    ZkNode,
)
from simulation.zookeeper_tree import Change, ZnodeTree

_T = TypeVar("_T")


class Server(Protocol):
    """The part of the simulated ensemble that a session uses."""

    @property
    def tree(self) -> ZnodeTree: ...

    @property
    def jute_maxbuffer_bytes(self) -> int: ...

    def new_session_id(self) -> SessionId: ...

    def transact(self, ops: Sequence[WriteOp], session_id: SessionId) -> tuple[str, ...]: ...

    def drop_connection(self, session: "SimulatedSession") -> None: ...

    def end(self, session_id: SessionId) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLoss:
    """A planned connection loss at a write after that many others, before or after it is applied."""

    after_writes: int
    is_applied: bool


@dataclass(slots=True, eq=False)
class _Request:
    apply: Callable[[], Any]
    answer: "asyncio.Future[Any]"
    is_write: bool


class SimulatedSession:
    """A `ZkSession` of the simulation."""

    def __init__(self, server: Server, max_request_bytes: int) -> None:
        self._server = server
        self._max_request_bytes = max_request_bytes
        self._session_id = server.new_session_id()
        self._state = SessionState.CONNECTED
        self._is_closed = False
        self._connected = asyncio.Event()
        self._connected.set()
        self._connection = 0
        self._requests: deque[_Request] = deque()
        self._in_flight: deque[_Request] = deque()
        self._is_serving = False
        self._data_watches: dict[str, list[Watch]] = {}
        self._child_watches: dict[str, list[Watch]] = {}
        self._tree_watches: dict[str, TreeWatch] = {}
        self._listeners: list[SessionListener] = []
        self.is_ended = False
        """True if the server has ended the session; the client learns of it later."""
        self.loss: ConnectionLoss | None = None

    @property
    def session_id(self) -> SessionId:
        return self._session_id

    @property
    def max_request_bytes(self) -> int:
        return self._max_request_bytes

    def request_bytes(self, ops: Sequence[WriteOp]) -> int:
        return transaction_bytes(ops)

    @property
    def armed_watches(self) -> int:
        """The number of armed watches; one that was armed twice counts twice."""
        armed = (*self._data_watches.values(), *self._child_watches.values())
        return sum(len(watches) for watches in armed)

    @property
    def is_connected(self) -> bool:
        return self._state is SessionState.CONNECTED

    async def wait_connected(self, timeout_ms: int) -> bool:
        self._refuse_if_closed()
        await asyncio.sleep(0)
        if self._connected.is_set():
            return True
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._connected.wait()
        except TimeoutError:
            return False
        self._refuse_if_closed()
        return True

    async def read_many(self, paths: Sequence[str]) -> list[ZkNode | None]:
        return await self._ask(lambda: [self._server.tree.read(path) for path in paths])

    async def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
        return await self._ask(lambda: [self._server.tree.children(path) for path in paths])

    async def read_watched(self, paths: Sequence[str], watch: Callable[[str], Watch]) -> list[ZkNode | None]:
        def read(path: str) -> ZkNode | None:
            self._data_watches.setdefault(path, []).append(watch(path))
            return self._server.tree.read(path)

        return await self._ask(lambda: [read(path) for path in paths])

    async def children_watched(self, path: str, watch: Watch) -> tuple[str, ...] | None:
        def read() -> tuple[str, ...] | None:
            children = self._server.tree.children(path)
            if children is not None:
                self._child_watches.setdefault(path, []).append(watch)
            return children

        return await self._ask(read)

    async def watch_tree(self, path: str, watch: TreeWatch) -> Callable[[], Awaitable[None]]:
        armed = partial(
            watch
        )  # A distinct object, because the same function may be armed again after this watch was lost.

        async def unwatch() -> None:
            if self._tree_watches.get(path) is armed:
                self._tree_watches[path] = _tell_nobody
                with suppress(NoWatcher):
                    await self._ask(partial(self._remove_tree_watch, path))

        await self._ask(lambda: self._tree_watches.update({path: armed}))
        return unwatch

    def _remove_tree_watch(self, path: str) -> None:
        """Remove a watch on the server, which knows only the watches of the current connection."""
        if self._tree_watches.pop(path, None) is None:
            raise NoWatcher("the watch no longer exists")

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        return await self._submit_transaction(ops)

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        answers = [self._submit_transaction(ops) for ops in transactions]
        results: list[tuple[str, ...] | ZkError] = []
        for answer in await asyncio.gather(*answers, return_exceptions=True):
            if isinstance(answer, BaseException) and not isinstance(answer, ZkError):
                raise answer
            results.append(answer)
        return results

    def add_listener(self, listener: SessionListener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self.is_connected:
            self._server.end(self._session_id)
        self._fail_requests(SessionExpired, "the session was closed")
        self._change_state(SessionState.EXPIRED)
        self._fire_all()
        self._connected.set()
        await asyncio.sleep(0)

    def fire(self, change: Change) -> None:
        """Fire and disarm the watches that a change concerns."""
        armed = self._child_watches if change.children else self._data_watches
        for watch in armed.pop(change.path, ()):
            asyncio.get_running_loop().call_soon(watch, change.event)
        for root, tree_watch in self._tree_watches.items():
            if not change.children and (change.path == root or change.path.startswith(f"{root}/")):
                asyncio.get_running_loop().call_soon(tree_watch, change.path)

    def lose_connection(self) -> None:
        """Lose the connection: outstanding requests fail, listeners are called, watches fire, in this order."""
        if not self.is_connected:
            return
        self._connection += 1
        self._connected.clear()
        self._fail_requests(ConnectionLost, "the connection to ZooKeeper was lost")
        self._change_state(SessionState.SUSPENDED)
        self._fire_all()

    def regain_connection(self) -> None:
        """Reconnect within the next turns of the loop, with a new session if the old one has ended."""
        asyncio.get_running_loop().call_soon(self._regain, self._connection)

    def _regain(self, connection: int) -> None:
        if self._is_closed or connection != self._connection or self.is_connected:
            return
        if self.is_ended and self._state is not SessionState.EXPIRED:
            self._change_state(SessionState.EXPIRED)
            asyncio.get_running_loop().call_soon(self._regain, connection)
            return
        if self.is_ended:
            self._session_id = self._server.new_session_id()
            self.is_ended = False
        self._change_state(SessionState.CONNECTED)
        self._connected.set()

    def _change_state(self, state: SessionState) -> None:
        self._state = state
        for listener in list(self._listeners):
            asyncio.get_running_loop().call_soon(listener, state)

    def _fire_all(self) -> None:
        for armed in (self._data_watches, self._child_watches):
            for path in list(armed):
                for watch in armed.pop(path):
                    asyncio.get_running_loop().call_soon(watch, WatchEvent.MAY_HAVE_CHANGED)
        for root in list(self._tree_watches):
            asyncio.get_running_loop().call_soon(self._tree_watches.pop(root), None)

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise SessionExpired("the session was closed")

    def _submit_transaction(self, ops: Sequence[WriteOp]) -> "asyncio.Future[tuple[str, ...]]":
        size_bytes = self.request_bytes(ops)
        if size_bytes > self._max_request_bytes:
            refused: asyncio.Future[tuple[str, ...]] = asyncio.get_running_loop().create_future()
            refused.set_exception(too_large(ops, size_bytes, self._max_request_bytes))
            return refused
        return self._submit(lambda: self._transact(ops), is_write=True)

    def _transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        if transaction_bytes(ops) > self._server.jute_maxbuffer_bytes:
            self._server.drop_connection(self)
            raise ConnectionLost("the server closed the connection: the request is larger than jute.maxbuffer")
        return self._server.transact(ops, self._session_id)

    async def _ask(self, apply: Callable[[], _T]) -> _T:
        return await self._submit(apply, is_write=False)

    def _submit(self, apply: Callable[[], _T], *, is_write: bool) -> "asyncio.Future[_T]":
        answer: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        if self._is_closed or self._state is SessionState.EXPIRED:
            answer.set_exception(SessionExpired("the session has ended"))
        elif not self.is_connected:
            answer.set_exception(ConnectionLost("there is no connection to ZooKeeper"))
        else:
            self._requests.append(_Request(apply, answer, is_write))
            self._serve_soon()
        return answer

    def _serve_soon(self) -> None:
        if self._requests and not self._is_serving:
            self._is_serving = True
            asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        """Apply one request of this connection on the server."""
        self._is_serving = False
        if not self._requests:
            return
        request = self._requests[0]
        loss = self._loss_at(request)
        give_answer = _apply(request) if loss is None or loss.is_applied else None
        if loss is not None:
            self._server.drop_connection(self)
        elif give_answer is not None and self._requests:
            self._in_flight.append(self._requests.popleft())
            asyncio.get_running_loop().call_soon(self._deliver, request, give_answer)
        self._serve_soon()

    def _loss_at(self, request: _Request) -> ConnectionLoss | None:
        """Return the planned connection loss if it is due at this request."""
        if self.loss is None or not request.is_write:
            return None
        loss, self.loss = self.loss, None
        if loss.after_writes:
            self.loss = replace(loss, after_writes=loss.after_writes - 1)
            return None
        return loss

    def _deliver(self, request: _Request, give_answer: Callable[[], None]) -> None:
        if request in self._in_flight:
            self._in_flight.remove(request)
            if not request.answer.done():
                give_answer()

    def _fail_requests(self, error: type[ZkError], why: str) -> None:
        for request in (*self._in_flight, *self._requests):
            if not request.answer.done():
                request.answer.set_exception(error(why))
        self._in_flight.clear()
        self._requests.clear()


def _apply(request: _Request) -> Callable[[], None]:
    """Apply a request. Return a function that gives the client its answer."""
    try:
        result = request.apply()
    except ZkError as error:
        return partial(request.answer.set_exception, error)
    return partial(request.answer.set_result, result)


def _tell_nobody(_path: str | None) -> None:
    """Replaces a watch that the client has removed, but the server has not yet."""
