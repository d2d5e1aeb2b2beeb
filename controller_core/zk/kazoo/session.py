"""A `ZkSession` with a real ZooKeeper, through kazoo.

kazoo keeps the connection and the session alive in a thread of its own. `bridge` delivers its reports to the event
loop, and `requests` adds the requests that it lacks. Nothing is retried here: a lost connection is raised as
`ConnectionLost`, while kazoo reconnects. Without a connection, calls fail at once. kazoo's queue for that time is not
used, because a queued write would be applied long after its caller has given up.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, Final, Self

import structlog
from kazoo.exceptions import NodeExistsError, NoNodeError, UnimplementedError, WriterNotClosedException
from kazoo.protocol.serialization import GetChildren as KazooGetChildren
from kazoo.protocol.states import EventType, KazooState, KeeperState, WatchedEvent

from controller_core.names import NAMES, Names
from controller_core.zk.kazoo.bridge import BridgedClient, Mailbox, Request
from controller_core.zk.kazoo.errors import explain_loss, translate_error, translate_failure
from controller_core.zk.kazoo.requests import (
    MAX_REQUEST_BYTES,
    AddTreeWatch,
    GetChildren,
    GetNode,
    MultiRead,
    RemoveWatches,
    SeenZxid,
    SetWatches,
    absolute,
    absolute_all,
    divide_by_request_size,
)
from controller_core.zk.kazoo.transaction import FailedAt, Transaction
from controller_core.zk.request_size import DEFAULT_JUTE_MAXBUFFER_BYTES, too_large, transaction_bytes
from controller_core.zk.secured.acls import ZnodeAcls
from controller_core.zk.secured.properties import NO_ZK_SECURITY, ZkSecuritySource
from controller_core.zk.session import (
    AccessRefused,
    ConnectionLost,
    Create,
    CreateMode,
    FailedOp,
    NoWatcher,
    SessionExpired,
    SessionId,
    SessionListener,
    SessionState,
    TreeWatch,
    TreeWatchUnsupported,
    Watch,
    WatchEvent,
    WriteOp,
    ZkError,
    ZkNode,
    ZooKeeperUnreachable,
    transact_alone,
)

_log = structlog.get_logger(__name__)

_STATES: Final = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.EXPIRED,
}
_EVENTS: Final = {
    EventType.CREATED: WatchEvent.CREATED,
    EventType.DELETED: WatchEvent.DELETED,
    EventType.CHANGED: WatchEvent.DATA_CHANGED,
    EventType.CHILD: WatchEvent.CHILDREN_CHANGED,
}

_STATE_ARRIVES_S: Final = 0.001
_LOOK_MS: Final = 500
"""Milliseconds between checks for a refused login while the session starts."""
_REFUSALS_AT_START: Final = 3
"""A server that stops during a login seems to refuse it, but hardly three times."""


class KazooSession:
    """A session made by `connect`. It belongs to the event loop on which it was made."""

    def __init__(self, client: BridgedClient, mailbox: Mailbox, jute_maxbuffer_bytes: int, acls: ZnodeAcls) -> None:
        self._client = client
        self._mailbox = mailbox
        self._chroot: str = client.chroot
        self._max_request_bytes = jute_maxbuffer_bytes
        self._acls = acls
        self._session_id = SessionId(0)
        self._connected = asyncio.Event()
        self._is_closed = False
        self._has_multi_read = True
        self._listeners: tuple[SessionListener, ...] = ()
        client.add_listener(self._on_kazoo_state)

    @classmethod
    async def connect(
        cls,
        connect: str,
        *,
        session_timeout_ms: int,
        connect_timeout_ms: int,
        makes_chroot: bool = True,
        jute_maxbuffer_bytes: int = DEFAULT_JUTE_MAXBUFFER_BYTES,
        security: ZkSecuritySource = lambda: NO_ZK_SECURITY,
        names: Names = NAMES,
    ) -> Self:
        """Connect to `host:port,host:port/chroot`, and create the chroot if it is missing, as Kafka does.

        `jute_maxbuffer_bytes` is the servers' limit for requests. Answers of any size are read.

        Raises `ZooKeeperUnreachable` if there was no connection in time, `AccessRefused` if the login was refused
        repeatedly, `InvalidProperties` of `security`, and `ValueError` for an invalid address.
        """
        acls = ZnodeAcls((await asyncio.to_thread(security)).sets_acls)
        mailbox = Mailbox(asyncio.get_running_loop())
        try:
            client = BridgedClient(
                connect, session_timeout_ms=session_timeout_ms, mailbox=mailbox, security=security, names=names
            )
        except ValueError as error:
            raise ValueError(f"{connect!r} is not a ZooKeeper address: write host:port,host:port/chroot") from error
        session = cls(client, mailbox, jute_maxbuffer_bytes, acls)
        client.start_async()
        try:
            await session._open(connect, connect_timeout_ms, makes_chroot=makes_chroot)
        except BaseException:
            await session.close()
            raise
        return session

    @property
    def session_id(self) -> SessionId:
        return self._session_id

    @property
    def max_request_bytes(self) -> int:
        return self._max_request_bytes

    def request_bytes(self, ops: Sequence[WriteOp]) -> int:
        return transaction_bytes(ops, self._chroot, self._acls)

    async def wait_connected(self, timeout_ms: int) -> bool:
        self._refuse_if_ended()
        # Let reports that wait in the mailbox be delivered first.
        await asyncio.sleep(0)
        if self._connected.is_set() and self._client.client_state == KeeperState.CONNECTED:
            return True
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._connected.wait()
                # kazoo fails pending requests before it reports that the connection is lost.
                while self._client.client_state != KeeperState.CONNECTED and not self._is_closed:
                    await asyncio.sleep(_STATE_ARRIVES_S)
                    await self._connected.wait()
        except TimeoutError:
            return False
        finally:
            self._refuse_if_ended()
        return True

    async def read_many(self, paths: Sequence[str]) -> list[ZkNode | None]:
        return await self._read_all(GetNode, paths)

    async def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
        return await self._read_all(GetChildren, paths)

    async def read_watched(self, paths: Sequence[str], watch: Callable[[str], Watch]) -> list[ZkNode | None]:
        """Read first and then arm, as of a zxid from before the read: changes since then fire at once.

        So a watch may fire for a change that the read already saw, but it never misses one.
        """
        seen, nodes = await asyncio.gather(self._answers([SeenZxid()]), self.read_many(paths))
        (zxid,) = _values(seen)
        requests = [
            self._set_watches(zxid, paths[part], nodes[part], watch) for part in self._divide_by_request_size(paths)
        ]
        _values(await self._answers(requests))
        return nodes

    async def children_watched(self, path: str, watch: Watch) -> tuple[str, ...] | None:
        request = KazooGetChildren(absolute(path, self._chroot), partial(_fire, watch))
        (names,) = _values(await self._answers([request]), [path])
        return None if names is None else tuple(sorted(names))

    async def watch_tree(self, path: str, watch: TreeWatch) -> Callable[[], Awaitable[None]]:
        where = absolute(path, self._chroot)
        # A separate object each time, because the same function may be armed again after this watch was lost.
        armed = partial(watch)

        async def unwatch() -> None:
            if self._client.disarm_tree(where, armed):
                with suppress(NoWatcher):  # the connection was lost at this moment
                    _values(await self._answers([RemoveWatches(where)]))

        (answer,) = await self._answers([AddTreeWatch(where, partial(self._client.arm_tree, where, armed))])
        if isinstance(answer, Exception):
            self._client.disarm_tree(where, armed)
            raise (
                TreeWatchUnsupported(str(answer)) if isinstance(answer, UnimplementedError) else translate_error(answer)
            )
        return unwatch

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        return await transact_alone(self, ops)

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        refused = {
            at: too_large(ops, size_bytes, self._max_request_bytes)
            for at, ops in enumerate(transactions)
            if (size_bytes := self.request_bytes(ops)) > self._max_request_bytes
        }
        sent = [ops for at, ops in enumerate(transactions) if at not in refused]
        answers = iter(await self._answers([Transaction(ops, self._chroot, self._acls) for ops in sent]))
        return [refused.get(at) or _outcome(ops, next(answers)) for at, ops in enumerate(transactions)]

    def add_listener(self, listener: SessionListener) -> Callable[[], None]:
        self._listeners = (*self._listeners, listener)
        return partial(self._remove_listener, listener)

    async def close(self) -> None:
        """Close the session. Takes a few seconds if ZooKeeper is unreachable; the session then ends by its timeout."""
        if self._is_closed:
            return
        self._is_closed = True
        self._connected.set()
        try:
            await asyncio.to_thread(_stop, self._client)
        except WriterNotClosedException as error:
            _log.warning("the ZooKeeper connection did not close in time", error=str(error))

    def _on_kazoo_state(self, kazoo_state: str) -> None:
        """Report a new state to the loop. Called in kazoo's thread."""
        state = _STATES[kazoo_state]
        self._mailbox.put(partial(self._enter, state, self._client.client_id))
        for listener in self._listeners:
            self._mailbox.put(partial(listener, state))

    def _enter(self, state: SessionState, client_id: tuple[int, bytes] | None) -> None:
        if client_id is not None:
            self._session_id = SessionId(client_id[0])
        if state is SessionState.CONNECTED or self._is_closed:
            self._connected.set()
        else:
            self._connected.clear()

    def _remove_listener(self, listener: SessionListener) -> None:
        self._listeners = tuple(other for other in self._listeners if other is not listener)

    def _refuse_if_ended(self) -> None:
        if self._is_closed:
            raise SessionExpired("the session was closed")
        if self._client.client_state == KeeperState.AUTH_FAILED:
            raise AccessRefused("ZooKeeper refuses the credentials: correct them")

    async def _open(self, connect: str, timeout_ms: int, *, makes_chroot: bool) -> None:
        """Wait until ZooKeeper answers. The first read may cost the connection, because servers before 3.6 close it
        after a multi-read."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not await self._is_ready(makes_chroot=makes_chroot):
                    if self._client.refusals >= _REFUSALS_AT_START:
                        raise AccessRefused(f"ZooKeeper at {connect}: {self._client.trouble}: correct the credentials")
        except TimeoutError as error:
            why = self._client.trouble or "it did not answer"
            raise ZooKeeperUnreachable(
                f"no connection to ZooKeeper at {connect} within {timeout_ms} ms: {why}"
            ) from error

    async def _is_ready(self, *, makes_chroot: bool) -> bool:
        try:
            if not await self.wait_connected(_LOOK_MS):
                return False
            has_chroot = (await self.read_many(["/"]))[0] is not None
            if makes_chroot and not has_chroot:
                await self._make_chroot()
        except ConnectionLost:
            return False
        return True

    async def _make_chroot(self) -> None:
        names = self._chroot.split("/")
        paths = ["/".join(names[: length + 1]) for length in range(1, len(names))]
        for answer in await self._answers([Transaction([Create(path=path)], "", self._acls) for path in paths]):
            error = _error(answer)
            if error is not None and not isinstance(error, NodeExistsError):
                raise translate_error(error)

    def _set_watches(
        self, zxid: int, paths: Sequence[str], nodes: Sequence[ZkNode | None], watch: Callable[[str], Watch]
    ) -> SetWatches:
        where = [absolute(path, self._chroot) for path in paths]
        callbacks = [(path, partial(_fire, watch(name))) for path, name in zip(where, paths, strict=True)]
        return SetWatches(
            zxid,
            present=[path for path, node in zip(where, nodes, strict=True) if node is not None],
            absent=[path for path, node in zip(where, nodes, strict=True) if node is None],
            arm=partial(self._client.arm, callbacks),
        )

    async def _read_all(self, read: type[GetNode] | type[GetChildren], paths: Sequence[str]) -> list[Any]:
        paths = absolute_all(paths, self._chroot)
        if self._has_multi_read:
            answers = await self._answers(
                [MultiRead(read, paths[part]) for part in self._divide_by_request_size(paths)]
            )
            self._has_multi_read = not any(isinstance(answer, UnimplementedError) for answer in answers)
        if not self._has_multi_read:
            return _values(await self._answers([read(path) for path in paths]), paths)
        return _values(list(chain.from_iterable(_values(answers))), paths)

    def _divide_by_request_size(self, paths: Sequence[str]) -> Iterator[slice]:
        """Split paths that may lack the chroot: runs that fit half a request without it fit a request with it."""
        return divide_by_request_size(paths, min(MAX_REQUEST_BYTES, self._max_request_bytes // 2))

    async def _answers(self, requests: Sequence[Request]) -> list[Any]:
        """Return the answer to each request, or the exception for it: kazoo's, or `ConnectionLost` with the reason."""
        answers = await asyncio.gather(*self._client.submit(requests), return_exceptions=True)
        trouble = self._client.trouble
        return [explain_loss(each, trouble) for each in answers] if trouble else answers


def _values(answers: list[Any], paths: Sequence[str] = ()) -> list[Any]:
    """Return the answers, with None for missing znodes. Raises the first other error, with its path if they are
    given."""
    for index, answer in enumerate(answers):
        if isinstance(answer, NoNodeError):
            answers[index] = None
        elif isinstance(answer, Exception):
            raise translate_error(answer, paths[index] if paths else None)
    return answers


def _outcome(ops: Sequence[WriteOp], answer: Any) -> tuple[str, ...] | ZkError:
    """Return the result of `transact_many` for one transaction."""
    if isinstance(answer, Exception):
        return translate_error(answer)
    if answer and isinstance(answer[0], FailedAt):
        return translate_failure(answer[0].error, FailedOp(index=answer[0].index, op=ops[answer[0].index]))
    if not answer:
        return tuple([op.path for op in ops])
    numbered = iter(answer)
    return tuple(next(numbered) if _is_sequential(op) else op.path for op in ops)


def _is_sequential(op: WriteOp) -> bool:
    return isinstance(op, Create) and op.mode is CreateMode.PERSISTENT_SEQUENTIAL


def _error(answer: Any) -> Exception | None:
    """Return the reason why a transaction of one operation failed, or None."""
    if isinstance(answer, Exception):
        return answer
    return answer[0].error if answer else None


def _fire(watch: Watch, event: WatchedEvent) -> None:
    watch(_EVENTS.get(event.type, WatchEvent.MAY_HAVE_CHANGED))


def _stop(client: BridgedClient) -> None:
    client.stop()
    client.close()
