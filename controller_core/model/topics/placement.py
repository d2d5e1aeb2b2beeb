"""Placement of the replicas of new partitions: Kafka's rack-aware round robin, without its random start.

Kafka's tools begin at a random broker. Here the start follows from the topic's name, so that the same spec over the
same brokers gives the same assignment. The plan that is shown is the plan that is carried out, a retry repeats itself,
and a topic that grows continues its pattern. Different topics still begin at different brokers.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TypeVar
from zlib import crc32

from controller_core.model.ids import BrokerId, PartitionId, TopicName

Racks = Mapping[BrokerId, str | None]
"""The brokers that may hold replicas, with their racks."""

_Item = TypeVar("_Item")


class NotEnoughBrokers(ValueError):
    """The replication factor exceeds the number of brokers. More brokers or a smaller replication factor solve it."""

    def __init__(self, *, replication_factor: int, brokers: int) -> None:
        super().__init__(
            f"a replication factor of {replication_factor} needs as many live brokers, and there are {brokers}: "
            f"start more brokers or ask for fewer replicas"
        )


def place_partitions(
    topic: TopicName, partitions: Iterable[PartitionId], replication_factor: int, brokers: Racks
) -> dict[PartitionId, tuple[BrokerId, ...]]:
    """Return the replicas of each partition, preferred leader first, as Kafka's `AdminUtils` places them.

    Leaders go round the brokers, followers follow at a growing distance, and every rack gets a replica of a partition
    before any gets a second one. Racks count only if every broker names one. Raise `NotEnoughBrokers`.
    """
    if not 0 < replication_factor <= len(brokers):
        raise NotEnoughBrokers(replication_factor=replication_factor, brokers=len(brokers))
    racks = find_effective_racks(brokers)
    ring = _alternate_racks(racks)
    start = crc32(topic.encode()) % len(ring)
    shift = len(set(racks.values()))

    @cache  # a topic may have far more partitions than there are ways to go round the brokers
    def replicas(leader: int, distance: int) -> tuple[BrokerId, ...]:
        return _replicas(ring, racks, leader, distance)[:replication_factor]

    return {
        partition: replicas(
            (partition + start) % len(ring), (start + partition // len(ring)) * shift % max(len(ring) - 1, 1)
        )
        for partition in partitions
    }


def resize_replicas(
    replicas: Sequence[BrokerId],
    replication_factor: int,
    brokers: Racks,
    load: Mapping[BrokerId, int],
    *,
    closed: Collection[BrokerId] = (),
) -> tuple[BrokerId, ...]:
    """Return the replicas of one partition with another replication factor, moving as little as possible.

    Remaining replicas keep their order, and so the preferred leader. Replicas on brokers that are not live go first,
    then those on `closed` brokers, then the last ones. New replicas go to racks that have none yet, and there to the
    broker with the least `load`, but never to a closed one. Raise `NotEnoughBrokers`.
    """
    if not 0 < replication_factor <= len(brokers):
        raise NotEnoughBrokers(replication_factor=replication_factor, brokers=len(brokers))
    racks = find_effective_racks(brokers)
    by_worth = sorted(replicas, key=lambda replica: (replica not in brokers, replica in closed))
    staying = set(by_worth[:replication_factor])
    chosen = [replica for replica in replicas if replica in staying]
    while len(chosen) < replication_factor:
        used = {racks[replica] for replica in chosen if replica in racks}
        free = [broker for broker in brokers if broker not in chosen and broker not in closed]
        if not free:
            raise NotEnoughBrokers(replication_factor=replication_factor, brokers=len(chosen))
        chosen.append(min(free, key=lambda broker: (racks[broker] in used, load.get(broker, 0), broker)))
    return tuple(chosen)


def find_effective_racks(brokers: Racks) -> dict[BrokerId, str]:
    """Return the rack of each broker. If any broker names no rack, each broker counts as its own rack."""
    named = {broker: rack for broker, rack in brokers.items() if rack is not None}
    return named if len(named) == len(brokers) else {broker: str(broker) for broker in brokers}


def _alternate_racks(racks: Mapping[BrokerId, str]) -> list[BrokerId]:
    """Return the brokers with neighbours in different racks as far as possible, one of each rack in every round."""
    of_rack = {rack: sorted(b for b, r in racks.items() if r == rack) for rack in set(racks.values())}
    names = sorted(of_rack, key=lambda rack: (of_rack[rack][0] if len(of_rack) == len(racks) else 0, rack))
    rounds = max(map(len, of_rack.values()))
    return [of_rack[rack][turn] for turn in range(rounds) for rack in names if turn < len(of_rack[rack])]


def _replicas(ring: list[BrokerId], racks: Mapping[BrokerId, str], leader: int, distance: int) -> tuple[BrokerId, ...]:
    """Return all brokers: the leader's place in the ring first, then the others from a distance behind it."""
    distances = ((distance + step) % max(len(ring) - 1, 1) for step in range(len(ring) - 1))
    others = [ring[(leader + 1 + each) % len(ring)] for each in distances]
    return tuple(_spread([ring[leader], *others], racks))


def _spread(candidates: list[BrokerId], racks: Mapping[BrokerId, str]) -> list[BrokerId]:
    """Return the candidates in their order, except that a rack's second broker comes after every rack's first."""
    first_of_rack = _distinct(candidates, key=racks)
    first = set(first_of_rack)
    return first_of_rack + [broker for broker in candidates if broker not in first]


def _distinct(items: list[BrokerId], *, key: Mapping[BrokerId, _Item]) -> list[BrokerId]:
    firsts: dict[_Item, BrokerId] = {}
    for item in items:
        firsts.setdefault(key[item], item)
    return list(firsts.values())
