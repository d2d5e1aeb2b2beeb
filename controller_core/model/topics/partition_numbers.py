"""Which partitions may come and go: a topic's are numbered from 0 on, without gaps.

Clients take that for granted: they are told a number of partitions, or count those that they are told of, and choose
among the numbers below. So a topic grows by the next number, and shrinks by the last one.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable

from controller_core.model.ids import PartitionId, TopicName, TopicPartition

_CONTIGUOUS = "clients take the numbers of partitions for contiguous"


def refused_additions(present: Collection[PartitionId], asked: Collection[PartitionId]) -> dict[PartitionId, str]:
    """Which of the asked partitions cannot be added to those present, in words."""
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


def refused_removals(present: Collection[PartitionId], asked: Collection[PartitionId]) -> dict[PartitionId, str]:
    """Which of the asked partitions cannot be removed from those present, in words."""
    refused: dict[PartitionId, str] = {}
    remaining = sorted(present)
    for number in sorted(asked, reverse=True):
        if number not in present:
            refused[number] = "there is no such partition"
        elif number != remaining[-1]:
            refused[number] = f"it would leave a gap, and {_CONTIGUOUS}: partition {remaining[-1]} has to go before it"
        elif len(remaining) == 1:
            refused[number] = "a topic has one partition at least: delete the topic"
        else:
            remaining.pop()
    return refused


def removable(present: Collection[PartitionId], asked: Collection[PartitionId]) -> set[PartitionId]:
    """The largest numbers, as far down as they are all asked to go; also where they are all there are."""
    last: set[PartitionId] = set()
    for number in sorted(present, reverse=True):
        if number not in asked:
            break
        last.add(number)
    return last


def numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[TopicName, set[PartitionId]]:
    """The numbers of partitions, for each of their topics."""
    by_topic: defaultdict[TopicName, set[PartitionId]] = defaultdict(set)
    for topic, number in partitions:
        by_topic[topic].add(number)
    return dict(by_topic)
