"""The mode relieve: a broker with full disks gives away the fewest bytes, and nothing else moves."""

from typing import Any

import pytest
from hypothesis import given

from bench.plan.checker import find_violations
from controller_planner.goals import Goals, InvalidGoals, Limits, Mode, Unsatisfiable
from controller_planner.loads import LoadSnapshot
from controller_planner.plan import Plan, Reason
from controller_planner.planning import make_plan
from tests.unit.planner.clusters import UNKNOWN, apply_plan, make_cluster, problems

DISKS = [100.0] * 4
ROOMY = [100.0, 400.0, 400.0, 400.0]
FULL = [[0, 1], [0, 2], [0, 1], [0, 2], [1, 2]]
SIZES = [40.0, 30.0, 15.0, 10.0, 7.0]
"""Broker 0 has 95 of 100 bytes."""


def relieve(*brokers: int, **fields: Any) -> Goals:
    return Goals(mode=Mode.RELIEVE, brokers=brokers, **fields)


def make_full(**fields: Any) -> LoadSnapshot:
    return make_cluster(FULL, **{"brokers": 4, "size_bytes": SIZES, "capacity_disk_bytes": DISKS, **fields})


def plan_for(snapshot: LoadSnapshot, goals: Goals) -> Plan:
    plan = make_plan(snapshot, goals)
    assert find_violations(plan) == []
    return plan


def list_moved(plan: Plan) -> list[int]:
    return sorted(move.partition for move in plan.iterate_moves())


@pytest.mark.parametrize(
    ("below_percent", "moved"), [(95, []), (90, [3]), (80, [2]), (70, [2, 3]), (60, [0]), (40, [0, 2])]
)
def test_the_fewest_bytes_leave_that_are_enough(below_percent: int, moved: list[int]) -> None:
    plan = plan_for(make_full(capacity_disk_bytes=ROOMY), relieve(0, below_percent=below_percent))
    assert list_moved(plan) == moved
    assert plan.left_out == ()
    assert all(move.reasons == (Reason.RELIEF,) for move in plan.iterate_moves())


def test_the_smallest_replica_that_is_enough_leaves_instead_of_many_small_ones() -> None:
    sizes = [60.0, 20.0, *[1.0] * 15]
    snapshot = make_cluster([[0]] * 17, brokers=2, size_bytes=sizes, capacity_disk_bytes=[100.0, 100.0])
    assert list_moved(plan_for(snapshot, relieve(0, below_percent=75))) == [1]


def test_the_largest_replica_is_not_taken_if_smaller_ones_copy_less() -> None:
    snapshot = make_cluster([[0]] * 4, brokers=2, size_bytes=[9, 7, 4, 21], capacity_disk_bytes=[40.0, 40.0])
    assert list_moved(plan_for(snapshot, relieve(0, below_percent=75))) == [1, 2]


def test_a_plan_of_its_own_result_moves_nothing() -> None:
    goals = relieve(0, below_percent=50)
    assert len(plan_for(apply_plan(plan_for(make_full(), goals)), goals)) == 0


def test_other_full_brokers_neither_give_nor_get_replicas() -> None:
    rows = [[0], [0], [0], [1], [1], [2]]
    snapshot = make_cluster(rows, brokers=4, size_bytes=[30, 30, 30, 50, 40, 10], capacity_disk_bytes=DISKS)
    plan = plan_for(snapshot, relieve(0, below_percent=60))
    assert {move.before for move in plan.iterate_moves()} == {(0,)}
    assert not any(1 in move.after for move in plan.iterate_moves())


def test_several_brokers_are_relieved_and_none_of_them_gets_replicas_of_another() -> None:
    rows = [[0], [0], [0], [1], [1], [1]]
    snapshot = make_cluster(rows, brokers=4, size_bytes=[30.0] * 6, capacity_disk_bytes=DISKS)
    plan = plan_for(snapshot, relieve(0, 1, below_percent=70))
    assert plan.loads_after[:, 1].tolist() == [60, 60, 30, 30]


def test_a_receiver_stays_below_the_same_percentage_of_its_own_disks() -> None:
    snapshot = make_full(capacity_disk_bytes=[100.0, 100.0, 100.0, 15.0])
    plan = plan_for(snapshot, relieve(0, below_percent=80))
    assert [move.after for move in plan.iterate_moves()] == [(2, 1)], "15 are 100 % of broker 3"


def test_replicas_do_not_go_to_a_more_crowded_rack_and_others_are_chosen() -> None:
    plan = plan_for(make_full(racks=["a", "b", "c", "b"], size_bytes=[15, 30, 40, 10, 7]), relieve(0, below_percent=80))
    assert [move.after for move in plan.iterate_moves()] == [(2, 1)], "brokers 1 and 3 share a rack"
    plan = plan_for(make_full(racks=["a", "b", "b", "b"]), relieve(0, below_percent=80))
    assert len(plan) == 0
    assert plan.left_out[0].startswith("broker 0 keeps 95 bytes, 15 more than 80 percent of its disks")


def test_excluded_cordoned_and_dead_brokers_and_other_topics_take_no_part() -> None:
    snapshot = make_cluster(
        [[0]] * 4,
        brokers=6,
        size_bytes=[30.0, 30.0, 20.0, 10.0],
        topics=("t", "u"),
        topic=[0, 1, 0, 0],
        capacity_disk_bytes=[100.0] * 6,
        takes_replicas=[True, True, False, True, True, True],
        is_live=[True, True, True, False, True, True],
    )
    plan = plan_for(snapshot, relieve(0, below_percent=35, topics=("t",), excluded_brokers=(4, 5)))
    assert {move.after for move in plan.iterate_moves()} == {(1,)}
    assert {move.topic for move in plan.iterate_moves()} == {"t"}
    assert plan.loads_after[1, 1] <= 35


def test_a_full_broker_that_is_cordoned_or_down_is_relieved_as_well() -> None:
    for change in ({"takes_replicas": [False, True, True, True]}, {"is_live": [False, True, True, True]}):
        plan = plan_for(make_full(**change), relieve(0, below_percent=80))
        assert list_moved(plan) == [2]


def test_without_a_percentage_the_bound_is_the_band_around_the_mean() -> None:
    plan = plan_for(make_full(capacity_disk_bytes=[UNKNOWN] * 4), relieve(0))
    share = 2 * sum(SIZES) / 4
    assert plan.loads_after[0, 1] <= 1.05 * share < plan.loads_before[0, 1]
    assert list_moved(plan) == [1, 2], "45 bytes are the fewest above 41.45"


def test_what_cannot_leave_stays_and_the_plan_says_how_much_is_too_much() -> None:
    snapshot = make_full(capacity_disk_bytes=[100.0, 30.0, 30.0, 30.0])
    plan = plan_for(snapshot, relieve(0, below_percent=60))
    assert plan.left_out == (
        "broker 0 keeps 80 bytes, 20 more than 60 percent of its disks: no other broker may take another of its replicas"
        " and stay below the same bound; allow more, add brokers or remove data",
    )
    assert list_moved(plan) == [2]


def test_a_partition_without_a_live_copy_is_named_only_if_it_is_needed() -> None:
    lost = make_full(capacity_disk_bytes=ROOMY, in_sync=[[False, False], *[[True, True]] * 4])
    assert plan_for(lost, relieve(0, below_percent=80)).left_out == ()
    left_out = plan_for(lost, relieve(0, below_percent=20)).left_out
    assert left_out[0] == "t-0: no replica in sync is on a live broker, so nothing can be copied from it"
    assert left_out[1].startswith("broker 0 keeps 40 bytes, 20 more than 20 percent")


def test_a_broker_of_unknown_capacity_gets_nothing_if_a_percentage_is_to_be_kept() -> None:
    plan = plan_for(make_full(capacity_disk_bytes=[100.0, 100.0, 100.0, UNKNOWN]), relieve(0, below_percent=80))
    assert [move.after for move in plan.iterate_moves()] == [(2, 1)]
    assert not any("they have no limit" in line for line in plan.unknown)


def test_limits_cut_a_relief_and_the_next_plan_goes_on() -> None:
    goals = relieve(0, below_percent=40, limits=Limits(max_moves=1))
    plan = plan_for(make_full(capacity_disk_bytes=ROOMY), goals)
    assert list_moved(plan) == [0]
    assert plan.left_out == ("1 changes exceed the limits; another plan can make them afterwards",)
    assert list_moved(plan_for(apply_plan(plan), goals)) == [2]


def test_a_full_cluster_is_relieved_as_far_as_it_can_be() -> None:
    snapshot = make_cluster([[0]] * 10, brokers=2, size_bytes=[12.0] * 10, capacity_disk_bytes=[100.0, 50.0])
    plan = plan_for(snapshot, relieve(0, below_percent=80))
    assert plan.loads_after[:, 1].tolist() == [84, 36]
    assert plan.left_out[0].startswith("broker 0 keeps 84 bytes, 4 more than 80 percent of its disks")


@pytest.mark.parametrize(
    ("snapshot", "goals", "said"),
    [
        (
            make_full(capacity_disk_bytes=[UNKNOWN, *DISKS[1:]]),
            relieve(0, below_percent=80),
            "no percentage of an unknown disk capacity can be kept: give the capacity of broker 0, or no percentage",
        ),
        (
            make_full(capacity_disk_bytes=[UNKNOWN, UNKNOWN, *DISKS[2:]]),
            relieve(1, 0, below_percent=80),
            "give the capacity of brokers 0, 1, or no percentage",
        ),
        (make_full(size_bytes=[UNKNOWN] * 5), relieve(0), "no disk can be relieved, because no partition's size is"),
        (make_full(), relieve(9), "the cluster has no broker 9"),
    ],
)
def test_goals_that_the_cluster_cannot_have_say_why(snapshot: LoadSnapshot, goals: Goals, said: str) -> None:
    with pytest.raises(InvalidGoals) as raised:
        make_plan(snapshot, goals)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"mode": Mode.RELIEVE}, "name the brokers to relieve"),
        ({"below_percent": 80}, "a percentage of the disks is for the mode relieve, and not for rebalance"),
        ({"mode": Mode.RELIEVE, "brokers": (1,), "below_percent": 0}, "below_percent is 0; give 1 to 100"),
        ({"mode": Mode.RELIEVE, "brokers": (1,), "excluded_brokers": (1,)}, "brokers are named and excluded: 1"),
    ],
)
def test_contradicting_goals_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidGoals, match=said):
        Goals(**fields)


@given(problems(modes=(Mode.RELIEVE,)))
def test_a_relief_of_any_cluster_keeps_the_constraints_and_its_own_result(problem: tuple[LoadSnapshot, Goals]) -> None:
    snapshot, goals = problem
    try:
        plan = make_plan(snapshot, goals)
    except (InvalidGoals, Unsatisfiable):
        return
    assert find_violations(plan) == []
    if goals.limits.max_moves is None:
        assert len(make_plan(apply_plan(plan), goals)) == 0
