"""Elections that somebody asks for.

`on_preferred_replica_election` of seed 000: leadership goes back to the first assigned replicas. It is asked for in
`/admin/preferred_replica_election`, which is deleted when the election was held, whatever it brought.

Unclean elections: the replica with the longest log leads (KAFKA-15580, KIP-966). None of those that are alive has every
acknowledged message, and they may differ by hours of them. So their brokers are asked first how far their logs reach,
beside the events and within `unclean_recovery_timeout_ms`; then the election is held as an event of its own, over what is
true by then. An unclean election that a topic's configuration allows waits for nobody.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import structlog

from controller_core.controller.loop.events import LogEndsAnswered, PreferredElectionRequested
from controller_core.controller.machines import partition_machine
from controller_core.controller.machines.partition_machine import Election
from controller_core.controller.state.liveness import Liveness
from controller_core.controller.term.term import Term
from controller_core.model.ids import BrokerId, LeaderEpoch, TopicPartition
from controller_core.model.metadata import Broker, EndsOfLogs
from controller_core.supervision import noticed
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Delete, ZkNode

log = structlog.get_logger()

_SHOWN: Final = 20
"""Partitions in a line of the log, at most."""


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


def begin_unclean_recovery(
    term: Term, partitions: Iterable[TopicPartition], hold: Callable[[EndsOfLogs], Awaitable[None]]
) -> bool:
    """Begins to ask the brokers of partitions for which somebody wants an unclean election, and has it held then.

    False where there is nothing to choose from: nothing has begun, and the election can be held at once."""
    timeout_ms = term.settings.unclean_recovery_timeout_ms
    asked = _asked(term, partitions) if timeout_ms else []
    if not asked:
        return False

    async def ask() -> None:
        term.enqueue(LogEndsAnswered(await term.log_ends.ask(asked, timeout_ms), hold))

    term.end_with_term(noticed(ask(), name="how far logs reach"))
    return True


async def on_log_ends_answered(answered: LogEndsAnswered) -> None:
    """Holds the election. Whoever asked for it is answered after the event."""
    ends = answered.ends
    shown = {str(each): {broker: tuple(end) for broker, end in ends[each].items()} for each in sorted(ends)[:_SHOWN]}
    log.info("unclean election by the ends of logs: epoch and offset", partitions=len(ends), ends=shown)
    await answered.hold(ends)


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


def _asked(term: Term, partitions: Iterable[TopicPartition]) -> list[tuple[Broker, dict[TopicPartition, LeaderEpoch]]]:
    """Of each broker the partitions with a choice: several live replicas, and none of them in sync."""
    asked: defaultdict[BrokerId, dict[TopicPartition, LeaderEpoch]] = defaultdict(dict)
    live_replicas = Liveness(term.state, term.state.live)
    for partition in partitions:
        state, live = term.state.states.get(partition), live_replicas(partition)
        if state is None or len(live) < 2 or not live.isdisjoint(state.leader_and_isr.isr):
            continue
        for broker in live:
            asked[broker][partition] = state.leader_and_isr.leader_epoch
    return [(term.state.brokers[broker], epochs) for broker, epochs in asked.items()]
