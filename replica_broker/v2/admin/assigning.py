"""`assignReplicas`: partitions for the brokers that are online, each its share of leaders and of replicas.

The seed says only "online brokers". They are taken in turn, each partition beginning with the next one, as Kafka did it
then, and without its random start: who asks twice gets the same.
"""

from collections.abc import Sequence

from controller_core.model.ids import BrokerId, PartitionId


class TooFewBrokers(Exception):
    """There are fewer brokers online than a partition is to have replicas."""


def assign_replicas(
    online: Sequence[BrokerId], num_partitions: int, replication_factor: int
) -> dict[PartitionId, tuple[BrokerId, ...]]:
    """Raises `TooFewBrokers`."""
    if not 0 < replication_factor <= len(online):
        raise TooFewBrokers(f"{replication_factor} replicas, and {len(online)} brokers are online")
    return {
        PartitionId(number): tuple(online[(number + nth) % len(online)] for nth in range(replication_factor))
        for number in range(num_partitions)
    }
