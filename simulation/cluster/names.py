"""Short names for what a scenario speaks of all the time."""

from collections.abc import Iterable
from typing import Final

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition

CONTROLLER: Final = BrokerId(1000)
"""The id of a controller process, where only one is there."""


def tp(topic: str, partition: int = 0) -> TopicPartition:
    """A partition of a topic."""
    return TopicPartition(TopicName(topic), PartitionId(partition))


def ids(numbers: Iterable[int]) -> tuple[BrokerId, ...]:
    """Brokers, by their numbers."""
    return tuple(BrokerId(number) for number in numbers)
