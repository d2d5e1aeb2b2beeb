"""Reads and rewrites of `/brokers/topics/T`, the one place that holds the assigned replicas of a topic.

Every rewrite includes the topic's id. A topic that lost its id would get another one, and its brokers would refuse its
partitions (KAFKA-12835). The list of removed replicas is written in the same transaction, so that a replica is always
in AR or in the list, whenever the controller dies. Unreadable entries are written back as well: they are somebody's
partitions, and only a person can tell what they should be.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

import structlog

from controller_core.controller.loop.events import TopicModified
from controller_core.controller.state.assigned_replicas import Topic
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.rights import Reads, Remembers, Writes
from controller_core.controller.znodes import removed_replicas
from controller_core.controller.znodes.removed_replicas import RemovedReplicasChange
from controller_core.model.ids import PartitionId, PartitionReplica, TopicId, TopicName, TopicPartition
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import Unwritten, compare_and_set_each, find_unwritten
from controller_core.zk.session import SetData, TooLarge, TransactionFailed, ZkNode, ZkVersion

log = structlog.get_logger()

TOO_LARGE: Final = "a topic's znode is too large to be written and stays as it is"
SHOWN: Final = 5
"""The number of a topic's unusable entries that a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicZnode:
    """A topic's znode as read: its content, its version for the next write, and its czxid."""

    content: TopicAssignment
    version: ZkVersion
    czxid: int


Rewrite = Callable[[TopicName, TopicAssignment], TopicAssignment]
"""Returns the new content of a topic's znode from its present one; the same object if nothing changes."""


async def read_topics(
    term: Reads, topics: Iterable[TopicName], *, watched: bool = False
) -> dict[TopicName, TopicZnode]:
    """Return the znodes of the topics.

    Missing and unreadable ones are left out, the latter with an error in the log.
    """
    names = list(topics)
    nodes = await (_read_watched(term, names) if watched else term.zk.read_many(list(map(paths.topic, names))))
    return _decode_all(term, {name: node for name, node in zip(names, nodes, strict=True) if node is not None})


async def read_modified_topics(term: Reads, topics: Iterable[TopicName]) -> dict[TopicName, TopicZnode]:
    """Like `read_topics`, watched, without known topics whose last write was this controller's own."""
    names = list(topics)
    nodes = zip(names, await _read_watched(term, names), strict=True)
    return _decode_all(
        term, {n: node for n, node in nodes if node is not None and not _is_own(term.state.topics[n], node)}
    )


async def _read_watched(term: Reads, names: Sequence[TopicName]) -> list[ZkNode | None]:
    by_path = {paths.topic(name): name for name in names}
    return await term.watched.read_nodes(list(by_path), lambda path: TopicModified(by_path[path]))


def _is_own(known: Topic, node: ZkNode) -> bool:
    return (known.czxid, known.written) == (node.czxid, node.version)


def _decode_all(term: Reads, nodes: Mapping[TopicName, ZkNode]) -> dict[TopicName, TopicZnode]:
    znodes = {name: znode for name, node in nodes.items() if (znode := _decode(term, name, node)) is not None}
    borrowed = _find_borrowed_ids(term.state, znodes)
    for name, owner in borrowed.items():
        reason = f'its "topic_id" is that of {owner}: remove it, and the topic gets another one'
        term.state.unusable.report(paths.topic(name), "topic with the id of another is left alone", reason, topic=name)
    usable = {name: znode for name, znode in znodes.items() if name not in borrowed} if borrowed else znodes
    for name, znode in usable.items():
        if not znode.content.unusable:
            term.state.unusable.clear(paths.topic(name))
    return usable


def _find_borrowed_ids(state: ReadOnlyState, znodes: Mapping[TopicName, TopicZnode]) -> dict[TopicName, TopicName]:
    """Return the topics that have the id of another one, with its name, for example copies of znodes.

    Brokers identify topics by their ids, so their requests for one would affect the other. An id belongs to the topic
    that is known with it, otherwise to the oldest.
    """
    ids = {name: znode.content.topic_id for name, znode in znodes.items()}
    owners: dict[TopicId, TopicName] = {}
    borrowed = {}
    for name in sorted(ids, key=lambda name: znodes[name].czxid):
        topic_id = ids[name]
        if topic_id is None:
            continue
        owner = state.find_topic_name(topic_id) or owners.setdefault(topic_id, name)
        if owner != name:
            borrowed[name] = owner
    return borrowed


async def rewrite_topics(
    term: Writes, topics: Iterable[TopicName], rewrite: Rewrite, deleted: Set[PartitionReplica] = frozenset()
) -> dict[TopicName, TopicAssignment]:
    """Rewrite the znodes of topics from their present content. Repeat that after a write by somebody else.

    `deleted` are dropped replicas that need not be listed as removed. Return the contents of the znodes afterwards,
    without topics that are gone. Also without those whose znode would be too large for ZooKeeper, or is written by
    others all the time: they stay as they are, with an error in the log.
    """
    contents: dict[TopicName, TopicAssignment] = {}
    remaining = dict.fromkeys(topics, removed_replicas.CHANGES_PER_WRITE)

    async def attempt(names: Sequence[TopicName]) -> dict[TopicName, Unwritten]:
        """Make one step for each of the topics. Those with another step remain."""
        znodes = await read_topics(term, names)
        wanted = {name: rewrite(name, znode.content) for name, znode in znodes.items()}
        contents.update({name: content for name, content in wanted.items() if content is znodes[name].content})
        changed = {n: (znodes[n].content, content) for n, content in wanted.items() if content is not znodes[n].content}
        steps = await _steps(term, changed, deleted, remaining)
        failed = await _write(term, znodes, steps)
        contents.update({name: step.content for name, step in steps.items() if name not in failed})
        for name in names:
            step, at_most = steps.get(name), remaining.pop(name)
            # A topic needs another step if this one failed, or made only a part of the changes.
            if step and (name in failed or step.content is not wanted[name]):
                remaining[name] = _changes_at_once(term.state, name, step, failed.get(name), at_most)
        return find_unwritten({name: error for name, error in failed.items() if not isinstance(error, TooLarge)})

    while remaining:
        for name, error in (await compare_and_set_each(remaining, attempt)).items():
            log.error("a topic's znode is left as it is", topic=name, error=str(error))
            del remaining[name]
        remaining = {name: at_most for name, at_most in remaining.items() if at_most}
    return contents


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """The part of a topic's rewrite that is written at one time."""

    content: TopicAssignment
    change: RemovedReplicasChange


async def _steps(
    term: Writes,
    changed: Mapping[TopicName, tuple[TopicAssignment, TopicAssignment]],
    deleted: Set[PartitionReplica],
    changes_at_once: Mapping[TopicName, int],
) -> dict[TopicName, _Step]:
    if not changed:
        return {}
    changes = await removed_replicas.find_changes(term, changed, deleted)
    steps = {}
    for name, (before, after) in changed.items():
        content, change = removed_replicas.limit_rewrite(before, after, changes[name], changes_at_once[name])
        steps[name] = _Step(content=content, change=change)
    return steps


async def _write(
    term: Writes, znodes: Mapping[TopicName, TopicZnode], steps: Mapping[TopicName, _Step]
) -> dict[TopicName, TransactionFailed]:
    """Write the new contents together with the removed replicas. Return the failures."""
    outcome = await term.writer.write(
        {
            name: [
                SetData(path=paths.topic(name), data=codecs.encode_topic(step.content), version=znodes[name].version),
                *step.change.operations,
            ]
            for name, step in steps.items()
        }
    )
    for name in outcome.written:
        removed_replicas.apply(term, steps[name].change)
        _remember_written(term, name, znodes[name], steps[name].content)
    return outcome.failed


def _changes_at_once(
    state: ReadOnlyState, name: TopicName, step: _Step, failed: TransactionFailed | None, before: int
) -> int:
    """Return the number of changes of removed replicas for the next write of a topic.

    It is smaller if they made the write too large, and 0, with an error in the log, if a single partition is too large.
    """
    if not isinstance(failed, TooLarge):
        return before
    if step.change.is_of_one_partition:
        state.unusable.report(paths.topic(name), TOO_LARGE, failed, topic=name)
        return 0
    return max(1, step.change.size // 4)


def _remember_written(term: Remembers, name: TopicName, before: TopicZnode, content: TopicAssignment) -> None:
    known = term.state.topics.get(name)
    if known is not None and known.czxid == before.czxid:
        term.state.remember_rewritten(name, ZkVersion(before.version + 1), content)


async def write_assignments(
    term: Writes,
    assignments: Mapping[TopicPartition, ReplicaAssignment],
    deleted: Set[PartitionReplica] = frozenset(),
) -> dict[TopicPartition, ReplicaAssignment]:
    """Write the assignments of partitions to the znodes of their topics, one write for each topic.

    `deleted` are dropped replicas that need not be listed as removed. Return the assignments that ZooKeeper has now,
    without the partitions of topics that vanished.
    """
    by_topic: dict[TopicName, dict[PartitionId, ReplicaAssignment]] = {}
    for (topic, partition), assignment in assignments.items():
        by_topic.setdefault(topic, {})[partition] = assignment

    def replace_assignments(name: TopicName, content: TopicAssignment) -> TopicAssignment:
        changed = {p: a for p, a in by_topic[name].items() if p in content.partitions}
        if all(content.partitions[partition] == assignment for partition, assignment in changed.items()):
            return content
        return replace(
            content,
            topic_id=content.topic_id or find_known_id(term.state, name),
            partitions={**content.partitions, **changed},
        )

    contents = await rewrite_topics(term, by_topic, replace_assignments, deleted)
    return {
        partition: assignment
        for partition, assignment in assignments.items()
        if (content := contents.get(partition.topic)) and content.partitions.get(partition.partition) == assignment
    }


def find_known_id(state: ReadOnlyState, topic: TopicName) -> TopicId | None:
    """Return the known id of a topic."""
    known = state.topics.get(topic)
    return known.topic_id if known else None


def _decode(term: Reads, name: TopicName, node: ZkNode) -> TopicZnode | None:
    path = paths.topic(name)
    try:
        known = _rewritten(term.state, name, node) or term.find_known_content(name, node)
        content = known or codecs.decode_topic(name, node.data)
    except MalformedZnode as error:
        term.state.unusable.report(path, "unreadable topic znode, the topic is left alone", error, topic=name)
        return None
    if content.unusable:
        reasons = "; ".join(entry.reason for entry in content.unusable[:SHOWN])
        term.state.unusable.report(
            path, "partitions of a topic are left out", reasons, topic=name, partitions=len(content.unusable)
        )
    return TopicZnode(content=content, version=node.version, czxid=node.czxid)


def _rewritten(state: ReadOnlyState, name: TopicName, node: ZkNode) -> TopicAssignment | None:
    """Return the content that this controller wrote, if the znode still has it.

    A topic of thousands of partitions is rewritten many times during a reassignment, and need not be decoded each time.
    """
    known = state.topics.get(name)
    version, content = state.rewritten.get(name, (None, None))
    return content if known is not None and (known.czxid, version) == (node.czxid, node.version) else None
