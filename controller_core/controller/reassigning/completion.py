"""The last steps of a reassignment, 10 to 12: AR becomes RAR when the brokers have answered about the old replicas.

Until then the topic's znode tells a new controller what is to be deleted. Dead brokers, and brokers that cannot delete,
are not waited for; nor is any broker when a new target is requested. The list of removed replicas has the logs that may
be left.

Each completion rewrites the topic's znode and the one with the requests as a whole, however few partitions are
complete. If that is much work for few partitions, they wait a moment for others.
"""

from collections.abc import Collection, Iterable
from typing import Final

from controller_core.controller.loop.events import ReassignmentsCompletable, ReassignmentsEnded
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.rights import Remembers
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import topic_znodes
from controller_core.controller.znodes.reassignment_znode import Targets, remove_requests
from controller_core.model.ids import BrokerId, PartitionReplica, TopicPartition
from controller_core.model.reassignment import complete_reassignment

LONGEST_WAIT_MS: Final = 100
"""The longest time that a complete reassignment waits for others."""
EARLY_MS: Final = 1
"""The tolerance of timers, which may end earlier than requested."""
WORTH_IT: Final = 50
"""A completion waits if it has to handle more than this number of partitions for each complete one."""


async def finish(term: Term, partitions: Iterable[TopicPartition]) -> None:
    """Run steps 10 to 12 for the partitions whose old replicas are gone: now, or in a moment together with others."""
    running = term.state.reassignments
    running.mark_completable(partitions)
    if not running.completable:
        return
    now_ms = term.clock.monotonic_ms()
    if _is_worth_it(term.state):
        await _finish(term, running.take_completable())
    elif running.completable_since_ms is None:
        running.begin_waiting(now_ms)
        term.enqueue_later(ReassignmentsCompletable(), LONGEST_WAIT_MS)
    elif now_ms - running.completable_since_ms >= LONGEST_WAIT_MS - EARLY_MS:
        await _finish(term, running.take_completable())


def _is_worth_it(state: ClusterState) -> bool:
    """Return True if all running reassignments are complete, or enough of them for the work."""
    completable = state.reassignments.completable
    running, complete = len(state.reassignments), len(completable)
    topics = {partition.topic for partition in completable} & state.topics.keys()
    effort = running + sum(len(state.topics[topic].partitions) for topic in topics)
    return running <= complete or effort <= WORTH_IT * complete


async def _finish(term: Term, partitions: Iterable[TopicPartition]) -> None:
    running = term.state.reassignments
    done = [partition for partition in partitions if (run := running.get(partition)) is not None and run.is_complete]
    if not done:
        return
    # 10. update assigned replica list to RAR in ZK
    final = {partition: complete_reassignment(running[partition].full) for partition in done}
    deleted = {PartitionReplica(partition, broker) for partition in done for broker in running[partition].deleted}
    written = await topic_znodes.write_assignments(term, final, deleted)
    for partition, assignment in written.items():
        full = running.end(partition).full
        term.state.set_assignment(partition, assignment)
        term.state_change_log.log_assignment(partition, full, assignment)
    # 11. update the /admin/reassign_partitions path in ZK to remove this partition
    await remove_requests(term, {partition: assignment.replicas for partition, assignment in written.items()})
    # 12. resend the update metadata request to every broker
    term.batch.update_metadata(written)
    term.enqueue(ReassignmentsEnded())
    if not running:
        term.state.forget_rewritten()


async def finish_early(term: Term, targets: Targets) -> None:
    """End reassignments that are in their last steps and have a new target.

    The rest is listed as removed replicas.
    """
    running = term.state.reassignments
    ending = {
        partition: run.awaiting_deletion
        for partition, target in targets.items()
        if (run := running.get(partition)) and run.awaiting_deletion is not None and run.target != target
    }
    for partition, awaited in ending.items():
        running.stop_awaiting(partition, awaited)
    await _finish(term, ending)


def on_replicas_deleted(term: Remembers, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """Record that a broker deleted replicas. Reassignments that waited for the last one can be finished."""
    running = term.state.reassignments
    for partition in _find_awaiting(term.state, partitions):
        running.mark_deleted(partition, broker)
        _queue_completion(term, partition)


def on_replicas_not_deleted(term: Remembers, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """Record that a broker cannot delete replicas.

    Reassignments stop waiting, and the replicas are listed as removed.
    """
    running = term.state.reassignments
    for partition in _find_awaiting(term.state, partitions):
        running.stop_awaiting(partition, {broker})
        _queue_completion(term, partition)


def _find_awaiting(state: ReadOnlyState, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return the partitions whose reassignments are in their last steps."""
    running = state.reassignments
    return [p for p in partitions if (run := running.get(p)) is not None and run.awaiting_deletion is not None]


def _queue_completion(term: Remembers, partition: TopicPartition) -> None:
    """Queue the completion as an event of its own, after the answers that have arrived.

    A topic's partitions wait for several brokers, which answer one after the other. So the topic's znode is rewritten
    once, and not for each answer.
    """
    if term.state.reassignments[partition].is_complete:
        term.state.reassignments.mark_completable([partition])
        term.enqueue(ReassignmentsCompletable())


async def on_completable(term: Term) -> None:
    """Finish the reassignments that wait for nothing, unless they should wait for others."""
    await finish(term, ())


async def on_replicas_gone(term: Term, dead: Collection[BrokerId]) -> None:
    """Stop waiting for brokers that died, and list as removed what they had to delete."""
    running, gone = term.state.reassignments, frozenset(dead)
    for partition in running:
        running.stop_awaiting(partition, gone)
    await finish(term, list(running))
