"""The interface between Kontroller and ZooKeeper: all operations, and all errors.

`controller_core.zk.kazoo.session.KazooSession` implements it for a real ensemble, and
`simulation.zookeeper.SimulatedZooKeeper` for tests. A shared contract suite (`tests/contract`) tests both. Batches read
many paths by one request. A watch fires at most once, also as `MAY_HAVE_CHANGED` if the connection was lost, so a
handler that reads and arms again at each event misses nothing. Plain reads never arm a watch, so the controller's own
reads do not wake it (KAFKA-9498). A session that expired or was closed reports `SessionState.EXPIRED`. After an expiry
the implementation opens a new session and reports `CONNECTED` with a new `session_id`.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, NewType, Protocol

ZkVersion = NewType("ZkVersion", int)
"""The version of a znode's data: 0 when it is created, one more with every write."""
SessionId = NewType("SessionId", int)

ANY_VERSION = ZkVersion(-1)


class ZkNode(NamedTuple):
    """A znode as read: its data, and the part of its stat that controllers use. A tuple for speed: a failover makes
    very many."""

    data: bytes
    czxid: int
    mzxid: int
    version: ZkVersion
    ephemeral_owner: SessionId
    """The session that owns an ephemeral znode; 0 for a persistent one."""
    mtime_ms: int = 0
    """Time of the last write in milliseconds since 1970, by the clock of ZooKeeper's leader at that time."""

    def __repr__(self) -> str:
        return f"ZkNode({len(self.data)} bytes, version={self.version}, czxid={self.czxid}, mzxid={self.mzxid})"


class CreateMode(Enum):
    PERSISTENT = "persistent"
    EPHEMERAL = "ephemeral"
    PERSISTENT_SEQUENTIAL = "persistent sequential"


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Creates a znode. For `PERSISTENT_SEQUENTIAL`, ZooKeeper appends ten digits to the path.

    The data of operations and znodes never appears in logs or errors, because it may be a user's credentials.
    """

    path: str
    data: bytes = field(default=b"", repr=False)
    mode: CreateMode = CreateMode.PERSISTENT


@dataclass(frozen=True, slots=True, kw_only=True)
class SetData:
    """Writes a znode's data if its version is the expected one."""

    path: str
    data: bytes = field(repr=False)
    version: ZkVersion = ANY_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Deletes a znode without children if its version is the expected one."""

    path: str
    version: ZkVersion = ANY_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Fails the transaction unless the znode's version is the expected one."""

    path: str
    version: ZkVersion


WriteOp = Create | SetData | Delete | Check


class ZkError(Exception):
    """An error of ZooKeeper. The subclass tells the caller how to react."""


class ConnectionLost(ZkError):
    """The connection was lost, and it is unknown whether a write was applied. Retriable after reading back."""


class ZooKeeperUnreachable(ZkError):
    """No connection could be made in time. Fatal: a person has to check the address."""


class SessionExpired(ZkError):
    """The session and its ephemeral znodes are gone. A role that was held by them is lost."""


class TreeWatchUnsupported(ZkError):
    """The server does not support tree watches. Not retriable with this server."""


class NoWatcher(ZkError):
    """The watch to remove does not exist: the server forgot it when its connection was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedOp:
    """The first operation of a transaction that could not be done."""

    index: int
    op: WriteOp


class AccessRefused(ZkError):
    """ZooKeeper refuses the credentials, or a znode's ACL denies the access. Fatal: a person has to act."""

    def __init__(self, message: str, *, failed: FailedOp | None = None) -> None:
        super().__init__(message)
        self.denied = failed
        """The operation that an ACL denies, if it was one of a transaction."""


class TransactionFailed(ZkError):
    """A transaction was refused as a whole; nothing of it was applied. The subclass tells the reason."""

    def __init__(self, failed: FailedOp) -> None:
        super().__init__(f"{type(self).__name__}: operation {failed.index}, {failed.op}")
        self.failed = failed


class Conflict(TransactionFailed):
    """The znodes have changed since the transaction was decided. Retriable after reading them again."""


class NodeExists(Conflict):
    """A `Create` of a path that already exists."""


class NoNode(Conflict):
    """A path, or the parent of a `Create`, does not exist."""


class BadVersion(Conflict):
    """A version other than the expected one: another client has written since."""


class NotEmpty(Conflict):
    """A `Delete` of a znode that has children."""


class TooLarge(TransactionFailed):
    """A transaction above the server's size limit; it was not sent. The message has both sizes. Not retriable."""

    def __init__(self, failed: FailedOp, *, size_bytes: int, max_bytes: int) -> None:
        super().__init__(failed)
        self.args = (
            f"a write of {failed.op.path} has {size_bytes} bytes; ZooKeeper's limit is {max_bytes} "
            "(its jute.maxbuffer, set by zookeeper-jute-maxbuffer-bytes)",
        )


class OperationRefused(TransactionFailed, AccessRefused):
    """An ACL denies an operation of one of several independent groups (`FencedWriter`). Only that group has failed."""

    def __init__(self, failed: FailedOp) -> None:
        super().__init__(failed)
        self.args = (explain_refused_access(failed.op.path),)


def explain_refused_access(path: str | None, reason: str = "NoAuthError") -> str:
    """Return the message for an access that ZooKeeper refuses, to a znode if that is known."""
    where = f" to {path}" if path else ""
    return f"ZooKeeper refuses access{where} ({reason}): grant it in the ACL, or correct the credentials"


class WatchEvent(Enum):
    """The reason why a watch fired. It never contains the state itself: read it."""

    CREATED = "created"
    DELETED = "deleted"
    DATA_CHANGED = "data changed"
    CHILDREN_CHANGED = "children changed"
    MAY_HAVE_CHANGED = "may have changed"
    """The connection was lost while the watch was armed."""


TreeWatch = Callable[[str | None], None]
"""Called on the event loop with the path of every znode that was created, changed or deleted. Called with None if the
connection, and with it the watch, was lost. It must not block."""


class SessionState(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """There is no connection at present. The session may still live."""
    EXPIRED = "expired"


Watch = Callable[[WatchEvent], None]
"""Called on the event loop, at most once. It must not block; it enqueues an event."""
SessionListener = Callable[[SessionState], None]
"""Called on the event loop with every change of the session's state, in order."""


class ZkSession(Protocol):
    """A session with ZooKeeper. All paths are absolute within the chroot.

    Every method may raise `ConnectionLost`, `SessionExpired` and `AccessRefused`. Without a connection, calls fail with
    `ConnectionLost`, after a short wait at most. The caller decides whether to wait for a connection
    (`wait_connected`).
    """

    @property
    def session_id(self) -> SessionId:
        """The id of the current session. `ZkNode.ephemeral_owner` has it for the session's own ephemeral znodes."""
        ...

    @property
    def max_request_bytes(self) -> int:
        """The server's `jute.maxbuffer`. A larger transaction fails as `TooLarge` and is not sent."""
        ...

    def request_bytes(self, ops: Sequence[WriteOp]) -> int:
        """Return the size of the operations as one transaction, to compare with `max_request_bytes`."""
        ...

    async def wait_connected(self, timeout_ms: int) -> bool:
        """Wait for a connection. Return False if there was none within the time."""
        ...

    async def read_many(self, paths: Sequence[str]) -> list[ZkNode | None]:
        """Return the znodes at any number of paths, in order; None if there is none."""
        ...

    async def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
        """Return the sorted names of the children of any number of paths; None if there is no such znode."""
        ...

    async def read_watched(self, paths: Sequence[str], watch: Callable[[str], Watch]) -> list[ZkNode | None]:
        """Read like `read_many`, and arm a data watch on each existing path and a creation watch on each missing one.

        `watch(path)` makes the callback of a path, so that one function serves many paths.
        """
        ...

    async def children_watched(self, path: str, watch: Watch) -> tuple[str, ...] | None:
        """Return the sorted names of the children, and watch for their next change.

        If there is no such znode, return None without a watch.
        """
        ...

    async def watch_tree(self, path: str, watch: TreeWatch) -> Callable[[], Awaitable[None]]:
        """Watch a znode and its descendants, until the connection is lost or the returned function is called.

        A notification arrives before the answer to any request of this session that was applied after the change. Do
        not watch such a znode in another way: servers before 3.9 confuse the two. Only one tree watch per path may
        exist at a time. Removing a watch that was lost is no error, and does not affect one that was armed later.

        Raises `TreeWatchUnsupported` if the server is older than 3.6.
        """
        ...

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        """Apply all operations or none. Return the path of each operation (the created path of a sequential `Create`).

        Raises `NodeExists`, `NoNode`, `BadVersion`, `NotEmpty`, `TooLarge`. After `ConnectionLost` it is unknown
        whether the operations were applied.
        """
        ...

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        """Apply many transactions, pipelined on one connection, in this order, each on its own.

        Return the result or the error of each, in order; never raise the error of a single one.
        """
        ...

    def add_listener(self, listener: SessionListener) -> Callable[[], None]:
        """Call the listener with every change of the session's state. Return a function that removes it."""
        ...

    async def close(self) -> None:
        """End the session and its ephemeral znodes. Idempotent."""
        ...


async def transact_alone(session: ZkSession, ops: Sequence[WriteOp]) -> tuple[str, ...]:
    """Run `ZkSession.transact` by `transact_many`, for sessions that implement the latter."""
    (result,) = await session.transact_many([ops])
    if isinstance(result, ZkError):
        raise result
    return result
