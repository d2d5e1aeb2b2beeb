"""Short names for common values of scenarios."""

from collections.abc import Iterable
from typing import Final

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition

CONTROLLER: Final = BrokerId(1000)
"""The id of the only controller process."""


def tp(topic: str, partition: int = 0) -> TopicPartition:
    """Return a partition of a topic."""
    return TopicPartition(TopicName(topic), PartitionId(partition))


def ids(numbers: Iterable[int]) -> tuple[BrokerId, ...]:
    """Return the ids of brokers."""
    return tuple(BrokerId(number) for number in numbers)
