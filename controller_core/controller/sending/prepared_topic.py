"""Encoded whole topics: the bytes that every LeaderAndIsr and UpdateMetadata of a takeover contains.

A takeover sends every broker every partition, and little has changed since the standby read it. So the standby prepares
the bytes, and the takeover uses them if they are still current. Unusual topics are sent by partition, as in any event
(`partition_entries`): topics that are being deleted or reassigned, partitions without a state, in-sync replicas that
are not assigned, failed log directories.
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
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.model.ids import BrokerId, PartitionId, TopicId, TopicName
from controller_core.model.metadata import LeaderAndIsr, PartitionState, ReplicaAssignment
from controller_core.wire.codecs import entries


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTopic:
    """A topic without reassignments, whose partitions all have a state and an ISR of assigned replicas.

    It also has the values that it was written from.
    """

    topic_id: TopicId | None
    assignments: Mapping[PartitionId, ReplicaAssignment]
    states: Sequence[PartitionState]
    """The states of the partitions, in their order."""
    live: Set[BrokerId]
    leaders: frozenset[BrokerId]
    leader_and_isr: Mapping[BrokerId, bytes]
    """The topic's bytes in LeaderAndIsr for each broker that has replicas, none of them new."""
    metadata: bytes
    """The topic's bytes in UpdateMetadata for all brokers."""


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
    """Return True if the ISR is assigned. Cached: asked for each partition, with few different answers in a cluster."""
    return set(isr).issubset(replicas)


class TopicWriter:
    """Writes whole topics from the cluster state, for the given live brokers."""

    def __init__(self, state: ReadOnlyState, live: Set[BrokerId]) -> None:
        self._state = state
        self._live = frozenset(live)
        self._metadata_ends = MetadataEnds(self._live)

    def is_of_now(self, name: TopicName, prepared: PreparedTopic) -> bool:
        """Return True if a prepared topic would be written the same now."""
        topic = self._state.topics[name]
        return (
            prepared.live == self._live
            and prepared.topic_id == topic.topic_id
            and prepared.assignments == topic.partitions
            and prepared.states == self._states(topic)
        )

    def prepare(self, name: TopicName) -> PreparedTopic | None:
        """Write a topic from its present state. Return None if something in it is unusual."""
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
