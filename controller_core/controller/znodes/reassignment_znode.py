"""`/admin/reassign_partitions`: the znode in which tools request reassignments, and the removal of its entries.

An entry stays until its reassignment is done, so that a new controller continues with it. An impossible entry is
removed at once, so that it does not block the next one.

A partition may also be requested in a znode of its own, `/admin/partitions_reassigned/TOPIC/NUMBER` (seed 004), with
its replicas: `{"version":1,"replicas":[1,2]}`. Such a request supplants the entry of the same partition.
"""

from collections.abc import Mapping, Set
from functools import partial
from typing import NamedTuple

import structlog

from controller_core.controller.loop.events import ReassignmentsRequested
from controller_core.controller.state.reassignments import SingleRequest
from controller_core.controller.term.rights import Writes
from controller_core.controller.znodes.partition_requests import read_partition_requests, remove_partition_requests
from controller_core.controller.znodes.subtrees import delete_handled, transact_or_clear
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.wording import list_some
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import Contended, compare_and_set, put
from controller_core.zk.session import Delete, TransactionFailed, WriteOp, ZkNode, ZkVersion

log = structlog.get_logger()

Targets = Mapping[TopicPartition, tuple[BrokerId, ...]]
"""RAR of each partition to reassign."""


async def read_requests(term: Writes) -> Targets:
    """Return the requested targets, watched for changes."""
    node = await term.watched.read_node(paths.REASSIGN_PARTITIONS, ReassignmentsRequested())
    together = await _decode_or_remove(term, node) if node is not None else {}
    singly = await _read_single_requests(term)
    supplanted = {p: target for p, target in together.items() if singly.get(p, target) != target}
    if supplanted:
        partitions = list_some(sorted(supplanted))
        log.warning("entries of the reassignment are replaced by requests for single partitions", partitions=partitions)
        await _take_out(term, supplanted)
    return {**together, **singly} if singly else together


async def _read_single_requests(term: Writes) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """Return the targets requested in znodes of their own. An unreadable one is removed, with an error in the log."""
    requests = await read_partition_requests(term, paths.PARTITIONS_REASSIGNED, watched=True)
    targets: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    unreadable: dict[TopicPartition, ZkVersion] = {}
    for partition, node in requests.items():
        path = paths.partition_request(paths.PARTITIONS_REASSIGNED, partition)
        try:
            targets[partition] = codecs.decode_replicas(path, node.data)
        except MalformedZnode as error:
            term.state.unusable.report_removed(path, "unreadable reassignment removed", error)
            unreadable[partition] = node.version
    await remove_partition_requests(term, paths.PARTITIONS_REASSIGNED, unreadable)
    term.state.reassignments.set_asked_singly(
        {
            partition: SingleRequest(target=target, version=requests[partition].version)
            for partition, target in targets.items()
        }
    )
    return targets


async def remove_requests(term: Writes, served: Targets) -> None:
    """Remove served requests: entries of `/admin/reassign_partitions`, and znodes of single requests.

    The last entry is removed together with the znode. A partition whose target was rewritten in between stays, and is
    handled again.
    """
    if not served:
        return
    singly = term.state.reassignments.take_asked_singly(served)
    await remove_partition_requests(term, paths.PARTITIONS_REASSIGNED, singly)
    await _take_out(term, served)


async def _take_out(term: Writes, served: Targets) -> None:
    async def read() -> _Requested | None:
        node = (await term.zk.read_many([paths.REASSIGN_PARTITIONS]))[0]
        return _Requested(node, await _decode_or_remove(term, node)) if node is not None else None

    try:
        requested = (
            await compare_and_set(read, partial(_remove_served, served), partial(transact_or_clear, term))
        ).found
    except (Contended, TransactionFailed) as error:  # for example because the znode is too large
        log.error("served reassignments stay in their znode", error=str(error))
        return
    if requested is not None and any(requested.targets.get(p, target) != target for p, target in served.items()):
        term.enqueue(ReassignmentsRequested())


class _Requested(NamedTuple):
    """The znode as read, with its targets."""

    node: ZkNode
    targets: Targets


def _remove_served(served: Targets, requested: _Requested | None) -> list[WriteOp]:
    if requested is None:
        return []
    node, targets = requested
    remaining = {partition: target for partition, target in targets.items() if served.get(partition) != target}
    if len(remaining) == len(targets):
        return []
    if not remaining:
        return [Delete(path=paths.REASSIGN_PARTITIONS, version=node.version)]
    return [put(paths.REASSIGN_PARTITIONS, node, codecs.encode_reassignment(remaining))]


async def supplant_requests(term: Writes, partitions: Set[TopicPartition]) -> None:
    """Remove the requests for partitions that are reassigned in another way, whatever their targets (KIP-455)."""
    singly = term.state.reassignments.asked_singly
    await remove_requests(term, {p: request.target for p, request in singly.items() if p in partitions})
    node = (await term.zk.read_many([paths.REASSIGN_PARTITIONS]))[0]
    if node is not None:
        requested = await _decode_or_remove(term, node)
        await _take_out(term, {p: target for p, target in requested.items() if p in partitions})


async def _decode_or_remove(term: Writes, node: ZkNode) -> Targets:
    """Return the znode's targets. Remove an unreadable znode and skip an unreadable entry, with an error in the log."""
    try:
        plan = codecs.decode_reassignment(node.data)
    except MalformedZnode as error:
        term.state.unusable.report_removed(paths.REASSIGN_PARTITIONS, "unreadable reassignment removed", error)
        await delete_handled(term, [Delete(path=paths.REASSIGN_PARTITIONS, version=node.version)])
        return {}
    for reason in plan.rejected:
        log.error("entry of the reassignment skipped", reason=reason)
    if not plan.partitions:
        await delete_handled(term, [Delete(path=paths.REASSIGN_PARTITIONS, version=node.version)])
    return plan.partitions
