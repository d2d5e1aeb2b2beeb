"""What brokers will be told of a topic, written before there is anything to tell: while a process stands by.

A takeover tells every broker of every partition, and mostly nothing has changed since the last look. What is ready is used
only for what it was made from: the same assignment, the same states (the very objects) and the same live brokers.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import PartitionState, TopicAssignment


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTopic:
    """A topic whose partitions all have a state, and none of which is being reassigned or deleted."""

    content: TopicAssignment
    partitions: Mapping[PartitionId, TopicPartition]
    states: Sequence[PartitionState]
    """Of the partitions, in their order."""
    live: frozenset[BrokerId]
    hosted: Mapping[BrokerId, Sequence[TopicPartition]]
    """The partitions of which each broker has a replica, in their order."""
    leader_and_isr: Mapping[BrokerId, bytes]
    """The topic as LeaderAndIsr tells it to each live broker that has replicas, none of them new."""
    metadata: bytes
    """The topic as UpdateMetadata tells it to all brokers."""

    def is_of(self, states: Mapping[TopicPartition, PartitionState], live: Collection[BrokerId]) -> bool:
        """Whether it still says what is so."""
        found = map(states.get, self.partitions.values())
        return all(now is then for now, then in zip(found, self.states, strict=True)) and self.live == frozenset(live)


Prepared = Mapping[TopicName, PreparedTopic]
NOTHING_PREPARED: Final[Prepared] = MappingProxyType({})
