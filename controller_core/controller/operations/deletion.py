"""Topics are deleted: every replica is stopped and deleted by its broker, then the topic's znodes are removed.

A topic is marked in `/admin/delete_topics`. A replica on a broker that is down is deleted when the broker is back, and the
znodes stay until then: a topic created again under the same name must not meet the log of the old one (KAFKA-10548). Where
single partitions of it are being removed, that ends first.

Deletion wins over a reassignment, as in effect with Kafka: one that is stuck on a dead broker, or throttled, would hold it
up for ever. Where a marked topic's partitions are being reassigned, that ends at once: all replicas of OAR and RAR are
assigned and none is added or removed any more, its request and its throttles go, and then all of them are deleted. So
whoever is the controller after this one, Kafka's too, finds in the topic's znode what is still to be deleted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

import structlog

from controller_core.controller.loop.events import ReassignmentsEnded, TopicDeletionsRequested
from controller_core.controller.machines import partition_machine, replica_machine
from controller_core.controller.term.groups import in_groups
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import deleted_topics, subtrees, topic_znodes
from controller_core.controller.znodes.reassignment_znode import supplant_requests
from controller_core.model.ids import BrokerId, PartitionReplica, TopicName, TopicPartition
from controller_core.model.metadata import ReplicaAssignment
from controller_core.model.transitions import PartitionStatus
from controller_core.model.wording import listed
from controller_core.zk import paths
from controller_core.zk.session import Delete, WriteOp

log = structlog.get_logger()


async def on_topic_deletions_requested(term: Term) -> None:
    """Takes up the topics that are marked, and removes the marks of topics that are not there."""
    await load_deletions(term)
    await resume(term)


async def load_deletions(term: Term) -> None:
    """Takes the marked topics into the cluster state; nothing is sent to the brokers yet."""
    marked = [TopicName(name) for name in await term.watched.children(paths.DELETE_TOPICS, TopicDeletionsRequested())]
    if marked and not term.settings.delete_topic_enable:
        log.error("topics are not deleted: delete-topic-enable is false", topics=marked)
        await term.writer.write({name: [Delete(path=paths.delete_topic(name))] for name in marked})
        return
    unknown = [name for name in marked if name not in term.state.topics]
    # One that is there was created since we looked for topics: its mark stays until it is known.
    znodes = await term.zk.read_many([paths.topic(name) for name in unknown])
    unknown = [name for name, znode in zip(unknown, znodes, strict=True) if znode is None]
    await term.writer.write({name: [Delete(path=paths.delete_topic(name))] for name in unknown})
    new = [name for name in marked if name in term.state.topics and name not in term.state.deletions]
    await _end_reassignments(term, new)
    for name in new:
        replicas = term.state.replicas_of(term.state.partitions_of(name))
        term.state.mark_for_deletion(name, replicas)
        log.info("topic is to be deleted", topic=name, replicas=len(replicas))
        if term.state.unusable.has(paths.topic(name)):
            log.error("logs of a deleted topic stay where its entries could not be read", topic=name)


async def _end_reassignments(term: Term, topics: Collection[TopicName]) -> None:
    """Whatever step they have reached: what they leave assigned is all that the topics' znodes name.

    In memory the assignments show where they came from still, for those who ask to cancel them."""
    running = term.state.reassignments
    ended = [partition for name in topics for partition in term.state.partitions_of(name) if partition in running]
    if not ended:
        return
    log.warning("reassignments end, as their topics are deleted", partitions=listed(sorted(ended)))
    for partition in ended:
        term.state.set_assignment(partition, running.end(partition).full)
    full = {partition: ReplicaAssignment(replicas=term.state.assignment(partition).replicas) for partition in ended}
    await topic_znodes.write_assignments(term, full)
    await supplant_requests(term, full.keys())
    term.enqueue(ReassignmentsEnded())


async def resume(term: Term, started: Collection[BrokerId] = ()) -> None:
    """Begins the deletions that have not begun, and sends newly started brokers what they missed."""
    beginning = {
        name: term.state.partitions_of(name) for name, deletion in term.state.deletions.items() if not deletion.started
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
    """A broker answered that it deleted replicas; with the last one the topic is gone."""
    by_topic: defaultdict[TopicName, set[PartitionReplica]] = defaultdict(set)
    for partition in partitions:
        by_topic[partition.topic].add(PartitionReplica(partition, broker))
    for topic, deleted in by_topic.items():
        if (deletion := term.state.deletions.get(topic)) is not None and deletion.started:
            deletion.mark_deleted(deleted)
    await _finish(term, by_topic)


def on_replicas_not_deleted(term: Term, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """A broker answered that it cannot delete replicas: their topics wait until it starts anew."""
    for partition in partitions:
        deletion = term.state.deletions.get(partition.topic)
        replica = PartitionReplica(partition, broker)
        if deletion is not None and deletion.started and replica in deletion.awaiting_deletion:
            deletion.mark_refused(replica)
            log.error("topic's deletion is held up until a broker restarts", partition=str(partition), broker=broker)


async def _begin(term: Term, topics: Mapping[TopicName, list[TopicPartition]]) -> None:
    for name, partitions in topics.items():
        term.state.deletions[name].start(term.state.replicas_of(partitions))
        term.batch.forget_metadata(partitions, None)
    doomed = list(chain.from_iterable(topics.values()))
    status = term.state.partition_status
    partition_machine.to_offline(term, [p for p in doomed if status.get(p) is not PartitionStatus.OFFLINE])
    partition_machine.to_non_existent(term, doomed)
    await _delete_replicas(term, term.state.replicas_of(doomed))


async def _delete_replicas(term: Term, replicas: Sequence[PartitionReplica]) -> None:
    """Also those that a reassignment had begun to delete, or not yet begun to add: which have no status."""
    known = [replica for replica in replicas if replica in term.state.replica_status]
    await replica_machine.delete(term, known)
    for replica in set(replicas).difference(known):
        term.batch.stop_replica(replica.topic_partition, replica.broker, delete=True)


async def _finish(term: Term, topics: Iterable[TopicName]) -> None:
    """Removes the znodes of those topics whose replicas are deleted, and each one's mark together with the topic: a new
    controller takes up all of it or nothing."""
    deletions = term.state.deletions
    done = [
        topic
        for topic in topics
        if (deletion := deletions.get(topic)) and deletion.started and not deletion.awaiting_deletion
        if not term.state.removals.numbers_of(topic)
    ]
    for topic in await _delete_as_known(term, done):
        await _delete_as_found(term, topic)
    for topic in done:
        partitions = term.state.remove_topic(topic)
        log.info("topic deleted", topic=topic, partitions=len(partitions))
    if done:
        term.enqueue(ReassignmentsEnded())  # those that were about to be asked for, and are throttled already


async def _delete_as_known(term: Term, topics: Collection[TopicName]) -> set[TopicName]:
    """Deletes the znodes that topics are made of, of all topics together; returns the topics that are made otherwise."""
    if not topics:
        return set()
    states = term.state.states
    served = [p for topic in topics for p in term.state.partitions_of(topic) if p in states]
    unlike: set[TopicName] = set()

    async def delete(partitions: Sequence[TopicPartition]) -> None:
        doomed = {p: [Delete(path=paths.partition_state(p)), Delete(path=paths.partition(p))] for p in partitions}
        unlike.update(partition.topic for partition in (await term.writer.write(doomed)).failed)

    await in_groups(term, served, delete)
    alike = [topic for topic in topics if topic not in unlike]
    configs = await term.zk.read_many(list(map(paths.topic_config, alike)))
    groups: dict[TopicName, list[WriteOp]] = {}
    for topic, config in zip(alike, configs, strict=True):
        doomed = [paths.partitions(topic), paths.topic(topic), *([paths.topic_config(topic)] if config else ())]
        groups[topic] = [Delete(path=path) for path in (*doomed, paths.delete_topic(topic))]
    return unlike.union((await term.writer.write(groups)).failed)


async def _delete_as_found(term: Term, topic: TopicName) -> None:
    """Deletes whatever is there of a topic, also what other hands left there."""
    await subtrees.delete_below(term, paths.partitions(topic))
    await subtrees.delete_existing(
        term, [paths.partitions(topic), paths.topic(topic), paths.topic_config(topic), paths.delete_topic(topic)]
    )
