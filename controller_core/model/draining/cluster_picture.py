"""A cluster as its clients see it: who is alive, who is the controller, and where each partition is.

What is decided about a broker from outside, with nothing but Kafka's protocol, is decided from this.
"""

from collections.abc import Set
from dataclasses import dataclass, replace

from controller_core.model.ids import BrokerId, TopicName, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPlace:
    """One partition: its replicas in the order of preference, and those that are in sync."""

    partition: TopicPartition
    leader: BrokerId
    """Negative where nobody leads."""
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPicture:
    """What one server knew at one moment."""

    cluster_id: str
    controller: BrokerId | None
    """None where the server knows none, or one that is not alive."""
    brokers: frozenset[BrokerId]
    """All that are alive, the controller among them: also one that is no broker."""
    partitions: tuple[PartitionPlace, ...]

    def partitions_on(self, broker: BrokerId) -> tuple[PartitionPlace, ...]:
        """Those that have a replica on a broker."""
        return tuple(place for place in self.partitions if broker in place.replicas)

    def topics_on(self, broker: BrokerId) -> frozenset[TopicName]:
        """Those of which a broker has a replica."""
        return frozenset(place.partition.topic for place in self.partitions_on(broker))

    def only(self, topics: Set[TopicName]) -> "ClusterPicture":
        """The same of some topics."""
        return replace(self, partitions=tuple(place for place in self.partitions if place.partition.topic in topics))
