"""The owners of the keys of a topic's configuration, and the keys that a KafkaTopic may declare.

A key has one owner. Admission, conditions, plans and `kontroller import` all go by this table:

- named: the spec has it, and the operator gives the topic that value;
- dropped: an earlier spec had it, and the operator removes it;
- reserved: it belongs to moves of replicas. No spec may name it, and the operator neither reports nor removes it;
- undeclared: somebody else set it. The operator reports it, and keeps or removes it as the spec's policy says.
"""

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final, NamedTuple

from controller_core.model.throttles import FOLLOWER_REPLICAS, LEADER_REPLICAS
from controller_core.model.topics.topic_configs import TOPIC_CONFIGS, find_complaints
from controller_core.model.wording import format_count

RESERVED_KEYS: Final = frozenset({LEADER_REPLICAS, FOLLOWER_REPLICAS})
"""The keys that select the replicas a throttle slows.

They last as long as the moves, so there is nothing to declare.
"""
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"


class Owner(Enum):
    """The owner of a key of a topic's configuration."""

    NAMED = "named"
    DROPPED = "dropped"
    RESERVED = "reserved"
    UNDECLARED = "undeclared"


class Declarable(NamedTuple):
    """A live configuration, divided into what a spec can declare and what it cannot."""

    config: Mapping[str, str]
    left_out: Mapping[str, str]
    """The other keys, each with the reason."""


def find_owner(key: str, named: Collection[str], given: Collection[str]) -> Owner:
    """Return the owner of a key. `named`: the keys of the spec; `given`: those that the topic has from a spec."""
    if key in named:
        return Owner.NAMED
    if key in given:
        return Owner.DROPPED
    return Owner.RESERVED if key in RESERVED_KEYS else Owner.UNDECLARED


def find_undeclared_keys(live: Mapping[str, str], named: Collection[str], given: Collection[str]) -> dict[str, str]:
    """Return what somebody else set on a topic, by key."""
    return {key: value for key, value in sorted(live.items()) if find_owner(key, named, given) is Owner.UNDECLARED}


def find_objections(config: Mapping[str, str], replicas: int, *, has_zookeeper: bool = True) -> list[str]:
    """Return reasons and remedies why a spec may not declare this configuration for partitions with that many replicas.

    They are reserved keys, values that Kafka refuses, and contradictions to the number of replicas.
    """
    reserved = [
        f"{key} belongs to moves of replicas: remove it, and set reassignment.throttle to limit the rate of moves"
        for key in sorted(RESERVED_KEYS & config.keys())
    ]
    wrong = [*reserved, *find_complaints(config, has_zookeeper=has_zookeeper)]
    return wrong or _too_many_in_sync(config, replicas)


def find_clashes(
    before: Mapping[str, str], after: Mapping[str, str], replicas: int, *, has_zookeeper: bool = True
) -> list[str]:
    """Return the contradictions in a topic's whole configuration after a change that were not there before it.

    Both configurations include keys that no spec names. Keys that make no sense on their own do not count.
    """
    was_wrong = find_objections(_sensible(before), replicas, has_zookeeper=has_zookeeper)
    is_wrong = find_objections(_sensible(after), replicas, has_zookeeper=has_zookeeper)
    return [each for each in is_wrong if each not in was_wrong]


def find_declarable(live: Mapping[str, str], replicas: int, *, has_zookeeper: bool = True) -> Declarable:
    """Divide the configuration of a topic. A spec that declares `config` meets no objections."""
    if not find_objections(live, replicas, has_zookeeper=has_zookeeper):
        return Declarable(live, {})
    config: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for key, value in sorted(live.items()):
        wrong = find_objections({**config, key: value}, replicas, has_zookeeper=has_zookeeper)
        if wrong:
            left_out[key] = wrong[0]
        else:
            config[key] = value
    return Declarable(config, left_out)


def _too_many_in_sync(config: Mapping[str, str], replicas: int) -> list[str]:
    wanted = int(config.get(MIN_INSYNC_REPLICAS, "1"))
    if wanted <= replicas:
        return []
    return [
        f"{MIN_INSYNC_REPLICAS} is {wanted}, but each partition has {format_count(replicas, 'replica')}: brokers refuse"
        f" writes with acks=all, or acknowledge them with fewer replicas. Set it to {replicas} or less, or give each"
        f" partition {wanted} replicas"
    ]


def _sensible(config: Mapping[str, str]) -> dict[str, str]:
    """Return the keys that Kafka knows and that can be declared, if the value alone makes sense."""
    known = ((key, value, TOPIC_CONFIGS.get(key)) for key, value in config.items() if key not in RESERVED_KEYS)
    return {key: value for key, value, table in known if table is not None and table.complaint(value) is None}
