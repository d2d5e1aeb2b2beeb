"""Losses of brokers: what each means, against a slow reference in plain Python, and which losses are made up."""

import contextlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_planner.goals import Goals, InvalidGoals, Mode, Unsatisfiable
from controller_planner.loads import LoadSnapshot
from controller_planner.losses import Loss, backtest, list_losses, make_result
from controller_planner.planning import make_plan
from tests.unit.planner.clusters import UNKNOWN, make_cluster, problems

LOSSES = st.lists(st.lists(st.integers(0, 8), max_size=4), min_size=1, max_size=5)


def lose(snapshot: LoadSnapshot, brokers: Sequence[int]) -> list[float]:
    """Return the figures of one loss, partition by partition."""
    live = {at for at in range(len(snapshot.brokers)) if snapshot.brokers.is_live[at]}
    left = {at for at in live if snapshot.brokers.ids[at] not in brokers}
    partitions = snapshot.partitions
    known = [rate for rate in partitions.in_bytes_per_second.tolist() if rate == rate]
    leaderless = below = one = 0
    leaders, incoming = Counter[int](), Counter[int]()
    for row, in_sync, leader, least, rate in zip(
        partitions.replicas.tolist(),
        partitions.in_sync.tolist(),
        partitions.leader.tolist(),
        partitions.min_isr.tolist(),
        partitions.in_bytes_per_second.tolist(),
        strict=True,
    ):
        usable = [broker for broker, is_in in zip(row, in_sync, strict=True) if is_in]
        led_by = leader if leader in live else next((broker for broker in usable if broker in live), None)
        after = leader if leader in left else next((broker for broker in usable if broker in left), None)
        count = sum(broker in left for broker in usable)
        leaderless += after is None
        below += after is not None and count < least
        one += after is not None and count == 1
        if led_by is not None and led_by not in left and after is not None:
            leaders[after] += 1
            incoming[after] += rate if rate == rate else sum(known) / len(known)
    shares = [max(each.values()) / sum(each.values()) if sum(each.values()) else 0 for each in (leaders, incoming)]
    return [leaderless, below, one, *shares]


@given(problems(), LOSSES)
def test_losses_mean_what_the_slow_reference_says_before_and_after_a_plan(
    problem: tuple[LoadSnapshot, Goals], losses: list[list[int]]
) -> None:
    snapshots = [problem[0]]
    with contextlib.suppress(InvalidGoals, Unsatisfiable):
        snapshots.append(make_result(make_plan(*problem)))
    for snapshot in snapshots:
        found = backtest(snapshot, [Loss(brokers=tuple(brokers)) for brokers in losses])
        np.testing.assert_allclose(found, [lose(snapshot, brokers) for brokers in losses])


def test_a_loss_counts_leaders_replicas_in_sync_and_who_takes_over() -> None:
    rows = [[0, 1, 2], [0, 1, 2], [0, 2, 1], [1, 2, 0], [0]]
    snapshot = make_cluster(rows, brokers=3, min_isr=[2] * 4 + [1], in_bytes_per_second=[1, 1, 6, 1, 1])
    assert backtest(snapshot, [Loss(brokers=(0,)), Loss(brokers=(0, 1)), Loss(brokers=())]).tolist() == [
        [1, 0, 0, pytest.approx(2 / 3), 0.75],
        [1, 4, 4, 1, 1],
        [0, 0, 1, 0, 0],
    ]


def test_traffic_that_nobody_measured_is_unknown() -> None:
    snapshot = make_cluster([[0, 1]], in_bytes_per_second=[UNKNOWN])
    assert np.isnan(backtest(snapshot, [Loss(brokers=(0,))])[0, 4])


def test_a_plan_s_result_has_its_replicas_in_sync_and_its_preferred_leaders() -> None:
    in_sync = [[True, False], [True, True]]
    snapshot = make_cluster([[0, 1], [0, 1]], brokers=4, in_sync=in_sync, is_live=[True, True, True, False])
    after = make_result(make_plan(snapshot, Goals(mode=Mode.DRAIN, brokers=(0,)))).partitions
    assert after.replicas.tolist() == [[2, 1], [2, 1]] or after.replicas.tolist() == [[2, 1], [1, 2]]
    assert after.in_sync.tolist()[0] == [True, False], "the replica that stays lags as before"
    assert after.in_sync[1].all()
    assert after.leader.tolist() == after.replicas[:, 0].tolist()


def test_without_a_history_each_broker_each_rack_and_random_pairs_are_lost() -> None:
    racks = ["a", "a", "b", None, "c"]
    snapshot = make_cluster([[0, 1]], brokers=5, racks=racks, ids=[10, 11, 12, 13, 14], is_live=[True] * 4 + [False])
    losses = [loss.brokers for loss in list_losses(snapshot, 3, seed=1)]
    assert losses[:5] == [(10,), (11,), (12,), (13,), (10, 11)]
    assert len(set(losses[5:])) == 3
    assert losses == [loss.brokers for loss in list_losses(snapshot, 3, seed=1)]
    all_pairs = {loss.brokers for loss in list_losses(snapshot, 99)[5:]}
    assert all_pairs == {(10, 11), (10, 12), (10, 13), (11, 12), (11, 13), (12, 13)}


def test_a_cluster_without_brokers_or_partitions_has_no_losses() -> None:
    assert list_losses(make_cluster([], brokers=0), 5) == ()
    assert backtest(make_cluster([], brokers=2), [Loss(brokers=(0,))]).tolist() == [[0, 0, 0, 0, 0]]
