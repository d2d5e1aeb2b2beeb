"""Evening out leaders by the order of replicas, which copies nothing.

`rotate` swaps the preferred leader with a follower if that makes leaders and outgoing traffic more even.
`spread_topic_leaders` does so topic by topic.
`spread_next_leaders` looks one failure ahead: if a broker is lost, the second replica of each of its partitions leads.
If most of them are on one other broker, that broker gets nearly all the work; so the second replicas are spread."""

from typing import Final

import numpy as np

from controller_planner.arranging.layout import Layout
from controller_planner.loads import Bools, Floats, Ints
from controller_planner.resources import OF_A_REPLICA, RESOURCES

_PASSES: Final = 30
_NEXT_PASSES: Final = 40
_MOST_TURNS: Final = 300
_TOPIC_PASSES: Final = 30
_NEAR: Final = 2
"""Next leaders below its limit from which on a broker passes some on, if another one is above its limit."""
_AIM: Final = 0.8
"""The part of the way from the fair share to the bound at which a broker stops to give away leaders."""
_MOST_EXCHANGED: Final = 400
"""Followers up to which each two are tried."""
_MOST_EXCHANGES: Final = 100
_LEAST_GAIN: Final = 1e-9
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


def spread_topic_leaders(layout: Layout, most: Ints, movable: Bools, may_lead: Bools) -> None:
    """Swap leaders with followers until no broker leads more of a topic than it should, or nothing helps.

    `most` has an entry for each topic. A broker at its limit passes a leader on if the next one has two fewer."""
    replicas, may_lead = layout.replicas, may_lead.copy()
    if layout.width < 2 or not len(replicas):
        return
    key = layout.topic[:, None].astype(np.int64) * (layout.brokers + 1) + np.where(
        replicas < 0, layout.brokers, replicas
    )
    number_of = np.unique(key, return_inverse=True)[1].reshape(key.shape)
    """A number for each topic and broker."""
    for _ in range(_TOPIC_PASSES):
        led = np.bincount(number_of[:, 0], minlength=int(number_of.max()) + 1)
        here = led[number_of[:, 0]]
        gives = movable & layout.takes[replicas[:, 0]]
        is_uneven = np.zeros(len(most), dtype=np.bool_)
        is_uneven[layout.topic[gives & (here > most[layout.topic])]] = True
        over = np.flatnonzero(gives & is_uneven[layout.topic] & (here >= most[layout.topic]))
        here = here[over]
        there = led[number_of[over, 1:]]
        there[~(may_lead[over, 1:] & layout.takes[replicas[over, 1:]])] = np.iinfo(there.dtype).max
        best = there.argmin(axis=1)
        there = there[np.arange(len(over)), best]
        helps = there <= here - 2
        over, best, gap = over[helps], best[helps] + 1, (here - there)[helps] // 2
        over, best = _choose_swaps(over, best, number_of[over, 0], number_of[over, best], gap)
        if not len(over):
            break
        for table in (replicas, number_of, may_lead):
            table[over, 0], table[over, best] = table[over, best], table[over, 0]
    layout.recompute()


def _choose_swaps(over: Ints, best: Ints, source: Ints, target: Ints, gap: Ints) -> tuple[Ints, Ints]:
    """Return those of the swaps that may happen at once: no source gives, and no target gets, more than half the gap."""
    chosen = np.flatnonzero(rank_in_group(source) < gap)
    chosen = chosen[rank_in_group(target[chosen]) < gap[chosen]]
    return over[chosen], best[chosen]


def compute_most_next_leaders(layout: Layout, led: Ints) -> Floats:
    """Return, for each broker, how many of its leaderships one other broker should take over at most.

    `led`: the number of partitions that each broker leads."""
    takers = layout.takes[:-1]
    per_rack = np.bincount(layout.rack[:-1][takers], minlength=layout.racks)
    crowded = layout.width > np.count_nonzero(per_rack)
    others = np.maximum(takers.sum() - (takers if crowded else per_rack[layout.rack[:-1]]), 1)
    mean = led / others
    return np.asarray(np.maximum(np.ceil(mean), 1.5 * mean) + 1)


def spread_next_leaders(layout: Layout, movable: Bools, may_lead: Bools) -> None:
    """Swap second replicas with later ones until no broker takes over too much of another, or nothing helps.

    A broker near its limit passes some on if the next one has two fewer, so that it can take others."""
    if layout.width < 3 or not len(layout.replicas):
        return
    replicas, brokers, may_lead = layout.replicas, layout.brokers, may_lead.copy()
    most = np.floor(compute_most_next_leaders(layout, _count_leaders(layout))).astype(np.int64)
    movable = movable & (replicas[:, 0] >= 0)
    for _ in range(_NEXT_PASSES):
        pairs = _count_pairs(replicas, brokers)
        is_uneven = np.append((pairs > most[:, None]).any(axis=1), np.False_)
        over = np.flatnonzero(movable & is_uneven[replicas[:, 0]] & (replicas[:, 1] >= 0))
        leaders, seconds = replicas[over, 0], replicas[over, 1]
        here = pairs[leaders, seconds]
        near = here >= most[leaders] - _NEAR
        over, leaders, seconds, here = (each[near] for each in (over, leaders, seconds, here))
        later = replicas[over, 2:]
        there = pairs[leaders[:, None], later]
        there[~(may_lead[over, 2:] & layout.takes[later])] = np.iinfo(there.dtype).max
        best = there.argmin(axis=1)
        there = there[np.arange(len(over)), best]
        helps = there <= here - 2
        over, best, gap = over[helps], best[helps] + 2, (here - there)[helps] // 2
        key = replicas[over, 0].astype(np.int64) * brokers
        over, best = _choose_swaps(over, best, key + replicas[over, 1], key + replicas[over, best], gap)
        if not len(over):
            break
        for table in (replicas, may_lead):
            table[over, 1], table[over, best] = table[over, best], table[over, 1]


def turn_next_leaders(layout: Layout, bounds: Floats, movable: Bools, may_lead: Bools) -> None:
    """Swap leaders with followers that may lead more, where a second replica would take over too much of the leader.

    This helps if the replicas of too many partitions are on the same few brokers. A broker that leads more may hand more
    over to one other, so brokers with room lead more if nothing else helps."""
    if layout.width < 2 or not len(layout.replicas):
        return
    replicas, of_leader = layout.replicas, layout.resources.of_leader
    per_share = layout.resources.per_share[:, _LEADER_COLUMNS]
    led = _count_leaders(layout)
    most = np.append(np.floor(compute_most_next_leaders(layout, led)).astype(np.int64), 0)
    pairs = np.zeros((layout.brokers + 1, layout.brokers + 1), dtype=np.int64)
    pairs[:-1, :-1] = _count_pairs(replicas, layout.brokers)
    with np.errstate(divide="ignore", invalid="ignore"):
        most_load = np.where(per_share > 0, bounds[:, _LEADER_COLUMNS] / per_share, np.inf)
    most_load = np.minimum(most_load, layout.resources.capacity[:, _LEADER_COLUMNS])
    allowed = may_lead & layout.takes[replicas]
    allowed[:, 0] &= movable
    turnable = np.flatnonzero(allowed[:, 0] & (replicas[:, 1] >= 0))
    turnable = turnable[np.argsort(of_leader[turnable, 0], kind="stable")]
    over = turnable[pairs[replicas[turnable, 0], replicas[turnable, 1]] > most[replicas[turnable, 0]]]

    def find_places(rows: Ints) -> tuple[Bools, Bools]:
        """Return True for each follower that may take over the leader as far as pairs allow it, and as far as room does."""
        now = replicas[rows]
        # With a later replica in front, the second one stays the second one.
        seconds = np.column_stack([now[:, 0], *[now[:, 1]] * (layout.width - 2)])
        load = layout.loads[:, _LEADER_COLUMNS][now[:, 1:]] + of_leader[rows][:, None]
        has_place = allowed[rows, 1:] & (pairs[now[:, 1:], seconds] < most[now[:, 1:]])
        return has_place, np.asarray((load <= most_load[now[:, 1:]]).all(axis=2))

    for _ in range(_MOST_TURNS):
        over = over[pairs[replicas[over, 0], replicas[over, 1]] > most[replicas[over, 0]]]
        has_place, has_room = find_places(over)
        rows, fits = over, has_place & has_room
        if not fits.any():
            # The brokers that should lead more must pass leaders on first, to brokers with room.
            blocked = np.unique(replicas[over, 1:][has_place])
            rows = turnable[np.isin(replicas[turnable, 0], blocked)] if len(blocked) else turnable[:0]
            has_place, has_room = find_places(rows)
            fits = has_place & has_room
        if not fits.any():
            is_over = np.asarray((pairs > most[:, None]).any(axis=1))
            has_slack = np.asarray((pairs < most[:, None]).all(axis=1))
            rows = turnable[has_slack[replicas[turnable, 0]] & is_over[replicas[turnable, 1:]].any(axis=1)]
            has_place, has_room = find_places(rows)
            fits = has_place & has_room & is_over[replicas[rows, 1:]]
        rows, fits = rows[fits.any(axis=1)], fits[fits.any(axis=1)]
        place = fits.argmax(axis=1) + 1
        # One for each broker at a time, so that its room is known.
        first = np.unique(replicas[rows, place], return_index=True)[1]
        first = first[np.unique(replicas[rows[first], 0], return_index=True)[1]]
        rows, place = rows[first], place[first]
        if not len(rows):
            break
        old, new = replicas[rows, 0], replicas[rows, place]
        np.subtract.at(pairs, (old, replicas[rows, 1]), 1)
        for table in (replicas, allowed):
            table[rows, 0], table[rows, place] = table[rows, place], table[rows, 0]
        np.add.at(pairs, (new, replicas[rows, 1]), 1)
        np.subtract.at(layout.loads[:, _LEADER_COLUMNS], old, of_leader[rows])
        np.add.at(layout.loads[:, _LEADER_COLUMNS], new, of_leader[rows])
        led += np.bincount(new, minlength=layout.brokers) - np.bincount(old, minlength=layout.brokers)
        most[:-1] = np.floor(compute_most_next_leaders(layout, led))


def exchange_leaders(layout: Layout, bounds: Floats, movable: Bools, may_lead: Bools) -> None:
    """Let two brokers exchange the leadership of two partitions that both hold, as long as the excess falls.

    Both lead as many as before. This is the way on if a broker sends too much and no other may lead one more."""
    replicas, of_leader = layout.replicas, layout.resources.of_leader
    per_share = layout.resources.per_share[:, _LEADER_COLUMNS]
    may_lead = may_lead & layout.takes[replicas]
    rows, columns = np.nonzero(may_lead[:, 1:] & (movable & may_lead[:, 0])[:, None])
    columns += 1
    if not 0 < len(rows) <= _MOST_EXCHANGED:
        return
    for _ in range(_MOST_EXCHANGES):
        over = layout.loads[:, _LEADER_COLUMNS] * per_share - bounds[:, _LEADER_COLUMNS]
        leaders, followers, load = replicas[rows, 0], replicas[rows, columns], of_leader[rows]
        fits = (leaders[:, None] == followers) & (followers[:, None] == leaders)
        more = load[None, :] - load[:, None]
        change = _add_up(over[leaders][:, None] + more * per_share[leaders][:, None]) - _add_up(over[leaders])[:, None]
        change += _add_up(over[followers][:, None] - more * per_share[followers][:, None])
        change -= _add_up(over[followers])[:, None]
        change[~fits] = 0
        one, other = np.unravel_index(change.argmin(), change.shape)
        if change[one, other] > -_LEAST_GAIN:
            break
        for at in (one, other):
            old, new = leaders[at], followers[at]
            replicas[rows[at], 0], replicas[rows[at], columns[at]] = new, old
            layout.loads[old, _LEADER_COLUMNS] -= load[at]
            layout.loads[new, _LEADER_COLUMNS] += load[at]


def _add_up(over: Floats) -> Floats:
    return np.asarray(np.maximum(over, 0).sum(axis=-1))


def compute_next_leader_excess(layout: Layout) -> float:
    """Return how many leaderships one broker would take over from another beyond what it should, in sum."""
    if layout.width < 2 or not len(layout.replicas):
        return 0.0
    pairs = _count_pairs(layout.replicas, layout.brokers)
    most = compute_most_next_leaders(layout, _count_leaders(layout))
    return float(np.maximum(pairs - most[:, None], 0).sum())


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
