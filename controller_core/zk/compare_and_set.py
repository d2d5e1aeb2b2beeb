"""Read, decide, write on the condition of what was read; and again where somebody else has written in between.

There are two forms. `compare_and_set` makes one decision, over one znode or a few that are written as a whole.
`compare_and_set_each` makes a decision for each of many items, partitions for example: they are read and written together,
as one round trip for each would take minutes, and each wins or loses its race alone. What it does of this itself is only
what all such callers need, to go on with the losers and to end; how they read and write differs too much.

Both end. Whoever loses `ATTEMPTS` times in a row is in no race any more: something writes there in a loop, and no event
may be held up for as long as that goes on. `Contended` says so.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from controller_core.zk.session import (
    Conflict,
    Create,
    NodeExists,
    SetData,
    TransactionFailed,
    WriteOp,
    ZkNode,
    ZkSession,
)

ATTEMPTS: Final = 100
"""How often in a row somebody else may be faster. Each time another write succeeded, so a crowd of so many is served."""

K = TypeVar("K")
Found = TypeVar("Found")

Write = Callable[[Sequence[WriteOp]], Awaitable[object]]
"""Applies operations as a whole, or raises why not: `ZkSession.transact`, or `FencedWriter.transact` for a controller."""


class Contended(Exception):
    """Somebody else was faster again and again; nothing was written. Retriable, later. Its cause is the last conflict."""

    def __init__(self, lost: Conflict) -> None:
        super().__init__(
            f"{lost.failed.op.path} was changed by somebody else each time before it could be written, {ATTEMPTS} times "
            "in a row: find out who writes there all the time"
        )
        self.__cause__ = lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(Generic[Found]):
    """What the last decision was made from, and whether anything was written because of it."""

    found: Found
    is_written: bool


async def compare_and_set(
    read: Callable[[], Awaitable[Found]], decide: Callable[[Found], Sequence[WriteOp]], write: Write
) -> Settled[Found]:
    """Reads and writes until nobody was faster.

    `decide` is pure, as it is called anew for each read: it returns the operations, on the condition of what was read
    (`put`), and none where there is nothing to do. Raises `Contended`, and what the three functions raise."""
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
    items: Iterable[K], attempt: Callable[[Sequence[K]], Awaitable[Mapping[K, Conflict]]]
) -> dict[K, Contended]:
    """Attempts all items, and then those again that lost; returns those that lost each time.

    `attempt` reads, decides and writes the items that it is given, and returns those for which somebody else was faster
    (`conflicts_in`). Raises what it raises."""
    conflicts: Mapping[K, Conflict] = {}
    remaining = list(items)
    for _ in range(ATTEMPTS):
        if not remaining:
            return {}
        conflicts = await attempt(remaining)
        remaining = list(conflicts)
    return {item: Contended(conflict) for item, conflict in conflicts.items()}


def conflicts_in(failed: Mapping[K, TransactionFailed]) -> dict[K, Conflict]:
    """What was refused because somebody else was faster. Raises any other refusal: it would be the same the next time."""
    conflicts = {}
    for item, error in failed.items():
        if not isinstance(error, Conflict):
            raise error
        conflicts[item] = error
    return conflicts


def reading(zk: ZkSession, path: str) -> Callable[[], Awaitable[ZkNode | None]]:
    """Reads one znode."""

    async def read() -> ZkNode | None:
        return (await zk.read_many([path]))[0]

    return read


def put(path: str, present: ZkNode | None, data: bytes) -> WriteOp:
    """Gives a znode its data, on the condition that it still is what was read: absent, or of that version."""
    return Create(path=path, data=data) if present is None else SetData(path=path, data=data, version=present.version)


async def ensure_znodes(zk: ZkSession, wanted: Sequence[Create], write: Write) -> None:
    """Creates those that are missing, each given after its own parent; that somebody else is faster is as good."""
    present = await zk.read_many([create.path for create in wanted])
    for create, node in zip(wanted, present, strict=True):
        if node is None:
            try:
                await write([create])
            except NodeExists:
                continue
