"""A plan changes only brokers in its scope: excluded brokers, and those of other racks, keep their replicas."""

from dataclasses import replace

import pytest

from bench.plan.checker import apply_moves, find_violations
from bench.plan.instances import Instance, make_snapshot
from controller_planner.goals import Goals, InvalidGoals, Mode
from controller_planner.planning import make_plan
from tests.unit.planner.clusters import make_cluster

RACKS = ("a", "a", "a", "b", "b", "b")


def count(plan_of: Goals, rows: list[list[int]]) -> list[int]:
    """Return the replicas of each broker after a plan that violates nothing."""
    plan = make_plan(make_cluster(rows, brokers=6, racks=RACKS), plan_of)
    assert find_violations(plan) == []
    held = [broker for row in apply_moves(plan).values() for broker in row]
    return [held.count(broker) for broker in range(6)]


def test_a_rebalance_of_one_rack_changes_no_broker_of_another_one() -> None:
    rows = [[0, 3], [0, 3], [1, 3]] * 6
    assert count(Goals(racks=("a",)), rows) == [6, 6, 6, 18, 0, 0]
    assert count(Goals(), rows) == [6, 6, 6, 6, 6, 6]


def test_replicas_outside_of_the_scope_raise_no_bound_in_it() -> None:
    """The rack holds one replica of each partition, and not two, so its brokers are to have equal numbers of them."""
    rows = [[0, 3], [0, 3], [1, 4]] * 8
    assert count(Goals(racks=("a",)), rows)[:3] == count(Goals(excluded_brokers=(3, 4, 5)), rows)[:3] == [8, 8, 8]


def test_a_broker_is_drained_in_any_rack_and_its_replicas_go_to_the_racks_in_scope() -> None:
    rows = [[3, 0]] * 6
    assert count(Goals(mode=Mode.DRAIN, brokers=(3,), racks=("b",)), rows) == [6, 0, 0, 0, 3, 3]
    assert count(Goals(mode=Mode.DRAIN, brokers=(3,), racks=("a",)), rows) == [6, 3, 3, 0, 0, 0]


def test_only_new_brokers_of_the_racks_in_scope_are_filled() -> None:
    rows = [[0, 3], [1, 3], [0, 4], [1, 4]] * 6
    filled = count(Goals(mode=Mode.EXPAND, racks=("a",)), rows)
    assert filled[2] > 0
    assert filled[3:] == [12, 12, 0]


@pytest.mark.parametrize(
    ("goals", "message"),
    [
        ({"racks": ("a", "x")}, "the cluster has no rack x"),
        ({"racks": ()}, "no rack is named: name racks, or leave them out for all"),
        ({"mode": Mode.EXPAND, "brokers": (5,), "racks": ("a",)}, "in other racks than those of the scope: 5"),
    ],
)
def test_racks_that_make_no_sense_are_refused(goals: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidGoals, match=message):
        make_plan(make_cluster([[0, 3]], brokers=6, racks=RACKS), Goals(**goals))  # type: ignore[arg-type]  # of a table


def test_fewer_replicas_come_from_brokers_that_are_in_the_scope() -> None:
    fewer = Goals(mode=Mode.REPLICATION_FACTOR, replication_factor=1, excluded_brokers=(0,))
    plan = make_plan(make_cluster([[1, 0], [0, 1], [1, 2]]), fewer)
    assert find_violations(plan) == []
    assert [*apply_moves(plan).values()][:2] == [(0,), (0,)]


def test_a_partition_with_too_many_replicas_on_excluded_brokers_stays_and_the_plan_says_so() -> None:
    fewer = Goals(mode=Mode.REPLICATION_FACTOR, replication_factor=1, excluded_brokers=(0, 1))
    plan = make_plan(make_cluster([[0, 1, 2], [2, 0]]), fewer)
    assert [*apply_moves(plan).values()] == [(0, 1, 2), (0,)]
    assert plan.left_out == ("1 partitions keep their replicas: more are on excluded brokers than they are to have",)


def test_a_replica_on_a_broker_that_is_down_and_of_no_known_rack_goes_first() -> None:
    snapshot = make_cluster([[0, 1, 2]], racks=("a", "a", None), is_live=[True, True, False])
    plan = make_plan(snapshot, Goals(mode=Mode.REPLICATION_FACTOR, replication_factor=2, racks=("a",)))
    assert [*apply_moves(plan).values()] == [(0, 1)]


def test_plans_of_other_racks_have_other_hashes() -> None:
    snapshot = make_cluster([[0, 3]] * 4, brokers=6, racks=RACKS)
    hashes = {make_plan(snapshot, Goals(racks=racks)).compute_hash() for racks in (None, ("a",), ("a", "b"))}
    assert len(hashes) == 3


@pytest.mark.parametrize("seed", range(12))
def test_a_broker_that_gets_nothing_keeps_its_replicas_in_a_small_cluster(seed: int) -> None:
    """It is excluded, closed, or of a rack outside of the scope. Small clusters are searched for single replicas."""
    snapshot = make_snapshot(
        Instance(name="small", partitions=20, brokers=6, racks=3, history="skewed", replicas=2, seed=seed)
    )
    racks, open_ = snapshot.brokers.racks, snapshot.brokers.takes_replicas.copy()
    open_[0] = False
    closed = replace(snapshot, brokers=replace(snapshot.brokers, takes_replicas=open_))
    others = tuple(at for at in range(6) if racks[at] != racks[0])
    for given, goals, stay in (
        (snapshot, Goals(excluded_brokers=(0,)), (0,)),
        (closed, Goals(), (0,)),
        (snapshot, Goals(racks=(str(racks[0]),)), others),
    ):
        plan = make_plan(given, goals)
        assert find_violations(plan) == []
        for move in plan.iterate_moves():
            assert set(move.before) & set(stay) == set(move.after) & set(stay), (goals, move)
