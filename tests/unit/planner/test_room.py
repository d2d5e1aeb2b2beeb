"""The room for the loss of one broker or rack after a plan."""

from typing import Any

import pytest

from controller_planner.goals import Goals, Mode
from controller_planner.planning import make_plan
from controller_planner.room import Shortage, find_shortages
from tests.unit.planner.clusters import UNKNOWN, make_cluster

UNCHANGED = Goals(topics=())
"""No topic may change."""
RING = [[0, 1], [1, 2], [2, 3], [3, 0]]
"""Each of four brokers has two replicas."""


@pytest.mark.parametrize(("disk", "lost"), [(3.0, []), (2.5, [0, 1, 2, 3])], ids=["enough", "too small"])
def test_the_loss_of_a_broker_needs_its_bytes_on_the_others(disk: float, lost: list[int]) -> None:
    found = find_shortages(make_plan(make_cluster(RING, brokers=4, capacity_disk_bytes=[disk] * 4), UNCHANGED))
    assert [each.brokers for each in found] == [(broker,) for broker in lost]
    assert all((each.rack, each.within, each.needed_bytes, each.room_bytes) == (None, None, 2, 1.5) for each in found)


def test_a_rack_that_is_lost_needs_the_bytes_of_all_its_brokers() -> None:
    racks = ["a", "a", "b", "b"]
    snapshot = make_cluster([[0, 2], [1, 3]] * 2, brokers=4, racks=racks, capacity_disk_bytes=[3.5] * 4)
    found = [each for each in find_shortages(make_plan(snapshot, UNCHANGED)) if each.rack is not None]
    assert [(each.brokers, each.rack, each.needed_bytes, each.room_bytes) for each in found] == [
        ((0, 1), "a", 4, 3),
        ((2, 3), "b", 4, 3),
    ]


def test_with_a_replica_in_each_rack_only_the_rack_of_a_lost_broker_has_room_for_it() -> None:
    racks = ["a", "a", "b", "b"]
    snapshot = make_cluster([[0, 2], [1, 3]] * 2, brokers=4, racks=racks, capacity_disk_bytes=[3.5, 3.5, 9, 9])
    assert [each for each in find_shortages(make_plan(snapshot, UNCHANGED)) if each.rack is None] == [
        Shortage(brokers=(0,), rack=None, within="a", needed_bytes=2, room_bytes=1.5),
        Shortage(brokers=(1,), rack=None, within="a", needed_bytes=2, room_bytes=1.5),
    ]


def test_another_rack_without_a_replica_has_room_for_those_that_share_a_rack() -> None:
    racks = ["a", "a", "b", "b"]
    snapshot = make_cluster([[0, 1]] * 4, brokers=4, racks=racks, capacity_disk_bytes=[4.5] * 4)
    assert find_shortages(make_plan(snapshot, UNCHANGED)) == ()


def test_a_broker_that_is_cordoned_or_drained_has_room_for_nothing() -> None:
    cluster: dict[str, Any] = {"brokers": 5, "capacity_disk_bytes": [2.5] * 5}
    closed = make_cluster(RING, **cluster, takes_replicas=[True] * 4 + [False])
    plans = [
        make_plan(make_cluster(RING, **cluster), UNCHANGED),
        make_plan(closed, UNCHANGED),
        make_plan(make_cluster(RING, **cluster), Goals(mode=Mode.DRAIN, brokers=(4,))),
    ]
    assert [[each.brokers for each in find_shortages(plan)] for plan in plans] == [[], *[[(0,), (1,), (2,), (3,)]] * 2]


def test_the_loads_after_the_plan_count_and_the_worst_loss_comes_first() -> None:
    snapshot = make_cluster([[0], [1]], brokers=3, size_bytes=[4.0, 5.0], capacity_disk_bytes=[4.5, 6, 2.5])
    assert [each.brokers for each in find_shortages(make_plan(snapshot, UNCHANGED))] == [(1,), (0,)]
    drain = Goals(mode=Mode.DRAIN, brokers=(0,))
    moved = make_plan(make_cluster([[0]] * 2, brokers=3, size_bytes=[2, 2], capacity_disk_bytes=[9, 3, 3]), drain)
    assert [(each.brokers, each.needed_bytes) for each in find_shortages(moved)] == [((1,), 2), ((2,), 2)]


@pytest.mark.parametrize(
    "unknown",
    [{"capacity_disk_bytes": [4.5, UNKNOWN, 2.5]}, {"size_bytes": [UNKNOWN] * 2}],
    ids=["a capacity", "all sizes"],
)
def test_nothing_is_said_of_what_is_unknown(unknown: dict[str, Any]) -> None:
    known = {"size_bytes": [4.0, 5.0], "capacity_disk_bytes": [4.5, 6, 2.5]}
    assert find_shortages(make_plan(make_cluster([[0], [1]], brokers=3, **known | unknown), UNCHANGED)) == ()
