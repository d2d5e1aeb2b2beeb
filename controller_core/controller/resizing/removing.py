"""`on_partitions_remove` of seed 004: remove last partitions, as `/admin/partitions_remove/TOPIC/NUMBER` requests.

From the begin of its removal a partition is no longer served. It leaves the cluster state, and brokers and clients
forget it. Its replicas are deleted, then its state, then its entry in the topic's znode, and at last the request. The
request is marked as begun, so that the next controller continues. A replica on a dead broker is deleted when the broker
is back, and the entry stays until then: a new partition of that number must not meet the old log. `removals_requested`
decides which removals may begin.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import structlog

from controller_core.controller.loop.events import (
    PartitionRemovalsRequested,
    ReassignmentsEnded,
    ReassignmentsRequested,
    TopicDeletionsRequested,
)
from controller_core.controller.machines import partition_machine
from controller_core.controller.operations import topics
from controller_core.controller.resizing.removals_requested import accept_requests, divide_requests
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.groups import run_in_groups
from controller_core.controller.term.rights import Remembers, Sends, Writes
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import subtrees
from controller_core.controller.znodes.partition_requests import (
    Requests,
    read_partition_requests,
    remove_partition_requests,
)
from controller_core.controller.znodes.topic_znodes import find_known_id, rewrite_topics
from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.model.metadata import TopicAssignment
from controller_core.model.topics.partition_numbers import find_removable, group_numbers_by_topic
from controller_core.model.transitions import PartitionStatus
from controller_core.model.wording import list_some
from controller_core.zk import paths
from controller_core.zk.compare_and_set import Contended
from controller_core.zk.session import ANY_VERSION, Delete, TransactionFailed

log = structlog.get_logger()


async def on_partitions_remove(term: Term) -> None:
    """Run on_partitions_remove: its steps, as they are numbered in the specification."""
    # 1. determine the set of partitions to be deleted
    asked = await read_partition_requests(term, paths.PARTITIONS_REMOVE)
    new = {partition: node for partition, node in asked.items() if partition not in term.state.removals}
    await _learn_of(term, new)
    begun, ended = divide_requests(term.state, new)
    await remove_partition_requests(term, paths.PARTITIONS_REMOVE, ended)
    unbegun = new.keys() - {*begun, *ended}
    _begin(term, [*begun, *await accept_requests(term, {partition: new[partition] for partition in unbegun})])
    # 2. send a StopReplicaCommand for each partition to the affected brokers
    _stop_replicas(term)
    await finish(term)


async def load(term: Remembers) -> None:
    """Stop serving what a former controller had begun to remove, before anything is decided or sent."""
    begun, _ = divide_requests(term.state, await read_partition_requests(term, paths.PARTITIONS_REMOVE))
    term.state.begin_removals(begun)


async def on_replicas_deleted(term: Term, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """Record replicas that a broker has deleted. With the last one the partition can be removed."""
    for partition in partitions:
        if partition in term.state.removals:
            term.state.removals.mark_deleted(partition, broker)
    await finish(term)


def on_replicas_not_deleted(state: ReadOnlyState, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """Report replicas that a broker cannot delete. Their partitions wait until it restarts."""
    for partition in partitions:
        removal = state.removals.get(partition)
        if removal is not None and broker in removal.awaiting:
            log.error("partition's removal is held up until a broker restarts", partition=str(partition), broker=broker)


async def _learn_of(term: Term, asked: Requests) -> None:
    """Read the topics of unknown partitions, which may have just been created."""
    if unknown := {partition.topic for partition in asked if not term.state.has(partition)}:
        await topics.on_topics_modified(term, unknown)


def _begin(term: Sends, partitions: Sequence[TopicPartition]) -> None:
    if not partitions:
        return
    log.warning("partitions are being removed", partitions=list_some(sorted(partitions)))
    status = term.state.partition_status
    partition_machine.take_offline(term, [p for p in partitions if status.get(p) is not PartitionStatus.OFFLINE])
    partition_machine.make_non_existent(term, partitions)
    for topic, numbers in group_numbers_by_topic(partitions).items():
        gone = [TopicPartition(topic, number) for number in numbers]
        term.batch.forget_metadata(gone, find_known_id(term.state, topic))
    term.state.begin_removals(partitions)


def _stop_replicas(term: Sends) -> None:
    live = term.state.live_or_shutting_down
    for partition, removal in list(term.state.removals.items()):
        asking = (removal.awaiting - removal.asked) & live
        for broker in asking:
            term.batch.stop_replica(partition, broker, delete=True)
        if asking:
            term.state.removals.mark_asked(partition, asking)


async def finish(term: Term) -> None:
    """Run the last steps for partitions whose replicas are all deleted."""
    done = await _delete_states(term, _find_done(term.state))
    if not done:
        return
    # 4. update the Topic path in ZK with the removed partitions
    gone = await _take_out_of_topics(term, done)
    # 3. delete the PartitionRemove path in ZK
    await remove_partition_requests(term, paths.PARTITIONS_REMOVE, dict.fromkeys(gone, ANY_VERSION))
    for partition in gone:
        term.state.removals.end(partition)
    log.info("partitions removed", partitions=list_some(gone))
    # Somebody may have requested to move one of them, throttled that, or requested the deletion of the whole topic.
    term.enqueue(ReassignmentsRequested())
    term.enqueue(ReassignmentsEnded())
    if any(partition.topic in term.state.deletions for partition in gone):
        term.enqueue(TopicDeletionsRequested())


def _find_done(state: ReadOnlyState) -> list[TopicPartition]:
    """Return the partitions that can be removed: the last ones of their topics, with no log of any replica left."""
    deleted = {partition for partition, removal in state.removals.items() if not removal.awaiting}
    if deleted:
        deleted -= {replica.topic_partition for replica in state.removed_replicas}
    done: list[TopicPartition] = []
    for topic, numbers in group_numbers_by_topic(deleted).items():
        present = state.topics[topic].partitions.keys() | state.removals.list_numbers_of(topic)
        done += [TopicPartition(topic, number) for number in sorted(find_removable(present, numbers))]
    return done


async def _delete_states(term: Term, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Delete the states and all znodes below them. Return those that are gone. The others are tried again later."""
    unlike: list[TopicPartition] = []
    stuck: set[TopicPartition] = set()

    async def delete(group: Sequence[TopicPartition]) -> None:
        doomed = {p: [Delete(path=paths.partition_state(p)), Delete(path=paths.partition(p))] for p in group}
        unlike.extend((await term.writer.write(doomed)).failed)

    await run_in_groups(term, partitions, delete)
    for partition in unlike:
        try:
            await subtrees.delete_trees(term, [paths.partition(partition)])
        except (Contended, TransactionFailed) as error:
            path = paths.partition_request(paths.PARTITIONS_REMOVE, partition)
            term.state.unusable.report(path, "a removed partition's znodes stay, tried again later", error)
            term.retry_later(PartitionRemovalsRequested())
            stuck.add(partition)
    return [partition for partition in partitions if partition not in stuck]


async def _take_out_of_topics(term: Writes, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Return those that no topic's znode has any longer. A partition stays if somebody added another one above it."""
    by_topic = group_numbers_by_topic(partitions)

    def remove_gone(name: TopicName, content: TopicAssignment) -> TopicAssignment:
        gone = find_removable(content.partitions.keys(), by_topic[name])
        if not gone:
            return content
        remaining = {number: each for number, each in content.partitions.items() if number not in gone}
        return replace(content, topic_id=content.topic_id or find_known_id(term.state, name), partitions=remaining)

    contents = await rewrite_topics(term, by_topic, remove_gone)
    return [p for p in partitions if p.topic in contents and p.partition not in contents[p.topic].partitions]
