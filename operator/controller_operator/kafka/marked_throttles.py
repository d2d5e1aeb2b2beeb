"""Throttles in clusters without ZooKeeper. Kafka's own configurations record their owners.

A value of this operator is recognizable. It begins with zeros, which Kafka ignores and nobody else writes: the rate
`05000`, and `00:1` for the replica `0:1` in a topic's lists. Values of others never change, even equal ones.
The rate is set as the default of all brokers, because a broker's own rate can only be set while it lives. If somebody
has set a broker's rate, or the default, theirs holds. Each owner has a setting `kontroller.throttle.MARK.RATE.OWNER`.
Kafka shows no values of unknown settings, so its name says everything. The mark, unique to the owner, is the number of
zeros before its replicas. So each owner removes only its own, even if another one moves the same partition. The lowest
rate holds. Kafka has no conditional writes, so changes are repeated until none is due (see `changes_to_set`).
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, TypeAlias

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.model.throttles import (
    ALL_REPLICAS,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    Throttle,
    Values,
    combine_throttles,
    topic_entity,
)
from controller_core.wire.requests.configs import ConfigChange, Operation

LISTS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
LONGEST_VALUE: Final = (1 << 15) - 1
"""Characters of a value. Kafka's controller closes the connection over a longer one, or refuses it, by its release."""
_RATES: Final = (LEADER_RATE, FOLLOWER_RATE)
_ENTRY: Final = re.compile(r"kontroller\.throttle\.([1-9][0-9]{0,3})\.([1-9][0-9]{0,18})\.(.+)")
_REPLICA: Final = re.compile(r"([0-9]+):[0-9]+")
_OUR_RATE: Final = re.compile(r"0[1-9][0-9]*")


class ListTooLongError(Exception):
    """A topic's list has no room for the new entries. Nothing was changed."""


Changes: TypeAlias = Mapping[TopicName | None, Sequence[ConfigChange]]
"""Changes of the configurations of topics; the key None stands for the brokers' defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configs:
    """The settings that have to do with throttles."""

    defaults: Mapping[str, str | None] = field(default_factory=dict)
    """The defaults of all brokers. For settings that Kafka does not know, only the names are available."""
    topics: Mapping[TopicName, Mapping[str, str]] = field(default_factory=dict)
    """The existing topics, with their own lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The wishes of an owner."""

    mark: int
    bytes_per_second: int
    owner: str

    @property
    def setting(self) -> str:
        return f"kontroller.throttle.{self.mark}.{self.bytes_per_second}.{self.owner}"


def entries_in(defaults: Iterable[str]) -> tuple[Entry, ...]:
    """Return the wishes of all owners, by the names of settings."""
    found = filter(None, map(_ENTRY.fullmatch, sorted(defaults)))
    return tuple(Entry(mark=int(each[1]), bytes_per_second=int(each[2]), owner=each[3]) for each in found)


def find_marked_partitions(configs: Mapping[TopicName, Mapping[str, str]]) -> dict[int, frozenset[TopicPartition]]:
    """Return the partitions of replicas with a mark, by that mark, of the configurations of topics."""
    found: dict[int, set[TopicPartition]] = {}
    for topic, config in configs.items():
        for item in (item.strip() for name in LISTS for item in config.get(name, "").split(",")):
            replica = _REPLICA.fullmatch(item)
            if replica is not None and (mark := _mark_of(replica[1])):
                found.setdefault(mark, set()).add(TopicPartition(topic, PartitionId(int(replica[1]))))
    return {mark: frozenset(partitions) for mark, partitions in found.items()}


def changes_to_set(owner: str, throttle: Throttle, found: Configs) -> Changes:
    """Return the next changes that give an owner its throttle; none if it has it. Raises `ListTooLongError`.

    The owner's setting and the rate are written first and removed last. So a crash leaves only entries with a known
    owner. If two operators do this at once, both come to the same result, because the last writer looks again. Lists
    are appended to and subtracted from. Only a rate, or an empty list, is written as a whole, a moment after it was
    read."""
    own, others = _own_and_others(owner, found)
    entry = Entry(mark=_mark(own, others), bytes_per_second=throttle.bytes_per_second, owner=owner)
    lists = _lists(_make_replica_lists(throttle, entry.mark), own, throttle.moves, found)
    rest = [each for each in own if each != entry]
    # An entry whose replicas are still in the lists, with another mark, is removed after them.
    same_mark = [each for each in rest if each.mark == entry.mark]
    entries = [entry, *others]
    return _defaults(entries, same_mark, found) or lists or _defaults(entries, rest, found)


def changes_to_remove(owner: str, partitions: Collection[TopicPartition], found: Configs) -> Changes:
    """Return the next changes that remove an owner's throttle; none if it has none.

    `partitions`: all partitions that its moves were ever about."""
    own, others = _own_and_others(owner, found)
    empty = _empty_lists(partitions, found) if own else {}
    return _lists({}, own, partitions, found) or empty or _defaults(others, own, found)


def _own_and_others(owner: str, found: Configs) -> tuple[list[Entry], list[Entry]]:
    entries = entries_in(found.defaults)
    return [each for each in entries if each.owner == owner], [each for each in entries if each.owner != owner]


def _mark(own: Sequence[Entry], others: Sequence[Entry]) -> int:
    """Return the owner's mark, or the first free one. If two owners took the same mark, one of them changes."""
    kept = (each.mark for each in own if not any(o.mark == each.mark and o.owner < each.owner for o in others))
    taken = {each.mark for each in (*own, *others)}
    return min(kept, default=None) or next(mark for mark in count(1) if mark not in taken)


def _make_replica_lists(throttle: Throttle, mark: int) -> dict[TopicName, dict[str, Values]]:
    """Return the entries for the lists of the topics, with the owner's mark."""
    wanted, zeros = combine_throttles([throttle]), "0" * mark
    topics = dict.fromkeys(partition.topic for partition in throttle.moves)
    return {
        topic: {name: tuple(zeros + replica for replica in each) for name, each in wanted[topic_entity(topic)].items()}
        for topic in topics
    }


def _defaults(wanted: Sequence[Entry], over: Sequence[Entry], found: Configs) -> Changes:
    """Return the changes of missing entries, of old entries, and of the resulting rate."""
    present = found.defaults
    changes = [_set(each.setting, str(each.bytes_per_second)) for each in wanted if each.setting not in present]
    changes += [_delete(each.setting) for each in over]
    lowest = min((each.bytes_per_second for each in wanted), default=None)
    for setting in _RATES:
        rate = present.get(setting)
        is_theirs = setting in present and not (rate is not None and _OUR_RATE.fullmatch(rate))
        if lowest is not None and not is_theirs and rate != f"0{lowest}":
            changes.append(_set(setting, f"0{lowest}"))
        elif lowest is None and setting in present and not is_theirs:
            changes.append(_delete(setting))
    return {None: changes} if changes else {}


def _lists(
    wanted: Mapping[TopicName, Mapping[str, Values]],
    own: Iterable[Entry],
    partitions: Collection[TopicPartition],
    found: Configs,
) -> Changes:
    """Return the changes of the topics' lists for these partitions: entries to add, and old entries of the owner to
    remove."""
    marks = {each.mark for each in own}
    numbers: dict[TopicName, set[PartitionId]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, set()).add(number)
    changes = {
        topic: [
            change
            for name in LISTS
            if (
                change := _list(
                    topic, name, config.get(name), wanted.get(topic, {}).get(name, ()), marks, numbers[topic]
                )
            )
        ]
        for topic, config in found.topics.items()
        if topic in numbers
    }
    return {topic: each for topic, each in changes.items() if each}


def _empty_lists(partitions: Collection[TopicPartition], found: Configs) -> Changes:
    """Return the removals of empty lists."""
    topics = {each.topic: found.topics[each.topic] for each in partitions if each.topic in found.topics}
    empty = {topic: [_delete(name) for name in LISTS if config.get(name) == ""] for topic, config in topics.items()}
    return {topic: each for topic, each in empty.items() if each}


def _list(
    topic: TopicName,
    name: str,
    present: str | None,
    wanted: Values,
    marks: Collection[int],
    numbers: Collection[PartitionId],
) -> ConfigChange | None:
    items = [item.strip() for item in present.split(",")] if present else []
    if ALL_REPLICAS in items:
        return None
    there, kept = set(items), set(wanted)
    missing = [replica for replica in wanted if replica not in there]
    surplus = [item for item in items if item not in kept and _is_of(item, marks, numbers)]
    size = sum(len(item) + 1 for item in (*items, *missing)) - 1
    if missing and size <= LONGEST_VALUE:
        return ConfigChange(name=name, operation=Operation.APPEND, value=",".join(missing))
    if surplus:
        return ConfigChange(name=name, operation=Operation.SUBTRACT, value=",".join(surplus))
    if missing:
        raise ListTooLongError(
            f"{name} of topic {topic} would have {size} characters, and Kafka takes {LONGEST_VALUE}: move fewer of its "
            "partitions at a time (maxConcurrentPartitions), or do without throttle"
        )
    return None


def _is_of(item: str, marks: Collection[int], numbers: Collection[PartitionId]) -> bool:
    """Return True if a replica in a list has one of the marks and is of one of the partitions."""
    found = _REPLICA.fullmatch(item)
    if found is None:
        return False
    return _mark_of(found[1]) in marks and int(found[1]) in numbers


def _mark_of(number: str) -> int:
    """Return the number of zeros before the number of a partition."""
    return len(number) - len(str(int(number)))


def _set(setting: str, value: str) -> ConfigChange:
    return ConfigChange(name=setting, operation=Operation.SET, value=value)


def _delete(setting: str) -> ConfigChange:
    return ConfigChange(name=setting, operation=Operation.DELETE)
