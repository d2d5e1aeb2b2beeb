"""Deletion of topics: brokers stop and delete every replica, then the topic's znodes are removed.

A topic is marked in `/admin/delete_topics`. A replica on a dead broker is deleted when the broker is back, and the
znodes stay until then: a new topic of the same name must not meet the log of the old one (KAFKA-10548). If the settings
say so, the znodes go at once, and the list of removed replicas makes the broker delete its replicas when it is back
(`_leave_to_absent_brokers`). A removal of single partitions ends first. Deletion ends a reassignment, as it does in
Kafka in effect: one that is stuck on a dead broker, or throttled, would hold it up for ever. All replicas of OAR and
RAR become assigned, none is added or removed any longer, requests and throttles are dropped, and then all replicas are
deleted. So the next controller, Kafka's too, finds in the topic's znode what is still to be deleted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

import structlog

from controller_core.controller.loop.events import ReassignmentsEnded, TopicDeletionsRequested
from controller_core.controller.machines import partition_machine, replica_machine
from controller_core.controller.term.groups import run_in_groups
from controller_core.controller.term.rights import Remembers, Writes
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import deleted_topics, removed_replicas, subtrees, topic_znodes
from controller_core.controller.znodes.reassignment_znode import supplant_requests
from controller_core.model.ids import BrokerId, PartitionReplica, TopicName, TopicPartition
from controller_core.model.metadata import ReplicaAssignment
from controller_core.model.transitions import PartitionStatus
from controller_core.model.wording import list_some
from controller_core.zk import paths
from controller_core.zk.compare_and_set import Contended
from controller_core.zk.session import Delete, TransactionFailed, WriteOp

log = structlog.get_logger()


async def on_topic_deletions_requested(term: Term) -> None:
    """Start the deletion of marked topics, and remove the marks of topics that do not exist."""
    await load_deletions(term)
    await resume(term)


async def load_deletions(term: Writes) -> None:
    """Record the marked topics in the cluster state. Nothing is sent to the brokers yet."""
    marked = [
        TopicName(name) for name in await term.watched.read_children(paths.DELETE_TOPICS, TopicDeletionsRequested())
    ]
    term.state.unusable.keep_among(paths.DELETE_TOPICS, marked)
    is_enabled = term.cluster_settings.delete_topic_enable
    if marked and is_enabled is None:
        why = "no broker has returned delete.topic.enable yet"
        log.warning("topics wait for their deletion", reason=why, topics=marked)
        return
    if marked and not is_enabled:
        log.error("topics are not deleted: delete.topic.enable is false", topics=marked)
        await _remove_marks(term, marked)
        return
    unknown = [name for name in marked if name not in term.state.topics]
    # A topic that exists now was created since the controller read the topics. Its mark stays until the topic is known.
    znodes = await term.zk.read_many([paths.topic(name) for name in unknown])
    unknown = [name for name, znode in zip(unknown, znodes, strict=True) if znode is None]
    await _remove_marks(term, unknown)
    new = [name for name in marked if name in term.state.topics and name not in term.state.deletions]
    await _end_reassignments(term, new)
    for name in new:
        replicas = term.state.list_replicas_of(term.state.list_partitions_of(name))
        term.state.mark_for_deletion(name, replicas)
        log.info("topic is to be deleted", topic=name, replicas=len(replicas))
        if term.state.unusable.has(paths.topic(name)):
            log.error("logs of partitions with unreadable entries stay when their topic is deleted", topic=name)


async def _remove_marks(term: Writes, topics: Iterable[TopicName]) -> None:
    await subtrees.delete_handled(term, [Delete(path=paths.delete_topic(name)) for name in topics])


async def _end_reassignments(term: Writes, topics: Collection[TopicName]) -> None:
    """End the reassignments of topics, whatever step they have reached. All replicas in the znodes become assigned.

    In memory the assignments still show the origin, for requests that cancel the reassignment.
    """
    running = term.state.reassignments
    ended = [partition for name in topics for partition in term.state.list_partitions_of(name) if partition in running]
    if not ended:
        return
    log.warning("reassignments end because their topics are deleted", partitions=list_some(sorted(ended)))
    for partition in ended:
        term.state.set_assignment(partition, running.end(partition).full)
    full = {partition: ReplicaAssignment(replicas=term.state.assignment(partition).replicas) for partition in ended}
    await topic_znodes.write_assignments(term, full)
    await supplant_requests(term, full.keys())
    term.enqueue(ReassignmentsEnded())


async def resume(term: Term, started: Collection[BrokerId] = ()) -> None:
    """Start the deletions that have not started, and send newly started brokers the deletions that they missed."""
    beginning = {
        name: term.state.list_partitions_of(name)
        for name, deletion in term.state.deletions.items()
        if not deletion.started
    }
    if beginning:
        await deleted_topics.remember(term, {name: len(partitions) for name, partitions in beginning.items()})
        await _begin(term, beginning)
    for name, deletion in term.state.deletions.items():
        if deletion.started and name not in beginning:
            for replica in deletion.awaiting_deletion:
                if replica.broker in started:
                    deletion.mark_sent_again(replica)
                    term.batch.stop_replica(replica.topic_partition, replica.broker, delete=True)
    await _finish(term, list(term.state.deletions))


async def on_replicas_deleted(term: Term, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """Record replicas that a broker has deleted. With the last one, remove the topic."""
    by_topic: defaultdict[TopicName, set[PartitionReplica]] = defaultdict(set)
    for partition in partitions:
        by_topic[partition.topic].add(PartitionReplica(partition, broker))
    for topic, deleted in by_topic.items():
        if (deletion := term.state.deletions.get(topic)) is not None and deletion.started:
            deletion.mark_deleted(deleted)
    await _finish(term, by_topic)


def on_replicas_not_deleted(term: Remembers, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """Record replicas that a broker cannot delete. Their topics wait until it restarts."""
    for partition in partitions:
        deletion = term.state.deletions.get(partition.topic)
        replica = PartitionReplica(partition, broker)
        if deletion is not None and deletion.started and replica in deletion.awaiting_deletion:
            deletion.mark_refused(replica)
            log.error("topic's deletion is held up until a broker restarts", partition=str(partition), broker=broker)


async def _begin(term: Term, topics: Mapping[TopicName, list[TopicPartition]]) -> None:
    for name, partitions in topics.items():
        term.state.deletions[name].start(term.state.list_replicas_of(partitions))
        term.batch.forget_metadata(partitions, None)
    doomed = list(chain.from_iterable(topics.values()))
    status = term.state.partition_status
    partition_machine.take_offline(term, [p for p in doomed if status.get(p) is not PartitionStatus.OFFLINE])
    partition_machine.make_non_existent(term, doomed)
    await _delete_replicas(term, term.state.list_replicas_of(doomed))


async def _delete_replicas(term: Term, replicas: Sequence[PartitionReplica]) -> None:
    """Delete all replicas. Some have no status: a reassignment had begun to delete them, or not yet begun to add them."""
    known = [replica for replica in replicas if replica in term.state.replica_status]
    await replica_machine.delete(term, known)
    for replica in set(replicas).difference(known):
        term.batch.stop_replica(replica.topic_partition, replica.broker, delete=True)


async def _finish(term: Term, topics: Collection[TopicName]) -> None:
    """Remove the znodes of topics whose replicas are all deleted, each with its mark in the same transaction.

    So a new controller continues with the whole deletion, or has nothing left to do.
    """
    deletions = term.state.deletions
    await _leave_to_absent_brokers(term, topics)
    done = [
        topic
        for topic in topics
        if (deletion := deletions.get(topic)) and deletion.started and not deletion.awaiting_deletion
        if not term.state.removals.list_numbers_of(topic)
    ]
    unlike = await _delete_as_known(term, done)
    deleted = [topic for topic in done if topic not in unlike or await _delete_as_found(term, topic)]
    for topic in deleted:
        partitions = term.state.remove_topic(topic)
        term.state.unusable.clear(paths.delete_topic(topic))
        log.info("topic deleted", topic=topic, partitions=len(partitions))
    if deleted:
        term.enqueue(ReassignmentsEnded())  # to drop throttles of requests that never began


async def _leave_to_absent_brokers(term: Writes, topics: Iterable[TopicName]) -> None:
    """Stop waiting for brokers that are gone, if the settings say so and all others have answered.

    They delete their replicas when they return. A topic without an id waits: nothing would tell a broker that its log
    is not that of the next topic of this name.
    """
    if term.settings.topic_deletion_waits_for_absent_brokers:
        return
    for topic in topics:
        deletion = term.state.deletions.get(topic)
        if deletion is None or not deletion.started or not deletion.awaiting_deletion:
            continue
        topic_id, left = term.state.topics[topic].topic_id, frozenset(deletion.awaiting_deletion)
        if topic_id is None or any(replica.broker in term.state.brokers for replica in left):
            continue
        if await removed_replicas.enter(term, left, topic_id):
            deletion.mark_deleted(left)
            brokers = sorted({replica.broker for replica in left})
            log.warning("topic is deleted without absent brokers", topic=topic, brokers=brokers, replicas=len(left))


async def _delete_as_known(term: Term, topics: Collection[TopicName]) -> set[TopicName]:
    """Delete the znodes that topics normally have, of all topics together. Return the topics with other znodes."""
    if not topics:
        return set()
    states = term.state.states
    served = [p for topic in topics for p in term.state.list_partitions_of(topic) if p in states]
    unlike: set[TopicName] = set()

    async def delete(partitions: Sequence[TopicPartition]) -> None:
        doomed = {p: [Delete(path=paths.partition_state(p)), Delete(path=paths.partition(p))] for p in partitions}
        unlike.update(partition.topic for partition in (await term.writer.write(doomed)).failed)

    await run_in_groups(term, served, delete)
    alike = [topic for topic in topics if topic not in unlike]
    configs = await term.zk.read_many(list(map(paths.topic_config, alike)))
    groups: dict[TopicName, list[WriteOp]] = {}
    for topic, config in zip(alike, configs, strict=True):
        doomed = [paths.partitions(topic), paths.topic(topic), *([paths.topic_config(topic)] if config else ())]
        groups[topic] = [Delete(path=path) for path in (*doomed, paths.delete_topic(topic))]
    return unlike.union((await term.writer.write(groups)).failed)


async def _delete_as_found(term: Writes, topic: TopicName) -> bool:
    """Delete all znodes that a topic has, including those that somebody else left there.

    If they cannot be deleted, the deletion is tried again later. Return True if they are gone.
    """
    try:
        await subtrees.delete_trees(term, [paths.topic(topic), paths.topic_config(topic), paths.delete_topic(topic)])
    except (Contended, TransactionFailed) as error:
        consequence = "znodes of a deleted topic cannot be removed, tried again later"
        term.state.unusable.report(paths.delete_topic(topic), consequence, error, topic=topic)
        term.retry_later(TopicDeletionsRequested())
        return False
    return True
