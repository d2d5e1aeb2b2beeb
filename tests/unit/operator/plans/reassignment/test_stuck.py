"""The row of a partition whose move is stuck says what it waits for, and so do the conditions and one event."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controller_core.model.ids import BrokerId, PartitionId, TopicPartition
from controller_core.model.metadata import PartitionState
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.stalls import NO_STALLS, Stalls
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.reassignment.planner import decide
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.reassignment import ReassignmentPhase
from tests.unit.operator.clusters import (
    NOW,
    ORDERS,
    assign,
    healthy,
    lead,
    ready,
    reassignment,
    status_of,
    topic,
    view,
)

TARGETS = {0: [5], 1: [5]}
SINGLE = assign([5, 4], [5], [4])
TWO = assign([5, 3, 4], [5], [3, 4])
BEGUN = status_of(decide(reassignment(TARGETS), view(healthy([4], [4])), Context(now=NOW)))
TO_5 = (BrokerId(5),)
FIRST, SECOND = (TopicPartition(ORDERS, PartitionId(number)) for number in (0, 1))


def cluster(first: PartitionState, *brokers: int, assignment: Any = SINGLE) -> Snapshot:
    """Two partitions that go from broker 4 to 5; the second one is doing well."""
    return view(topic((assignment, first), (SINGLE, lead(4, [4]))), brokers=brokers or (1, 2, 3, 4, 5))


def look(seen: Snapshot, status: Any = None, stalls: Stalls = NO_STALLS, **spec: Any) -> Plan[Any]:
    move = reassignment(TARGETS, spec, status=BEGUN if status is None else status)
    return decide(move, seen, Context(now=NOW, is_view_fresh=True, stalls=stalls))


def messages(plan: Plan[Any]) -> dict[int, str | None]:
    return {int(row.partition): row.message for row in plan.status.partitions}


WELL = cluster(lead(4, [4]))
CAUSES = [
    (
        cluster(lead(-1, [4]), 1, 2, 3, 5),
        NO_STALLS,
        Reason.PARTITIONS_OFFLINE,
        "has no leader, so nothing can be copied: start broker 4, which was in sync last",
    ),
    (
        cluster(lead(-1, [3, 4]), 1, 2, 5, assignment=TWO),
        NO_STALLS,
        Reason.PARTITIONS_OFFLINE,
        "has no leader, so nothing can be copied: start one of brokers 3, 4, which were in sync last",
    ),
    (
        cluster(lead(-1, [4])),
        NO_STALLS,
        Reason.PARTITIONS_OFFLINE,
        "has no leader, so nothing can be copied: look at the logs of broker 4, which was in sync last: a log directory "
        "may have failed",
    ),
    (
        WELL,
        Stalls(on_failed_directories={FIRST: TO_5}),
        Reason.LOG_DIRECTORY_FAILED,
        "is not copied, because of a failed log directory of broker 5: look at its log, and repair or replace the disk",
    ),
    (
        WELL,
        Stalls(idle={FIRST: TO_5}),
        Reason.COPY_STALLED,
        "is not copied, because for 5 minutes nothing has arrived at broker 5: look at its log, and at that of the "
        "leader, broker 4",
    ),
]


@pytest.mark.parametrize(("seen", "stalls", "reason", "why"), CAUSES)
def test_a_cause_is_named_in_the_row_the_conditions_and_an_event(
    seen: Snapshot, stalls: Stalls, reason: Reason, why: str
) -> None:
    plan = look(seen, stalls=stalls)
    assert messages(plan) == {0: why, 1: None}
    assert ready(plan).reason is reason
    assert ready(plan).message == f"2 of 2 partitions are on their way; orders-0 {why}"
    assert plan.status.condition(ConditionType.RECONCILING).reason is reason
    assert plan.status.phase is ReassignmentPhase.RUNNING
    assert [(each.reason, each.message, each.is_warning) for each in plan.notices] == [
        (reason, f"orders-0 {why}", True)
    ]


def test_a_new_replica_whose_broker_is_away_is_waited_for() -> None:
    plan = look(cluster(lead(4, [4]), 1, 2, 3, 4))
    why = "waits for its new replica on broker 5, which is not registered: start it"
    assert messages(plan) == {0: why, 1: why}
    assert (ready(plan).reason, [each.reason for each in plan.notices]) == (Reason.BROKERS_MISSING, ["BrokersMissing"])


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (
            {"throttle": {"bytesPerSecond": 5000}},
            "is copied no faster than producers write under the limit of 5000 bytes a second, so the move does not end: "
            "raise throttle.bytesPerSecond",
        ),
        (
            {},
            "is copied no faster than producers write, and the move does not end: let producers write less for a time",
        ),
    ],
)
def test_a_move_that_falls_behind_its_producers_says_that_it_does_not_end(spec: Any, why: str) -> None:
    status = {**BEGUN, "throttle": {"bytesPerSecond": 5000, "isSet": True}} if spec else BEGUN
    plan = look(WELL, status, Stalls(falls_behind=True), **spec)
    assert messages(plan) == {0: why, 1: why}
    assert ready(plan).reason is Reason.COPY_FALLS_BEHIND


def test_an_event_comes_once_for_each_cause_and_a_second_cause_has_its_own() -> None:
    away = cluster(lead(-1, [4]), 1, 2, 3, 5)
    first = look(away)
    again = look(away, status_of(first))
    assert (messages(again), again.notices) == (messages(first), ())
    both = look(away, status_of(again), Stalls(idle={SECOND: TO_5}))
    assert [each.reason for each in both.notices] == ["CopyStalled"]
    assert ready(both).reason is Reason.PARTITIONS_OFFLINE
    assert "orders-1 is not copied" in ready(both).message


def test_more_partitions_with_the_same_cause_are_no_new_event() -> None:
    first = look(WELL, stalls=Stalls(idle={FIRST: TO_5}))
    more = look(WELL, status_of(first), Stalls(idle={FIRST: TO_5, SECOND: TO_5}))
    assert more.notices == ()
    assert "orders-0, orders-1 is not copied" in ready(more).message


def test_a_move_that_goes_on_says_nothing_of_it_any_more() -> None:
    stuck = look(cluster(lead(-1, [4]), 1, 2, 3, 5))
    plan = look(WELL, status_of(stuck))
    assert (messages(plan), plan.notices) == ({0: None, 1: None}, ())
    assert (ready(plan).reason, ready(plan).message) == (Reason.PROGRESSING, "2 of 2 partitions are on their way")


def test_an_event_is_told_again_only_after_an_hour() -> None:
    away = cluster(lead(-1, [4]), 1, 2, 3, 5)
    move = reassignment(TARGETS, status=BEGUN)
    looks = [
        decide(move, away, Context(now=NOW + timedelta(minutes=minutes))).notices[0].series for minutes in (0, 50, 70)
    ]
    assert looks[0] == looks[1] != looks[2]


def test_a_suspended_move_names_what_those_that_move_wait_for() -> None:
    plan = look(replace(cluster(lead(-1, [4]), 1, 2, 3, 5)), suspend=True)
    assert (messages(plan)[0] or "").startswith("has no leader")
    assert [each.reason for each in plan.notices] == ["PartitionsOffline"]


def test_a_drain_names_the_same() -> None:
    before = view(healthy([4], [4]), brokers=(4, 5))
    drain = reassignment({}, {"drainBrokers": [4], "partitions": None})
    begun = status_of(decide(drain, before, Context(now=NOW)))
    running = reassignment({}, {"drainBrokers": [4], "partitions": None}, status=begun)
    plan = decide(running, cluster(lead(-1, [4]), 1, 2, 3, 5), Context(now=NOW, is_view_fresh=True))
    assert (messages(plan)[0] or "").endswith("start broker 4, which was in sync last")
