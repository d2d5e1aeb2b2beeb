"""Deletion of znodes together with those that somebody else created below them. Those already deleted are skipped."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import structlog

from controller_core.controller.term.rights import Reads, Writes
from controller_core.zk.compare_and_set import Contended, compare_and_set
from controller_core.zk.session import Delete, NotEmpty, OperationRefused, TooLarge, TransactionFailed, WriteOp

log = structlog.get_logger()

ZNODES_PER_WRITE: Final = 900
"""The number of znodes to delete together, below the limit of a transaction."""


async def delete_trees(term: Writes, roots: Sequence[str]) -> None:
    """Delete znodes with everything below them, the given ones in one transaction and in this order.

    Raises `Contended`, for example if somebody keeps creating children, and the errors of `FencedWriter.transact`.
    """
    for root in roots:
        await delete_below(term, root)
    await _delete_existing(term, roots)


async def delete_handled(term: Writes, deletes: Iterable[Delete]) -> None:
    """Delete handled requests and notifications, with any children that somebody created below them.

    One that somebody rewrote or deleted since is left alone. One that cannot be deleted stays, with an error in the
    log.
    """
    by_path = {delete.path: delete for delete in deletes}
    failed = (await term.writer.write({path: [delete] for path, delete in by_path.items()})).failed
    for path, error in failed.items():
        try:
            if isinstance(error, OperationRefused):
                raise error
            if isinstance(error, NotEmpty):
                await delete_below(term, path)
                await term.writer.transact([by_path[path]])
        except (Contended, TransactionFailed) as why:
            log.error("a handled znode stays", path=path, error=str(why))


async def transact_or_clear(term: Writes, operations: Sequence[WriteOp]) -> None:
    """Apply operations as a whole. If children prevent a deletion, delete them and raise `NotEmpty`.

    So the next attempt of `compare_and_set` succeeds.
    """
    try:
        await term.writer.transact(operations)
    except NotEmpty as error:
        await delete_below(term, error.failed.op.path)
        raise


async def delete_below(term: Writes, path: str) -> None:
    """Delete everything below a znode."""
    found = await _tree_below(term, path)
    for start in range(0, len(found), ZNODES_PER_WRITE):
        await _delete_existing(term, found[start : start + ZNODES_PER_WRITE])


async def _tree_below(term: Reads, path: str) -> list[str]:
    """Return all znodes below one, children before their parents."""
    found: list[str] = []
    level = [path]
    while level:
        children = await term.zk.children_many(level)
        level = [f"{parent}/{name}" for parent, names in zip(level, children, strict=True) for name in names or ()]
        found = level + found
    return found


async def _delete_existing(term: Writes, doomed: Sequence[str]) -> None:
    """Delete those of the znodes that exist. Each is listed before its parent. Raises like `delete_trees`."""

    async def read_existing() -> list[Delete]:
        nodes = await term.zk.read_many(doomed)
        return [Delete(path=path) for path, node in zip(doomed, nodes, strict=True) if node is not None]

    try:
        await compare_and_set(read_existing, lambda deletes: deletes, partial(transact_or_clear, term))
    except TooLarge:
        if len(doomed) == 1:
            raise
        await _delete_existing(term, doomed[: len(doomed) // 2])
        await _delete_existing(term, doomed[len(doomed) // 2 :])
