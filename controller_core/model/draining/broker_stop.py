"""The effects of stopping a broker on the partitions that have a replica on it.

A partition takes writes with acks=all while its ISR has `min.insync.replicas` members, or all of its replicas if it has
fewer. So a broker may stop when each of its partitions has enough *other* replicas in sync. Some partitions can never
have enough others: they have a single replica, or no more replicas than min.insync.replicas. For those it is enough
that all other replicas are in sync.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.model.snapshot import PartitionSnapshot, Snapshot
from controller_core.model.wording import format_count, list_some

_TURNS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """A partition that would have too few replicas in sync without the broker."""

    partition: TopicPartition
    isr: tuple[BrokerId, ...]
    needed: int
    """The number of other replicas that have to be in sync."""
    min_insync_replicas: int
    in_sync_beside: int
    missing: tuple[BrokerId, ...]
    """The other replicas that are not in sync."""

    def __str__(self) -> str:
        return (
            f"{self.partition} (ISR {join_ids(self.isr)}, min.insync.replicas {self.min_insync_replicas}, "
            f"not in sync {join_ids(self.missing)})"
        )


def find_obstacles(
    snapshot: Snapshot, broker: BrokerId, min_insync_replicas: Mapping[TopicName, int]
) -> tuple[Obstacle, ...]:
    """Return the partitions that a broker has to wait for before it may stop, sorted.

    `min_insync_replicas` has an entry for each of its topics.
    """
    found = []
    for place in sorted(snapshot.list_partitions_on(broker), key=lambda place: place.partition):
        minimum = min_insync_replicas[place.partition.topic]
        others = [replica for replica in place.replicas if replica != broker]
        needed, in_sync = min(minimum, len(others)), sum(member != broker for member in place.isr)
        if in_sync < needed:
            found.append(
                Obstacle(
                    partition=place.partition,
                    isr=place.isr,
                    needed=needed,
                    min_insync_replicas=minimum,
                    in_sync_beside=in_sync,
                    missing=tuple(replica for replica in others if replica not in place.isr),
                )
            )
    return tuple(found)


def count_missing_replicas(waiting: Iterable[Obstacle]) -> int:
    """Return the number of replicas that have to come into sync before the broker may stop.

    Waiting helps while it falls.
    """
    return sum(obstacle.needed - obstacle.in_sync_beside for obstacle in waiting)


def find_turn(snapshot: Snapshot, broker: BrokerId) -> int:
    """Return the turn of a broker, from 0, if all brokers are stopped together. Many brokers share a few turns.

    It is enough with ZooKeeper, where the controller knows which brokers are being drained."""
    return sum(other < broker for other in snapshot.brokers) % _TURNS


def find_wait_for_turn_s(
    snapshot: Snapshot, broker: BrokerId, now_s: float, *, turn_s: float, longest_round_s: float
) -> float:
    """Return the seconds until the next turn of a broker, by a clock that all brokers share.

    Without ZooKeeper nobody knows which brokers are being drained. So the brokers with replicas have turns that begin
    `turn_s` apart and go round by id. No two have the same turn, whenever their drains began. Turns are shorter if a
    round would take longer than `longest_round_s`."""
    holders = sorted(snapshot.holders)
    if len(holders) < 2 or broker not in holders:
        return 0.0
    turn_s = min(turn_s, longest_round_s / len(holders))
    return (holders.index(broker) * turn_s - now_s) % (len(holders) * turn_s)


def count_absent(waiting: Iterable[Obstacle], alive: Collection[BrokerId]) -> int:
    """Return the number of brokers with missing replicas that are not alive."""
    return len({broker for obstacle in waiting for broker in obstacle.missing}.difference(alive))


def explain_enough(snapshot: Snapshot, broker: BrokerId, min_insync_replicas: Mapping[TopicName, int]) -> str:
    """Explain in one line that no partition has to be waited for, and which partitions still depend on the broker."""
    places = snapshot.list_partitions_on(broker)
    alone = [place.partition for place in places if set(place.replicas) == {broker}]
    spare_none = [
        place.partition for place in places if 1 < len(place.replicas) <= min_insync_replicas[place.partition.topic]
    ]
    said = [f"{format_count(len(places), 'partition')} of broker {broker} can do without it"]
    if alone:
        said.append(f"not waited for, no other replica, unavailable while it is stopped: {list_some(alone)}")
    if spare_none:
        said.append(
            "not waited for, no more replicas than min.insync.replicas, acks=all is refused while it is stopped: "
            + list_some(spare_none)
        )
    return "; ".join(said)


def find_still_led(snapshot: Snapshot, broker: BrokerId) -> tuple[PartitionSnapshot, ...]:
    """Return the partitions that a broker leads and that have other replicas."""
    return tuple(
        place
        for place in snapshot.list_partitions_on(broker)
        if place.leader == broker and set(place.replicas) != {broker}
    )


def explain(waiting: Sequence[Obstacle], alive: Collection[BrokerId]) -> str:
    """Explain in one line which partitions wait, and for which brokers."""
    missing = Counter(broker for obstacle in waiting for broker in obstacle.missing)
    brokers = [
        f"broker {broker} ({'alive, not in sync' if broker in alive else 'not alive'}: {format_count(count, 'replica')})"
        for broker, count in sorted(missing.items())
    ]
    return (
        f"{format_count(len(waiting), 'partition')} would have too few replicas in sync: {list_some(waiting)}; "
        f"missing: {list_some(brokers) or 'none'}"
    )


def join_ids(brokers: Sequence[BrokerId]) -> str:
    """Join the ids of brokers to one word, such as `1,2`."""
    return ",".join(str(broker) for broker in brokers) or "empty"
