"""The list of removed replicas: every replica that left AR and whose broker has not yet answered that its log is deleted.

A broker may be down when a reassignment takes its replica away, and a controller may die between the write of AR and the
request to the broker. Whoever is the controller when the broker is back must then know that the log there is nobody's:
else it fills the disk, and when the topic is deleted and created again under its name, the broker refuses the new one
for ever (INCONSISTENT_TOPIC_ID). So the transaction that drops a replica from AR enters it below
`/kontroller/removed_replicas`, and the one that adds it again strikes it out.

A log is deleted only where the list names it and one of these holds: the replica is not assigned to that broker; or it
is, and the broker itself refuses it because the log is of another topic id. The order of that second case matters: the
broker is asked first and deletes afterwards. A former deletion whose answer was lost leaves an entry behind, and the new
topic's good log beside it: the broker accepts that one, and the entry is struck out. That a topic id differs is not enough
by itself, because a znode may have lost it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

import structlog

from controller_core.controller.term.term import Term
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
"""How many entries come and go with one write of a topic's znode, so that they fit a transaction together."""
_PARENTS: Final = (Create(path=paths.KONTROLLER), Create(path=paths.REMOVED_REPLICAS))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedReplicasChange:
    """What a topic's rewrite means for the list: part of its transaction."""

    entered: Mapping[PartitionReplica, TopicId | None] = field(default_factory=dict)
    struck: Set[PartitionReplica] = frozenset()

    @property
    def size(self) -> int:
        return len(self.entered) + len(self.struck)

    @property
    def is_of_one_partition(self) -> bool:
        """Whether there is nothing to divide."""
        return len({replica.topic_partition for replica in (*self.entered, *self.struck)}) <= 1

    @property
    def operations(self) -> list[WriteOp]:
        entries = {paths.removed_replica(replica): topic_id for replica, topic_id in self.entered.items()}
        return [
            *(Create(path=path, data=codecs.encode_removed_replica(topic_id)) for path, topic_id in entries.items()),
            *(Delete(path=paths.removed_replica(replica)) for replica in self.struck),
        ]


async def load(term: Term) -> None:
    """Reads the list when a term begins, and strikes out what was assigned again by other hands."""
    await ensure_znodes(term.zk, _PARENTS, term.writer.transact)
    names = (await term.zk.children_many([paths.REMOVED_REPLICAS]))[0] or ()
    nodes = await term.zk.read_many([f"{paths.REMOVED_REPLICAS}/{name}" for name in names])
    for name, node in zip(names, nodes, strict=True):
        try:
            replica = paths.replica_of_removed(name)
            topic_id = codecs.decode_removed_replica(replica, node.data if node else b"")
        except (ValueError, MalformedZnode) as error:
            term.state.unusable.report(
                f"{paths.REMOVED_REPLICAS}/{name}", "unreadable entry among the removed replicas, left alone", error
            )
        else:
            term.state.removed_replicas.enter(replica, topic_id)
    assigned = [replica for replica in term.state.removed_replicas if _is_assigned_again(term, replica)]
    await strike(term, assigned)


def clean_up(term: Term, brokers: Collection[BrokerId]) -> None:
    """Makes brokers, newly started ones most often, delete the logs of replicas that they have no more."""
    for replica in term.state.removed_replicas:
        if replica.broker in brokers:
            term.state.removed_replicas.mark_refused(replica, is_refused=False)
            if not _may_be_assigned(term, replica) and not _is_last_in_sync(term, replica):
                term.batch.delete_stray(replica.topic_partition, replica.broker)


def bounded(
    before: TopicAssignment, after: TopicAssignment, change: RemovedReplicasChange, at_most: int
) -> tuple[TopicAssignment, RemovedReplicasChange]:
    """As much of a rewrite as has at most so many changes of the list, one partition at least; the rest stays."""
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


async def changes_with(
    term: Term,
    rewrites: Mapping[TopicName, tuple[TopicAssignment, TopicAssignment]],
    deleted: Set[PartitionReplica],
) -> dict[TopicName, RemovedReplicasChange]:
    """What the list must say when topics are rewritten, from one content to another.

    `deleted` are replicas whose brokers have answered that they deleted them: they need no entry."""
    dropped = {
        name: [
            replica
            for replica in _only_in_first(name, before, after)
            if replica not in deleted and replica.broker != term.identity.id
        ]
        for name, (before, after) in rewrites.items()
    }
    added = {name: _only_in_first(name, after, before) for name, (before, after) in rewrites.items()}
    existing = await _existing(term, list(chain(*dropped.values(), *added.values())))
    return {
        name: RemovedReplicasChange(
            entered={replica: after.topic_id for replica in dropped[name] if replica not in existing},
            struck={replica for replica in added[name] if replica in existing and existing[replica] == after.topic_id},
        )
        for name, (_, after) in rewrites.items()
    }


def apply(term: Term, change: RemovedReplicasChange) -> None:
    """Takes a change that was written into the cluster state."""
    for replica, topic_id in change.entered.items():
        state = term.state.states.get(replica.topic_partition)
        epoch = state.leader_and_isr.leader_epoch if state else NO_EPOCH
        term.state.removed_replicas.enter(replica, topic_id, epoch)
    for replica in change.struck:
        term.state.removed_replicas.strike(replica)


async def on_replicas_deleted(term: Term, broker: BrokerId, deleted: Mapping[TopicPartition, LeaderEpoch]) -> None:
    """A broker answered that it deleted replicas, by the leader epochs that it was sent with."""
    await strike(
        term,
        [
            replica
            for partition, epoch in deleted.items()
            if (removed := term.state.removed_replicas.get(replica := PartitionReplica(partition, broker)))
            and (epoch < 0 or epoch >= removed.leader_epoch)
        ],
    )


def on_replicas_not_deleted(term: Term, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """A broker answered that it cannot delete replicas: it is asked again when it starts anew."""
    for partition in partitions:
        if (replica := PartitionReplica(partition, broker)) in term.state.removed_replicas:
            term.state.removed_replicas.mark_refused(replica, is_refused=True)


async def on_replicas_accepted(term: Term, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """A broker serves replicas of the present topics: there is no log of a former topic of that name any more."""
    replicas = [PartitionReplica(partition, broker) for partition in partitions]
    await strike(term, [r for r in replicas if r in term.state.removed_replicas and term.state.is_assigned(r)])


def on_other_topic_found(term: Term, broker: BrokerId, partitions: Iterable[TopicPartition]) -> None:
    """A broker has logs of other topics of the same name: those that the list names are deleted, and the present topic's
    replicas are sent again."""
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
        term.batch.leader_and_isr(replica.topic_partition, (broker,), is_new=True)


async def strike(term: Term, replicas: Collection[PartitionReplica]) -> None:
    """Strikes out entries: nothing is owed any more, or nobody waits for it any longer."""
    if replicas:
        await term.writer.write({replica: [Delete(path=paths.removed_replica(replica))] for replica in replicas})
    for replica in replicas:
        term.state.removed_replicas.strike(replica)
        log.info("removed replica leaves the list", replica=str(replica))


def _only_in_first(topic: TopicName, first: TopicAssignment, second: TopicAssignment) -> list[PartitionReplica]:
    """The replicas of partitions that both know, and only the first assigns."""
    return [
        PartitionReplica(TopicPartition(topic, number), broker)
        for number, assignment in first.partitions.items()
        if number in second.partitions and assignment is not second.partitions[number]
        for broker in assignment.replicas
        if broker not in second.partitions[number].replicas
    ]


async def _existing(term: Term, replicas: list[PartitionReplica]) -> dict[PartitionReplica, TopicId | None]:
    """The entries that ZooKeeper has: what a person removed must not fail a transaction. Ensures their parent."""
    if not replicas:
        return {}
    parent, *nodes = await term.zk.read_many([paths.REMOVED_REPLICAS, *map(paths.removed_replica, replicas)])
    if parent is None:
        await ensure_znodes(term.zk, _PARENTS, term.writer.transact)
    return {
        replica: known.topic_id if (known := term.state.removed_replicas.get(replica)) else None
        for replica, node in zip(replicas, nodes, strict=True)
        if node is not None
    }


def _is_assigned_again(term: Term, replica: PartitionReplica) -> bool:
    return term.state.is_assigned(replica) and _is_of_present_topic(term, replica)


def _is_of_present_topic(term: Term, replica: PartitionReplica) -> bool:
    topic = term.state.topics.get(replica.topic_partition.topic)
    return topic is not None and topic.topic_id == term.state.removed_replicas[replica].topic_id


def _may_be_assigned(term: Term, replica: PartitionReplica) -> bool:
    """Whether the replica is assigned, or nobody can tell: its topic's znode makes no sense, or not all of it."""
    is_known = term.state.has(replica.topic_partition)
    return term.state.is_assigned(replica) if is_known else term.state.may_have(replica.topic_partition)


def _is_last_in_sync(term: Term, replica: PartitionReplica) -> bool:
    """Whether nobody else has all acknowledged messages, which no removal may lead to, but other hands may."""
    state = term.state.states.get(replica.topic_partition)
    is_last = state is not None and set(state.leader_and_isr.isr) == {replica.broker}
    if is_last and _is_of_present_topic(term, replica):
        log.error("removed replica is kept: it is the last one in sync", replica=str(replica))
        return True
    return False
