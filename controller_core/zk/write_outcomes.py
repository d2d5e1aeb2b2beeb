"""The outcome of a group of write operations, as seen from znodes that were read back.

ZooKeeper names only the first failed operation of a transaction, and nothing after a lost connection. The znodes have
the answer: `first_failure` tells whether a group can still succeed, and `is_applied` whether it already has. Pure
functions; `FencedWriter` reads the znodes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from controller_core.zk.session import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    CreateMode,
    Delete,
    FailedOp,
    NodeExists,
    NoNode,
    SessionId,
    SetData,
    TransactionFailed,
    WriteOp,
    ZkNode,
    ZkVersion,
)

Znodes = Mapping[str, ZkNode | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """A znode as a group leaves it. `version` is None if the group does not determine it."""

    data: bytes
    version: int | None
    is_ephemeral: bool


def paths_to_read(ops: Sequence[WriteOp]) -> Iterator[str]:
    """Yield the paths that both functions need, with duplicates."""
    for op in ops:
        yield op.path
        if isinstance(op, Create) and _parent(op.path):
            yield _parent(op.path)


def first_failure(ops: Sequence[WriteOp], znodes: Znodes) -> TransactionFailed | None:
    """Return the error that this group would meet now, or None. `NotEmpty` cannot be predicted."""
    versions: dict[str, ZkVersion | None] = {}
    for path in paths_to_read(ops):
        node = znodes.get(path)
        versions[path] = node.version if node else None
    for index, op in enumerate(ops):
        failure = _failure(op, versions)
        if failure is not None:
            return failure(FailedOp(index=index, op=op))
        _foresee(op, versions)
    return None


def is_applied(ops: Sequence[WriteOp], znodes: Znodes, session_id: SessionId) -> bool:
    """Return True if the znodes are as this group leaves them.

    A conditional `SetData` leaves its data with the next version, a `Create` its data (and the owner of an ephemeral
    znode), and a `Delete` nothing. A group that leaves no recognizable trace (checks, sequential creates) counts as not
    applied.
    """
    left = _compute_effects(ops)
    return bool(left) and all(_is_left(znodes.get(path), expected, session_id) for path, expected in left.items())


def _failure(op: WriteOp, versions: Mapping[str, ZkVersion | None]) -> type[TransactionFailed] | None:
    found = versions.get(op.path)
    if isinstance(op, Create):
        if _parent(op.path) and versions.get(_parent(op.path)) is None:
            return NoNode
        return NodeExists if found is not None and op.mode is not CreateMode.PERSISTENT_SEQUENTIAL else None
    if found is None:
        return NoNode
    return None if op.version in (ANY_VERSION, found) else BadVersion


def _foresee(op: WriteOp, versions: dict[str, ZkVersion | None]) -> None:
    """Apply the effect of an operation to the versions that later operations of its group meet."""
    match op:
        case Create(mode=CreateMode.PERSISTENT_SEQUENTIAL) | Check():
            pass
        case Create(path=path):
            versions[path] = ZkVersion(0)
        case SetData(path=path):
            versions[path] = ZkVersion((versions[path] or 0) + 1)
        case Delete(path=path):
            versions[path] = None


def _compute_effects(ops: Sequence[WriteOp]) -> dict[str, _Left | None]:
    left: dict[str, _Left | None] = {}
    for op in ops:
        match op:
            case Create(mode=CreateMode.PERSISTENT_SEQUENTIAL) | Check():
                pass
            case Create(path=path, data=data, mode=mode):
                left[path] = _Left(data=data, version=None, is_ephemeral=mode is CreateMode.EPHEMERAL)
            case SetData(path=path, data=data, version=version):
                before = left.get(path)
                left[path] = _Left(
                    data=data,
                    version=None if version == ANY_VERSION else version + 1,
                    is_ephemeral=before is not None and before.is_ephemeral,
                )
            case Delete(path=path):
                left[path] = None
    return left


def _is_left(found: ZkNode | None, expected: _Left | None, session_id: SessionId) -> bool:
    if found is None or expected is None:
        return found is None and expected is None
    return (
        found.data == expected.data
        and expected.version in (None, found.version)
        and (not expected.is_ephemeral or found.ephemeral_owner == session_id)
    )


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
