"""Requested elections.

`on_preferred_replica_election` of seed 000 gives leadership back to the first assigned replicas. A request is written
to `/admin/preferred_replica_election`, which is deleted after the election, whatever its result.

Unclean elections: the replica with the longest log leads (KAFKA-15580, KIP-966). None of the live replicas has every
acknowledged message, and hours of them may separate two logs. So their brokers are asked first for the ends of their
logs, in the background and within `unclean_recovery_timeout_ms`. Then the election is held as an event of its own, from
the state at that time. An unclean election that a topic's configuration allows waits for no broker.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import structlog

from controller_core.controller.loop.events import LogEndsAnswered, PreferredElectionRequested
from controller_core.controller.machines import partition_machine
from controller_core.controller.machines.partition_machine import Election
from controller_core.controller.state.liveness import Liveness
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.rights import Sends
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import subtrees
from controller_core.model.ids import BrokerId, LeaderEpoch, TopicPartition
from controller_core.model.metadata import Broker, EndsOfLogs
from controller_core.supervision import start_task
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Delete, ZkNode

log = structlog.get_logger()

_SHOWN: Final = 20
"""The maximum of partitions in a line of the log."""


async def on_preferred_election_requested(term: Term) -> None:
    """Hold the election that the znode requests and delete the znode. Report partitions that cannot be elected."""
    node = await term.watched.read_node(paths.PREFERRED_REPLICA_ELECTION, PreferredElectionRequested())
    if node is None:
        return
    await on_preferred_replica_election(term, _read_requested(term.state, node))
    # An election that was written over this one has another version. It stays, and its write has queued an event.
    await subtrees.delete_handled(term, [Delete(path=paths.PREFERRED_REPLICA_ELECTION, version=node.version)])


async def on_preferred_replica_election(term: Term, partitions: Iterable[TopicPartition]) -> None:
    """Run onPreferredReplicaElection: affected partitions -> OnlinePartition, with the preferred replica's selector.

    Partitions whose preferred replica leads already are left alone.
    """
    wanted = [
        partition
        for partition in partitions
        if (state := term.state.states.get(partition)) is not None
        and (preferred := term.state.assignment(partition).preferred) is not None
        and state.leader_and_isr.leader != preferred
    ]
    await partition_machine.bring_online(term, wanted, Election.PREFERRED)


def begin_unclean_recovery(
    term: Sends, partitions: Iterable[TopicPartition], hold: Callable[[EndsOfLogs], Awaitable[None]]
) -> bool:
    """Ask brokers for the ends of logs in the background, and hold the unclean election of the partitions after that.

    Return False if there is no choice between replicas. Then nothing was started, and the election can be held at once.
    """
    timeout_ms = term.settings.unclean_recovery_timeout_ms
    asked = _find_asked(term.state, partitions) if timeout_ms else []
    if not asked:
        return False

    async def ask() -> None:
        term.enqueue(LogEndsAnswered(await term.log_ends.ask(asked, timeout_ms), hold))

    term.end_with_term(start_task(ask(), name="how far logs reach"))
    return True


async def on_log_ends_answered(answered: LogEndsAnswered) -> None:
    """Hold the election. Its requester is answered after the event."""
    ends = answered.ends
    shown = {str(each): {broker: tuple(end) for broker, end in ends[each].items()} for each in sorted(ends)[:_SHOWN]}
    log.info("unclean election by the ends of logs: epoch and offset", partitions=len(ends), ends=shown)
    await answered.hold(ends)


def _read_requested(state: ReadOnlyState, node: ZkNode) -> list[TopicPartition]:
    try:
        request = codecs.decode_preferred_election(node.data)
    except MalformedZnode as error:
        state.unusable.report_removed(paths.PREFERRED_REPLICA_ELECTION, "unreadable preferred election removed", error)
        return []
    for reason in request.rejected:
        log.error("entry of the preferred election skipped", reason=reason)
    partitions = list(request.partitions)
    for partition in partitions:
        if not state.has(partition):
            log.error("preferred election skipped", partition=str(partition), reason="there is no such partition")
    return [p for p in partitions if state.has(p) and p.topic not in state.deletions]


def _find_asked(
    state: ReadOnlyState, partitions: Iterable[TopicPartition]
) -> list[tuple[Broker, dict[TopicPartition, LeaderEpoch]]]:
    """Return for each broker the partitions with a choice: several live replicas, and none of them in sync."""
    asked: defaultdict[BrokerId, dict[TopicPartition, LeaderEpoch]] = defaultdict(dict)
    live_replicas = Liveness(state, state.live)
    for partition in partitions:
        known, live = state.states.get(partition), live_replicas(partition)
        if known is None or len(live) < 2 or not live.isdisjoint(known.leader_and_isr.isr):
            continue
        for broker in live:
            asked[broker][partition] = known.leader_and_isr.leader_epoch
    return [(state.brokers[broker], epochs) for broker, epochs in asked.items()]
