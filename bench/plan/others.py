"""Other ways to place replicas, for comparison: Kafka's own generator, greedy moves, minimal movement.

Each returns a table of replicas in the form of a snapshot. They follow racks, and know replicas and bytes at most."""

from collections.abc import Callable
from typing import Final

import numpy as np

from controller_planner.goals import Goals
from controller_planner.loads import Ints, LoadSnapshot


def generate_as_kafka(snapshot: LoadSnapshot) -> Ints:
    """Place all replicas afresh, as `kafka-reassign-partitions --generate`: a random start, then round robin by racks.

    Brokers are ordered so that racks alternate. The leader of a topic's next partition is the next broker, and its
    followers are the brokers after it at a distance that grows with each round, one in each rack."""
    rng = np.random.default_rng(0)
    partitions, racks = snapshot.partitions, snapshot.brokers.racks
    by_rack: dict[str | None, list[int]] = {}
    for broker, rack in enumerate(racks):
        by_rack.setdefault(rack, []).append(broker)
    rounds = max(map(len, by_rack.values()))
    order = [members[at] for at in range(rounds) for members in by_rack.values() if at < len(members)]
    number, result = len(order), np.full_like(partitions.replicas, -1)
    factors = partitions.count_replicas()
    by_topic = np.lexsort((partitions.number, partitions.topic))
    topic, start, shift = -1, 0, 0
    for at in by_topic.tolist():
        if partitions.topic[at] != topic:
            topic, start, shift = int(partitions.topic[at]), int(rng.integers(number)), int(rng.integers(number))
            first = int(partitions.number[at])
        position = int(partitions.number[at]) - first
        if position and position % number == 0:
            shift += 1
        leader = (start + position) % number
        chosen = [order[leader]]
        step = 0
        while len(chosen) < factors[at]:
            candidate = order[(leader + 1 + (shift + step) % max(number - 1, 1)) % number]
            used = {racks[broker] for broker in chosen}
            if candidate not in chosen and (racks[candidate] not in used or len(used) == len(by_rack)):
                chosen.append(candidate)
            step += 1
        result[at, : len(chosen)] = chosen
    return result


def move_greedily(snapshot: LoadSnapshot) -> Ints:
    """Move the largest replica that fits from the fullest broker to the emptiest, until all are in the band."""
    return _move(snapshot, snapshot.partitions.size_bytes, largest=True)


def move_minimally(snapshot: LoadSnapshot) -> Ints:
    """Move as few replicas as make their numbers even, the smallest first, as tools for minimal movement do."""
    return _move(snapshot, np.ones(len(snapshot.partitions)), largest=False)


def _move(snapshot: LoadSnapshot, weight: np.ndarray[tuple[int], np.dtype[np.float64]], *, largest: bool) -> Ints:
    replicas = snapshot.partitions.replicas.copy()
    brokers = len(snapshot.brokers)
    names = {rack: at for at, rack in enumerate(dict.fromkeys(snapshot.brokers.racks))}
    rack = np.array([names[each] for each in snapshot.brokers.racks])
    load = np.zeros(brokers)
    for at in range(replicas.shape[1]):
        load += np.bincount(replicas[:, at], weight, brokers)
    most = Goals().band * load.sum() / brokers
    size = snapshot.partitions.size_bytes if largest else -snapshot.partitions.size_bytes
    on = [
        sorted(np.flatnonzero((replicas == at).any(axis=1)).tolist(), key=lambda p: -size[p]) for at in range(brokers)
    ]
    finished = np.zeros(brokers, dtype=np.bool_)
    while True:
        full = int(np.where(finished, -np.inf, load).argmax())
        if load[full] <= most or finished[full]:
            return replicas
        if not on[full]:
            finished[full] = True
            continue
        partition = on[full].pop(0)
        others = set(replicas[partition].tolist()) - {full}
        racks = {int(rack[other]) for other in others}
        allowed = [
            at for at in np.argsort(load, kind="stable").tolist() if at not in others and int(rack[at]) not in racks
        ]
        to = next((at for at in allowed if load[at] + weight[partition] <= most), None)
        if to is not None and to != full:
            replicas[partition][replicas[partition] == full] = to
            load[full] -= weight[partition]
            load[to] += weight[partition]


OTHERS: Final[dict[str, Callable[[LoadSnapshot], Ints]]] = {
    "kafka --generate": generate_as_kafka,
    "greedy": move_greedily,
    "minimal movement": move_minimally,
}
