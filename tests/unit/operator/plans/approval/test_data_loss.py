"""A change of a topic's configuration that can lose data waits for approval, if the topic needs it."""

from datetime import timedelta
from typing import Any

import pytest

from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import AlterTopicConfig, CreateTopic
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.topic.case import Surroundings
from controller_operator.plans.topic.planner import decide
from controller_operator.resources import KafkaTopic
from controller_operator.resources.conditions import ConditionType, Reason
from tests.unit.operator.clusters import NOW, healthy, kafka_topic, ready, status_of, view

UNCLEAN = {"unclean.leader.election.enable": "true"}
REQUIRED = {"approval": "Required"}


def plan(resource: KafkaTopic, cluster: Snapshot, *, hours: float = 0.0) -> Plan[Any]:
    return decide(resource, cluster, Context(now=NOW + timedelta(hours=hours)), Surroundings(moves={}))


def make_view(config: dict[str, str] | None = None) -> Snapshot:
    return view(healthy([1, 2], [2, 3], config=config))


def settle(config: dict[str, str], **spec: Any) -> dict[str, Any]:
    """Return the status of an object whose topic is as the spec says, and whose approvals are over."""
    approved = kafka_topic({**REQUIRED, "config": config, **spec})
    return status_of(plan(approved, make_view(config)))


def change(before: dict[str, str], after: dict[str, str], status: Any = None, **spec: Any) -> Plan[Any]:
    """Return the plan for a topic with one configuration whose spec asks for another one."""
    whole = {**REQUIRED, "config": after, **spec}
    return plan(kafka_topic(whole, status=status or settle(before), generation=2), make_view(before))


RISKY = [
    ({}, UNCLEAN),
    ({"unclean.leader.election.enable": "false"}, {"unclean.leader.election.enable": "TRUE"}),
    ({"unclean.leader.election.enable": "false"}, {}),
    ({}, {"retention.ms": "604800000"}),
    ({"retention.ms": "-1"}, {"retention.ms": "604800000"}),
    ({"retention.ms": "604800000"}, {"retention.ms": "1"}),
    ({"retention.ms": "-1"}, {}),
    ({"retention.bytes": "2000000"}, {"retention.bytes": "1000000"}),
    ({"cleanup.policy": "compact"}, {"cleanup.policy": "delete"}),
    ({"cleanup.policy": "delete"}, {"cleanup.policy": "compact,delete"}),
    ({"cleanup.policy": "compact"}, {}),
]
HARMLESS = [
    (UNCLEAN, {}),
    (UNCLEAN, {"unclean.leader.election.enable": "false"}),
    ({}, {"retention.ms": "-1"}),
    ({"retention.ms": "1000"}, {"retention.ms": "604800000"}),
    ({"cleanup.policy": "compact,delete"}, {"cleanup.policy": "delete"}),
    ({"min.insync.replicas": "2"}, {"min.insync.replicas": "1"}),
    ({}, {"max.message.bytes": "1000"}),
]


@pytest.mark.parametrize(("before", "after"), RISKY)
def test_a_change_that_can_lose_data_waits(before: dict[str, str], after: dict[str, str]) -> None:
    waiting = change(before, after)
    assert (waiting.steps, ready(waiting).reason) == ((), Reason.AWAITING_APPROVAL)
    assert waiting.status.plan_hash in ready(waiting).message


@pytest.mark.parametrize(("before", "after"), HARMLESS)
def test_any_other_change_does_not_wait(before: dict[str, str], after: dict[str, str]) -> None:
    planned = change(before, after)
    assert [type(step) for step in planned.steps] == [AlterTopicConfig]
    assert planned.status.plan_hash is None


@pytest.mark.parametrize(("before", "after"), RISKY)
def test_nothing_waits_if_the_topic_needs_no_approval(before: dict[str, str], after: dict[str, str]) -> None:
    assert change(before, after, approval="Automatic").steps


def test_the_message_says_what_may_be_lost_who_approves_and_how_to_end_the_wait() -> None:
    waiting = change({}, UNCLEAN)
    assert ready(waiting).message == (
        "the change of topic orders, which can lose data (unclean.leader.election.enable from the default to true), "
        f"waits for approval: set approvedPlan to {waiting.status.plan_hash}, as `kubectl kontroller approve` does. "
        "With the chart's approvalPolicy, only users with the verb approve may. Without approval: take the change back "
        "in the spec"
    )
    shown = waiting.status.condition(ConditionType.PAUSED)
    assert shown.reason is Reason.AWAITING_APPROVAL
    assert [each.key for each in waiting.status.plan.changes] == ["config.unclean.leader.election.enable"]


def test_everything_else_in_the_spec_waits_with_it() -> None:
    assert change({}, UNCLEAN, partitions=4).steps == ()


def test_the_approved_change_is_made() -> None:
    waiting = change({}, UNCLEAN)
    approved = change({}, UNCLEAN, status_of(waiting), approvedPlan=waiting.status.plan_hash)
    (step,) = approved.steps
    assert isinstance(step, AlterTopicConfig)
    assert step.config == UNCLEAN


def test_the_approval_of_another_change_does_not_count() -> None:
    waiting = change({}, UNCLEAN)
    other = change({}, {**UNCLEAN, "retention.ms": "1"}, status_of(waiting), approvedPlan=waiting.status.plan_hash)
    assert other.steps == ()
    assert "is another plan" in ready(other).message


def test_an_approval_counts_once() -> None:
    waiting = change({}, UNCLEAN)
    due = waiting.status.plan_hash
    asked = change({}, UNCLEAN, status_of(waiting), approvedPlan=due)
    made = plan(
        kafka_topic({**REQUIRED, "config": UNCLEAN, "approvedPlan": due}, status=status_of(asked)), make_view(UNCLEAN)
    )
    assert (made.status.plan_hash, made.status.used_plan) == (None, due)
    taken_back = change(UNCLEAN, {}, status_of(made), approvedPlan=due)
    assert taken_back.steps
    again = change({}, UNCLEAN, status_of(taken_back), approvedPlan=due)
    assert (again.steps, ready(again).reason) == ((), Reason.AWAITING_APPROVAL)
    assert again.status.plan_hash not in (None, due)


def test_an_approved_change_that_fails_is_tried_again_without_a_new_approval() -> None:
    waiting = change({}, UNCLEAN)
    due = waiting.status.plan_hash
    asked = change({}, UNCLEAN, status_of(waiting), approvedPlan=due)
    assert change({}, UNCLEAN, status_of(asked), approvedPlan=due).steps


def test_the_correction_of_a_safer_value_waits_too() -> None:
    """Somebody has switched unclean elections off elsewhere."""
    status = settle(UNCLEAN)
    found = plan(kafka_topic({**REQUIRED, "config": UNCLEAN}, status=status), make_view({}))
    assert (found.steps, ready(found).reason) == ((), Reason.AWAITING_APPROVAL)


class TestNew:
    def test_a_topic_with_unclean_elections_waits_and_is_made_when_approved(self) -> None:
        spec = {**REQUIRED, "config": UNCLEAN}
        waiting = plan(kafka_topic(spec), view())
        assert (waiting.steps, ready(waiting).reason) == ((), Reason.AWAITING_APPROVAL)
        assert waiting.status.topic_id is None
        due = waiting.status.plan_hash
        approved = kafka_topic({**spec, "approvedPlan": due}, status=status_of(waiting), generation=2)
        made = plan(approved, view())
        assert [type(step) for step in made.steps] == [CreateTopic]
        again = plan(kafka_topic({**spec, "approvedPlan": due}, status=status_of(made), generation=2), view())
        assert [type(step) for step in again.steps] == [CreateTopic]

    def test_a_short_retention_loses_nothing(self) -> None:
        config = {"retention.ms": "1", "cleanup.policy": "compact", "unclean.leader.election.enable": "false"}
        assert plan(kafka_topic({**REQUIRED, "config": config}), view()).steps


class TestReminders:
    def test_the_event_is_renewed_each_hour(self) -> None:
        spec, status = {**REQUIRED, "config": UNCLEAN}, settle({})
        counts, pauses = [], []
        for hours in (0.0, 0.5, 1.0, 25.75):
            found = plan(kafka_topic(spec, status=status, generation=2), make_view(), hours=hours)
            (notice,) = found.notices
            status = status_of(found)
            counts.append((notice.reason, notice.count, notice.series))
            pauses.append(found.look_again_in_s)
        due = status["planHash"]
        assert counts == [(Reason.AWAITING_APPROVAL, count, due) for count in (1, 1, 2, 26)]
        assert pauses == [3600.0, 1800.0, 3600.0, 900.0]
