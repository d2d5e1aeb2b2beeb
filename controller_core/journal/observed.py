"""Finds the changes between two observations of a cluster, for a recorder. Pure.

The changes come in an order in which they can be recorded: removals first, and a topic before its partitions. A topic
that was deleted and created again is recognized by its czxid, and is reported as both.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from controller_core.journal.batches import StateCopy, TopicCopy
from controller_core.journal.changes import Change, Kind
from controller_core.model.ids import UNTOLD_PARTITION_EPOCH, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import ReplicaAssignment

K = TypeVar("K")
V = TypeVar("V")

_NONE: Mapping[PartitionId, ReplicaAssignment] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """The topics and partitions that may differ between a state and a later one. It says nothing about other
    entries."""

    since: StateCopy
    topics: frozenset[TopicName]
    partitions: frozenset[TopicPartition]


def difference(before: StateCopy, after: StateCopy, touched: Touched | None = None) -> list[Change]:
    """Return the changes from the first state to the second. Values that are the same object are not compared. Neither
    are topics and partitions that are known to be untouched since the first state."""
    if before is after:
        return []
    if touched is not None and touched.since is before:
        has_configs = before.topic_configs is not after.topic_configs
        before, after = (_narrow(state, touched, has_configs=has_configs) for state in (before, after))
    return list(_changes(before, after))


def is_replaced(before: TopicCopy | None, after: TopicCopy | None) -> bool:
    """Return True if a topic is gone, even if another topic has its name now."""
    return before is not None and (after is None or after.czxid != before.czxid)


def count_missed_versions(changes: Iterable[Change]) -> int:
    """Return the number of partition state versions that were overwritten before anyone saw them, as far as versions
    are known."""
    return sum(
        change.after.partition_epoch - change.before.partition_epoch - 1
        for change in changes
        if change.kind is Kind.LEADERSHIP
        and change.before is not None
        and change.after is not None
        and UNTOLD_PARTITION_EPOCH not in (change.before.partition_epoch, change.after.partition_epoch)
    )


def _narrow(state: StateCopy, touched: Touched, *, has_configs: bool) -> StateCopy:
    return replace(
        state,
        topics={name: state.topics[name] for name in touched.topics if name in state.topics},
        states={key: state.states[key] for key in touched.partitions if key in state.states},
        topic_configs=state.topic_configs if has_configs else {},
    )


def _changes(before: StateCopy, after: StateCopy) -> Iterator[Change]:
    gone = {name for name, topic in before.topics.items() if is_replaced(topic, after.topics.get(name))}
    states = {key for key in before.states if key.topic in gone} if gone else set()
    yield from _list_removed(Kind.LEADERSHIP, before.states, after.states, states)
    yield from _list_removed(Kind.TOPIC_CONFIG, before.topic_configs, after.topic_configs, gone)
    for name in gone:
        yield Change(Kind.TOPIC, name, before.topics[name], None)
    yield from _entries(Kind.BROKER, before.brokers, after.brokers)
    yield from _entries(Kind.BROKER_CONFIG, before.broker_configs, after.broker_configs)
    if before.features != after.features:
        yield Change(Kind.FEATURES, None, before.features, after.features)
    yield from _topics(before.topics, after.topics, gone)
    yield from _list_written(Kind.TOPIC_CONFIG, before.topic_configs, after.topic_configs, gone)
    yield from _list_written(Kind.LEADERSHIP, before.states, after.states, states)


def _topics(
    before: Mapping[TopicName, TopicCopy], after: Mapping[TopicName, TopicCopy], gone: Collection[TopicName]
) -> Iterator[Change]:
    for name, topic in after.items():
        former = None if name in gone else before.get(name)
        if former is topic:
            continue
        if former is None or former.topic_id != topic.topic_id:
            yield Change(Kind.TOPIC, name, former, topic)
        partitions = former.partitions if former else _NONE
        for change in _entries(Kind.ASSIGNMENT, partitions, topic.partitions):
            yield change._replace(key=TopicPartition(name, change.key))


def _entries(kind: Kind, before: Mapping[K, V], after: Mapping[K, V]) -> Iterator[Change]:
    """Yield the entries that differ, removals first."""
    yield from _list_removed(kind, before, after, ())
    yield from _list_written(kind, before, after, ())


def _list_removed(kind: Kind, before: Mapping[K, V], after: Mapping[K, V], gone: Collection[K]) -> Iterator[Change]:
    """Yield the removal of entries that are gone or were replaced by another entry with the same key."""
    for key, value in before.items():
        if key not in after or key in gone:
            yield Change(kind, key, value, None)


def _list_written(kind: Kind, before: Mapping[K, V], after: Mapping[K, V], gone: Collection[K]) -> Iterator[Change]:
    """Yield the entries that are new or changed."""
    for key, value in after.items():
        known = None if key in gone else before.get(key)
        if known is not value and known != value:
            yield Change(kind, key, known, value)
