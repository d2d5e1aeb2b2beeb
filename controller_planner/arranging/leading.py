"""Evening out leaders by the order of replicas, which copies nothing.

`rotate` swaps the preferred leader with a follower if that makes leaders and outgoing traffic more even.
`spread_next_leaders` looks one failure ahead: if a broker is lost, the second replica of each of its partitions leads.
If most of them are on one other broker, that broker gets nearly all the work; so the second replicas are spread."""

from typing import Final

import numpy as np

from controller_planner.arranging.layout import Layout
from controller_planner.loads import Bools, Floats, Ints
from controller_planner.resources import OF_A_REPLICA, RESOURCES

_PASSES: Final = 30
_NEXT_PASSES: Final = 12
_AIM: Final = 0.8
"""The part of the way from the fair share to the bound at which a broker stops to give away leaders."""
_LEADER_COLUMNS: Final = slice(OF_A_REPLICA, len(RESOURCES))


def rotate(layout: Layout, bounds: Floats, movable: Bools, may_lead: Bools, rng: np.random.Generator) -> None:
    """Swap leaders away from brokers above the band, as long as that helps. `may_lead` is about each replica."""
    if layout.width < 2 or not len(layout.replicas):
        return
    replicas, of_leader = layout.replicas, layout.resources.of_leader
    per_share = layout.resources.per_share[:, _LEADER_COLUMNS]
    for only_excess in (False, True):
        aim = 1 + (bounds[:, _LEADER_COLUMNS] - 1) * _AIM
        floor = aim if only_excess else np.zeros_like(aim)
        for _ in range(_PASSES):
            over = np.asarray((layout.loads[:, _LEADER_COLUMNS] * per_share > aim).any(axis=1))
            candidates = np.flatnonzero(over[replicas[:, 0]] & movable)
            step = max(1, len(replicas) // 200)
            changed = sum(
                _rotate_some(layout, some, of_leader, per_share, floor, aim, may_lead)
                for some in np.array_split(rng.permutation(candidates), max(1, -(-len(candidates) // step)))
            )
            if changed <= len(replicas) // 10_000:
                break


def _rotate_some(
    layout: Layout, some: Ints, of_leader: Floats, per_share: Floats, floor: Floats, aim: Floats, may_lead: Bools
) -> int:
    replicas = layout.replicas
    relative = layout.loads[:, _LEADER_COLUMNS] * per_share
    over = np.asarray((relative > aim).any(axis=1))
    some = some[over[replicas[some, 0]]]
    if not len(some):
        return 0
    leaders, followers = replicas[some, 0], replicas[some, 1:]
    load = of_leader[some]
    here, there = relative[leaders], relative[followers]
    less, more = load * per_share[leaders], load[:, None] * per_share[followers]
    low, high = floor[leaders], floor[followers]
    gain = (np.maximum(here, low) ** 2 - np.maximum(here - less, low) ** 2).sum(axis=1)[:, None]
    gain = gain - (np.maximum(there + more, high) ** 2 - np.maximum(there, high) ** 2).sum(axis=2)
    gain[~(may_lead[some, 1:] & layout.takes[followers])] = -1
    capacity = layout.resources.capacity[:, _LEADER_COLUMNS]
    if np.isfinite(capacity).any():
        after = layout.loads[:, _LEADER_COLUMNS][followers] + load[:, None]
        gain[(after > capacity[followers]).any(axis=2)] = -1
    best = gain.argmax(axis=1)
    good = gain[np.arange(len(some)), best] > 1e-9
    some, best = some[good], best[good] + 1
    old, new = replicas[some, 0].copy(), replicas[some, best].copy()
    replicas[some, 0], replicas[some, best] = new, old
    for at, column in enumerate(range(OF_A_REPLICA, len(RESOURCES))):
        layout.loads[:-1, column] += np.bincount(new, of_leader[some, at], layout.brokers)
        layout.loads[:-1, column] -= np.bincount(old, of_leader[some, at], layout.brokers)
    return len(some)


def compute_most_next_leaders(layout: Layout) -> Floats:
    """Return, for each broker, how many of its leaderships one other broker should take over at most."""
    led = _count_leaders(layout)
    takers = layout.takes[:-1]
    per_rack = np.bincount(layout.rack[:-1][takers], minlength=layout.racks)
    crowded = layout.width > np.count_nonzero(per_rack)
    others = np.maximum(takers.sum() - (takers if crowded else per_rack[layout.rack[:-1]]), 1)
    mean = led / others
    return np.asarray(np.maximum(np.ceil(mean), 1.5 * mean) + 1)


def spread_next_leaders(layout: Layout, movable: Bools, may_lead: Bools) -> None:
    """Swap second replicas with later ones until no broker takes over too much of another, or nothing helps."""
    if layout.width < 3 or not len(layout.replicas):
        return
    replicas, brokers = layout.replicas, layout.brokers
    most = np.floor(compute_most_next_leaders(layout)).astype(np.int64)
    led = replicas[:, 0] >= 0
    movable = movable & led
    for _ in range(_NEXT_PASSES):
        pairs = _count_pairs(replicas, brokers)
        leaders, seconds = replicas[:, 0], replicas[:, 1]
        over = np.flatnonzero(movable & (seconds >= 0) & (pairs[leaders, seconds] > most[leaders]))
        later = replicas[over, 2:]
        room = most[leaders[over]][:, None] - pairs[leaders[over][:, None], later]
        room[~(may_lead[over, 2:] & layout.takes[later])] = -1
        best = room.argmax(axis=1)
        helps = room[np.arange(len(over)), best] > 0
        over, best = over[helps], best[helps] + 2
        key = leaders[over].astype(np.int64) * brokers + seconds[over]
        chosen = rank_in_group(key) < (pairs.ravel()[key] - most[leaders[over]])
        over, best = over[chosen], best[chosen]
        key = leaders[over].astype(np.int64) * brokers + replicas[over, best]
        fits = rank_in_group(key) < most[leaders[over]] - pairs.ravel()[key]
        over, best = over[fits], best[fits]
        if not len(over):
            break
        second = replicas[over, 1].copy()
        replicas[over, 1], replicas[over, best] = replicas[over, best].copy(), second


def compute_next_leader_excess(layout: Layout) -> float:
    """Return how many leaderships one broker would take over from another beyond what it should, in sum."""
    if layout.width < 2 or not len(layout.replicas):
        return 0.0
    pairs = _count_pairs(layout.replicas, layout.brokers)
    return float(np.maximum(pairs - compute_most_next_leaders(layout)[:, None], 0).sum())


def _count_leaders(layout: Layout) -> Ints:
    leaders = layout.replicas[:, 0]
    return np.asarray(np.bincount(leaders[leaders >= 0], minlength=layout.brokers))


def _count_pairs(replicas: Ints, brokers: int) -> Ints:
    """Return a table: how many partitions have this leader and this second replica."""
    both = (replicas[:, 0] >= 0) & (replicas[:, 1] >= 0)
    key = replicas[both, 0].astype(np.int64) * brokers + replicas[both, 1]
    return np.bincount(key, minlength=brokers * brokers).reshape(brokers, brokers)


def rank_in_group(key: Ints) -> Ints:
    """Return the position of each entry among those of the same key."""
    order = np.argsort(key, kind="stable")
    sorted_key = key[order]
    starts = np.flatnonzero(np.append(True, sorted_key[1:] != sorted_key[:-1])) if len(key) else np.empty(0, np.int64)
    rank = np.empty(len(key), dtype=np.int64)
    rank[order] = np.arange(len(key)) - np.repeat(starts, np.diff(np.append(starts, len(key))))
    return rank
