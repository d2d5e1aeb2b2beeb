"""`on_partitions_add` of seed 004: add the partitions that `/admin/partitions_add/TOPIC/NUMBER` requests.

The request has the replicas, preferred first: `{"version":1,"replicas":[1,2]}`. The topic's znode is written first, and
not last as in the seed. So the next controller finds the partition there, and the request, which is removed when the
partition is served. An impossible request is removed at once, and the log has the reason.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from controller_core.controller.operations import topics
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.rights import Reads, Writes
from controller_core.controller.term.term import Term
from controller_core.controller.znodes.partition_requests import (
    Requests,
    read_partition_requests,
    remove_partition_requests,
    report_refused,
)
from controller_core.controller.znodes.topic_znodes import TopicZnode, find_known_id, read_topics, rewrite_topics
from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.model.topics.partition_numbers import refuse_additions
from controller_core.model.wording import list_some, name_subject
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode

REFUSED: Final = "partitions are not added"

Additions = Mapping[PartitionId, ReplicaAssignment]


async def on_partitions_add(term: Term) -> None:
    """Run on_partitions_add: its steps, as they are numbered in the specification."""
    # 1. determine the set of partitions to be added (set_p)
    asked = await read_partition_requests(term, paths.PARTITIONS_ADD)
    if not asked:
        return
    wanted = await _find_wanted(term, asked)
    # 4. update the Topic path in ZK with the added partitions
    contents = await _add_to_topics(term, wanted)
    # 2. call init_leaders(set_p)
    await topics.on_topics_modified(term, wanted)
    # 3. delete the PartitionAdd path in ZK
    _report_unwritten(wanted, contents)
    await remove_partition_requests(term, paths.PARTITIONS_ADD, {p: node.version for p, node in asked.items()})


async def _find_wanted(term: Reads, asked: Requests) -> dict[TopicName, Additions]:
    """Return what can be added to each topic, or was added already before a former controller died. Report the rest."""
    by_topic: defaultdict[TopicName, dict[PartitionId, ReplicaAssignment]] = defaultdict(dict)
    for (topic, number), node in asked.items():
        path = paths.partition_request(paths.PARTITIONS_ADD, TopicPartition(topic, number))
        try:
            by_topic[topic][number] = ReplicaAssignment(replicas=codecs.decode_replicas(path, node.data))
        except MalformedZnode as error:
            term.state.unusable.report_removed(path, REFUSED, error)
    znodes = await read_topics(term, by_topic)
    wanted: dict[TopicName, Additions] = {}
    refused: dict[TopicPartition, str] = {}
    for topic, additions in by_topic.items():
        why_not = _why_not(term.state, topic, additions, znodes.get(topic))
        refused |= {TopicPartition(topic, number): reason for number, reason in why_not.items()}
        if accepted := {number: each for number, each in additions.items() if number not in why_not}:
            wanted[topic] = accepted
    report_refused(REFUSED, refused)
    return wanted


def _why_not(
    state: ReadOnlyState, topic: TopicName, asked: Additions, znode: TopicZnode | None
) -> dict[PartitionId, str]:
    """Return the partitions that cannot be added, with the reasons."""
    reason = _why_none(state, topic, znode)
    if reason is not None:
        return dict.fromkeys(asked, reason)
    present: Additions = znode.content.partitions if znode is not None else {}
    refused: dict[PartitionId, str] = {}
    for number, assignment in asked.items():
        unknown = [broker for broker in assignment.replicas if broker not in state.brokers]
        if unknown and number not in present:
            said = f"{name_subject('broker', unknown)} not registered: start every broker first, or name others"
            refused[number] = said
    new = [number for number in asked if number not in refused and present.get(number) != asked[number]]
    return refused | refuse_additions(present, new)


def _why_none(state: ReadOnlyState, topic: TopicName, znode: TopicZnode | None) -> str | None:
    if topic in state.deletions:
        return "their topic is being deleted"
    if znode is None:
        return "there is no such topic, or its znode cannot be read"
    if znode.content.unusable:
        return f"entries of partitions in {paths.topic(topic)} cannot be read: repair them first"
    if removed := state.removals.list_numbers_of(topic):
        return f"partitions {list_some(sorted(removed))} of the topic are being removed: ask again when they are gone"
    return None


async def _add_to_topics(term: Writes, wanted: Mapping[TopicName, Additions]) -> dict[TopicName, TopicAssignment]:
    def add_partitions(name: TopicName, content: TopicAssignment) -> TopicAssignment:
        new = {number: each for number, each in wanted[name].items() if number not in content.partitions}
        if not new:
            return content
        topic_id = content.topic_id or find_known_id(term.state, name)
        return replace(content, topic_id=topic_id, partitions={**content.partitions, **dict(sorted(new.items()))})

    return await rewrite_topics(term, wanted, add_partitions)


def _report_unwritten(wanted: Mapping[TopicName, Additions], contents: Mapping[TopicName, TopicAssignment]) -> None:
    """Report partitions that were not written: a znode had no room, or somebody else added the same partition first."""
    refused = {
        TopicPartition(topic, number): "their topic's znode was not written: see the other errors in this log"
        for topic, additions in wanted.items()
        for number in additions
        if topic not in contents or contents[topic].partitions.get(number) != additions[number]
    }
    report_refused(REFUSED, refused)
