"""Deletion of existing znodes, including those that somebody else created, and skipping those already deleted."""

from typing import Final

from controller_core.controller.term.rights import Reads, Writes
from controller_core.zk.compare_and_set import compare_and_set
from controller_core.zk.session import Delete, TooLarge

ZNODES_PER_WRITE: Final = 900
"""The number of znodes to delete together, below the limit of a transaction."""


async def delete_below(term: Writes, path: str) -> None:
    """Delete everything below a znode."""
    found = await _tree_below(term, path)
    for start in range(0, len(found), ZNODES_PER_WRITE):
        await delete_existing(term, found[start : start + ZNODES_PER_WRITE])


async def _tree_below(term: Reads, path: str) -> list[str]:
    """Return all znodes below one, children before their parents."""
    found: list[str] = []
    level = [path]
    while level:
        children = await term.zk.children_many(level)
        level = [f"{parent}/{name}" for parent, names in zip(level, children, strict=True) for name in names or ()]
        found = level + found
    return found


async def delete_existing(term: Writes, doomed: list[str]) -> None:
    """Delete those of the znodes that exist. Each is listed before its parent."""

    async def read_existing() -> list[Delete]:
        nodes = await term.zk.read_many(doomed)
        return [Delete(path=path) for path, node in zip(doomed, nodes, strict=True) if node is not None]

    try:
        await compare_and_set(read_existing, lambda deletes: deletes, term.writer.transact)
    except TooLarge:
        if len(doomed) == 1:
            raise
        await delete_existing(term, doomed[: len(doomed) // 2])
        await delete_existing(term, doomed[len(doomed) // 2 :])
