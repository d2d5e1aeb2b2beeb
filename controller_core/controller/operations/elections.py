"""`on_preferred_replica_election` of seed 000: leadership goes back to the first assigned replicas.

It is asked for in `/admin/preferred_replica_election`, which is deleted when the election was held, whatever it brought.
"""

from collections.abc import Iterable

import structlog

from controller_core.controller.loop.events import PreferredElectionRequested
from controller_core.controller.machines import partition_machine
from controller_core.controller.machines.partition_machine import Election
from controller_core.controller.term.term import Term
from controller_core.model.ids import TopicPartition
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Delete, ZkNode

log = structlog.get_logger()


async def on_preferred_election_requested(term: Term) -> None:
    """Holds the election that the znode asks for and deletes it; what cannot be elected is reported."""
    node = await term.watched.node(paths.PREFERRED_REPLICA_ELECTION, PreferredElectionRequested())
    if node is None:
        return
    await on_preferred_replica_election(term, _requested(term, node))
    # An election written over this one in the meantime has another version: it stays, and its write queued an event.
    delete = Delete(path=paths.PREFERRED_REPLICA_ELECTION, version=node.version)
    await term.writer.write({paths.PREFERRED_REPLICA_ELECTION: [delete]})


async def on_preferred_replica_election(term: Term, partitions: Iterable[TopicPartition]) -> None:
    """onPreferredReplicaElection: affected partitions -> OnlinePartition, with the preferred replica's selector.

    Partitions that their preferred replica leads already are left alone."""
    wanted = [
        partition
        for partition in partitions
        if (state := term.state.states.get(partition)) is not None
        and (preferred := term.state.assignment(partition).preferred) is not None
        and state.leader_and_isr.leader != preferred
    ]
    await partition_machine.to_online(term, wanted, Election.PREFERRED)


def _requested(term: Term, node: ZkNode) -> list[TopicPartition]:
    try:
        request = codecs.decode_preferred_election(node.data)
    except MalformedZnode as error:
        term.state.unusable.report_removed(
            paths.PREFERRED_REPLICA_ELECTION, "unreadable preferred election removed", error
        )
        return []
    for reason in request.rejected:
        log.error("entry of the preferred election skipped", reason=reason)
    partitions = list(request.partitions)
    for partition in partitions:
        if not term.state.has(partition):
            log.error("preferred election skipped", partition=str(partition), reason="there is no such partition")
    return [p for p in partitions if term.state.has(p) and p.topic not in term.state.deletions]
