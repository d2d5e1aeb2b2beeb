"""What changed between two looks at a cluster, for someone who only looks on. Pure.

The changes come in an order in which they can be told: what is gone first, and a topic before its partitions. A topic
that was deleted and created again in between is known by its czxid, and is both.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeVar

from controller_core.journal.batches import StateCopy, TopicCopy
from controller_core.journal.changes import Change, Kind
from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import PartitionState, ReplicaAssignment

K = TypeVar("K")
V = TypeVar("V")

_NONE: Mapping[PartitionId, ReplicaAssignment] = {}


def difference(before: StateCopy, after: StateCopy) -> list[Change]:
    """The changes that make the one state of the other. Values that are the same object are not compared."""
    return list(_changes(before, after))


def is_replaced(before: TopicCopy | None, after: TopicCopy | None) -> bool:
    """Whether a topic is gone, be it that another one of its name came."""
    return before is not None and (after is None or after.czxid != before.czxid)


def missed_versions(changes: list[Change]) -> int:
    """How many versions of partition states were written and gone again before they were seen."""
    return sum(
        change.after.partition_epoch - change.before.partition_epoch - 1
        for change in changes
        if change.kind is Kind.LEADERSHIP and change.before is not None and change.after is not None
    )


def _changes(before: StateCopy, after: StateCopy) -> Iterator[Change]:
    gone = {name for name, topic in before.topics.items() if is_replaced(topic, after.topics.get(name))}
    yield from _removed(before, after, gone)
    yield from _brokers_and_features(before, after)
    for name, topic in after.topics.items():
        former = None if name in gone else before.topics.get(name)
        if former is not topic:
            yield from _topic(name, former, topic)
    for key, state in after.states.items():
        known = None if key.topic in gone else before.states.get(key)
        if known is not state and known != state:
            yield Change(Kind.LEADERSHIP, key, known, state)


def _removed(before: StateCopy, after: StateCopy, gone: set[TopicName]) -> Iterator[Change]:
    """Leaderships and topics; the assignments of a topic end with it."""
    states: defaultdict[TopicName, list[tuple[TopicPartition, PartitionState]]] = defaultdict(list)
    for key, state in before.states.items():
        if key not in after.states or key.topic in gone:
            states[key.topic].append((key, state))
    for name in [*states, *(name for name in gone if name not in states)]:
        for key, state in states[name]:
            yield Change(Kind.LEADERSHIP, key, state, None)
        if name in gone:
            yield Change(Kind.TOPIC, name, before.topics[name], None)


def _brokers_and_features(before: StateCopy, after: StateCopy) -> Iterator[Change]:
    for key, was, now in _entries(before.brokers, after.brokers):
        yield Change(Kind.BROKER, key, was, now)
    if before.features != after.features:
        yield Change(Kind.FEATURES, None, before.features, after.features)


def _topic(name: TopicName, before: TopicCopy | None, after: TopicCopy) -> Iterator[Change]:
    if before is None or before.topic_id != after.topic_id:
        yield Change(Kind.TOPIC, name, before, after)
    for partition, was, now in _entries(before.partitions if before else _NONE, after.partitions):
        yield Change(Kind.ASSIGNMENT, TopicPartition(name, partition), was, now)


def _entries(before: Mapping[K, V], after: Mapping[K, V]) -> Iterator[tuple[K, V | None, V | None]]:
    """The entries that differ: first those that are gone."""
    for key, value in before.items():
        if key not in after:
            yield key, value, None
    for key, value in after.items():
        known = before.get(key)
        if known is not value and known != value:
            yield key, known, value
