"""Creation and loss of topics and partitions: `on_new_topic_creation` and `on_new_partition_creation` of seed 000.

The creator of a topic writes its znode: a tool, the operator, or a broker that creates topics automatically. Brokers
choose replicas among all brokers that UpdateMetadata lists, so they sometimes choose the controller's own id. Such a
replica could never exist, and is replaced before anything else happens to the partition.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Final

import structlog

from controller_core.controller.loop.events import (
    PartitionRemovalsRequested,
    ReassignmentsEnded,
    ReassignmentsRequested,
    TopicDeletionsRequested,
    TopicsChanged,
)
from controller_core.controller.machines import partition_machine, replica_machine
from controller_core.controller.machines.leaderships import restore
from controller_core.controller.operations import startup
from controller_core.controller.reassigning import reassignment
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.groups import run_in_groups
from controller_core.controller.term.rights import Reads, Sends, Writes
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import recorded_configs
from controller_core.controller.znodes.partition_states import read_states
from controller_core.controller.znodes.topic_znodes import (
    TopicZnode,
    find_known_id,
    read_modified_topics,
    read_topics,
    rewrite_topics,
)
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import PartitionState, TopicAssignment
from controller_core.model.topics.placement_repair import replace_phantom
from controller_core.model.topics.topic_names import explain_illegal
from controller_core.model.wording import list_some
from controller_core.zk import paths

log = structlog.get_logger()

SHOWN: Final = 300
"""The number of characters shown of a name that may be very long."""
_NOTHING: Final[Mapping[TopicPartition, PartitionState]] = MappingProxyType({})
ADDED_AT_ONCE: Final = 100
"""The number of topics to add to the cluster state before the event loop gets its turn: a few milliseconds."""


async def on_topics_changed(term: Term, suspects: Collection[TopicName] = ()) -> None:
    """Compare the topics in ZooKeeper with the known ones. A recreated topic is handled as deleted and as new.

    Known topics are read only if they may have changed: if their watch has fired, or if they are among `suspects`.
    """
    names = await read_topic_names(term)
    known = term.state.topics
    changed = [n for n in names if n in known and (n in suspects or not term.watched.is_watched(paths.topic(n)))]
    znodes = await read_topics(term, changed)
    recreated = [name for name, znode in znodes.items() if known[name].czxid != znode.czxid]
    present = set(names)
    vanished = [name for name in known if name not in present]
    former = _states_of_same(term.state, {name: znodes[name] for name in recreated})
    on_topics_vanished(term, [*vanished, *recreated])
    # A batch holds each partition once, so the brokers must be sent the end of the former one before its successor.
    term.send_requests()
    new = [name for name in names if name not in term.state.topics]
    if new:
        await on_new_topic_creation(term, new, former)


def _states_of_same(
    state: ReadOnlyState, znodes: Mapping[TopicName, TopicZnode]
) -> dict[TopicPartition, PartitionState]:
    """Return the states of topics that somebody deleted and created again with the same id and replicas.

    For brokers this is the topic that they know, so they would ignore the leader epochs of a new one.
    """
    same = [name for name, znode in znodes.items() if znode.content.topic_id == find_known_id(state, name) is not None]
    return {
        partition: known
        for name in same
        for number, assignment in znodes[name].content.partitions.items()
        if (known := state.states.get(partition := TopicPartition(name, number))) is not None
        and set(assignment.replicas).issuperset(known.leader_and_isr.isr)
    }


async def read_topic_names(term: Reads) -> list[TopicName]:
    """Return the names of all topics, watched for new and vanished ones. Illegal names do not count."""
    names = await term.watched.read_children(paths.TOPICS, TopicsChanged())
    term.state.unusable.keep_among(paths.TOPICS, names)
    topics = []
    for name in names:
        if (reason := explain_illegal(name)) is None:
            topics.append(TopicName(name))
        else:
            term.state.unusable.report(
                f"{paths.TOPICS}/{name}", "a znode that is not a topic is left alone", reason[:SHOWN]
            )
    return topics


def on_topics_vanished(term: Sends, topics: Iterable[TopicName]) -> None:
    """Remove topics whose znodes are gone, at the brokers too. Their logs are left alone.

    A reassignment of such a topic ends here. The next check of `/admin/reassign_partitions` drops its entry.
    """
    for name in topics:
        topic_id = find_known_id(term.state, name)
        if name in term.state.deletions:
            term.enqueue(TopicDeletionsRequested())  # else the mark would delete the next topic of this name
        if term.state.removals.list_numbers_of(name):
            term.enqueue(PartitionRemovalsRequested())  # likewise, requests to remove its partitions
        partitions = term.state.remove_topic(name)
        log.warning("topic vanished from ZooKeeper", topic=name, topic_id=str(topic_id), partitions=len(partitions))
        term.batch.forget_metadata(partitions, None)
        term.enqueue(ReassignmentsRequested())
        term.enqueue(ReassignmentsEnded())


async def on_new_topic_creation(
    term: Term, topics: Iterable[TopicName], former: Mapping[TopicPartition, PartitionState] = _NOTHING
) -> None:
    """Run onNewTopicCreation: create the topics' partitions, except those that were served before.

    `former` are states to restore for partitions that have none now.
    """
    loaded = await load_topics(term, topics)
    partitions = [partition for name in loaded for partition in term.state.list_partitions_of(name)]
    log.info("new topics", topics=list_some(sorted(loaded)), partitions=len(partitions))
    served = await _read_served_states(term, partitions)
    served |= await restore(term, {p: former[p] for p in partitions if p in former and p not in served})
    await on_new_partition_creation(term, [partition for partition in partitions if partition not in served])
    await _take_up(term, served)
    # The topics may have been marked, or requested to move, before they were known.
    term.enqueue(TopicDeletionsRequested())
    term.enqueue(ReassignmentsRequested())


async def _read_served_states(
    term: Reads, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, PartitionState]:
    """Return the states of partitions that have one already. Topics without a znode for their partitions have none."""
    by_topic: defaultdict[TopicName, list[TopicPartition]] = defaultdict(list)
    for partition in partitions:
        by_topic[partition.topic].append(partition)
    nodes = await term.zk.read_many(list(map(paths.partitions, by_topic)))
    found = [known for known, node in zip(by_topic.values(), nodes, strict=True) if node is not None]
    return await read_states(term.zk, chain.from_iterable(found), term.state.unusable)


async def _take_up(term: Term, served: Mapping[TopicPartition, PartitionState]) -> None:
    """Continue with partitions that were served before, of topics that could not be read when this term began."""
    term.state.set_states(served)
    startup.start_up_replicas(term, served)
    await startup.start_up_partitions(term, served)
    running = [partition for partition in served if partition in term.state.reassignments]
    await reassignment.catch_up(term, running)
    await reassignment.advance(term, running)


async def on_topics_modified(term: Term, topics: Collection[TopicName]) -> None:
    """Handle rewritten znodes of topics. Unknown partitions are new. Nothing else is taken from the znodes."""
    had_unusable = {name for name in topics if term.state.unusable.has(paths.topic(name))}
    znodes = await read_modified_topics(term, [name for name in topics if name in term.state.topics])
    unknown = await read_topics(term, [name for name in topics if name not in term.state.topics])
    recreated = [name for name, znode in znodes.items() if znode.czxid != term.state.topics[name].czxid]
    if unknown or recreated:
        await on_topics_changed(term, recreated)  # an unreadable topic may be readable now
        znodes = {name: znode for name, znode in znodes.items() if name not in recreated}
    without_id = {name: znode for name, znode in znodes.items() if _has_lost_id(term.state, name, znode)}
    for name in without_id:
        log.error("topic znode was rewritten without its topic id, which is restored", topic=name)
    await _make_sound(term, without_id)
    grown = {name: znode for name, znode in znodes.items() if _find_added(term.state, name, znode.content)}
    growing = {name: znode for name, znode in grown.items() if not _is_on_its_way_out(term.state, name)}
    for name in grown.keys() - growing.keys():
        await _remove_added(term, name)
    contents = await _make_sound(term, growing)
    added = [
        (partition, content)
        for name, content in contents.items()
        for partition in _find_added(term.state, name, content)
    ]
    for partition, content in added:
        term.state.set_assignment(partition, content.partitions[partition.partition])
    if added:
        log.info("new partitions", topics=list_some(sorted(contents)), partitions=len(added))
        mended = {name: content for name, content in contents.items() if name in had_unusable}
        new = await _take_up_mended(term, mended, [partition for partition, _ in added])
        await on_new_partition_creation(term, new)
        term.enqueue(ReassignmentsRequested())  # it may be requested to move already


async def _take_up_mended(
    term: Term, topics: Mapping[TopicName, TopicAssignment], added: Sequence[TopicPartition]
) -> list[TopicPartition]:
    """Continue with mended partitions that were served before, and return the others.

    The entries of these topics could not be used until now.
    """
    suspects = [partition for partition in added if partition.topic in topics]
    served = await _read_served_states(term, suspects)
    for name, content in topics.items():
        mended = {p: a for p, a in content.partitions.items() if TopicPartition(name, p) in served}
        reassignment.remember_running(term, name, replace(content, partitions=mended))
    await _take_up(term, served)
    return [partition for partition in added if partition not in served]


def _has_lost_id(state: ReadOnlyState, name: TopicName, znode: TopicZnode) -> bool:
    topic_id = find_known_id(state, name)
    return topic_id is not None and znode.content.topic_id != topic_id


def _find_added(state: ReadOnlyState, name: TopicName, content: TopicAssignment) -> list[TopicPartition]:
    known = _list_known_numbers(state, name)
    return [TopicPartition(name, partition) for partition in content.partitions if partition not in known]


def _list_known_numbers(state: ReadOnlyState, name: TopicName) -> Set[PartitionId]:
    """Return the known partitions of a topic, including those that are being removed."""
    return state.topics[name].partitions.keys() | state.removals.list_numbers_of(name)


def _is_on_its_way_out(state: ReadOnlyState, name: TopicName) -> bool:
    """Return True if a topic, or its last partitions, are being deleted.

    New partitions would be lost, or leave a gap.
    """
    return name in state.deletions or bool(state.removals.list_numbers_of(name))


async def _remove_added(term: Writes, topic: TopicName) -> None:
    """Remove partitions that were added to a topic that is being deleted, or above some that are (KAFKA-6612)."""
    log.error("partitions are removed again: their topic is being deleted, in whole or in part", topic=topic)
    known = _list_known_numbers(term.state, topic)

    def drop_added(_: TopicName, content: TopicAssignment) -> TopicAssignment:
        return replace(content, partitions={p: a for p, a in content.partitions.items() if p in known})

    await rewrite_topics(term, [topic], drop_added)
    if term.state.removals.list_numbers_of(topic):
        term.enqueue(PartitionRemovalsRequested())  # the partitions below may be removable now


async def on_new_partition_creation(term: Term, partitions: Iterable[TopicPartition]) -> None:
    """Run onNewPartitionCreation: its steps in the order of the specification, for one group of partitions at a time."""

    async def create(group: Sequence[TopicPartition]) -> None:
        replicas = term.state.list_replicas_of(group)
        # 1. new partitions -> NewPartition
        partition_machine.make_new(term, group)
        # 2. all replicas of new partitions -> NewReplica
        replica_machine.make_new(term, replicas)
        # 3. new partitions -> OnlinePartition
        await partition_machine.bring_online(term, group)
        # 4. all replicas of new partitions -> OnlineReplica
        replica_machine.bring_online(term, replicas)

    await run_in_groups(term, list(partitions), create)


async def load_topics(term: Writes, topics: Iterable[TopicName]) -> list[TopicName]:
    """Read topics and add them to the cluster state. Return those that exist."""
    znodes = await read_topics(term, topics, watched=True)
    await add_topics(term, znodes)
    await recorded_configs.load_of_topics(term, znodes)
    return [name for name in znodes if name in term.state.topics]


async def add_topics(term: Writes, znodes: Mapping[TopicName, TopicZnode]) -> list[TopicPartition]:
    """Add topics to the cluster state, with a topic id and without replicas on the controller itself.

    Return the partitions that had such replicas.
    """
    contents = await _make_sound(term, znodes)
    for added, (name, content) in enumerate(contents.items(), start=1):
        term.state.add_topic(name, content.topic_id, znodes[name].czxid, content.partitions)
        reassignment.remember_running(term, name, content)
        if added % ADDED_AT_ONCE == 0:
            await asyncio.sleep(0)
    return [
        TopicPartition(name, number)
        for name in contents
        if _names(term.identity.id, znodes[name].content)
        for number, assignment in znodes[name].content.partitions.items()
        if term.identity.id in assignment.replicas
    ]


async def _make_sound(term: Writes, znodes: Mapping[TopicName, TopicZnode]) -> dict[TopicName, TopicAssignment]:
    """Write back what must be mended in the znodes of topics. Return the contents after that."""
    has_phantom = any(_names(term.identity.id, znode.content) for znode in znodes.values())
    replicas = Counter(
        broker
        for topic in (term.state.topics.values() if has_phantom else ())
        for assignment in topic.partitions.values()
        for broker in assignment.replicas
    )

    def sound(name: TopicName, content: TopicAssignment) -> TopicAssignment:
        topic_id = find_known_id(term.state, name) or content.topic_id or term.clock.new_topic_id()
        partitions = content.partitions
        if _names(term.identity.id, content):
            partitions = replace_phantom(partitions, term.identity.id, term.state.live, replicas)
        if topic_id == content.topic_id and partitions == content.partitions:
            return content
        return replace(content, topic_id=topic_id, partitions=partitions)

    intact = {name: znode.content for name, znode in znodes.items() if sound(name, znode.content) is znode.content}
    unsound = [name for name in znodes if name not in intact]
    mended = await rewrite_topics(term, unsound, sound) if unsound else {}
    for name in mended if has_phantom else ():
        if _names(term.identity.id, znodes[name].content):
            log.warning("replicas on the controller's own id replaced", topic=name, phantom=term.identity.id)
    return {**intact, **mended}


def _names(broker: BrokerId, content: TopicAssignment) -> bool:
    return any(broker in replicas for replicas in {each.replicas for each in content.partitions.values()})
