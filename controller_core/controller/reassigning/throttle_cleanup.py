"""Cleanup of throttles, so that none outlives the reassignments that it limits.

The requester of a reassignment may be gone when it is completed or cancelled, or its topic deleted. The controller sees
all of these. It marks a throttle when its moves begin, and removes it when none is left in progress. A new controller
checks all throttles. A throttle for moves that are not requested yet stays while one of their topics exists.
"""

from collections.abc import Collection, Iterator, Set
from contextlib import contextmanager
from typing import Final

import structlog

from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.rights import Reads, Writes
from controller_core.controller.znodes.config_writes import open_throttles
from controller_core.controller.znodes.subtrees import delete_below
from controller_core.model.ids import TopicPartition
from controller_core.model.throttles import Throttle
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import Contended
from controller_core.zk.session import TransactionFailed
from controller_core.zk.throttle_writes import Throttles

log = structlog.get_logger()

LEFT: Final = "throttle is left to its owner"
NOT_REMOVED: Final = "throttles of ended reassignments are not removed yet"


async def mark_begun(term: Writes, partitions: Collection[TopicPartition]) -> None:
    """Mark the throttles of moves that begin, or were found in progress."""
    if partitions:
        with _report_failure(term.state, LEFT):
            await open_throttles(term).mark_begun(set(partitions))


async def sweep(term: Writes) -> None:
    """Remove the throttles whose moves have all ended, and complete changes that somebody left unfinished."""
    throttles = open_throttles(term)
    wanted = await throttles.read()
    under_way = {*term.state.reassignments, *await _read_requested(term)} if wanted else set()
    over = [owner for owner, each in wanted.items() if await _is_over(throttles, term.state, each, under_way)]
    for owner in over:
        with _report_failure(term.state, NOT_REMOVED):
            await delete_below(term, paths.throttle(owner))
            await throttles.withdraw(owner, expected=wanted[owner])
            log.info("throttle removed, its reassignments have ended", owner=owner)
    with _report_failure(term.state, NOT_REMOVED):
        await throttles.settle()


@contextmanager
def _report_failure(state: ReadOnlyState, consequence: str) -> Iterator[None]:
    """Report a failure about one throttle, so that it does not affect the others."""
    try:
        yield
    except MalformedZnode as error:
        state.unusable.report_unwatched(error.path, consequence, error)
    except (Contended, TransactionFailed) as error:
        log.error(consequence, error=str(error))


async def _is_over(
    throttles: Throttles, state: ReadOnlyState, throttle: Throttle, under_way: Set[TopicPartition]
) -> bool:
    """Return True if its moves have begun and ended, or can never begin because their topics are gone."""
    if throttle.is_begun:
        # A partition that may exist, and is still unknown, may still be moving.
        return not any(move in under_way or (state.may_have(move) and not state.has(move)) for move in throttle.moves)
    # Ask ZooKeeper: this term may not know a topic yet that was just created.
    return not await throttles.find_topics(throttle.moves)


async def _read_requested(term: Reads) -> Collection[TopicPartition]:
    """Return the partitions that are requested to move, perhaps not begun yet."""
    node = (await term.zk.read_many([paths.REASSIGN_PARTITIONS]))[0]
    singly = term.state.reassignments.asked_singly
    try:
        return {*singly, *(codecs.decode_reassignment(node.data).partitions if node is not None else ())}
    except MalformedZnode:
        return singly  # `on_reassignments_requested` reports and removes it
