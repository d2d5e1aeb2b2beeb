"""What brokers are sent of a whole topic: the bytes of it that every LeaderAndIsr and UpdateMetadata of a takeover has.

A takeover sends every broker every partition, and mostly nothing has changed since somebody looked last. So a process
that stands by writes this before there is anything to send, and it is used where it still says what is so. All that is
out of the ordinary (topics that are being deleted or reassigned, partitions without a state, replicas that are in sync and
not assigned, failed log directories) is sent partition by partition, as in any event (`partition_entries`).
"""

import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from controller_core.controller.sending.partition_entries import USUAL, MetadataEnds
from controller_core.controller.state.assigned_replicas import Topic
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.model.ids import BrokerId, PartitionId, TopicId, TopicName
from controller_core.model.metadata import LeaderAndIsr, PartitionState, ReplicaAssignment
from controller_core.wire.codecs import entries


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTopic:
    """A topic whose partitions all have a state, with an ISR of assigned replicas, and no reassignment; and what it was
    written from."""

    topic_id: TopicId | None
    assignments: Mapping[PartitionId, ReplicaAssignment]
    states: Sequence[PartitionState]
    """Of the partitions, in their order."""
    live: Set[BrokerId]
    leaders: frozenset[BrokerId]
    leader_and_isr: Mapping[BrokerId, bytes]
    """The topic as LeaderAndIsr has it for each broker that has replicas, none of them new."""
    metadata: bytes
    """The topic as UpdateMetadata has it for all brokers."""


Prepared = Mapping[TopicName, PreparedTopic]
NOTHING_PREPARED: Final[Prepared] = MappingProxyType({})


def _is_ordinary(assignment: ReplicaAssignment, leadership: LeaderAndIsr) -> bool:
    return (
        not assignment.adding
        and not assignment.removing
        and not leadership.leader_recovery_state
        and _are_assigned(leadership.isr, assignment.replicas)
    )


@lru_cache(maxsize=1 << 12)
def _are_assigned(isr: tuple[BrokerId, ...], replicas: tuple[BrokerId, ...]) -> bool:
    """Asked for each partition, and a cluster has few different answers."""
    return set(isr).issubset(replicas)


class TopicWriter:
    """Writes whole topics from what is known of them, for the given live brokers."""

    def __init__(self, state: ClusterState, live: Set[BrokerId]) -> None:
        self._state = state
        self._live = frozenset(live)
        self._metadata_ends = MetadataEnds(self._live)

    def is_of_now(self, name: TopicName, prepared: PreparedTopic) -> bool:
        """Whether a topic that was written before would be written the same now."""
        topic = self._state.topics[name]
        return (
            prepared.live == self._live
            and prepared.topic_id == topic.topic_id
            and prepared.assignments == topic.partitions
            and prepared.states == self._states(topic)
        )

    def prepared(self, name: TopicName) -> PreparedTopic | None:
        """What brokers would be sent of a topic now; None where something in it is out of the ordinary."""
        topic = self._state.topics[name]
        states: list[PartitionState] = []
        replicas: defaultdict[BrokerId, list[bytes]] = defaultdict(list)
        metadata: list[bytes] = []
        for (number, assignment), state in zip(topic.partitions.items(), self._states(topic), strict=True):
            if state is None or not _is_ordinary(assignment, state.leader_and_isr):
                return None
            try:
                start = entries.partition_start(number, state, assignment.replicas)
            except struct.error:
                return None
            states.append(state)
            entry = start + USUAL
            for broker in assignment.replicas:
                replicas[broker].append(entry)
            metadata.append(start + self._metadata_ends[assignment.replicas])
        return PreparedTopic(
            topic_id=topic.topic_id,
            assignments=dict(topic.partitions),
            states=states,
            live=self._live,
            leaders=frozenset([state.leader_and_isr.leader for state in states]),
            leader_and_isr={
                broker: entries.topic(name, topic.topic_id, written)
                for broker, written in replicas.items()
                if broker in self._live
            },
            metadata=entries.topic(name, topic.topic_id, metadata) if metadata else b"",
        )

    def _states(self, topic: Topic) -> list[PartitionState | None]:
        return list(map(self._state.states.get, topic.known.values()))
