"""The ZooKeeper seam: all that the rest of Kontroller asks of ZooKeeper, and the errors it may answer with.

Two implementations stand behind it: `controller_core.zk.kazoo.session.KazooSession` for a real ensemble, and
`simulation.zookeeper.SimulatedZooKeeper` for tests. One contract suite (`tests/contract`) holds both to what is said
here.

The seam differs from a general client in three ways:

- **Reads come in batches.** `read_many` is one multi-read request per chunk, not one request per path.
- **Watches cannot be lost.** A watch is one-shot and fires at most once; it also fires when the connection to ZooKeeper
  was lost while it was armed, as `MAY_HAVE_CHANGED`. So a handler that reads the present state whenever its watch
  fires, and arms the watch with that read, misses nothing.
- **Plain reads never arm a watch** (a controller's own reads must not wake it up again: KAFKA-9498).

A session ends in one of two ways, both reported as `SessionState.EXPIRED`: ZooKeeper expired it, or it was closed. The
implementation makes a new session by itself after an expiry, and reports `CONNECTED` with a new `session_id`.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, NewType, Protocol

ZkVersion = NewType("ZkVersion", int)
"""The version of a znode's data: 0 when created, one more with every write."""
SessionId = NewType("SessionId", int)

ANY_VERSION = ZkVersion(-1)


class ZkNode(NamedTuple):
    """A znode as read: its data and the part of its stat that controllers use. A tuple, because takeovers make so many."""

    data: bytes
    czxid: int
    mzxid: int
    version: ZkVersion
    ephemeral_owner: SessionId
    """The session that owns an ephemeral znode, 0 for a persistent one."""
    mtime_ms: int = 0
    """When it was written last, by the clock of the server that led ZooKeeper then; milliseconds since 1970."""

    def __repr__(self) -> str:
        return f"ZkNode({len(self.data)} bytes, version={self.version}, czxid={self.czxid}, mzxid={self.mzxid})"


class CreateMode(Enum):
    PERSISTENT = "persistent"
    EPHEMERAL = "ephemeral"
    PERSISTENT_SEQUENTIAL = "persistent sequential"


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Creates a znode. For `PERSISTENT_SEQUENTIAL` ZooKeeper appends ten digits to the path.

    Data never shows in logs or errors, of no operation and no znode: users' credentials are among it."""

    path: str
    data: bytes = field(default=b"", repr=False)
    mode: CreateMode = CreateMode.PERSISTENT


@dataclass(frozen=True, slots=True, kw_only=True)
class SetData:
    """Writes a znode's data where its version is the expected one."""

    path: str
    data: bytes = field(repr=False)
    version: ZkVersion = ANY_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Deletes a znode without children, where its version is the expected one."""

    path: str
    version: ZkVersion = ANY_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Fails the transaction unless the znode's version is the expected one."""

    path: str
    version: ZkVersion


WriteOp = Create | SetData | Delete | Check


class ZkError(Exception):
    """Anything that ZooKeeper may answer. Subclasses say what the caller can do about it."""


class ConnectionLost(ZkError):
    """The connection went away: whether a write was applied is unknown. Retriable, after reading back."""


class ZooKeeperUnreachable(ZkError):
    """No connection could be made in the time that was given for it. Fatal: a person has to look at the address."""


class SessionExpired(ZkError):
    """The session is gone and all its ephemeral znodes with it. Whoever held a role by it has lost it."""


class TreeWatchUnsupported(ZkError):
    """The server has no watches of whole trees. Not retriable with this server."""


class NoWatcher(ZkError):
    """There is no such watch to take away: the server forgot it with the connection over which it was armed."""


class AccessRefused(ZkError):
    """ZooKeeper refuses the credentials, or the ACL of a znode does. Fatal: a person has to act."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedOp:
    """Why a transaction was refused: the first operation that could not be done."""

    index: int
    op: WriteOp


class TransactionFailed(ZkError):
    """A transaction was refused as a whole: nothing of it was applied. The subclass says why."""

    def __init__(self, failed: FailedOp) -> None:
        super().__init__(f"{type(self).__name__}: operation {failed.index}, {failed.op}")
        self.failed = failed


class Conflict(TransactionFailed):
    """The znodes are not what the transaction was decided from: somebody else was faster. Retriable, after reading them."""


class NodeExists(Conflict):
    """A `Create` of a path that is already there."""


class NoNode(Conflict):
    """A path, or the parent of a `Create`, that is not there."""


class BadVersion(Conflict):
    """A version other than the expected one: someone else wrote in between."""


class NotEmpty(Conflict):
    """A `Delete` of a znode that has children."""


class TooLarge(TransactionFailed):
    """A transaction that is larger than the server takes; it was not sent. The message has both sizes. Not retriable."""

    def __init__(self, failed: FailedOp, *, size_bytes: int, max_bytes: int) -> None:
        super().__init__(failed)
        self.args = (
            f"a write of {failed.op.path} takes {size_bytes} bytes, and ZooKeeper takes {max_bytes} (its jute.maxbuffer, "
            "as zookeeper-jute-maxbuffer-bytes says it)",
        )


class WatchEvent(Enum):
    """Why a watch fired. The state itself is never in the event: read it."""

    CREATED = "created"
    DELETED = "deleted"
    DATA_CHANGED = "data changed"
    CHILDREN_CHANGED = "children changed"
    MAY_HAVE_CHANGED = "may have changed"
    """The connection was lost while the watch was armed."""


TreeWatch = Callable[[str | None], None]
"""Called on the event loop with the path of every znode whose data has changed, or that was created or deleted; with None
when the connection was lost, and the watch with it. It must not block."""


class SessionState(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """No connection at present; the session may still live."""
    EXPIRED = "expired"


Watch = Callable[[WatchEvent], None]
"""Called on the event loop, at most once. It must not block; it enqueues an event."""
SessionListener = Callable[[SessionState], None]
"""Called on the event loop with every change of the session's state, in order."""


class ZkSession(Protocol):
    """A session with ZooKeeper. All paths are relative to the chroot, and absolute within it.

    Every method may raise `ConnectionLost`, `SessionExpired` and `AccessRefused`. While the connection is away, calls
    fail with `ConnectionLost` (after a short wait at most): waiting for its return is `wait_connected`, and the
    caller's decision.
    """

    @property
    def session_id(self) -> SessionId:
        """The id of the present session; what `ZkNode.ephemeral_owner` shows for our ephemeral znodes."""
        ...

    @property
    def max_request_bytes(self) -> int:
        """The server's `jute.maxbuffer`: a transaction that is larger is `TooLarge`, and not sent."""
        ...

    def request_bytes(self, ops: Sequence[WriteOp]) -> int:
        """What the operations take of that, as one transaction."""
        ...

    async def wait_connected(self, timeout_ms: int) -> bool:
        """Waits until there is a connection; False when there was none within the time."""
        ...

    async def read_many(self, paths: Sequence[str]) -> list[ZkNode | None]:
        """The znodes at the paths, in their order; None where there is none. Any number of paths."""
        ...

    async def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
        """The names of the children, sorted; None where there is no such znode. Any number of paths."""
        ...

    async def read_watched(self, paths: Sequence[str], watch: Callable[[str], Watch]) -> list[ZkNode | None]:
        """As `read_many`, and arms a data watch on each path that exists and a creation watch on each that does not.

        `watch(path)` makes the callback of a path, so that one function serves many paths."""
        ...

    async def children_watched(self, path: str, watch: Watch) -> tuple[str, ...] | None:
        """The names of the children, sorted, with a watch for the next change of them.

        None, and no watch, where there is no such znode."""
        ...

    async def watch_tree(self, path: str, watch: TreeWatch) -> Callable[[], Awaitable[None]]:
        """Watches a znode and all below it, until the connection is lost or the returned function was called.

        What it notifies of comes before the answer to any request of this session that was applied after the change. A
        znode that is watched so must not be watched in another way: servers before 3.9 mix the two up. At most one such
        watch of a path at a time. To take away a watch that was lost is no error, and touches none that was armed since.
        Raises `TreeWatchUnsupported` where the server is older than 3.6."""
        ...

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        """Applies all operations or none. Returns for each the path it acted on (a sequential `Create`: the one made).

        Raises `NodeExists`, `NoNode`, `BadVersion`, `NotEmpty`, `TooLarge`; on `ConnectionLost` it is unknown whether it
        was applied.
        """
        ...

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        """Many transactions, pipelined on one connection and applied in this order, each on its own.

        Returns the result of each or the error it met (never raises for one of them), in their order."""
        ...

    def add_listener(self, listener: SessionListener) -> Callable[[], None]:
        """Calls the listener with every change of the session's state; returns a function that removes it."""
        ...

    async def close(self) -> None:
        """Ends the session, and with it its ephemeral znodes. Idempotent."""
        ...


async def transact_alone(session: ZkSession, ops: Sequence[WriteOp]) -> tuple[str, ...]:
    """`ZkSession.transact` by its `transact_many`, for sessions that do their work there."""
    (result,) = await session.transact_many([ops])
    if isinstance(result, ZkError):
        raise result
    return result
