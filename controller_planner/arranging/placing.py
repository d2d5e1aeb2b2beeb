"""Placing replicas that must or should go to another broker.

The largest replica goes first, while there is the most room to even it out. Each gets the best of a few random brokers:
the one at which the loads, all resources together, become the most even. Trying 16 brokers is nearly as good as trying
all, and a thousand brokers cost no more time than sixteen ("the power of choices"). Replicas are placed in groups, so
that numpy does the work; a group is so small that one broker can receive little of it."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller_planner.arranging.layout import Layout, Slots
from controller_planner.loads import Bools, Floats, Ints

_CHOICES: Final = 16
_WEIGHTS: Final = np.array([1.0, 1.0, 1.0, 0.3, 0.3])
"""Leaders and what is read from them weigh less, because they can be evened later without copying a byte."""
_EMPTIEST: Final = -0.2
"""Below 80 % of its share a broker attracts no more than any other such broker."""
_PART_OF_A_SHARE: Final = 0.01
"""The part of its share that a broker may receive in one group before the loads are looked at again."""
_TOPIC_WEIGHT: Final = 0.05
_EXPOSURE_WEIGHT: Final = 10.0
"""Brokers that failed together with that of another replica are avoided unless all others are far fuller."""
_MOST_PAIRS: Final = 200_000
"""Pairs of a replica and a broker that are looked at in one go, for the sake of memory."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placing:
    """The rules by which replicas are placed."""

    receivers: Ints
    must_leave: bool
    """True: a replica may not go home, and its racks must become as spread as they can be. False: a replica may not
    be in a more crowded rack than at home."""
    most_of_a_topic: Ints | None = None
    """The largest number of replicas of each topic that a broker may reach by this. None: no limit."""
    less_exposed: bool = False
    """True: a replica may only go to brokers that failed together with those of the others less often than its own."""


def place(layout: Layout, slots: Slots, rules: Placing, rng: np.random.Generator) -> Slots:
    """Give each slot a broker. Return the slots for which there is none; they stay where they were."""
    loads = layout.get_loads_of(slots)
    layout.lift(slots, loads)
    heaviness = _get_heaviness(layout, loads)
    order = np.argsort(-heaviness, kind="stable")
    slots, loads, heaviness = slots[order], loads[order], heaviness[order]
    left: list[Slots] = []
    brokers = len(rules.receivers)
    at = 0
    again = np.empty(0, dtype=np.int64)
    while at < len(slots) or len(again):
        if len(again):
            group, again = again, again[:0]
        else:
            number = int(min(max(_PART_OF_A_SHARE * brokers / _CHOICES / max(heaviness[at], 1e-9), 1), 4 * brokers + 1))
            group, at = np.arange(at, min(at + number, len(slots))), at + number
        _, first = np.unique(slots[group] // layout.width, return_index=True)
        if len(first) < len(group):
            later = np.ones(len(group), dtype=np.bool_)
            later[first] = False
            again, group = group[later], group[~later]
        chosen = _choose(layout, slots[group], loads[group], rules, rng)
        chosen, late = _put_off_overflow(layout, chosen, loads[group])
        again = np.concatenate([group[late], again])
        group, chosen = group[~late], chosen[~late]
        none = chosen < 0
        if none.any():
            left.append(slots[group[none]])
            chosen[none] = layout.replicas.ravel()[slots[group[none]]]
        layout.put(slots[group], chosen, loads[group])
    return np.concatenate(left) if left else np.empty(0, dtype=np.int64)


def find_placeable(layout: Layout, slots: Slots, rules: Placing) -> Bools:
    """Return True for each slot that a receiver may take, if none of the others moves."""
    placeable = np.zeros(len(slots), dtype=np.bool_)
    step = max(1, _MOST_PAIRS // max(len(rules.receivers), 1))
    for start in range(0, len(slots) if len(rules.receivers) else 0, step):
        some = slots[start : start + step]
        tried = np.tile(rules.receivers, (len(some), 1))
        refused = _find_refused(layout, some, layout.find_others(some), layout.get_loads_of(some), rules, tried)
        placeable[start : start + step] = ~refused.all(axis=1)
    return placeable


def _choose(layout: Layout, slots: Slots, loads: Floats, rules: Placing, rng: np.random.Generator) -> Ints:
    """Return a broker for each slot, or -1."""
    receivers, number = rules.receivers, len(slots)
    if not len(receivers):
        return np.full(number, -1, dtype=np.int32)
    if len(receivers) <= _CHOICES:
        return _choose_among(layout, slots, loads, rules, np.tile(receivers, (number, 1)))
    tried = receivers[rng.integers(0, len(receivers), (number, _CHOICES))]
    chosen = _choose_among(layout, slots, loads, rules, tried)
    unlucky = np.flatnonzero(chosen < 0)
    step = max(1, _MOST_PAIRS // len(receivers))
    for start in range(0, len(unlucky), step):
        some = unlucky[start : start + step]
        chosen[some] = _choose_among(layout, slots[some], loads[some], rules, np.tile(receivers, (len(some), 1)))
    return chosen


def _choose_among(layout: Layout, slots: Slots, loads: Floats, rules: Placing, tried: Ints) -> Ints:
    resources = layout.resources
    others = layout.find_others(slots)
    refused = _find_refused(layout, slots, others, loads, rules, tried)
    added = loads[:, None, :] * resources.per_share[tried]
    over = layout.compute_relative()[tried] - 1
    cost = _square(over + added)
    cost -= _square(over)
    costs = cost @ _WEIGHTS
    costs += added[:, :, 0] * (over @ _WEIGHTS)
    if layout.topic_counts is not None:
        topics = layout.topic[slots // layout.width]
        wanted = np.maximum(layout.topic_sizes[topics] * layout.width / len(rules.receivers), 0.5)
        costs += (
            _TOPIC_WEIGHT
            * added[:, :, 0]
            * np.minimum(layout.topic_counts[topics[:, None], tried] / wanted[:, None], 4)
        )
    if layout.together is not None:
        costs += _EXPOSURE_WEIGHT * added[:, :, 0] * layout.compute_exposure(others, tried)
    costs[refused] = np.inf
    rows, best = np.arange(len(slots)), costs.argmin(axis=1)
    return np.where(refused[rows, best], np.int32(-1), tried[rows, best])


def _square(values: Floats) -> Floats:
    values = np.maximum(values, _EMPTIEST)
    values *= values
    return values


def _find_refused(layout: Layout, slots: Slots, others: Ints, loads: Floats, rules: Placing, tried: Ints) -> Bools:
    """Return True for each broker that may not take the slot beside it."""
    home = layout.replicas.ravel()[slots]
    crowd = layout.count_in_racks(others, tried)
    if rules.must_leave:
        refused = np.asarray(crowd > find_least_crowd(layout, others, rules.receivers)[:, None])
        refused |= tried == home[:, None]
    else:
        refused = crowd > layout.count_in_racks(others, home[:, None])
    for at in range(others.shape[1]):
        refused |= others[:, at, None] == tried
    if rules.less_exposed:
        refused |= layout.compute_exposure(others, tried) >= layout.compute_exposure(others, home[:, None])
    capacity = layout.resources.capacity
    for column in np.flatnonzero(np.isfinite(capacity).any(axis=0)):
        refused |= layout.loads[tried, column] + loads[:, column, None] > capacity[tried, column]
    if rules.most_of_a_topic is not None and layout.topic_counts is not None:
        topics = layout.topic[slots // layout.width]
        refused |= layout.topic_counts[topics[:, None], tried] >= rules.most_of_a_topic[topics, None]
    return refused


def find_least_crowd(layout: Layout, others: Ints, receivers: Ints) -> Ints:
    """Return the least number of the other replicas that any rack with a free receiver has."""
    racks = np.unique(layout.rack[receivers])
    if len(racks) > others.shape[1]:
        return np.zeros(len(others), dtype=np.int32)
    least = np.full(len(others), np.iinfo(np.int32).max, dtype=np.int32)
    for rack in racks:
        members = receivers[layout.rack[receivers] == rack]
        count = np.asarray((layout.rack[others] == rack).sum(axis=1), dtype=np.int32)
        taken = np.asarray(np.isin(others, members).sum(axis=1))
        least = np.where(taken < len(members), np.minimum(least, count), least)
    return least


def _put_off_overflow(layout: Layout, chosen: Ints, loads: Floats) -> tuple[Ints, Bools]:
    """Return the choice, and True for those that would together fill a broker beyond its capacity: they choose again."""
    late = np.zeros(len(chosen), dtype=np.bool_)
    capacity = layout.resources.capacity
    columns = np.flatnonzero(np.isfinite(capacity).any(axis=0))
    if len(chosen) < 2 or not len(columns):
        return chosen, late
    order = np.argsort(chosen, kind="stable")
    on = chosen[order]
    starts = np.flatnonzero(np.append(True, on[1:] != on[:-1]))
    group = np.repeat(starts, np.diff(np.append(starts, len(on))))
    for column in columns:
        sums = np.cumsum(loads[order, column])
        sums -= sums[group] - loads[order, column][group]
        full = (sums + layout.loads[on, column] > capacity[on, column]) & (on >= 0)
        full[starts] = False
        late[order[full]] = True
    return chosen, late


def _get_heaviness(layout: Layout, loads: Floats) -> Floats:
    """Return the largest part of a mean share that each slot is, for the resources of a replica."""
    per_share = layout.resources.per_share
    bearing = per_share.any(axis=1)
    mean = per_share[bearing].mean(axis=0) if bearing.any() else per_share[0]
    return np.asarray((loads * mean)[:, :3].max(axis=1, initial=0))
