"""Validation of requested removals: those in `/admin/partitions_remove`, and limits for all requests.

Stock brokers do not support the procedure, so it is refused while one of them is registered. One that joins later does
not stop a removal that has begun. Partitions are removed from the last one down, because clients expect contiguous
numbers. A refused request is removed at once, and the log has the reason. A request whose removal has begun cannot be
withdrawn. It tells the next controller that the removal must go on, and which topic the partition belongs to.
"""

from collections.abc import Collection
from typing import Final

from controller_core.controller.loop.events import PartitionRemovalsRequested
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.rights import Reads, Writes
from controller_core.controller.znodes import deleted_topics
from controller_core.controller.znodes.partition_requests import (
    Requests,
    Versions,
    remove_partition_requests,
    report_refused,
)
from controller_core.controller.znodes.topic_znodes import find_known_id
from controller_core.model.ids import TopicPartition
from controller_core.model.topics.partition_numbers import group_numbers_by_topic, refuse_removals
from controller_core.model.wording import list_some
from controller_core.zk import codecs, paths
from controller_core.zk.session import NoNode, SetData, ZkVersion

REFUSED: Final = "partitions are not removed"


def divide_requests(state: ReadOnlyState, asked: Requests) -> tuple[list[TopicPartition], Versions]:
    """Return the removals that have begun and go on, and the requests whose removals have ended.

    A removal has ended if the partition is gone, or belonged to a former topic of the same name.
    """
    begun: list[TopicPartition] = []
    ended: dict[TopicPartition, ZkVersion] = {}
    for partition, node in asked.items():
        path = paths.partition_request(paths.PARTITIONS_REMOVE, partition)
        topic_id = codecs.decode_partition_removal(path, node.data)
        if topic_id is None:
            continue
        if state.has(partition) and topic_id == find_known_id(state, partition.topic):
            begun.append(partition)
        elif state.has(partition) or not state.may_have(partition):
            ended[partition] = node.version
    return begun, ended


async def accept_requests(term: Writes, asked: Requests) -> list[TopicPartition]:
    """Mark the requests whose removals may begin, and return their partitions. Refuse the others."""
    refused = _why_not(term, asked)
    report_refused(REFUSED, refused)
    await remove_partition_requests(term, paths.PARTITIONS_REMOVE, {p: asked[p].version for p in refused})
    beginning = {partition: node.version for partition, node in asked.items() if partition not in refused}
    if not beginning:
        return []
    counts = {topic: len(term.state.topics[topic].partitions) for topic in {p.topic for p in beginning}}
    await deleted_topics.remember(term, counts)
    outcome = await term.writer.write({p: [_mark_of_begin(term.state, p, version)] for p, version in beginning.items()})
    if any(not isinstance(error, NoNode) for error in outcome.failed.values()):
        term.enqueue(PartitionRemovalsRequested())  # a request was rewritten after it was read
    return list(outcome.written)


def _mark_of_begin(state: ReadOnlyState, partition: TopicPartition, version: ZkVersion) -> SetData:
    data = codecs.encode_partition_removal(find_known_id(state, partition.topic))
    return SetData(path=paths.partition_request(paths.PARTITIONS_REMOVE, partition), data=data, version=version)


def _why_not(term: Reads, asked: Collection[TopicPartition]) -> dict[TopicPartition, str]:
    """Return the partitions that cannot be removed, with the reasons."""
    if (reason := _why_none(term)) is not None:
        return dict.fromkeys(asked, reason)
    refused: dict[TopicPartition, str] = {}
    for partition in asked:
        if (reason := _why_not_now(term.state, partition)) is not None:
            refused[partition] = reason
    for topic, numbers in group_numbers_by_topic(partition for partition in asked if partition not in refused).items():
        known = term.state.topics.get(topic)
        reasons = refuse_removals(known.partitions.keys() if known else (), numbers)
        refused |= {TopicPartition(topic, number): reason for number, reason in reasons.items()}
    return refused


def _why_none(term: Reads) -> str | None:
    if not term.cluster_settings.delete_topic_enable:
        is_unknown = term.cluster_settings.delete_topic_enable is None
        return f"delete.topic.enable is {'not known yet: no broker has returned it' if is_unknown else 'false'}"
    stock = sorted(broker.id for broker in term.state.brokers.values() if not broker.is_ours)
    if stock:
        return (
            f"stock brokers cannot remove a single partition, and {list_some(stock)} are stock brokers: stop them first"
        )
    return None


def _why_not_now(state: ReadOnlyState, partition: TopicPartition) -> str | None:
    if partition.topic in state.deletions:
        return "its topic is being deleted"
    if state.unusable.has(paths.topic(partition.topic)):
        return f"entries of partitions in {paths.topic(partition.topic)} cannot be read: repair them first"
    if partition in state.reassignments:
        return "it is being reassigned: wait until that has ended, or cancel it"
    return None
