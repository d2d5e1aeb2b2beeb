"""Single partitions on their way out: whose answers are awaited.

Such a partition is in the cluster state no more: nothing is decided about it, and no broker is told of it again. Its
topic's znode has it until its replicas are deleted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass, replace

from controller_core.controller.state.entries import Entries
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRemoval:
    """The replicas of a partition that have not yet been deleted by their brokers."""

    awaiting: frozenset[BrokerId]
    """The brokers that have not answered yet that they deleted theirs."""
    asked: frozenset[BrokerId] = frozenset()
    """Those of them that were sent it since they started."""


class PartitionRemovals(Entries[TopicPartition, PartitionRemoval]):
    """Partition -> its removal, of those that have begun."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: defaultdict[TopicName, set[PartitionId]] = defaultdict(set)

    def numbers_of(self, topic: TopicName) -> Set[PartitionId]:
        """The partitions of a topic that are being removed."""
        return self._numbers.get(topic, frozenset())

    @property
    def topics(self) -> Set[TopicName]:
        """The topics of which partitions are being removed."""
        return self._numbers.keys()

    def begin(self, partition: TopicPartition, replicas: Iterable[BrokerId]) -> None:
        """A partition with these replicas is to go."""
        self._entries[partition] = PartitionRemoval(awaiting=frozenset(replicas))
        self._numbers[partition.topic].add(partition.partition)

    def mark_asked(self, partition: TopicPartition, brokers: Set[BrokerId]) -> None:
        """Brokers are sent it."""
        removal = self._entries[partition]
        self._entries[partition] = replace(removal, asked=removal.asked | brokers)

    def ask_again(self, brokers: Collection[BrokerId]) -> bool:
        """Brokers started anew, or missed what they were sent; returns whether any of them is awaited."""
        returned = frozenset(brokers)
        missed = {p: removal for p, removal in self._entries.items() if not returned.isdisjoint(removal.awaiting)}
        for partition, removal in missed.items():
            self._entries[partition] = replace(removal, asked=removal.asked - returned)
        return bool(missed)

    def mark_deleted(self, partition: TopicPartition, broker: BrokerId) -> None:
        """A broker answered that it deleted its replica."""
        removal = self._entries[partition]
        self._entries[partition] = replace(removal, awaiting=removal.awaiting - {broker})

    def end(self, partition: TopicPartition) -> None:
        """The partition is gone."""
        del self._entries[partition]
        numbers = self._numbers[partition.topic]
        numbers.discard(partition.partition)
        if not numbers:
            del self._numbers[partition.topic]

    def forget_topic(self, topic: TopicName) -> None:
        """The topic is gone, with all of them."""
        for number in list(self.numbers_of(topic)):
            self.end(TopicPartition(topic, number))
