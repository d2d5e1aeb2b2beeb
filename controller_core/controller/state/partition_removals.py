"""Removals of single partitions, and the answers of brokers that they wait for.

Such a partition has left the cluster state: nothing is decided about it, and brokers are sent nothing more of it. Its
topic's znode keeps it until its replicas are deleted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass, replace

from controller_core.controller.state.entries import Entries
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRemoval:
    """The replicas of a partition that their brokers have not deleted yet."""

    awaiting: frozenset[BrokerId]
    """The brokers that have not yet answered that they deleted their replica."""
    asked: frozenset[BrokerId] = frozenset()
    """Those of them that were sent the deletion since they started."""


class RunningRemovals(Entries[TopicPartition, PartitionRemoval]):
    """Partition -> its removal, for those that have begun, for readers. `PartitionRemovals` changes them."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: defaultdict[TopicName, set[PartitionId]] = defaultdict(set)

    def list_numbers_of(self, topic: TopicName) -> Set[PartitionId]:
        """Return the partitions of a topic that are being removed."""
        return self._numbers.get(topic, frozenset())

    @property
    def topics(self) -> Set[TopicName]:
        """The topics whose partitions are being removed."""
        return self._numbers.keys()


class PartitionRemovals(RunningRemovals):
    """The removals that have begun, and their changes."""

    def begin(self, partition: TopicPartition, replicas: Iterable[BrokerId]) -> None:
        """Begin the removal of a partition with these replicas."""
        self._entries[partition] = PartitionRemoval(awaiting=frozenset(replicas))
        self._numbers[partition.topic].add(partition.partition)

    def mark_asked(self, partition: TopicPartition, brokers: Set[BrokerId]) -> None:
        """Record that brokers are sent the deletion."""
        removal = self._entries[partition]
        self._entries[partition] = replace(removal, asked=removal.asked | brokers)

    def ask_again(self, brokers: Collection[BrokerId]) -> bool:
        """Record that brokers restarted or missed requests. Return True if any removal waits for them."""
        returned = frozenset(brokers)
        missed = {p: removal for p, removal in self._entries.items() if not returned.isdisjoint(removal.awaiting)}
        for partition, removal in missed.items():
            self._entries[partition] = replace(removal, asked=removal.asked - returned)
        return bool(missed)

    def mark_deleted(self, partition: TopicPartition, broker: BrokerId) -> None:
        """Record that a broker deleted its replica."""
        removal = self._entries[partition]
        self._entries[partition] = replace(removal, awaiting=removal.awaiting - {broker})

    def end(self, partition: TopicPartition) -> None:
        """End the removal: the partition is gone."""
        del self._entries[partition]
        numbers = self._numbers[partition.topic]
        numbers.discard(partition.partition)
        if not numbers:
            del self._numbers[partition.topic]

    def forget_topic(self, topic: TopicName) -> None:
        """End all removals of a topic that is gone."""
        for number in list(self.list_numbers_of(topic)):
            self.end(TopicPartition(topic, number))
