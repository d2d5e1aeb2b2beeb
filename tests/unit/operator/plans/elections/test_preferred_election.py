"""A preferred election is asked for once, for those partitions only that it can help."""

from dataclasses import replace
from typing import Any

import pytest

from controller_core.model.ids import PartitionId, TopicPartition
from controller_core.model.metadata import PreferredElectionPlan
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import SubmitPreferredElection
from controller_operator.plans.election.planner import decide
from controller_operator.plans.outcome import Context, Plan
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.election import ElectionPhase, ElectionResult
from tests.unit.operator.clusters import NOW, ORDERS, assign, election, healthy, lead, ready, status_of, topic, view

LOOK = Context(now=NOW)
FRESH = replace(LOOK, is_view_fresh=True)
WRONG = (assign([1, 2]), lead(2, [1, 2]))
RIGHT = (assign([2, 1]), lead(2, [1, 2]))
NOT_IN_SYNC = (assign([1, 2]), lead(2, [2]))
DEAD = (assign([9, 2]), lead(2, [9, 2]))
ALL_KINDS = view(topic(WRONG, RIGHT, NOT_IN_SYNC, DEAD))
OF_ORDERS = {"topics": [ORDERS]}


def list_asked(plan: Plan[Any]) -> list[int]:
    """The partitions that the plan asks an election for."""
    steps = [step for step in plan.steps if isinstance(step, SubmitPreferredElection)]
    return [tp.partition for step in steps for tp in step.partitions]


def results(plan: Plan[Any]) -> dict[int, str | None]:
    return {row.partition: row.result for row in plan.status.partitions}


def test_only_partitions_that_it_can_help_are_asked_for() -> None:
    plan = decide(election(OF_ORDERS), ALL_KINDS, FRESH)
    assert list_asked(plan) == [0]
    assert plan.status.phase is ElectionPhase.RUNNING
    assert results(plan) == {
        0: None,
        1: ElectionResult.NOT_NEEDED,
        2: ElectionResult.PREFERRED_UNAVAILABLE,
        3: ElectionResult.PREFERRED_UNAVAILABLE,
    }


@pytest.mark.parametrize("partitions", [[DEAD], [WRONG, NOT_IN_SYNC]], ids=["at the end", "at the beginning"])
def test_nothing_is_given_up_over_a_view_that_may_be_a_moment_old(partitions: list[Any]) -> None:
    """Somebody starts a broker, and an election as soon as it is there."""
    cluster = view(topic(*partitions))
    assert decide(election(OF_ORDERS), cluster, LOOK).needs_fresh_view
    assert not decide(election(OF_ORDERS), cluster, FRESH).needs_fresh_view


def test_what_was_given_up_is_not_looked_at_again_and_again() -> None:
    status = status_of(decide(election(OF_ORDERS), ALL_KINDS, FRESH))
    after = view(topic((assign([1, 2]), lead(1, [1, 2])), RIGHT, NOT_IN_SYNC, DEAD))
    assert not decide(election(OF_ORDERS, status=status), after, LOOK).needs_fresh_view


def test_it_ends_with_the_leaders_before_and_after() -> None:
    first = decide(election(OF_ORDERS), ALL_KINDS, LOOK)
    after = view(topic((assign([1, 2]), lead(1, [1, 2])), RIGHT, NOT_IN_SYNC, DEAD))
    plan = decide(election(OF_ORDERS, status=status_of(first)), after, LOOK)
    assert (plan.status.phase, plan.steps) == (ElectionPhase.FAILED, ())
    rows = {row.partition: (row.result, row.leader_before, row.leader_after) for row in plan.status.partitions}
    assert rows[PartitionId(0)] == (ElectionResult.ELECTED, 2, 1)
    counts = plan.status.counts
    assert counts is not None
    assert (counts.total, counts.elected, counts.not_needed, counts.preferred_unavailable) == (4, 1, 1, 2)


@pytest.mark.parametrize(
    ("partition", "why"),
    [(DEAD, "preferred replica 9 is not alive"), (NOT_IN_SYNC, "preferred replica 1 is not in sync")],
)
def test_a_leader_that_is_not_given_back_is_a_failure_that_says_why_and_what_to_do(partition: Any, why: str) -> None:
    plan = decide(election(OF_ORDERS), view(topic(partition, RIGHT)), FRESH)
    assert plan.status.phase is ElectionPhase.FAILED
    assert plan.status.condition(ConditionType.FAILED) is not None
    assert plan.status.condition(ConditionType.COMPLETE) is None
    assert (ready(plan).status, ready(plan).reason) == ("False", Reason.PARTITIONS_FAILED)
    assert ready(plan).message == (
        f"1 of 2 leaders were not given back (orders-0: the {why}): start these brokers and wait until they are in sync, "
        "then create a new election; 0 elected, 1 not needed, 1 unavailable"
    )
    assert [(each.reason, each.is_warning) for each in plan.notices] == [("ElectionFailed", True)]


@pytest.mark.parametrize(
    ("cluster", "reason"),
    [
        (view(topic(WRONG), controller=None), Reason.NO_CONTROLLER),
        (view(topic(WRONG), preferred_election=PreferredElectionPlan(partitions=())), Reason.PROGRESSING),
    ],
)
def test_it_waits_for_a_controller_and_for_another_election(cluster: Snapshot, reason: Reason) -> None:
    plan = decide(election(OF_ORDERS), cluster, LOOK)
    assert (plan.status.phase, plan.steps) == (ElectionPhase.PENDING, ())
    assert ready(plan).reason is reason


def test_after_a_restart_what_waits_in_the_cluster_is_not_asked_for_again() -> None:
    cluster = view(topic(WRONG))
    status = status_of(decide(election(OF_ORDERS), cluster, LOOK))
    waiting = replace(
        cluster, preferred_election=PreferredElectionPlan(partitions=(TopicPartition(ORDERS, PartitionId(0)),))
    )
    assert decide(election(OF_ORDERS, status=status), waiting, FRESH).steps == ()


def test_after_a_restart_what_was_not_written_is_written() -> None:
    cluster = view(topic(WRONG))
    status = status_of(decide(election(OF_ORDERS), cluster, LOOK))
    assert decide(election(OF_ORDERS, status=status), cluster, LOOK).needs_fresh_view
    assert list_asked(decide(election(OF_ORDERS, status=status), cluster, FRESH)) == [0]


def test_what_the_controller_took_and_did_not_do_has_failed() -> None:
    cluster = view(topic(WRONG))
    first = decide(election(OF_ORDERS), cluster, LOOK)
    plan = decide(election(OF_ORDERS, status=status_of(first)), cluster, replace(FRESH, done=first.steps))
    assert (plan.status.phase, plan.steps) == (ElectionPhase.FAILED, ())
    assert ready(plan).reason is Reason.PARTITIONS_FAILED


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        ({"topic": "none", "partition": 0}, Reason.UNKNOWN_TOPIC),
        ({"topic": ORDERS, "partition": 9}, Reason.UNKNOWN_PARTITION),
    ],
)
def test_it_waits_for_topics_and_partitions_that_are_not_there_yet(missing: dict[str, Any], reason: Reason) -> None:
    spec = {"partitions": [{"topic": ORDERS, "partition": 0}, missing]}
    plan = decide(election(spec), view(topic(WRONG)), LOOK)
    assert (plan.status.phase, plan.steps) == (ElectionPhase.PENDING, ())
    assert ready(plan).reason is reason


def test_what_is_deleted_while_the_election_runs_has_failed_and_the_others_are_elected() -> None:
    spec = {"partitions": [{"topic": ORDERS, "partition": 0}, {"topic": "gone", "partition": 0}]}
    both = view(topic(WRONG), topic(WRONG, name="gone"))
    status = status_of(decide(election(spec), both, LOOK))
    plan = decide(election(spec, status=status), view(topic(WRONG)), FRESH)
    assert list_asked(plan) == [0]
    assert {row.topic: row.result for row in plan.status.partitions} == {ORDERS: None, "gone": ElectionResult.FAILED}


def test_all_partitions_of_a_large_cluster_are_counted_though_not_all_are_listed() -> None:
    everything = {"allPartitions": True}
    first = decide(election(everything), view(topic(*[WRONG] * 600, *[RIGHT] * 50)), LOOK)
    assert len(first.status.partitions) == 500
    assert len(list_asked(first)) == 600
    after = view(healthy(*[[1, 2]] * 600, *[[2, 1]] * 50))
    plan = decide(election(everything, status=status_of(first)), after, LOOK)
    assert plan.status.counts is not None
    assert (plan.status.counts.elected, plan.status.counts.not_needed) == (600, 50)
