"""The replicated state of a simulated ZooKeeper: znodes, versions and transaction ids.

It knows no connections and no clock of its own: transactions go in, changes come out. The semantics are those of
ZooKeeper 3.8's `DataTree` and `PrepRequestProcessor`: a transaction has one zxid, its operations see each other's
effects, and the number of a sequential znode counts all children ever created under its parent.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from controller_core.zk.session import (
    ANY_VERSION,
    AccessRefused,
    BadVersion,
    Check,
    Create,
    CreateMode,
    Delete,
    FailedOp,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionId,
    SetData,
    TransactionFailed,
    WatchEvent,
    WriteOp,
    ZkNode,
    ZkVersion,
    explain_refused_access,
)

_ROOT: Final = "/"
_PERSISTENT: Final = SessionId(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a path, as its data watch or its child watch (`children`) sees it."""

    path: str
    children: bool
    event: WatchEvent


@dataclass(slots=True)
class _Entry:
    node: ZkNode
    children: set[str] = field(default_factory=set)
    children_ever_made: int = 0


@dataclass(slots=True)
class _Transaction:
    session_id: SessionId
    now_ms: int
    changes: list[Change] = field(default_factory=list)
    undo: list[Callable[[], None]] = field(default_factory=list)


@lru_cache(maxsize=1 << 14)
def _require_path(path: str) -> None:
    """Raise for an invalid path, which a server would refuse and no code should ask for."""
    parts = path.split("/")[1:]
    if path != _ROOT and (not path.startswith("/") or "\0" in path or not {"", ".", ".."}.isdisjoint(parts)):
        raise ValueError(f"{path[:300]!r} is not a valid znode path")


class ZnodeTree:
    """The znodes of one ensemble, as its leader sees them."""

    def __init__(self) -> None:
        self.zxid = 0
        self.now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
        """The server's clock, which may be wrong."""
        self.read_only: set[str] = set()
        """Znodes whose ACLs allow everybody only to read them: no write, and no creation or deletion of a child."""
        self._entries: dict[str, _Entry] = {_ROOT: _Entry(_new_node(b"", 0, _PERSISTENT, 0))}

    def read(self, path: str) -> ZkNode | None:
        _require_path(path)
        entry = self._entries.get(path)
        return entry.node if entry else None

    def children(self, path: str) -> tuple[str, ...] | None:
        _require_path(path)
        entry = self._entries.get(path)
        return tuple(sorted(entry.children)) if entry else None

    def ephemerals(self, owner: SessionId) -> list[str]:
        return sorted(path for path, entry in self._entries.items() if entry.node.ephemeral_owner == owner)

    def apply(self, ops: Sequence[WriteOp], session_id: SessionId) -> tuple[tuple[str, ...], list[Change]]:
        """Apply all operations or none. Return the paths and the changes. Raises `TransactionFailed` and
        `AccessRefused`."""
        self.zxid += 1
        running = _Transaction(session_id, self.now_ms())
        try:
            paths = tuple(self._apply(FailedOp(index=index, op=op), running) for index, op in enumerate(ops))
        except (TransactionFailed, AccessRefused):
            for step in reversed(running.undo):
                step()
            raise
        return paths, running.changes

    def _apply(self, at: FailedOp, running: _Transaction) -> str:
        guarded = at.op.path if isinstance(at.op, SetData) else _parent(at.op.path)
        if guarded in self.read_only and not isinstance(at.op, Check):
            raise AccessRefused(explain_refused_access(at.op.path), failed=at)
        match at.op:
            case Create():
                return self._create(at, at.op, running)
            case SetData(path=path, data=data, version=version):
                entry = self._find_expected(at, path, version)
                before = entry.node
                running.undo.append(lambda: setattr(entry, "node", before))
                entry.node = before._replace(
                    data=data, version=ZkVersion(before.version + 1), mzxid=self.zxid, mtime_ms=running.now_ms
                )
                running.changes.append(Change(path=path, children=False, event=WatchEvent.DATA_CHANGED))
                return path
            case Delete(path=path, version=version):
                self._delete(at, path, version, running)
                return path
            case Check(path=path, version=version):
                self._find_expected(at, path, version)
                return path

    def _create(self, at: FailedOp, op: Create, running: _Transaction) -> str:
        parent_path = _parent(op.path)
        parent = self._entries.get(parent_path)
        if parent is None:
            raise NoNode(at)
        path = op.path
        if op.mode is CreateMode.PERSISTENT_SEQUENTIAL:
            path = f"{path}{parent.children_ever_made:010d}"
        if path in self._entries:
            raise NodeExists(at)
        if parent.node.ephemeral_owner:
            raise TransactionFailed(at)
        owner = running.session_id if op.mode is CreateMode.EPHEMERAL else _PERSISTENT
        name = _name(path)
        self._entries[path] = _Entry(_new_node(op.data, self.zxid, owner, running.now_ms))
        parent.children.add(name)
        parent.children_ever_made += 1
        running.undo.append(lambda: self._uncreate(path, parent))
        running.changes += (
            Change(path=path, children=False, event=WatchEvent.CREATED),
            Change(path=parent_path, children=True, event=WatchEvent.CHILDREN_CHANGED),
        )
        return path

    def _uncreate(self, path: str, parent: _Entry) -> None:
        del self._entries[path]
        parent.children.discard(_name(path))
        parent.children_ever_made -= 1

    def _delete(self, at: FailedOp, path: str, version: ZkVersion, running: _Transaction) -> None:
        entry = self._find_expected(at, path, version)
        if entry.children:
            raise NotEmpty(at)
        parent_path = _parent(path)
        parent = self._entries[parent_path]
        del self._entries[path]
        parent.children.discard(_name(path))
        running.undo.append(lambda: self._undelete(path, entry, parent))
        running.changes += (
            Change(path=path, children=False, event=WatchEvent.DELETED),
            Change(path=path, children=True, event=WatchEvent.DELETED),
            Change(path=parent_path, children=True, event=WatchEvent.CHILDREN_CHANGED),
        )

    def _undelete(self, path: str, entry: _Entry, parent: _Entry) -> None:
        self._entries[path] = entry
        parent.children.add(_name(path))

    def _find_expected(self, at: FailedOp, path: str, version: ZkVersion) -> _Entry:
        entry = self._entries.get(path)
        if entry is None:
            raise NoNode(at)
        if version not in (ANY_VERSION, entry.node.version):
            raise BadVersion(at)
        return entry


def _new_node(data: bytes, zxid: int, owner: SessionId, now_ms: int) -> ZkNode:
    return ZkNode(data=data, version=ZkVersion(0), czxid=zxid, mzxid=zxid, ephemeral_owner=owner, mtime_ms=now_ms)


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or _ROOT


def _name(path: str) -> str:
    return path.rpartition("/")[2]
