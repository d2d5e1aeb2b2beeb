"""Which reassignments fit the znodes of their topics.

While partitions are reassigned their topic's znode names both their old replicas and the new ones, and what is added and
removed besides: it is several times as large as before. What ZooKeeper would not take is refused before anything of it is
begun. The rest can be asked for when some of the others are done.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from controller_core.controller.loop.slices import sliced
from controller_core.controller.reassigning.reassignment import full_assignment
from controller_core.controller.term.term import Term
from controller_core.controller.znodes.reassignment_znode import Targets
from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.model.reassignment import begin_reassignment
from controller_core.zk import codecs, paths
from controller_core.zk.session import SetData

REMOVED_REPLICAS_ROOM_BYTES: Final = 32_768
"""What stays free for entries of removed replicas, which are written together with the znode: some, for many partitions,
and so more than once, where a broker is down while its replicas are removed."""


async def without_room(term: Term, targets: Targets) -> dict[TopicPartition, str]:
    """The targets for which the topics' znodes have no room, in the order in which they are asked for, and why, in words.

    One that takes no more room than what is there, as the end of a reassignment, always has it."""
    by_topic: defaultdict[TopicName, dict[TopicPartition, tuple[BrokerId, ...]]] = defaultdict(dict)
    for partition, target in targets.items():
        by_topic[partition.topic][partition] = target
    refused: dict[TopicPartition, str] = {}
    for topic, asked in by_topic.items():
        refused |= await _of_topic(term, topic, asked)
    return refused


async def _of_topic(
    term: Term, topic: TopicName, targets: Mapping[TopicPartition, tuple[BrokerId, ...]]
) -> dict[TopicPartition, str]:
    empty = SetData(path=paths.topic(topic), data=b"")
    room_bytes = term.writer.room_bytes([empty]) - REMOVED_REPLICAS_ROOM_BYTES
    present = {p.partition: full_assignment(term, p) for p in term.state.partitions_of(topic)}
    size_bytes = codecs.topic_bytes(present)
    refused: dict[TopicPartition, str] = {}
    async for partition in sliced(targets):
        number = partition.partition
        after = begin_reassignment(present[number], targets[partition])
        growth = codecs.partition_bytes(number, after) - codecs.partition_bytes(number, present[number])
        if growth > 0 and size_bytes + growth > room_bytes:
            refused[partition] = (
                f"the znode of its topic would have {size_bytes + growth} bytes with what is reassigned already, and may "
                f"have {room_bytes} (of ZooKeeper's jute.maxbuffer): reassign fewer partitions of the topic at a time"
            )
        else:
            size_bytes += growth
    return refused
