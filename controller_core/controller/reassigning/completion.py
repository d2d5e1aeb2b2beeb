"""The last steps of a reassignment, 10 to 12: AR becomes RAR when the brokers have answered about the old replicas.

Until then a new controller finds in the topic's znode what is to be deleted. Nobody is waited for who is down, who cannot
delete, or when another target is asked for: the list of removed replicas has what may still have its log.

Each completion rewrites the topic's znode and the one with the requests as a whole, however few partitions are complete.
Where that is much work for few, they wait a moment for others.
"""

from collections.abc import Collection, Iterable
from typing import Final

from controller_core.controller.loop.events import ReassignmentsCompletable, ReassignmentsEnded
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import topic_znodes
from controller_core.controller.znodes.reassignment_znode import Targets, remove_requests
from controller_core.model.ids import BrokerId, PartitionReplica, TopicPartition
from controller_core.model.reassignment import complete_reassignment

LONGEST_WAIT_MS: Final = 100
"""So long a complete reassignment waits at most for others to be completed with."""
EARLY_MS: Final = 1
"""By how much less than asked for a timer may wait."""
WORTH_IT: Final = 50
"""It waits while completing takes looking at more than so many partitions for each that is complete."""


async def finish(term: Term, partitions: Iterable[TopicPartition]) -> None:
    """Steps 10 to 12 for the partitions whose old replicas are gone, now or together with others in a moment."""
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
    """Whether nothing else is under way, or many are complete for what their completion takes."""
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
        term.state_change_log.assignment(partition, full, assignment)
    # 11. update the /admin/reassign_partitions path in ZK to remove this partition
    await remove_requests(term, {partition: assignment.replicas for partition, assignment in written.items()})
    # 12. resend the update metadata request to every broker
    term.batch.update_metadata(written)
    term.enqueue(ReassignmentsEnded())
    if not running:
        term.state.forget_rewritten()


async def finish_early(term: Term, targets: Targets) -> None:
    """Another target for what is in its last steps: the former one is reached, the rest is listed as removed."""
    running = term.state.reassignments
    ending = {
        partition: run.awaiting_deletion
        for partition, target in targets.items()
        if (run := running.get(partition)) and run.awaiting_deletion is not None and run.target != target
    }
    for partition, awaited in ending.items():
        running.stop_awaiting(partition, awaited)
    await _finish(term, ending)


def on_replicas_deleted(term: Term, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """A broker answered that it deleted replicas: reassignments that waited for the last of theirs can be finished."""
    running = term.state.reassignments
    for partition in _awaiting(term, partitions):
        running.mark_deleted(partition, broker)
        _queue_completion(term, partition)


def on_replicas_not_deleted(term: Term, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """A broker answered that it cannot delete replicas: nobody waits any longer, they are listed as removed."""
    running = term.state.reassignments
    for partition in _awaiting(term, partitions):
        running.stop_awaiting(partition, {broker})
        _queue_completion(term, partition)


def _awaiting(term: Term, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """The partitions whose reassignments are in their last steps."""
    running = term.state.reassignments
    return [p for p in partitions if (run := running.get(p)) is not None and run.awaiting_deletion is not None]


def _queue_completion(term: Term, partition: TopicPartition) -> None:
    """A topic's partitions wait for several brokers, which answer one after the other: its znode is rewritten when the
    answers that have come are all looked at, and not for each of them."""
    if term.state.reassignments[partition].is_complete:
        term.state.reassignments.mark_completable([partition])
        term.enqueue(ReassignmentsCompletable())


async def on_completable(term: Term) -> None:
    """Finishes what nothing is awaited for any more, where it need not wait for others."""
    await finish(term, ())


async def on_replicas_gone(term: Term, dead: Collection[BrokerId]) -> None:
    """Brokers died: nobody waits for their answers, what they have to delete is listed as removed."""
    running, gone = term.state.reassignments, frozenset(dead)
    for partition in running:
        running.stop_awaiting(partition, gone)
    await finish(term, list(running))
