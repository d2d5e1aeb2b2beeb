"""The numbers of a topic's partitions: from 0, without gaps.

Clients rely on that: they receive the number of partitions, or count the partitions, and then choose among the numbers
below. So a topic grows by the next number and shrinks by the last one.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable

from controller_core.model.ids import PartitionId, TopicName, TopicPartition

_CONTIGUOUS = "clients expect contiguous partition numbers"


def refuse_additions(present: Collection[PartitionId], asked: Collection[PartitionId]) -> dict[PartitionId, str]:
    """Return the partitions that cannot be added to those present, with the reasons."""
    refused: dict[PartitionId, str] = {}
    taken = set(present)
    following = 0
    for number in sorted(asked):
        while following in taken:
            following += 1
        if number in taken:
            refused[number] = "there is such a partition already"
        elif number != following:
            refused[number] = f"it would leave a gap, and {_CONTIGUOUS}: partition {following} is the next"
        else:
            taken.add(number)
    return refused


def refuse_removals(present: Collection[PartitionId], asked: Collection[PartitionId]) -> dict[PartitionId, str]:
    """Return the partitions that cannot be removed from those present, with the reasons."""
    refused: dict[PartitionId, str] = {}
    remaining = sorted(present)
    for number in sorted(asked, reverse=True):
        if number not in present:
            refused[number] = "there is no such partition"
        elif number != remaining[-1]:
            refused[number] = (
                f"it would leave a gap, and {_CONTIGUOUS}: partition {remaining[-1]} has to be removed first"
            )
        elif len(remaining) == 1:
            refused[number] = "a topic has at least one partition: delete the topic"
        else:
            remaining.pop()
    return refused


def find_removable(present: Collection[PartitionId], asked: Collection[PartitionId]) -> set[PartitionId]:
    """Return the largest numbers, down to the first one that is not asked for. This may be all of them."""
    last: set[PartitionId] = set()
    for number in sorted(present, reverse=True):
        if number not in asked:
            break
        last.add(number)
    return last


def group_numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[TopicName, set[PartitionId]]:
    """Group partition numbers by topic."""
    by_topic: defaultdict[TopicName, set[PartitionId]] = defaultdict(set)
    for topic, number in partitions:
        by_topic[topic].add(number)
    return dict(by_topic)
