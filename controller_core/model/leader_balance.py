"""The choice of brokers for Kafka's automatic leader rebalance."""

from collections.abc import Mapping

from controller_core.model.ids import BrokerId


def find_brokers_over(
    missed: Mapping[BrokerId, int], preferred: Mapping[BrokerId, int], threshold_percent: int
) -> list[BrokerId]:
    """Return the brokers that miss more of the partitions that they should lead than the threshold.

    `preferred` has the number of partitions that each broker should lead; `missed` how many of them it does not."""
    return [broker for broker, number in missed.items() if number * 100 > threshold_percent * preferred[broker]]
