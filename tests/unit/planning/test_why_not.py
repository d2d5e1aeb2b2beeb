"""Reasons against a replica on a broker."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controller_planner.goals import Goals, Limits, Mode
from controller_planner.loads import LoadSnapshot
from controller_planner.planning import make_plan
from kontroller.planning.what_if import suppose
from kontroller.planning.why_not import UnclearPlaceError, WhyNot, explain_why_not
from simulation.cluster.names import tp
from tests.unit.planning.snapshots import GIB, make_partition, make_snapshot

REBALANCE = Goals(mode=Mode.REBALANCE)
RELIEF = Goals(mode=Mode.RELIEVE, brokers=(1,), below_percent=50)
RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}
FLAT = {1: None, 2: None, 3: None, 4: None}
EVEN = {tp("orders", number): make_partition(number % 3 + 1, (number + 1) % 3 + 1) for number in range(6)}


def ask(question: str, snapshot: LoadSnapshot | None = None, goals: Goals = REBALANCE) -> WhyNot:
    return explain_why_not(question, make_plan(make_snapshot() if snapshot is None else snapshot, goals))


def change_brokers(snapshot: LoadSnapshot, **fields: Any) -> LoadSnapshot:
    return replace(snapshot, brokers=replace(snapshot.brokers, **fields))


def test_a_rack_with_a_replica_is_a_constraint() -> None:
    answer = ask("orders-0 on 4", goals=Goals(mode=Mode.DRAIN, brokers=(2,)), snapshot=make_snapshot(racks=RACKS))
    assert answer.replaced == 5
    assert answer.constraints == ("its rack a already has a replica, on broker 1",)


def test_a_broker_that_has_the_replica_is_said_to_have_it() -> None:
    answer = ask("orders-0 on broker 1", make_snapshot(EVEN, {1: "a", 2: "b", 3: "c"}))
    assert [*answer.format_lines()] == [
        "orders-0 is on brokers 1, 2, and the plan leaves it there",
        "broker 1 has a replica after the plan",
    ]


def test_a_full_disk_is_a_constraint_with_both_numbers() -> None:
    capacity = np.array([100.0, 100.0, 100.0, 4.5]) * GIB
    snapshot = change_brokers(
        make_snapshot({**EVEN, tp("large", 0): make_partition(1, 2, size=5 * GIB)}, FLAT), capacity_disk_bytes=capacity
    )
    answer = ask("large-0 on 4", snapshot)
    assert any(each.startswith("disk: broker 4 would have ") for each in answer.constraints), answer
    assert any(each.endswith(" of 4.5 GiB") for each in answer.constraints), answer


@pytest.mark.parametrize(
    ("question", "change", "goals", "constraint"),
    [
        ("orders-0 on 4", {"is_live": [True, True, True, False]}, REBALANCE, "broker 4 is down"),
        (
            "orders-0 on 4",
            {"takes_replicas": [True, True, True, False]},
            REBALANCE,
            "broker 4 takes no new replicas: it is cordoned, shuts down, or was named as closed",
        ),
        ("orders-0 on 4", {}, Goals(excluded_brokers=(4,)), "broker 4 is excluded"),
        (
            "orders-0 on 4",
            {"racks": ("a", "a", "a", "b")},
            Goals(racks=("a",)),
            "broker 4 is in rack b, which is not in the scope",
        ),
        ("orders-0 on 1", {}, Goals(mode=Mode.DRAIN, brokers=(1,)), "broker 1 is drained"),
        ("orders-1 on 1", {}, RELIEF, "broker 1 is relieved, and gets no replicas"),
        (
            "orders-0 on 4",
            {"capacity_disk_bytes": [GIB, GIB, GIB, float("nan")]},
            RELIEF,
            "the disk capacity of broker 4 is unknown, and 50 percent of it as well",
        ),
        ("orders-0 on 4", {}, Goals(mode=Mode.LEADERS_ONLY), "the mode leadersOnly copies nothing"),
        ("orders-0 on 3", {}, Goals(mode=Mode.EXPAND, brokers=(4,)), "the mode expand fills only broker 4"),
        ("orders-0 on 4", {}, Goals(excluded_topics=("orders",)), "topic orders is excluded"),
        ("orders-0 on 4", {}, Goals(topics=("other",)), "topic orders is none of those that may change"),
        (
            "orders-0 on 4",
            {},
            Goals(mode=Mode.DRAIN, brokers=(3,)),
            "the mode drain moves only replicas that must leave or are missing, and here is none",
        ),
    ],
)
def test_what_forbids_it_is_named(question: str, change: dict[str, Any], goals: Goals, constraint: str) -> None:
    snapshot = change_brokers(make_snapshot({**EVEN, tp("other", 0): make_partition(1)}, FLAT), **change)
    assert constraint in ask(question, snapshot, goals).constraints


def test_a_partition_without_a_live_copy_cannot_be_copied() -> None:
    lost = suppose("lose brokers 1, 2", make_snapshot(EVEN, FLAT)).snapshot
    answer = ask("orders-0 on 4", lost, Goals(mode=Mode.DRAIN, brokers=(1, 2)))
    assert "no replica in sync is on a live broker, so nothing can be copied from it" in answer.constraints


def test_a_fuller_broker_is_a_goal_with_its_share() -> None:
    crowded = {tp("orders", number): make_partition(1, 2) for number in range(8)}
    answer = ask("more-0 on 1", make_snapshot({**crowded, tp("more", 0): make_partition(3, 4)}, FLAT))
    assert answer.constraints == ()
    assert any("times its share; the plan allows" in each for each in answer.goals), answer


def test_a_move_that_nothing_needs_is_said_to_cost_bytes() -> None:
    answer = ask("orders-0 on 3", make_snapshot(EVEN, {1: None, 2: None, 3: None}))
    assert any(each.startswith("fewest bytes: broker ") for each in answer.goals), answer
    assert any(each.startswith("spread of orders: 4 replicas are on broker 3") for each in answer.goals), answer


def test_the_limits_of_the_plan_are_constraints() -> None:
    goals = Goals(limits=Limits(max_bytes=GIB // 2, max_moves=1))
    answer = ask("orders-0 on 3", make_snapshot(EVEN, {1: None, 2: None, 3: None}), goals)
    assert "the plan would copy 1.0 GiB, and max_bytes is 512.0 MiB" in answer.constraints


def test_an_equal_broker_has_nothing_against_it() -> None:
    snapshot = make_snapshot({tp("orders", 0): make_partition(1, 2)}, {1: None, 2: None, 3: None, 4: None})
    goals = Goals(mode=Mode.DRAIN, brokers=(1,))
    (move,) = make_plan(snapshot, goals).iterate_moves()
    (other,) = {3, 4} - set(move.after)
    lines = [*ask(f"orders-0 on {other}", snapshot, goals).format_lines()]
    assert lines[0].startswith("orders-0 is on brokers 1, 2, and the plan puts it on ")
    assert lines[1].startswith(f"nothing speaks against {other} in the place of ")


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("", "is not understood"),
        ("orders-0", 'ask "TOPIC-PARTITION on BROKER", such as "orders-3 on 7"'),
        ("orders-0 on -1", "is not understood"),
        ("none-0 on 1", "the snapshot has no topic none"),
        ("orders-6 on 1", "topic orders has no partition 6"),
        ("orders-9999999999 on 1", "topic orders has no partition 9999999999"),
        ("orders-0 on 9", "the snapshot has no broker 9"),
    ],
)
def test_a_question_that_is_not_clear_is_refused(question: str, why: str) -> None:
    with pytest.raises(UnclearPlaceError, match=why):
        ask(question)


def test_brokers_that_failed_together_are_a_reason_with_both_counts() -> None:
    goals = Goals(mode=Mode.DRAIN, brokers=(2,), failed_together=((1, 3, 2.0), (1, 4, 1.0)))
    answer = ask("orders-0 on 3", make_snapshot(EVEN, FLAT), goals)
    assert (answer.after, answer.replaced) == ((1, 4), 4)
    assert "failed together: broker 3 2 times with brokers of the other replicas, and 4 1 times" in answer.goals, (
        answer.goals
    )
