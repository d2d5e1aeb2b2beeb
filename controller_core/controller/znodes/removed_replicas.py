"""The list of removed replicas: those that left AR, and whose broker has not answered yet that the log is deleted.

A broker may be down when a reassignment removes its replica, and a controller may die between the write of AR and the
request. The next controller must know that the broker has a log without an owner. Otherwise the log fills the disk, and
if the topic is recreated, the broker refuses the new one for ever (INCONSISTENT_TOPIC_ID). So the transaction that
drops a replica from AR adds it to `/kontroller/removed_replicas`, and the one that assigns it again removes the entry.

A log is deleted only if it is listed, and either is not assigned to the broker, or the broker itself refuses it because
of another topic id (`on_other_topic_found`).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

import structlog

from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.rights import Remembers, Sends, Writes
from controller_core.controller.znodes import subtrees
from controller_core.model.ids import (
    NO_EPOCH,
    BrokerId,
    LeaderEpoch,
    PartitionId,
    PartitionReplica,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import TopicAssignment
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import ensure_znodes
from controller_core.zk.session import Create, Delete, WriteOp

log = structlog.get_logger()

CHANGES_PER_WRITE: Final = 500
"""The maximum of entries to change with one write of a topic's znode, so that they fit one transaction."""
_PARENTS: Final = (Create(path=paths.KONTROLLER), Create(path=paths.REMOVED_REPLICAS))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedReplicasChange:
    """The changes of the list in the transaction that rewrites a topic."""

    entered: Mapping[PartitionReplica, TopicId | None] = field(default_factory=dict)
    struck: Set[PartitionReplica] = frozenset()

    @property
    def size(self) -> int:
        return len(self.entered) + len(self.struck)

    @property
    def is_of_one_partition(self) -> bool:
        """True if there is nothing to divide."""
        return len({replica.topic_partition for replica in (*self.entered, *self.struck)}) <= 1

    @property
    def operations(self) -> list[WriteOp]:
        entries = {paths.replica_removal(replica): topic_id for replica, topic_id in self.entered.items()}
        return [
            *(Create(path=path, data=codecs.encode_removed_replica(topic_id)) for path, topic_id in entries.items()),
            *(Delete(path=paths.replica_removal(replica)) for replica in self.struck),
        ]


async def load(term: Writes) -> None:
    """Read the list when a term begins, and remove entries that somebody else has assigned again."""
    await ensure_znodes(term.zk, _PARENTS, term.writer.transact)
    names = (await term.zk.children_many([paths.REMOVED_REPLICAS]))[0] or ()
    nodes = await term.zk.read_many([f"{paths.REMOVED_REPLICAS}/{name}" for name in names])
    for name, node in zip(names, nodes, strict=True):
        try:
            replica = paths.parse_replica_removal(name)
            topic_id = codecs.decode_removed_replica(replica, node.data if node else b"")
        except (ValueError, MalformedZnode) as error:
            term.state.unusable.report(
                f"{paths.REMOVED_REPLICAS}/{name}", "unreadable entry among the removed replicas, left alone", error
            )
        else:
            term.state.removed_replicas.enter(replica, topic_id)
    assigned = [replica for replica in term.state.removed_replicas if _is_assigned_again(term.state, replica)]
    await strike(term, assigned)


def clean_up(term: Sends, brokers: Collection[BrokerId]) -> None:
    """Make brokers, usually newly started ones, delete the logs of replicas that they no longer have."""
    for replica in term.state.removed_replicas:
        if replica.broker in brokers:
            # After a restart a broker may be able to delete what it refused to delete before.
            term.state.removed_replicas.mark_refused(replica, is_refused=False)
            if not _may_be_assigned(term.state, replica) and not _is_last_in_sync(term.state, replica):
                term.batch.delete_stray(replica.topic_partition, replica.broker)


async def enter(term: Writes, replicas: Collection[PartitionReplica], topic_id: TopicId) -> bool:
    """Enter the replicas of a topic that is about to be deleted without their brokers. Return False if that fails.

    The topic still assigns them. If the controller dies now, the next one removes the entries and decides again.
    """
    existing = await _read_existing(term, list(replicas))
    data = codecs.encode_removed_replica(topic_id)
    new = [replica for replica in replicas if replica not in existing]
    written = await term.writer.write({r: [Create(path=paths.replica_removal(r), data=data)] for r in new})
    for replica in new:
        if replica not in written.failed:
            term.state.removed_replicas.enter(replica, topic_id)
    return not written.failed


def limit_rewrite(
    before: TopicAssignment, after: TopicAssignment, change: RemovedReplicasChange, at_most: int
) -> tuple[TopicAssignment, RemovedReplicasChange]:
    """Return the part of a rewrite that makes at most this number of changes, or changes one partition.

    The rest stays.
    """
    if change.size <= at_most:
        return after, change
    held: set[PartitionId] = set()
    taken = 0
    for partition, changes in Counter(r.topic_partition for r in (*change.entered, *change.struck)).items():
        if taken and taken + changes > at_most:
            held.add(partition.partition)
        else:
            taken += changes
    content = replace(
        after, partitions={n: before.partitions[n] if n in held else a for n, a in after.partitions.items()}
    )
    return content, RemovedReplicasChange(
        entered={r: topic_id for r, topic_id in change.entered.items() if r.topic_partition.partition not in held},
        struck={r for r in change.struck if r.topic_partition.partition not in held},
    )


async def find_changes(
    term: Writes,
    rewrites: Mapping[TopicName, tuple[TopicAssignment, TopicAssignment]],
    deleted: Set[PartitionReplica],
) -> dict[TopicName, RemovedReplicasChange]:
    """Return the changes of the list for topics that are rewritten from one content to another.

    `deleted` are replicas whose brokers have answered that they deleted them. They need no entry.
    """
    dropped = {
        name: [
            replica
            for replica in _only_in_first(name, before, after)
            if replica not in deleted and replica.broker != term.identity.id
        ]
        for name, (before, after) in rewrites.items()
    }
    added = {name: _only_in_first(name, after, before) for name, (before, after) in rewrites.items()}
    existing = await _read_existing(term, list(chain(*dropped.values(), *added.values())))
    return {
        name: RemovedReplicasChange(
            entered={replica: after.topic_id for replica in dropped[name] if replica not in existing},
            struck={replica for replica in added[name] if replica in existing and existing[replica] == after.topic_id},
        )
        for name, (_, after) in rewrites.items()
    }


def apply(term: Remembers, change: RemovedReplicasChange) -> None:
    """Apply a written change to the cluster state."""
    for replica, topic_id in change.entered.items():
        state = term.state.states.get(replica.topic_partition)
        epoch = state.leader_and_isr.leader_epoch if state else NO_EPOCH
        term.state.removed_replicas.enter(replica, topic_id, epoch)
    for replica in change.struck:
        term.state.removed_replicas.strike(replica)


async def on_replicas_deleted(term: Writes, broker: BrokerId, deleted: Mapping[TopicPartition, LeaderEpoch]) -> None:
    """Handle an answer that replicas are deleted. `deleted` has the leader epochs of the request."""
    await strike(
        term,
        [
            replica
            for partition, epoch in deleted.items()
            # An answer to a request from before the removal is about a former removal, so the entry stays.
            if (removed := term.state.removed_replicas.get(replica := PartitionReplica(partition, broker)))
            and (epoch < 0 or epoch >= removed.leader_epoch)
        ],
    )


def on_replicas_not_deleted(term: Remembers, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """Record replicas that a broker cannot delete. It is asked again when it restarts."""
    for partition in partitions:
        if (replica := PartitionReplica(partition, broker)) in term.state.removed_replicas:
            term.state.removed_replicas.mark_refused(replica, is_refused=True)


async def on_replicas_accepted(term: Writes, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """Remove the entries of replicas that a broker serves: there is no log of a former topic of that name any longer."""
    replicas = [PartitionReplica(partition, broker) for partition in partitions]
    await strike(term, [r for r in replicas if r in term.state.removed_replicas and term.state.is_assigned(r)])


def on_other_topic_found(term: Sends, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """Delete the listed logs of other topics of the same name, and send the broker the present topic's replicas again.

    The broker is asked about the log first, and deletes it afterwards, because a different topic id proves nothing: a
    znode may have lost its id. A former deletion whose answer was lost leaves an entry next to the new topic's good
    log. The broker accepts that log, and the entry is removed.
    """
    replicas = [
        replica
        for partition in partitions
        if (removed := term.state.removed_replicas.get(replica := PartitionReplica(partition, broker)))
        and removed.topic_id != term.state.topics[partition.topic].topic_id
        and not removed.is_refused
        and term.state.is_assigned(replica)
    ]
    for replica in replicas:
        log.warning("log of a former topic of this name is deleted", replica=str(replica))
        term.batch.delete_stray(replica.topic_partition, broker)
    term.send_requests()
    for replica in replicas:
        term.batch.add_leader_and_isr(replica.topic_partition, (broker,), is_new=True)


async def strike(term: Writes, replicas: Collection[PartitionReplica]) -> None:
    """Remove entries: the deletion is done, or nobody waits for it any longer."""
    if replicas:
        await subtrees.delete_handled(term, [Delete(path=paths.replica_removal(replica)) for replica in replicas])
    for replica in replicas:
        term.state.removed_replicas.strike(replica)
        log.info("removed replica leaves the list", replica=str(replica))


def _only_in_first(topic: TopicName, first: TopicAssignment, second: TopicAssignment) -> list[PartitionReplica]:
    """Return the replicas that only the first assigns, of partitions that are in both."""
    return [
        PartitionReplica(TopicPartition(topic, number), broker)
        for number, assignment in first.partitions.items()
        if number in second.partitions and assignment is not second.partitions[number]
        for broker in assignment.replicas
        if broker not in second.partitions[number].replicas
    ]


async def _read_existing(term: Writes, replicas: list[PartitionReplica]) -> dict[PartitionReplica, TopicId | None]:
    """Return ZooKeeper's entries, and create their parent if it is missing.

    The list in memory is not enough: an entry that a person removed must not make a transaction fail.
    """
    if not replicas:
        return {}
    parent, *nodes = await term.zk.read_many([paths.REMOVED_REPLICAS, *map(paths.replica_removal, replicas)])
    if parent is None:
        await ensure_znodes(term.zk, _PARENTS, term.writer.transact)
    return {
        replica: known.topic_id if (known := term.state.removed_replicas.get(replica)) else None
        for replica, node in zip(replicas, nodes, strict=True)
        if node is not None
    }


def _is_assigned_again(state: ReadOnlyState, replica: PartitionReplica) -> bool:
    return state.is_assigned(replica) and _is_of_present_topic(state, replica)


def _is_of_present_topic(state: ReadOnlyState, replica: PartitionReplica) -> bool:
    topic = state.topics.get(replica.topic_partition.topic)
    return topic is not None and topic.topic_id == state.removed_replicas[replica].topic_id


def _may_be_assigned(state: ReadOnlyState, replica: PartitionReplica) -> bool:
    """Return True if the replica is assigned, or its topic's znode is unreadable, wholly or partly, so that it may be."""
    is_known = state.has(replica.topic_partition)
    return state.is_assigned(replica) if is_known else state.may_have(replica.topic_partition)


def _is_last_in_sync(state: ReadOnlyState, replica: PartitionReplica) -> bool:
    """Return True if no other replica has all acknowledged messages. Only interference from outside leads to this."""
    known = state.states.get(replica.topic_partition)
    is_last = known is not None and set(known.leader_and_isr.isr) == {replica.broker}
    if is_last and _is_of_present_topic(state, replica):
        log.error("removed replica is kept: it is the last one in sync", replica=str(replica))
        return True
    return False
