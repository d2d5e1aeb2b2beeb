"""The size limit of topic znodes during reassignments.

During a reassignment the topic's znode holds the old and the new replicas, and those that are added and removed. It is
several times as large as before. Reassignments that ZooKeeper would refuse are refused before anything of them begins.
They can be requested again when some of the others are done.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from controller_core.controller.loop.slices import slice_up
from controller_core.controller.reassigning.reassignment import find_full_assignment
from controller_core.controller.term.rights import Writes
from controller_core.controller.znodes.reassignment_znode import Targets
from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.model.reassignment import begin_reassignment
from controller_core.zk import codecs, paths
from controller_core.zk.session import SetData

REMOVED_REPLICAS_ROOM_BYTES: Final = 32_768
"""Reserved for entries of removed replicas, which are written together with the znode.

Many partitions may need some, even more than once, if a broker is down while its replicas are removed.
"""


async def find_targets_without_room(term: Writes, targets: Targets) -> dict[TopicPartition, str]:
    """Return the targets for which the topics' znodes have no room, with the reasons, in the order of the request.

    A target that needs no more room than the present entry, such as the end of a reassignment, always fits.
    """
    by_topic: defaultdict[TopicName, dict[TopicPartition, tuple[BrokerId, ...]]] = defaultdict(dict)
    for partition, target in targets.items():
        by_topic[partition.topic][partition] = target
    refused: dict[TopicPartition, str] = {}
    for topic, asked in by_topic.items():
        refused |= await _find_in_topic(term, topic, asked)
    return refused


async def _find_in_topic(
    term: Writes, topic: TopicName, targets: Mapping[TopicPartition, tuple[BrokerId, ...]]
) -> dict[TopicPartition, str]:
    empty = SetData(path=paths.topic(topic), data=b"")
    room_bytes = term.writer.room_bytes([empty]) - REMOVED_REPLICAS_ROOM_BYTES
    present = {p.partition: find_full_assignment(term.state, p) for p in term.state.list_partitions_of(topic)}
    size_bytes = codecs.topic_bytes(present)
    refused: dict[TopicPartition, str] = {}
    async for partition in slice_up(targets):
        number = partition.partition
        after = begin_reassignment(present[number], targets[partition])
        growth = codecs.partition_bytes(number, after) - codecs.partition_bytes(number, present[number])
        if growth > 0 and size_bytes + growth > room_bytes:
            refused[partition] = (
                f"the topic's znode would need {size_bytes + growth} bytes, with the running reassignments, and may "
                f"have {room_bytes} (of ZooKeeper's jute.maxbuffer): reassign fewer partitions of the topic at a time"
            )
        else:
            size_bytes += growth
    return refused
