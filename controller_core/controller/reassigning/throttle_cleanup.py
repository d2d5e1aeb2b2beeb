"""The controller ends throttles with the reassignments that they are for, so that none outlives its own.

Whoever asked for a reassignment may be gone when it is done, cancelled, or its topic deleted. The controller sees all of
these, so it marks when moves of a throttle begin, and removes the throttle when none of them is under way any more; a new
controller looks at all of them. One that was set for moves not yet asked for is left alone while there is a topic of them.
"""

from collections.abc import Collection, Set
from typing import Final

import structlog

from controller_core.controller.term.term import Term
from controller_core.model.ids import TopicPartition
from controller_core.model.throttles import Throttle
from controller_core.zk import codecs, paths, throttle_writes
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import Contended
from controller_core.zk.session import TooLarge

log = structlog.get_logger()

LEFT: Final = "throttle is left to its owner"
NOT_REMOVED: Final = "throttles of ended reassignments are not removed yet"


async def mark_begun(term: Term, partitions: Collection[TopicPartition]) -> None:
    """Moves of the partitions begin, or were found to be under way."""
    try:
        if partitions:
            await throttle_writes.mark_begun(
                term.zk, set(partitions), write=term.writer.transact, report=term.state.unusable.report_unwatched
            )
    except MalformedZnode as error:
        term.state.unusable.report_unwatched(error.path, LEFT, error)
    except (Contended, TooLarge) as error:
        log.error(LEFT, error=str(error))


async def sweep(term: Term) -> None:
    """Removes the throttles whose moves have all come to an end, and completes what somebody began to set or remove."""
    wanted = await throttle_writes.throttles(term.zk, term.state.unusable.report_unwatched)
    under_way = {*term.state.reassignments, *await _requested(term)} if wanted else set()
    over = [owner for owner, throttle in wanted.items() if await _is_over(term, throttle, under_way)]
    try:
        for owner in over:
            log.info("throttle removed, its reassignments have ended", owner=owner)
            await throttle_writes.remove_throttle(
                term.zk,
                owner,
                expected=wanted[owner],
                write=term.writer.transact,
                report=term.state.unusable.report_unwatched,
            )
        await throttle_writes.settle(term.zk, write=term.writer.transact, report=term.state.unusable.report_unwatched)
    except MalformedZnode as error:
        term.state.unusable.report_unwatched(error.path, NOT_REMOVED, error)
    except (Contended, TooLarge) as error:
        log.error(NOT_REMOVED, error=str(error))


async def _is_over(term: Term, throttle: Throttle, under_way: Set[TopicPartition]) -> bool:
    """Whether its moves have begun and ended, or can never begin, as their topics are gone."""
    if throttle.is_begun:
        return _have_ended(term, throttle, under_way)
    # Asked of ZooKeeper: a topic that was created a moment ago may not be known here yet.
    return not await throttle_writes.topics_of(term.zk, throttle.moves)


def _have_ended(term: Term, throttle: Throttle, under_way: Set[TopicPartition]) -> bool:
    """Whether no move of a throttle is under way, and there is none of which nobody knows."""
    state = term.state
    return not any(move in under_way or (state.may_have(move) and not state.has(move)) for move in throttle.moves)


async def _requested(term: Term) -> Collection[TopicPartition]:
    """What is asked for, and perhaps not taken up yet."""
    node = (await term.zk.read_many([paths.REASSIGN_PARTITIONS]))[0]
    singly = term.state.reassignments.asked_singly
    try:
        return {*singly, *(codecs.decode_reassignment(node.data).partitions if node is not None else ())}
    except MalformedZnode:
        return singly  # the other is reported and removed by whoever takes up the requests
