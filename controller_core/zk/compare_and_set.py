"""Optimistic concurrency: read, decide, write if nothing has changed since the read, and retry after a conflict.

There are two forms. `compare_and_set` makes one decision about one znode, or a few that are written as a whole.
`compare_and_set_each` makes one decision for each of many items, such as partitions. It reads and writes them together,
because a round trip for each would take minutes, and each item wins or loses its race alone. Its callers read and write
in their own ways, so it only repeats the losers and ends.

Both end. After `ATTEMPTS` lost races in a row, something writes there in a loop, and must not block an event forever.
They raise or return `Contended` then.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from controller_core.zk.session import (
    Conflict,
    Create,
    NodeExists,
    OperationRefused,
    SetData,
    TransactionFailed,
    WriteOp,
    ZkNode,
    ZkSession,
)

ATTEMPTS: Final = 100
"""Lost races in a row before giving up. Each loss means that another write succeeded, so this many writers are
served."""

K = TypeVar("K")
Found = TypeVar("Found")

Unwritten = Conflict | OperationRefused
"""The reason why an item was not written: a retry may succeed, or an ACL denies it."""
Write = Callable[[Sequence[WriteOp]], Awaitable[object]]
"""Applies operations as a whole or raises an error: `ZkSession.transact`, or `FencedWriter.transact` for a
controller."""


class Contended(Exception):
    """Another writer won every attempt; nothing was written. Retriable later. The cause is the last conflict."""

    def __init__(self, lost: Conflict) -> None:
        super().__init__(
            f"{lost.failed.op.path} was changed by another writer before each of {ATTEMPTS} attempts to write it: "
            "find the client that keeps writing to it"
        )
        self.__cause__ = lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(Generic[Found]):
    """The value that the last decision was made from, and whether the decision wrote anything."""

    found: Found
    is_written: bool


async def compare_and_set(
    read: Callable[[], Awaitable[Found]], decide: Callable[[Found], Sequence[WriteOp]], write: Write
) -> Settled[Found]:
    """Read, decide and write until no other writer interferes.

    `decide` is called for each read, so it must be pure. It returns operations that depend on the read (`put`), or none
    if there is nothing to do. Raises `Contended` and the errors of the three functions.
    """
    lost: Conflict | None = None
    for _ in range(ATTEMPTS):
        found = await read()
        operations = decide(found)
        if not operations:
            return Settled(found=found, is_written=False)
        try:
            await write(operations)
        except Conflict as conflict:
            lost = conflict
        else:
            return Settled(found=found, is_written=True)
    assert lost is not None, "there was an attempt"
    raise Contended(lost)


async def compare_and_set_each(
    items: Iterable[K], attempt: Callable[[Sequence[K]], Awaitable[Mapping[K, Unwritten]]]
) -> dict[K, Contended | OperationRefused]:
    """Attempt all items, then repeat those that lost a race. Return those that lost every time, or may not be written.

    `attempt` reads, decides and writes the given items, and returns those that it did not write (`find_unwritten`).
    Raises the errors of `attempt`.
    """
    conflicts: dict[K, Conflict] = {}
    refused: dict[K, Contended | OperationRefused] = {}
    remaining = list(items)
    for _ in range(ATTEMPTS):
        if not remaining:
            return refused
        unwritten = await attempt(remaining)
        refused |= {item: error for item, error in unwritten.items() if isinstance(error, OperationRefused)}
        conflicts = {item: error for item, error in unwritten.items() if isinstance(error, Conflict)}
        remaining = list(conflicts)
    return refused | {item: Contended(conflict) for item, conflict in conflicts.items()}


def find_unwritten(failed: Mapping[K, TransactionFailed]) -> dict[K, Unwritten]:
    """Return the conflicts with other writers, and the writes that ACLs deny. Raises any other failure."""
    unwritten: dict[K, Unwritten] = {}
    for item, error in failed.items():
        if not isinstance(error, Conflict | OperationRefused):
            raise error
        unwritten[item] = error
    return unwritten


def make_reader(zk: ZkSession, path: str) -> Callable[[], Awaitable[ZkNode | None]]:
    """Return a function that reads one znode."""

    async def read() -> ZkNode | None:
        return (await zk.read_many([path]))[0]

    return read


def put(path: str, present: ZkNode | None, data: bytes) -> WriteOp:
    """Return the write of a znode's data, conditional on its being as it was read: absent, or of that version."""
    return Create(path=path, data=data) if present is None else SetData(path=path, data=data, version=present.version)


async def ensure_znodes(zk: ZkSession, wanted: Sequence[Create], write: Write) -> None:
    """Create the missing znodes, each after its parent. Creation by another writer is fine."""
    present = await zk.read_many([create.path for create in wanted])
    for create, node in zip(wanted, present, strict=True):
        if node is None:
            try:
                await write([create])
            except NodeExists:
                continue
