"""The time that a plan should take is said before it begins, and compared with the time that it took."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from controller_core.model.ids import BrokerId, PartitionId, TopicName
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.rebalance.duration import compare_durations, estimate_seconds, learn_pace
from controller_operator.plans.rebalance.planner import decide
from controller_operator.plans.rebalance.run import Surroundings
from controller_operator.resources import RebalancePlan
from controller_operator.resources.conditions import ConditionType
from controller_operator.resources.rebalancing.rebalance_plan import PlannedMove
from tests.unit.operator.clusters import NOW, ready, reassignment, rebalance_plan
from tests.unit.operator.plans.rebalance.test_decisions import (
    REQUIRED,
    TWO_BATCHES,
    answer,
    later,
    make_owned,
    make_planned,
    make_view,
    see,
    start,
)

THROTTLE = {"throttle": {"bytesPerSecond": 1024}}


def move(before: Sequence[int], after: Sequence[int], size: int | None, batch: int = 0) -> PlannedMove:
    return PlannedMove(
        topic=TopicName("orders"),
        partition=PartitionId(0),
        before=tuple(map(BrokerId, before)),
        after=tuple(map(BrokerId, after)),
        bytes=size,
        batch=batch,
    )


@pytest.mark.parametrize(
    ("moves", "seconds"),
    [
        ([], 0),
        ([move([1, 2], [2, 1], 0)], 0),
        ([move([1, 2], [3, 2], 1000)], 10),
        ([move([1, 2], [3, 2], 1000), move([2, 1], [3, 1], 1000)], 20),
        ([move([1, 2], [3, 2], 1000), move([1, 2], [4, 2], 1000)], 20),
        ([move([1, 2], [3, 2], 1000), move([2, 1], [4, 1], 1000)], 10),
        ([move([1, 2], [3, 2], 1000), move([2, 1], [4, 1], 1000, batch=1)], 20),
        ([move([1], [3, 2], 2000)], 20),
        ([move([1, 2], [3, 2], 1000), move([1, 2], [3, 2], None)], 20),
        ([move([1, 2], [3, 2], None)], None),
        ([move([1, 2], [3, 2], 1)], 1),
        ([move([1, 2], [3, 2], 2**62)], 365 * 86_400),
    ],
    ids=[
        "nothing",
        "an order",
        "a copy",
        "one receiver",
        "one sender",
        "two pairs",
        "two batches",
        "two copies of one partition",
        "a size is unknown",
        "all sizes are unknown",
        "rounded up",
        "at most a year",
    ],
)
def test_a_batch_takes_as_long_as_its_busiest_broker(moves: list[PlannedMove], seconds: int | None) -> None:
    assert estimate_seconds(moves, 100) == seconds
    assert estimate_seconds(moves, None) is None


def test_the_words_need_both_times_and_a_clock_that_was_not_set_back() -> None:
    began, ended = NOW, NOW + timedelta(hours=3, minutes=20)
    assert compare_durations(3 * 3600, began, ended) == "; expected 3h, took 3h20m"
    assert compare_durations(None, began, ended) == ""
    assert compare_durations(60, None, ended) == ""
    assert compare_durations(60, ended, began) == ""


def plan_huge(spec: dict[str, Any], **about: Any) -> tuple[RebalancePlan, Plan[Any]]:
    """Return a plan of two batches, each of which takes an hour and a half at the throttle."""
    resource = rebalance_plan(spec, **about)
    moves = [each.model_copy(update={"bytes": 5400 * 1024}) for each in make_planned(TWO_BATCHES).moves]
    planned = make_planned(TWO_BATCHES)
    found = type(planned)(**{name: getattr(planned, name) for name in planned.__slots__} | {"moves": tuple(moves)})
    return resource, answer(resource, found)


def test_a_person_who_approves_a_plan_reads_how_long_it_should_take() -> None:
    _, plan = plan_huge(REQUIRED | THROTTLE)
    assert plan.status.counts.expected_seconds == 3 * 3600
    message = plan.status.condition(ConditionType.READY).message
    assert message.startswith("the plan of 2 moves, which should take 3h, waits for approval")


def test_without_a_throttle_no_time_is_promised() -> None:
    _, plan = plan_huge(REQUIRED)
    assert plan.status.counts.expected_seconds is None
    assert "should take" not in plan.status.condition(ConditionType.READY).message


def test_a_plan_that_ends_compares_the_time_it_took_with_the_expected_one() -> None:
    resource, waiting = plan_huge({"mode": "rebalance", **REQUIRED, **THROTTLE})
    approved = later(resource, waiting, approvedPlan=waiting.status.plan_hash)
    plan = decide(approved, make_view(), Context(now=NOW), Surroundings())
    for number, cluster in enumerate((make_view([3, 2], [2, 1]), make_view([3, 2], [2, 3])), start=1):
        name = start(plan).name
        running = later(approved, plan)
        moves = make_owned(name, "Completed", 1, 1)
        ended = Context(now=NOW + timedelta(minutes=100 * number))
        plan = decide(running, cluster, ended, Surroundings(moves=moves))
    message = ready(plan).message
    assert message == "the plan is carried out; 2 partitions moved; expected 3h, took 3h20m"
    (notice,) = plan.notices
    assert notice.message == message


def make_batch(
    took_s: float | None, *, done: int = 2, spec: dict[str, Any] | None = None, generation: int = 1
) -> dict[str, Any]:
    """Return the spec and the status of a batch of `TO_3` at 1024 bytes a second that took so long."""
    ended = None if took_s is None else (NOW + timedelta(seconds=took_s)).isoformat()
    return {
        "generation": generation,
        "spec": {"throttle": {"bytesPerSecond": 1024}, **(spec or {})},
        "status": {
            "phase": "Completed",
            "counts": {"total": 2, "done": done},
            "startTime": NOW.isoformat(),
            "completionTime": ended,
        },
    }


@pytest.mark.parametrize(
    ("size", "batch", "pace"),
    [
        (100, make_batch(130), 130),
        (100, make_batch(20), 50),
        (100, make_batch(10_000), 1_000),
        (59, make_batch(590), 77),
        (100, make_batch(None), 77),
        (100, make_batch(-5), 77),
        (100, make_batch(130, spec={"throttle": None}), 77),
        (100, make_batch(130, spec={"schedule": {"windows": [{"schedule": "0 22 * * *", "durationMinutes": 60}]}}), 77),
        (100, make_batch(130, generation=2), 77),
    ],
    ids=[
        "slower",
        "much faster",
        "much slower",
        "short",
        "no end",
        "clock set back",
        "no throttle",
        "windows",
        "changed spec",
    ],
)
def test_a_batch_of_a_minute_or_more_tells_the_pace(size: int, batch: dict[str, Any], pace: int) -> None:
    moves = [move([1, 2], [3, 2], size * 1024)]
    found = reassignment({0: [3, 2]}, {**batch["spec"]}, status=batch["status"], generation=batch["generation"])
    assert learn_pace(77, moves, found) == pace


def test_the_next_expectation_is_corrected_by_the_pace_of_the_batch_before() -> None:
    assert [estimate_seconds([move([1, 2], [3, 2], 1000)], 100, pace) for pace in (None, 100, 150, 33)] == [
        10,
        10,
        15,
        4,
    ]
    resource, plan = plan_huge({"mode": "rebalance", **THROTTLE})
    assert plan.status.counts.expected_seconds == 3 * 3600
    batch = make_batch(2 * 5400, done=1)
    moves = {start(plan).name: reassignment({0: [3, 2]}, batch["spec"], name=start(plan).name, status=batch["status"])}
    after = see(later(resource, plan), make_view([3, 2], [2, 1]), moves=moves)
    assert after.status.pace_percent == 200
    _, next_one = plan_huge({"mode": "rebalance", **THROTTLE}, status={"pacePercent": 200})
    assert next_one.status.counts.expected_seconds == 6 * 3600
