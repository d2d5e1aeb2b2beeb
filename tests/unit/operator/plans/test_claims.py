"""A topic that several objects claim goes from one to the next with its data, and each of them says so."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import AlterTopicConfig, CreateTopic, MarkTopicForDeletion
from controller_operator.plans.outcome import Context, FinalizerWish, Plan
from controller_operator.plans.topic.case import Surroundings
from controller_operator.plans.topic.planner import decide
from controller_operator.resources import KafkaTopic
from controller_operator.resources.conditions import ConditionType, Reason
from tests.unit.operator.clusters import NOW, ORDERS, ORDERS_SHOWN, healthy, kafka_topic, ready, status_of, view

OURS: dict[str, Any] = {"topicId": ORDERS_SHOWN, "counts": {"partitions": 2}}
NOTE = {"name": "shop/older", "topicId": ORDERS_SHOWN}
PAUSE = {"annotations": {"kontroller.dev/pause": "true"}}
THERE = view(healthy([1, 2], [2, 3], config={"retention.ms": "5"}))
FRESH = Context(now=NOW, is_view_fresh=True)


def claimant(name: str, spec: dict[str, Any] | None = None, **about: Any) -> KafkaTopic:
    """An object that claims the topic `orders`."""
    return kafka_topic({"topicName": ORDERS, **(spec or {})}, name=name, **about)


OLDER = claimant("older", status=OURS)


def plan(resource: KafkaTopic, cluster: Snapshot = THERE, context: Context | None = None, **around: Any) -> Plan[Any]:
    return decide(resource, cluster, context or Context(now=NOW), Surroundings(**around))


def younger(spec: dict[str, Any] | None = None, **about: Any) -> KafkaTopic:
    return claimant("younger", {"config": {"retention.ms": "5"}, **(spec or {})}, uid="uid-2", **about)


def going(name: str = "older", ago: timedelta = timedelta(0), policy: str = "Delete", **about: Any) -> KafkaTopic:
    """The owner while it is deleted."""
    at = (NOW - ago).strftime("%Y-%m-%dT%H:%M:%SZ")
    whole: dict[str, Any] = {
        "status": OURS,
        "deletionTimestamp": at,
        "finalizers": ["kontroller.dev/finalizer"],
        **about,
    }
    return claimant(name, {"deletionPolicy": policy}, **whole)


class TestTheYoungerObject:
    def test_says_what_deleting_either_of_the_two_does(self) -> None:
        said = ready(plan(younger(), owner=OLDER))
        assert (said.reason, said.message) == (
            Reason.RESOURCE_CONFLICT,
            "topic orders belongs to shop/older, which is older: delete this object to keep things as they are; delete "
            "shop/older to hand the topic with its data over to this object",
        )

    def test_says_what_it_would_then_change(self) -> None:
        message = ready(plan(younger({"config": {"retention.ms": "1"}}), owner=OLDER)).message
        assert message.endswith(
            "over to this object, which then changes what differs: config.retention.ms is 5 instead of 1"
        )

    def test_promises_no_topic_that_the_older_one_has_not_got(self) -> None:
        message = ready(plan(younger(), owner=claimant("older"))).message
        assert message.endswith("; delete shop/older to let this object have the name")

    @pytest.mark.parametrize("metadata", [{}, PAUSE], ids=["at work", "paused"])
    def test_notes_whose_topic_it_is(self, metadata: dict[str, Any]) -> None:
        noted = plan(younger(**metadata), owner=OLDER)
        assert (status_of(noted)["owner"], noted.steps) == (NOTE, ())

    @pytest.mark.parametrize("policy", ["IfEqual", "Never", "Always"])
    @pytest.mark.parametrize("drift", ["Enforce", "Report", "Ignore"])
    def test_takes_the_topic_over_and_carries_out_its_own_spec(self, policy: str, drift: str) -> None:
        spec = {"adoptionPolicy": policy, "driftPolicy": drift, "config": {"retention.ms": "1"}}
        taken = plan(younger(spec, status={"owner": NOTE}))
        assert [(each.reason, each.message) for each in taken.notices] == [
            ("TopicHandedOver", "took topic orders over from shop/older, with all of its data")
        ]
        (step,) = taken.steps
        assert isinstance(step, AlterTopicConfig)
        assert step.config == {"retention.ms": "1"}
        assert taken.status.topic_id == ORDERS_SHOWN
        assert taken.status.owner is None
        assert taken.status.condition(ConditionType.CONFLICT) is None

    def test_takes_nothing_over_from_an_object_that_only_may_not_use_the_cluster_any_more(self) -> None:
        never = younger({"adoptionPolicy": "Never"}, status={"owner": NOTE})
        assert ready(plan(never, rivals=("shop/older",))).reason is Reason.NOT_ADOPTED

    def test_takes_no_other_topic_over_than_the_one_that_it_noted(self) -> None:
        other = {"owner": {**NOTE, "topicId": "AAAAAAAAAAAAAAAAAAAACQ"}}
        assert ready(plan(younger({"adoptionPolicy": "Never"}, status=other))).reason is Reason.NOT_ADOPTED

    def test_takes_nothing_over_while_it_is_paused_and_keeps_its_note(self) -> None:
        paused = plan(younger(status={"owner": NOTE}, **PAUSE))
        assert (status_of(paused)["owner"], paused.notices) == (NOTE, ())

    @pytest.mark.parametrize("drift", ["Enforce", "Report"])
    def test_warns_when_the_topic_is_gone_and_it_makes_another_one(self, drift: str) -> None:
        left = younger({"driftPolicy": drift}, status={"owner": NOTE})
        assert plan(left, view()).needs_fresh_view
        made = plan(left, view(), FRESH)
        (notice,) = made.notices
        assert (notice.reason, notice.is_warning) == ("TopicRecreated", True)
        assert notice.message == (
            f"topic orders with the id {ORDERS_SHOWN}, left by shop/older, does not exist: this object creates a new "
            "one, empty"
        )
        assert [type(step) for step in made.steps] == [CreateTopic]
        assert made.status.topic_id != ORDERS_SHOWN
        assert made.status.owner is None


def test_an_object_that_makes_its_topic_again_warns_of_the_loss() -> None:
    again = plan(younger(status=OURS), view(), FRESH)
    (notice,) = again.notices
    assert (notice.reason, notice.is_warning) == ("TopicDeleted", True)
    assert again.status.topic_id != ORDERS_SHOWN


class TestTheDeletedOwner:
    HEIR = younger(status={"owner": NOTE})

    @pytest.mark.parametrize("about", [{}, {"policy": "Retain"}, PAUSE], ids=["Delete", "Retain", "paused"])
    def test_leaves_the_topic_to_its_heir_whatever_its_policy(self, about: dict[str, Any]) -> None:
        left = plan(going(**about), heir=self.HEIR)
        assert (left.finalizer, left.steps) == (FinalizerWish.RELEASE, ())
        assert [(each.reason, each.message) for each in left.notices] == [
            ("TopicHandedOver", "topic orders stays with its data: shop/younger takes it over")
        ]

    def test_waits_a_minute_for_an_heir_that_has_noted_nothing(self) -> None:
        waiting = plan(going(ago=timedelta(seconds=59)), heir=younger())
        assert (waiting.finalizer, waiting.steps) == (FinalizerWish.KEEP_AS_IS, ())
        assert ready(waiting).message == "topic orders stays with its data: shop/younger is about to take it over"
        left = plan(going(ago=timedelta(seconds=60)), heir=younger())
        assert (left.finalizer, left.steps) == (FinalizerWish.RELEASE, ())

    def test_goes_on_with_a_deletion_that_was_asked_for_before_there_was_an_heir(self) -> None:
        deleting = replace(THERE, deleting=frozenset({ORDERS}))
        waiting = plan(going(), deleting, heir=self.HEIR)
        assert (waiting.finalizer, ready(waiting).reason) == (FinalizerWish.KEEP_AS_IS, Reason.TOPIC_BEING_DELETED)

    def test_deletes_the_topic_that_was_left_to_it_if_nobody_else_claims_it(self) -> None:
        last = going(name="younger", status={"owner": NOTE})
        assert [type(step) for step in plan(last).steps] == [MarkTopicForDeletion]

    def test_hands_on_what_was_left_to_it(self) -> None:
        middle = going(name="younger", status={"owner": NOTE})
        (notice,) = plan(middle, heir=claimant("youngest", status={"owner": NOTE})).notices
        assert (notice.reason, "shop/youngest takes it over" in notice.message) == ("TopicHandedOver", True)

    def test_hands_over_no_topic_that_is_not_its_own(self) -> None:
        (notice,) = plan(going(status={}), heir=self.HEIR).notices
        assert notice.reason == "TopicRetained"

    def test_leaves_the_topic_of_an_older_object_alone(self) -> None:
        (notice,) = plan(going(name="younger", status={"owner": NOTE}), owner=OLDER, heir=OLDER).notices
        assert (notice.reason, notice.message) == ("TopicRetained", "topic orders stays: it belongs to shop/older")
