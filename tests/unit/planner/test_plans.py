"""Plans of each mode for clusters whose right plan is known."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from bench.plan.bars import compute_next_leaders
from bench.plan.checker import apply_moves, find_violations
from bench.plan.instances import INSTANCES, make_snapshot
from controller_planner.goals import Goals, InvalidGoals, Limits, Mode, Unsatisfiable
from controller_planner.loads import LoadSnapshot
from controller_planner.plan import Move, Plan, Reason
from controller_planner.planning import make_plan
from tests.unit.planner.clusters import UNKNOWN, make_cluster


def plan_for(snapshot: LoadSnapshot, goals: Goals) -> Plan:
    plan = make_plan(snapshot, goals)
    assert find_violations(plan) == []
    return plan


def moves_of(snapshot: LoadSnapshot, goals: Goals) -> list[Move]:
    return list(plan_for(snapshot, goals).iterate_moves())


def drain(*brokers: int) -> Goals:
    return Goals(mode=Mode.DRAIN, brokers=brokers)


def test_an_even_cluster_needs_no_plan() -> None:
    assert moves_of(make_cluster([[0, 1], [1, 2], [2, 0]] * 4), Goals()) == []


def test_a_new_broker_is_filled_with_the_fewest_moves() -> None:
    plan = plan_for(make_cluster([[0, 1], [1, 0]] * 6, brokers=3), Goals(mode=Mode.EXPAND))
    assert plan.loads_after[:, 0].tolist() == [8, 8, 8]
    assert plan.total_bytes == 8


def test_a_drained_broker_is_empty_and_nothing_else_moves() -> None:
    snapshot = make_cluster([[0, 1], [1, 2], [2, 3], [3, 0]] * 3, brokers=4)
    plan = plan_for(snapshot, drain(0))
    assert plan.total_bytes == 6
    assert all(0 not in replicas for replicas in apply_moves(plan).values())
    assert all(Reason.DRAIN in move.reasons for move in plan.iterate_moves())


def test_the_only_replica_of_a_drained_broker_moves() -> None:
    [move] = moves_of(make_cluster([[0]], brokers=2), drain(0))
    assert (move.before, move.after, move.bytes_copied) == ((0,), (1,), 1.0)


def test_a_partition_without_a_live_copy_is_left_out_and_the_others_move() -> None:
    plan = plan_for(make_cluster([[0], [0, 1]], leader=[-1, 1], is_live=[False, True, True]), drain(0))
    assert [move.partition for move in plan.iterate_moves()] == [1]
    assert plan.left_out == ("t-0: no replica in sync is on a live broker, so nothing can be copied from it",)


def test_a_crowded_rack_is_repaired() -> None:
    snapshot = make_cluster([[0, 1], [2, 3]] * 2, brokers=4, racks=("a", "a", "b", "b"))
    moves = moves_of(snapshot, Goals())
    assert len(moves) == 4
    assert all(Reason.RACK in move.reasons for move in moves)


def test_the_repair_of_racks_relieves_the_fullest_broker_also_if_it_leads() -> None:
    two_racks = next(each for each in INSTANCES if each.name == "two racks")
    plan = plan_for(make_snapshot(replace(two_racks, partitions=2_000, seed=3)), Goals())
    least_bytes = 1.3261e12  # by bench.plan.optimum.compute_bytes_bound
    assert least_bytes < plan.total_bytes <= 1.06 * least_bytes


def test_more_replicas_than_racks_are_as_spread_as_they_can_be() -> None:
    snapshot = make_cluster([[0, 1, 2]] * 4, brokers=6, racks=("a", "a", "a", "b", "b", "b"))
    for replicas in apply_moves(plan_for(snapshot, Goals())).values():
        assert sorted(sum(broker < 3 for broker in side) for side in (replicas,)) in ([1], [2])


def test_a_replication_factor_is_raised_and_lowered() -> None:
    snapshot = make_cluster([[0, 1], [1, 2], [2, 0]] * 3, brokers=4)
    raised = plan_for(snapshot, Goals(mode=Mode.REPLICATION_FACTOR, replication_factor=3))
    assert raised.total_bytes == 9
    assert raised.loads_after[3, 0] >= 6
    lowered = plan_for(snapshot, Goals(mode=Mode.REPLICATION_FACTOR, replication_factor=1))
    assert lowered.total_bytes == 0
    assert {len(replicas) for replicas in apply_moves(lowered).values()} == {1}


def test_the_replica_that_lags_is_removed_first() -> None:
    snapshot = make_cluster([[0, 1, 2]] * 2, in_sync=[[True, False, True]] * 2)
    moves = moves_of(snapshot, Goals(mode=Mode.REPLICATION_FACTOR, replication_factor=2))
    assert [set(move.after) for move in moves] == [{0, 2}, {0, 2}]


def test_leaders_are_evened_without_a_copy() -> None:
    plan = plan_for(make_cluster([[0, 1, 2]] * 30), Goals(mode=Mode.LEADERS_ONLY))
    assert plan.total_bytes == 0
    assert plan.loads_after[:, 4].tolist() == [10, 10, 10]
    led_anew = [move for move in plan.iterate_moves() if move.after[0] != move.before[0]]
    assert len(led_anew) == 20
    assert all({Reason.LEADERS, Reason.OUT} & set(move.reasons) for move in led_anew)


def test_a_replica_that_lags_is_not_made_the_leader() -> None:
    snapshot = make_cluster([[0, 1]] * 10, brokers=2, in_sync=[[True, False]] * 10)
    assert moves_of(snapshot, Goals(mode=Mode.LEADERS_ONLY)) == []


def test_the_leaders_after_a_loss_are_spread() -> None:
    rows = [[(leader + at) % 5 for at in range(4)] for leader in range(5)] * 20
    plan = plan_for(make_cluster(rows, brokers=5), Goals())
    after = apply_moves(plan)
    taken_over = np.bincount([replicas[1] for replicas in after.values() if replicas[0] == 0], minlength=5)
    assert taken_over.max() <= 8
    assert {reason for move in plan.iterate_moves() for reason in move.reasons} == {Reason.NEXT_LEADER}


def find_worst_next_leaders(plan: Plan) -> int:
    """Return the most leaderships that one broker takes over from another after the plan."""
    return max(Counter(replicas[:2] for replicas in apply_moves(plan).values()).values())


def test_with_two_replicas_the_leaders_after_a_loss_are_spread_by_other_leaders() -> None:
    # Half of the partitions that broker 0 leads are on broker 1 as well.
    rows = [[0, 1]] * 20 + [[0, 2], [0, 3]] * 10 + [[1, 2], [2, 3], [3, 1]] * 20
    plan = plan_for(make_cluster(rows, brokers=4), Goals(mode=Mode.LEADERS_ONLY))
    assert find_worst_next_leaders(plan) <= 14
    assert plan.loads_after[:, 4].max() <= 27


def test_a_broker_passes_next_leaders_on_so_that_it_can_take_others() -> None:
    # Of the leaderships of broker 0, broker 1 takes over two too many. Broker 2 could take them, and is at its limit.
    rows = [[0, 1, 2]] * 14 + [[0, 2, 3]] * 12 + [[0, 3, 4]] * 9 + [[0, 4, 5]] * 3
    for broker in range(1, 6):
        others = [each for each in range(6) if each != broker]
        rows += [[broker, others[at % 5], others[(at + 1) % 5]] for at in range(38)]
    plan = plan_for(make_cluster(rows, brokers=6), Goals(mode=Mode.LEADERS_ONLY))
    assert find_worst_next_leaders(plan) == 12


def test_a_broker_leads_more_if_it_may_then_hand_more_over_to_one_other() -> None:
    """Too many partitions have all replicas on the same four of twenty-four brokers, which do not lead what they may."""
    instance = next(each for each in INSTANCES if each.name == "uneven brokers")
    snapshot = make_snapshot(instance)
    plan = make_plan(snapshot, instance.goals)
    replicas = snapshot.partitions.replicas.copy()
    replicas[plan.partition] = plan.after
    most, bar = compute_next_leaders(plan, replicas)
    assert most <= bar
    assert (plan.loads_after / plan.shares <= plan.bounds + 1e-3).all()


def test_two_brokers_exchange_leaders_if_none_may_lead_one_more() -> None:
    snapshot = make_cluster([[0, 1], [0, 1], [1, 0], [1, 0]], brokers=2, out_bytes_per_second=[12.0, 10.0, 9.0, 9.0])
    plan = plan_for(snapshot, Goals(mode=Mode.LEADERS_ONLY))
    assert plan.loads_after[:, 4].tolist() == [2, 2]
    assert sorted(plan.loads_after[:, 3].tolist()) == [21, 23]


def test_the_replicas_of_a_topic_are_spread() -> None:
    rows = [[0], [0], [1], [1]] * 2
    topic = [0, 0, 1, 1] * 2
    plan = plan_for(
        make_cluster(rows, brokers=4, topics=("t", "u"), topic=topic, number=[0, 1, 0, 1, 2, 3, 2, 3]),
        Goals(mode=Mode.SPREAD),
    )
    of_t = [replicas[0] for (name, _), replicas in apply_moves(plan).items() if name == "t"]
    assert sorted(of_t) == [0, 1, 2, 3]


def test_a_larger_broker_gets_more() -> None:
    rows = [[0], [1]] * 30
    plan = plan_for(make_cluster(rows, brokers=2, capacity_disk_bytes=[200.0, 100.0]), Goals())
    assert plan.loads_after[0, 1] == pytest.approx(40, abs=2)


def test_a_full_disk_is_relieved_and_says_so() -> None:
    plan = plan_for(make_cluster([[0]] * 10, brokers=2, capacity_disk_bytes=[8.0, 8.0]), Goals())
    assert all(Reason.CAPACITY in move.reasons for move in plan.iterate_moves())


def test_disks_that_swap_their_content_do_so_in_batches() -> None:
    snapshot = make_cluster([[0]] * 12, brokers=2, capacity_disk_bytes=[20.0, 20.0])
    plan = plan_for(snapshot, Goals(mode=Mode.DRAIN, brokers=(0,), limits=Limits(max_batch_bytes_per_broker=4)))
    assert plan.batches == 3


def test_only_topics_in_scope_move() -> None:
    snapshot = make_cluster([[0]] * 8, brokers=2, topics=("t", "u"), topic=[0, 1] * 4)
    assert {move.topic for move in moves_of(snapshot, Goals(topics=("u",)))} == {"u"}
    assert {move.topic for move in moves_of(snapshot, Goals(excluded_topics=("u",)))} == {"t"}


def test_limits_cut_a_plan_and_it_says_so() -> None:
    goals = replace(drain(0), limits=Limits(max_moves=2))
    plan = plan_for(make_cluster([[0]] * 5, brokers=2), goals)
    assert len(plan) == 2
    assert plan.left_out == ("3 changes exceed the limits; another plan can make them afterwards",)


def test_what_nobody_measured_is_named() -> None:
    plan = plan_for(make_cluster([[0]] * 4, out_bytes_per_second=[UNKNOWN] * 4, size_bytes=[1, 1, 1, UNKNOWN]), Goals())
    assert plan.unknown == (
        "sizes unknown for 1 of 4 partitions",
        "read traffic unknown",
        "disk capacities unknown: nothing keeps the plan from filling a disk",
    )


def test_brokers_without_a_capacity_that_others_have_are_named_with_what_holds_for_them() -> None:
    cluster = make_cluster(
        [[0], [1], [2]] * 2,
        brokers=9,
        is_live=[True] * 8 + [False],
        capacity_disk_bytes=[100.0] * 8 + [UNKNOWN],
        capacity_in_bytes_per_second=[UNKNOWN, 100.0, UNKNOWN] + [100.0] * 6,
        capacity_out_bytes_per_second=[100.0] + [UNKNOWN] * 8,
    )
    equal = "they have no limit, and all brokers get equal shares"
    assert plan_for(cluster, Goals()).unknown == (
        f"in capacity unknown for brokers 0, 2: {equal}",
        f"out capacity unknown for brokers 1, 2, 3, 4, 5 and 2 more: {equal}",
    )


def test_loads_that_nobody_measured_are_unknown_and_not_zero() -> None:
    nothing = [UNKNOWN] * 4
    cluster = make_cluster([[0]] * 4, size_bytes=nothing, in_bytes_per_second=nothing, out_bytes_per_second=nothing)
    plan = plan_for(cluster, Goals())
    for loads in (plan.loads_before, plan.loads_after):
        assert np.isnan(loads).all(axis=0).tolist() == [False, True, True, True, False]
    assert np.isnan(plan.bytes_copied).any()


def test_a_limit_of_bytes_counts_unknown_sizes_as_the_mean_and_is_refused_without_any_size() -> None:
    goals = Goals(mode=Mode.DRAIN, brokers=(0,), limits=Limits(max_bytes=25.0))
    some = make_cluster([[0]] * 4, brokers=2, size_bytes=[10.0, 10.0, UNKNOWN, UNKNOWN])
    assert len(plan_for(some, goals)) == 2
    none = make_cluster([[0]] * 4, brokers=2, size_bytes=[UNKNOWN] * 4)
    with pytest.raises(InvalidGoals, match=r"max_bytes cannot be kept, .* give max_moves instead"):
        make_plan(none, goals)
    batches = Goals(mode=Mode.DRAIN, brokers=(0,), limits=Limits(max_batch_bytes_per_broker=25.0))
    assert plan_for(none, batches).left_out == (
        "batches are not limited in bytes, because no partition's size is known",
    )


def test_copies_of_unknown_size_take_room_in_a_batch_as_the_mean() -> None:
    snapshot = make_cluster([[0]] * 12, brokers=2, size_bytes=[1.0] + [UNKNOWN] * 11, capacity_disk_bytes=[20.0, 20.0])
    plan = plan_for(snapshot, Goals(mode=Mode.DRAIN, brokers=(0,), limits=Limits(max_batch_bytes_per_broker=4)))
    assert plan.batches == 3


@pytest.mark.parametrize(
    ("goals", "message"),
    [
        (Goals(topics=("x",)), "the cluster has no topic x"),
        (drain(7), "the cluster has no broker 7"),
        (Goals(mode=Mode.EXPAND), "there is no broker to fill"),
    ],
)
def test_goals_for_another_cluster_are_refused(goals: Goals, message: str) -> None:
    with pytest.raises(InvalidGoals, match=message):
        make_plan(make_cluster([[0, 1, 2]]), goals)


def test_constraints_that_contradict_are_refused_with_what_is_missing() -> None:
    with pytest.raises(Unsatisfiable, match="3 replicas need as many brokers, and 1 too few are up"):
        make_plan(make_cluster([[0, 1, 2]]), drain(0))
    with pytest.raises(Unsatisfiable, match="disk: 10 bytes for brokers of 8 bytes, 2 too many; add brokers"):
        make_plan(make_cluster([[0]] * 10, brokers=2, capacity_disk_bytes=[4.0, 4.0]), Goals())
    goals = Goals(mode=Mode.REPLICATION_FACTOR, replication_factor=1)
    with pytest.raises(Unsatisfiable, match=r"1 replicas are fewer than min.insync.replicas 2; lower that first"):
        make_plan(make_cluster([[0, 1]], min_isr=[2]), goals)


@pytest.mark.parametrize(
    "fields",
    [{"band": 1.0}, {"seed": -1}, {"replication_factor": 2}, {"mode": Mode.DRAIN}, {"brokers": (1,)}],
)
def test_goals_that_contradict_themselves_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidGoals):
        Goals(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("brokers", [0, 1, 3])
def test_a_cluster_without_partitions_gives_an_empty_plan(brokers: int) -> None:
    assert moves_of(make_cluster([], brokers=brokers), Goals()) == []


def test_a_single_broker_has_nowhere_to_move_to() -> None:
    assert moves_of(make_cluster([[0]] * 5, brokers=1), Goals()) == []


def test_new_brokers_are_filled_evenly_in_each_resource_with_the_fewest_bytes() -> None:
    instance = next(each for each in INSTANCES if each.name == "expand")
    plan = plan_for(make_snapshot(replace(instance, partitions=5_000, brokers=30)), Goals(mode=Mode.EXPAND))
    excess = plan.loads_before / plan.shares - plan.bounds
    is_new, is_above = np.equal(plan.loads_before[:, 0], 0), np.any(excess > 0, axis=1)
    for move in plan.iterate_moves():
        assert all(is_new[broker] for broker in set(move.after) - set(move.before))
        assert all(is_above[broker] for broker in set(move.before) - set(move.after))
    replicas, disk, incoming, outgoing, leaders = (plan.loads_after / plan.shares - plan.bounds).max(axis=0)
    assert max(replicas, disk, outgoing, leaders) <= 0.001
    assert incoming <= 0.04  # a few partitions have most of the traffic, and no six brokers can share it evenly
    assert (plan.loads_after / plan.shares)[is_new].min() > 0.8
    least_bytes = (np.maximum(excess, 0) * plan.shares)[:, 1].sum()
    assert least_bytes <= plan.total_bytes <= 1.01 * least_bytes


def test_numbers_that_cannot_be_divided_are_rounded_up_on_each_broker() -> None:
    plan = plan_for(make_cluster([[0]] * 7, brokers=2), Goals())
    assert sorted(plan.loads_after[:, 0].tolist()) == [3, 4]
    assert plan.bounds[:, 0].tolist() == pytest.approx([8 / 7, 8 / 7])


def test_a_small_cluster_is_searched_until_single_replicas_fit() -> None:
    sizes = [5, 4, 3, 3, 3]
    plan = plan_for(make_cluster([[0]] * 5, brokers=2, size_bytes=sizes, in_bytes_per_second=[0] * 5), Goals())
    assert sorted(plan.loads_after[:, 1].tolist()) == [9, 9]
    assert plan.total_bytes == 9
