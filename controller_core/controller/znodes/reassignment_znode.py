"""`/admin/reassign_partitions`: the znode in which tools ask for reassignments, and what is taken out of it.

An entry stays until its reassignment is done, so that a new controller goes on with it; what cannot be done is taken out
at once, so that it never blocks the next one.
"""

from collections.abc import Mapping, Set
from functools import partial
from typing import NamedTuple

import structlog

from controller_core.controller.loop.events import ReassignmentsRequested
from controller_core.controller.term.term import Term
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import Contended, compare_and_set, put
from controller_core.zk.session import Delete, TransactionFailed, WriteOp, ZkNode

log = structlog.get_logger()

Targets = Mapping[TopicPartition, tuple[BrokerId, ...]]
"""RAR of each partition that is to be reassigned."""


async def read_requests(term: Term) -> Targets:
    """What is asked for, watched for changes."""
    node = await term.watched.node(paths.REASSIGN_PARTITIONS, ReassignmentsRequested())
    return await _decode_or_remove(term, node) if node is not None else {}


async def remove_requests(term: Term, served: Targets) -> None:
    """Takes served requests out of `/admin/reassign_partitions`, and deletes it when nothing is left in it.

    A partition for which another target was written in the meantime stays, and is looked at again."""
    if not served:
        return

    async def read() -> _Requested | None:
        node = (await term.zk.read_many([paths.REASSIGN_PARTITIONS]))[0]
        return _Requested(node, await _decode_or_remove(term, node)) if node is not None else None

    try:
        requested = (await compare_and_set(read, partial(_without, served), term.writer.transact)).found
    except (Contended, TransactionFailed) as error:  # it is too large, or somebody made children of it
        log.error("served reassignments stay in their znode", error=str(error))
        return
    if requested is not None and any(requested.targets.get(p, target) != target for p, target in served.items()):
        term.enqueue(ReassignmentsRequested())


class _Requested(NamedTuple):
    """The znode as read, and what it asks for."""

    node: ZkNode
    targets: Targets


def _without(served: Targets, requested: _Requested | None) -> list[WriteOp]:
    if requested is None:
        return []
    node, targets = requested
    remaining = {partition: target for partition, target in targets.items() if served.get(partition) != target}
    if len(remaining) == len(targets):
        return []
    if not remaining:
        return [Delete(path=paths.REASSIGN_PARTITIONS, version=node.version)]
    return [put(paths.REASSIGN_PARTITIONS, node, codecs.encode_reassignment(remaining))]


async def supplant_requests(term: Term, partitions: Set[TopicPartition]) -> None:
    """Takes out the requests for partitions that are reassigned by another way, whatever their targets (KIP-455)."""
    node = (await term.zk.read_many([paths.REASSIGN_PARTITIONS]))[0]
    if node is not None:
        requested = await _decode_or_remove(term, node)
        await remove_requests(term, {p: target for p, target in requested.items() if p in partitions})


async def _decode_or_remove(term: Term, node: ZkNode) -> Targets:
    """What the znode asks for; an unreadable one is removed, an unreadable entry of it skipped, both with an error."""
    try:
        plan = codecs.decode_reassignment(node.data)
    except MalformedZnode as error:
        term.state.unusable.report_removed(paths.REASSIGN_PARTITIONS, "unreadable reassignment removed", error)
        await term.writer.write({node.version: [Delete(path=paths.REASSIGN_PARTITIONS, version=node.version)]})
        return {}
    for reason in plan.rejected:
        log.error("entry of the reassignment skipped", reason=reason)
    if not plan.partitions:
        await term.writer.write({node.version: [Delete(path=paths.REASSIGN_PARTITIONS, version=node.version)]})
    return plan.partitions
