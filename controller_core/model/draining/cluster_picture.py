"""A cluster as its clients see it: live brokers, controller, and the replicas of each partition.

Decisions about a broker that use only Kafka's protocol are made from this picture.
"""

from collections.abc import Set
from dataclasses import dataclass, replace

from controller_core.model.ids import BrokerId, TopicName, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPlace:
    """One partition: its replicas in the order of preference, and those that are in sync."""

    partition: TopicPartition
    leader: BrokerId
    """Negative if there is no leader."""
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPicture:
    """The metadata of one server at one moment."""

    cluster_id: str
    controller: BrokerId | None
    """None if the server knows no controller, or one that is not alive."""
    brokers: frozenset[BrokerId]
    """All that are alive, and the controller, even if it is not a broker."""
    partitions: tuple[PartitionPlace, ...]

    def list_partitions_on(self, broker: BrokerId) -> tuple[PartitionPlace, ...]:
        """Return the partitions that have a replica on a broker."""
        return tuple(place for place in self.partitions if broker in place.replicas)

    def list_topics_on(self, broker: BrokerId) -> frozenset[TopicName]:
        """Return the topics that have a replica on a broker."""
        return frozenset(place.partition.topic for place in self.list_partitions_on(broker))

    def select_topics(self, topics: Set[TopicName]) -> "ClusterPicture":
        """Return the same picture with these topics only."""
        return replace(self, partitions=tuple(place for place in self.partitions if place.partition.topic in topics))
