"""Brokers are emptied by the fewest moves, over as many racks and as evenly as any choice: compared with all choices."""

from collections import Counter
from collections.abc import Collection
from itertools import combinations, product
from math import prod
from typing import Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.topics.placement import NotEnoughBrokers, find_effective_racks
from controller_operator.plans.reassignment.draining import drain, occupancy

MOST_CHOICES: Final = 1000

Replicas = tuple[BrokerId, ...]
Cluster = tuple[dict[BrokerId, str | None], dict[TopicPartition, Replicas], set[BrokerId]]
"""Live brokers with racks, replicas, and which brokers are drained."""


def tp(number: int) -> TopicPartition:
    return TopicPartition(TopicName("orders"), PartitionId(number))


def ids(*numbers: int) -> Replicas:
    return tuple(BrokerId(number) for number in numbers)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Up to six live brokers and a dead one, racks on all or some, and a drain that is possible."""
    racks = {
        BrokerId(number): draw(st.sampled_from(["a", "b", "c"])) for number in range(1, draw(st.integers(2, 6)) + 1)
    }
    live: dict[BrokerId, str | None] = dict(racks)
    if draw(st.booleans()):
        live[BrokerId(1)] = None
    drained = set(draw(st.lists(st.sampled_from([*live, BrokerId(9)]), min_size=1, max_size=2, unique=True)))
    staying = live.keys() - drained
    if not staying:
        drained.discard(next(iter(live)))
        staying = live.keys() - drained
    replicas = st.lists(st.sampled_from([*live, BrokerId(9)]), min_size=1, max_size=min(3, len(staying)), unique=True)
    assigned = {tp(number): tuple(each) for number, each in enumerate(draw(st.lists(replicas, min_size=1, max_size=9)))}
    return live, assigned, drained


def rack_counts(cluster: Cluster, after: dict[TopicPartition, Replicas]) -> tuple[int, ...]:
    live, assigned, drained = cluster
    racks = find_effective_racks({broker: rack for broker, rack in live.items() if broker not in drained})
    return tuple(len({racks[b] for b in after.get(p, assigned[p]) if b in racks}) for p in sorted(assigned))


def unevenness(cluster: Cluster, after: dict[TopicPartition, Replicas]) -> int:
    live, assigned, drained = cluster
    load = Counter(broker for p in assigned for broker in after.get(p, assigned[p]))
    return sum(load[broker] ** 2 for broker in live.keys() - drained)


def every_choice(cluster: Cluster) -> list[dict[TopicPartition, Replicas]]:
    """Return each way to replace every drained replica and no other, for clusters that are small enough."""
    live, assigned, drained = cluster
    options = []
    for replicas in assigned.values():
        kept = [broker for broker in replicas if broker not in drained]
        free = sorted(live.keys() - drained - set(kept))
        options.append([(*kept, *new) for new in combinations(free, len(replicas) - len(kept))])
    assume(prod(map(len, options)) <= MOST_CHOICES)
    return [dict(zip(assigned, choice, strict=True)) for choice in product(*options)]


def is_possible(cluster: Cluster) -> bool:
    return bool(every_choice(cluster))


def _drain(
    assigned: dict[TopicPartition, Replicas], drained: Collection[BrokerId], live: dict[BrokerId, str | None]
) -> dict[TopicPartition, Replicas]:
    return drain(occupancy([(*each, replicas) for each, replicas in assigned.items()], drained), live)


@given(clusters())
def test_a_drain_is_as_good_as_the_best_of_all_choices(cluster: Cluster) -> None:
    live, assigned, drained = cluster
    choices = every_choice(cluster)
    if not choices:
        with pytest.raises(NotEnoughBrokers):
            _drain(assigned, drained, live)
        return
    plan = _drain(assigned, drained, live)
    best_racks = tuple(map(max, zip(*(rack_counts(cluster, choice) for choice in choices), strict=True)))
    assert rack_counts(cluster, plan) == best_racks
    evenest = min(unevenness(cluster, choice) for choice in choices if rack_counts(cluster, choice) == best_racks)
    assert unevenness(cluster, plan) == evenest


@given(clusters().filter(is_possible))
def test_only_replicas_on_drained_brokers_move_and_they_go_to_live_brokers_that_stay(cluster: Cluster) -> None:
    live, assigned, drained = cluster
    plan = _drain(assigned, drained, live)
    assert plan.keys() == {p for p, replicas in assigned.items() if drained & set(replicas)}
    for p, after in plan.items():
        assert len(set(after)) == len(after) == len(assigned[p])
        for old, new in zip(assigned[p], after, strict=True):
            assert (new in live and new not in drained) if old in drained else new == old


@given(clusters().filter(is_possible))
def test_the_order_in_which_a_cluster_is_read_does_not_change_the_plan(cluster: Cluster) -> None:
    live, assigned, drained = cluster
    assert _drain(assigned, drained, live) == _drain(
        dict(reversed(assigned.items())), sorted(drained, reverse=True), dict(reversed(live.items()))
    )


def test_a_choice_that_a_later_partition_needs_is_left_to_it() -> None:
    """The first partition may go to 2 or 3, the second one only to 2 without filling a broker that is full already."""
    live = dict.fromkeys(ids(1, 2, 3, 4))
    assigned = {tp(0): ids(1, 4), tp(1): ids(1, 3), tp(2): ids(2), tp(3): ids(4), tp(4): ids(4)}
    assert _drain(assigned, ids(1), live) == {tp(0): ids(3, 4), tp(1): ids(2, 3)}


def test_what_is_left_to_do_after_a_part_of_a_drain_is_no_more_than_the_rest() -> None:
    live = dict.fromkeys(ids(1, 2, 3, 4))
    assigned = {tp(number): ids(1, 2) for number in range(6)}
    plan = _drain(assigned, ids(1), live)
    half = {**assigned, **{p: plan[p] for p in list(plan)[:3]}}
    assert _drain(half, ids(1), live).keys() == set(list(plan)[3:])


def test_a_partition_that_has_no_broker_to_go_to_is_refused() -> None:
    with pytest.raises(NotEnoughBrokers, match="replication factor of 2"):
        _drain({tp(0): ids(1, 2)}, ids(1), dict.fromkeys(ids(1, 2)))


def test_new_preferred_leaders_are_spread_over_those_who_lead_least() -> None:
    assigned = {tp(number): ids(1, 2) for number in range(4)}
    plan = _drain(assigned, ids(1, 2), dict.fromkeys(ids(1, 2, 3, 4)))
    assert Counter(replicas[0] for replicas in plan.values()) == {3: 2, 4: 2}
