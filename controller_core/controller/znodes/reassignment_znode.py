"""`/admin/reassign_partitions`: the znode in which tools ask for reassignments, and what is taken out of it.

An entry stays until its reassignment is done, so that a new controller goes on with it; what cannot be done is taken out
at once, so that it never blocks the next one.
"""

from collections.abc import Mapping, Set

import structlog

from controller_core.controller.loop.events import ReassignmentsRequested
from controller_core.controller.term.term import Term
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import BadVersion, Delete, SetData, TooLarge, WriteOp, ZkNode

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
    while served:
        node = (await term.zk.read_many([paths.REASSIGN_PARTITIONS]))[0]
        if node is None:
            return
        requested = await _decode_or_remove(term, node)
        remaining = {partition: target for partition, target in requested.items() if served.get(partition) != target}
        if not served.keys().isdisjoint(remaining):
            term.enqueue(ReassignmentsRequested())
        if len(remaining) == len(requested):
            return
        op: WriteOp = Delete(path=paths.REASSIGN_PARTITIONS, version=node.version)
        if remaining:
            data = codecs.encode_reassignment(remaining)
            op = SetData(path=paths.REASSIGN_PARTITIONS, data=data, version=node.version)
        refused = (await term.writer.write({paths.REASSIGN_PARTITIONS: [op]})).failed.get(paths.REASSIGN_PARTITIONS)
        if isinstance(refused, TooLarge):
            log.error("served reassignments stay in their znode until there are fewer", error=str(refused))
        if not isinstance(refused, BadVersion):
            return


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
