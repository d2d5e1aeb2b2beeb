"""`assignReplicas`: spreads the leaders and replicas of partitions evenly over the online brokers.

The seed says only "online brokers". Each partition begins with the next broker, as in Kafka at that time, but without
its random start, so that the result is repeatable.
"""

from collections.abc import Sequence

from controller_core.model.ids import BrokerId, PartitionId


class TooFewBrokers(Exception):
    """Fewer brokers are online than a partition needs replicas."""


def assign_replicas(
    online: Sequence[BrokerId], num_partitions: int, replication_factor: int
) -> dict[PartitionId, tuple[BrokerId, ...]]:
    """Return the brokers of each partition. Raises `TooFewBrokers`."""
    if not 0 < replication_factor <= len(online):
        raise TooFewBrokers(f"{replication_factor} replicas need as many online brokers, but {len(online)} are online")
    return {
        PartitionId(number): tuple(online[(number + nth) % len(online)] for nth in range(replication_factor))
        for number in range(num_partitions)
    }
