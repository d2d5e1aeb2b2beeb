"""Requests for single partitions, below `/admin/partitions_add`, `_remove` and `_reassigned` (seed 004).

Each request is a znode of its own, `TOPIC/NUMBER` below one of the three. It stays until it is served, so that a new
controller continues with it. An impossible request is removed at once, and the log has the reason, because a znode
cannot be answered. The last request of a topic is removed together with the topic's znode. A child that names no
partition is reported and left alone. The requesters create the three parents. While they do not exist, they cost one
watch each.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

import structlog

from controller_core.controller.loop.events import (
    Event,
    PartitionRemovalsRequested,
    PartitionsRequested,
    ReassignmentsRequested,
)
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.groups import MOST_IN_A_GROUP
from controller_core.controller.term.rights import Reads, Writes
from controller_core.controller.znodes import subtrees
from controller_core.model.ids import TopicName, TopicPartition
from controller_core.model.topics.partition_numbers import group_numbers_by_topic
from controller_core.model.topics.topic_names import explain_illegal
from controller_core.model.wording import list_some
from controller_core.zk import paths
from controller_core.zk.session import BadVersion, Delete, NotEmpty, WriteOp, ZkNode, ZkVersion

log = structlog.get_logger()

SHOWN: Final = 300
"""The number of characters shown of a name that may be very long."""
NO_REQUEST: Final = "a znode that is no request is left alone"

Requests: TypeAlias = Mapping[TopicPartition, ZkNode]
Versions: TypeAlias = Mapping[TopicPartition, ZkVersion]

_EVENTS: Final[Mapping[str, Event]] = MappingProxyType(
    {
        paths.PARTITIONS_ADD: PartitionsRequested(),
        paths.PARTITIONS_REMOVE: PartitionRemovalsRequested(),
        paths.PARTITIONS_REASSIGNED: ReassignmentsRequested(),
    }
)


async def read_partition_requests(term: Reads, parent: str, *, watched: bool = False) -> dict[TopicPartition, ZkNode]:
    """Return the requests below one of the three parents, watched for new ones; with `watched`, also for rewrites."""
    event = _EVENTS[parent]
    if await term.watched.read_node(parent, event) is None:
        term.state.unusable.keep_among(parent, ())
        return {}
    topics = _topics(term.state, parent, await term.watched.read_children(parent, event))
    partitions: list[TopicPartition] = []
    for start in range(0, len(topics), MOST_IN_A_GROUP):
        group = topics[start : start + MOST_IN_A_GROUP]
        below = await asyncio.gather(*(term.watched.read_children(f"{parent}/{topic}", event) for topic in group))
        for topic, names in zip(group, below, strict=True):
            partitions += _partitions(term.state, parent, topic, names)
    found = [paths.partition_request(parent, partition) for partition in partitions]
    nodes = await (term.watched.read_nodes(found, lambda _: event) if watched else term.zk.read_many(found))
    return {partition: node for partition, node in zip(partitions, nodes, strict=True) if node is not None}


def _topics(state: ReadOnlyState, parent: str, names: Sequence[str]) -> list[TopicName]:
    state.unusable.keep_among(parent, names)
    topics = []
    for name in names:
        if (reason := explain_illegal(name)) is None:
            topics.append(TopicName(name))
        else:
            state.unusable.report(f"{parent}/{name}", NO_REQUEST, reason[:SHOWN])
    return topics


def _partitions(state: ReadOnlyState, parent: str, topic: TopicName, names: Sequence[str]) -> list[TopicPartition]:
    above = f"{parent}/{topic}"
    state.unusable.keep_among(above, names)
    partitions = []
    for name in names:
        if (number := paths.parse_partition_number(name)) is not None:
            partitions.append(TopicPartition(topic, number))
        else:
            reason = f"{name[:SHOWN]!r} is not the number of a partition"
            state.unusable.report(f"{above}/{name}", NO_REQUEST, reason)
    return partitions


async def remove_partition_requests(term: Writes, parent: str, versions: Versions) -> None:
    """Remove requests by the versions that were handled. A request that was rewritten since is handled again.

    The last one of a topic is removed together with the topic's znode, unless somebody adds another one. Znodes that
    others created below a request are removed too.
    """
    stuck = await _remove(term, parent, versions)
    for partition in stuck:
        await subtrees.delete_below(term, paths.partition_request(parent, partition))
    await _remove(term, parent, {partition: versions[partition] for partition in stuck})


async def _remove(term: Writes, parent: str, versions: Versions) -> list[TopicPartition]:
    """Remove requests. Return those that could not be removed because there are znodes below them."""
    if not versions:
        return []
    deletes: dict[TopicPartition, WriteOp] = {
        partition: Delete(path=paths.partition_request(parent, partition), version=version)
        for partition, version in versions.items()
    }
    last = await _last_of_topics(term, parent, versions)
    of_topics = {p: [deletes[p], Delete(path=f"{parent}/{p.topic}")] for p in last}
    failed = (await term.writer.write({p: [delete] for p, delete in deletes.items() if p not in last})).failed
    alone = (await term.writer.write(of_topics)).failed
    failed |= (await term.writer.write({p: [deletes[p]] for p in alone})).failed
    if any(isinstance(error, BadVersion) for error in failed.values()):
        term.enqueue(_EVENTS[parent])
    return [partition for partition, error in failed.items() if isinstance(error, NotEmpty)]


async def _last_of_topics(term: Reads, parent: str, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
    """Return one partition of each topic whose requests are all among these."""
    by_topic = group_numbers_by_topic(partitions)
    children = await term.zk.children_many([f"{parent}/{topic}" for topic in by_topic])
    return {
        TopicPartition(topic, max(numbers))
        for (topic, numbers), names in zip(by_topic.items(), children, strict=True)
        if names is not None and {*names} == {*map(str, numbers)}
    }


def report_refused(what: str, refused: Mapping[TopicPartition, str]) -> None:
    """Log one line for each topic and reason, because very many partitions may be refused together."""
    alike: defaultdict[tuple[TopicName, str], list[TopicPartition]] = defaultdict(list)
    for partition, reason in refused.items():
        alike[partition.topic, reason].append(partition)
    for (_, reason), partitions in alike.items():
        log.error(what, partitions=list_some(partitions), reason=reason)
