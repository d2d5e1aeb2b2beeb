"""Plans over a cluster that gives topics their ids itself, and refuses in its own words."""

from dataclasses import replace
from typing import Any, Final

from controller_core.model.features import FinalizedFeatures
from controller_core.model.snapshot import WITHOUT_ZOOKEEPER, Snapshot
from controller_operator.kafka.actions import AlterTopicConfig, CreateTopic, MarkTopicForDeletion
from controller_operator.kafka.requests.features import FeatureReply, UpdateFeatures
from controller_operator.kafka.requests.topics import MissTopic, TopicReply
from controller_operator.plans.feature_set.planner import decide as decide_features
from controller_operator.plans.outcome import Context, FinalizerWish, Plan
from controller_operator.plans.topic.planner import decide as decide_topic
from controller_operator.resources import KafkaTopic
from controller_operator.resources.conditions import Reason
from tests.unit.operator.clusters import (
    NOW,
    ORDERS,
    ORDERS_ID,
    ORDERS_SHOWN,
    broker,
    feature_set,
    healthy,
    kafka_topic,
    ready,
    status_of,
    view,
)

LOOK = Context(now=NOW)
FRESH = replace(LOOK, is_view_fresh=True)
FINALIZER = "kontroller.dev/finalizer"


def kraft(*topics: Any, **about: Any) -> Snapshot:
    return view(*topics, abilities=WITHOUT_ZOOKEEPER, **about)


def plan(resource: KafkaTopic, cluster: Snapshot, context: Context = LOOK) -> Plan[Any]:
    return decide_topic(resource, cluster, context)


def add_reply(step: Any, **said: Any) -> Context:
    return replace(LOOK, topics=(TopicReply(step=step, **said),))


def ask_for_topic(spec: dict[str, Any] | None = None) -> tuple[KafkaTopic, CreateTopic]:
    """Return an object that has asked for its topic, and the request."""
    first = plan(kafka_topic(spec), kraft())
    (step,) = first.steps
    assert isinstance(step, CreateTopic)
    return kafka_topic(spec, status=status_of(first)), step


def test_a_topic_that_was_created_has_the_id_that_the_cluster_gave_it() -> None:
    resource, step = ask_for_topic()
    after = plan(resource, kraft(healthy([1, 2], [2, 3])), add_reply(step, topic_id=ORDERS_ID))
    assert (after.status.topic_id, ready(after).reason) == (ORDERS_SHOWN, Reason.RECONCILED)
    assert after.notices == ()


def test_who_heard_no_answer_takes_a_topic_that_is_as_it_was_asked_for() -> None:
    resource, _ = ask_for_topic({"adoptionPolicy": "Never"})
    assert plan(resource, kraft(healthy([1, 2], [2, 3]))).status.topic_id == ORDERS_SHOWN
    other = plan(resource, kraft(healthy([1, 2])))
    assert ready(other).reason is Reason.NOT_ADOPTED


def test_who_is_deleted_without_an_answer_leaves_the_topic_and_says_that_it_may_be_the_requested_one() -> None:
    asked, _ = ask_for_topic()
    held = {"deletionTimestamp": NOW.isoformat(), "finalizers": [FINALIZER]}
    deleted = kafka_topic(
        {"deletionPolicy": "Delete"},
        status=asked.status.model_dump(by_alias=True, mode="json", exclude_none=True),
        **held,
    )
    left = plan(deleted, kraft(healthy([1, 2], [2, 3])))
    (notice,) = left.notices
    assert (left.steps, left.finalizer, notice.reason) == ((), FinalizerWish.RELEASE, "TopicRetained")
    assert (notice.is_warning, notice.is_leftover) == (True, True)
    assert "may be the one that was requested" in notice.message


def test_with_zookeeper_only_the_id_that_was_asked_for_is_taken() -> None:
    resource, _ = ask_for_topic({"adoptionPolicy": "Never"})
    assert ready(plan(resource, view(healthy([1, 2], [2, 3])))).reason is Reason.NOT_ADOPTED


def test_a_refusal_is_said_in_the_clusters_words_and_asked_for_again_without_saying_anything_else() -> None:
    resource, step = ask_for_topic()
    refused = plan(resource, kraft(), add_reply(step, refused="no such policy"))
    assert (refused.steps, ready(refused).reason) == ((), Reason.REQUEST_REFUSED)
    assert "no such policy" in ready(refused).message
    assert refused.look_again_in_s
    again = plan(kafka_topic(status=status_of(refused)), kraft())
    assert [type(each) for each in again.steps] == [CreateTopic]
    assert again.status == refused.status
    changed = plan(kafka_topic({"partitions": 3}, status=status_of(refused), generation=2), kraft())
    assert ready(changed).reason is Reason.PROGRESSING


def test_a_refusal_holds_for_what_was_refused_and_not_for_what_follows_from_the_cluster_as_it_is_now() -> None:
    resource, step = ask_for_topic()
    fewer = kraft(brokers=(4, 5, 6))
    again = plan(resource, fewer, add_reply(step, refused="broker 1 is fenced"))
    (other,) = again.steps
    assert isinstance(other, CreateTopic)
    assert other.assignment != step.assignment
    assert plan(resource, kraft(), add_reply(step, refused="broker 1 is fenced")).steps == ()


def test_a_controller_that_does_not_answer_is_said_and_asked_again_soon() -> None:
    resource, step = ask_for_topic()
    troubled = plan(resource, kraft(), add_reply(step, trouble="nobody answers"))
    assert (troubled.steps, ready(troubled).reason) == ((), Reason.BROKERS_UNAVAILABLE)


def test_what_is_not_refused_is_done_beside_what_is() -> None:
    seen = kraft(healthy([1, 2], [2, 3]))
    settled = kafka_topic(status=status_of(plan(kafka_topic(), seen)))
    changed = kafka_topic(
        {"config": {"retention.ms": "9"}, "partitions": 3}, status=settled.status.dump_for_kubernetes(), generation=2
    )
    first = plan(changed, seen)
    config = next(step for step in first.steps if isinstance(step, AlterTopicConfig))
    assert config.changes == {"retention.ms": "9"}
    after = plan(changed, seen, add_reply(config, refused="too long"))
    assert len(after.steps) == len(first.steps) - 1 == 1
    assert ready(after).reason is Reason.REQUEST_REFUSED


def test_a_configuration_that_is_not_told_is_not_set_again_and_again_but_said() -> None:
    untold = replace(healthy([1, 2], [2, 3]), is_config_known=False)
    resource = kafka_topic({"config": {"retention.ms": "9"}}, status=status_of(plan(kafka_topic(), kraft(untold))))
    said = plan(resource, kraft(untold))
    assert (said.steps, ready(said).reason) == ((), Reason.NOT_ADMITTED)
    assert "DescribeConfigs" in ready(said).message
    assert ready(plan(kafka_topic(), kraft(untold))).reason is Reason.RECONCILED, (
        "it wants nothing of the configuration"
    )


def test_a_refused_deletion_lets_the_object_go_and_says_why() -> None:
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]}
    seen = kraft(healthy([1, 2], [2, 3]))
    settled = plan(kafka_topic({"deletionPolicy": "Delete"}), seen)
    resource = kafka_topic({"deletionPolicy": "Delete"}, status=status_of(settled), **deleted)
    first = plan(resource, seen)
    (step,) = first.steps
    assert step == MarkTopicForDeletion(topic=ORDERS, topic_id=ORDERS_ID)
    after = plan(resource, seen, add_reply(step, refused="Topic deletion is disabled."))
    assert after.finalizer is FinalizerWish.RELEASE
    assert [each.reason for each in after.notices] == ["DeletionForbidden"]
    assert "Topic deletion is disabled." in after.notices[0].message


class TestATopicThatIsNotShown:
    DELETED: Final = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]}

    def resource(self) -> KafkaTopic:
        settled = plan(kafka_topic({"deletionPolicy": "Delete"}), kraft(healthy([1, 2], [2, 3])))
        return kafka_topic({"deletionPolicy": "Delete"}, status=status_of(settled), **self.DELETED)

    def test_is_asked_for_before_its_object_goes(self) -> None:
        assert plan(self.resource(), kraft()).needs_fresh_view
        asking = plan(self.resource(), kraft(), FRESH)
        assert (asking.steps, asking.finalizer) == ((MissTopic(topic=ORDERS),), FinalizerWish.KEEP_AS_IS)
        gone = plan(self.resource(), kraft(), replace(FRESH, done=asking.steps))
        assert (gone.finalizer, [each.reason for each in gone.notices]) == (FinalizerWish.RELEASE, ["TopicDeleted"])

    def test_and_may_not_be_described_lets_the_object_go_with_a_warning(self) -> None:
        reply = TopicReply(step=MissTopic(topic=ORDERS), refused="lacks the right to Describe the topic")
        let_go = plan(self.resource(), kraft(), replace(FRESH, topics=(reply,)))
        (notice,) = let_go.notices
        assert (let_go.finalizer, notice.reason, notice.is_warning) == (
            FinalizerWish.RELEASE,
            "DeletionForbidden",
            True,
        )
        assert "stays" in notice.message
        assert "Describe" in notice.message

    def test_is_asked_for_again_where_there_was_no_answer(self) -> None:
        reply = TopicReply(step=MissTopic(topic=ORDERS), trouble="connection refused")
        waiting = plan(self.resource(), kraft(), replace(FRESH, topics=(reply,)))
        assert (waiting.steps, waiting.finalizer) == ((), FinalizerWish.KEEP_AS_IS)
        assert waiting.look_again_in_s is not None

    def test_and_was_deleted_for_the_object_is_gone(self) -> None:
        mark = MarkTopicForDeletion(topic=ORDERS, topic_id=ORDERS_ID)
        gone = plan(self.resource(), kraft(), replace(FRESH, done=(mark,)))
        assert [each.reason for each in gone.notices] == ["TopicDeleted"]

    def test_and_never_was_this_object_s_is_not_asked_for(self) -> None:
        never = kafka_topic({"deletionPolicy": "Delete"}, **self.DELETED)
        assert plan(never, kraft(), FRESH).finalizer is FinalizerWish.RELEASE


class TestDryRun:
    FEATURES = FinalizedFeatures(features={"metadata.version": 27}, epoch=5)

    def look(self, *replies: FeatureReply, status: Any = None, level: int = 20, generation: int = 1) -> Plan[Any]:
        spec = {"allowDowngrade": True, "dryRun": True}
        brokers = {each.id: each for each in [broker(1, None, **{"metadata.version": (7, 29)})]}
        seen = replace(kraft(features=self.FEATURES), brokers=brokers)
        resource = feature_set({"metadata.version": level}, spec, status=status, generation=generation)
        return decide_features(resource, seen, replace(LOOK, replies=replies))

    def test_the_controller_is_asked_what_it_would_say_and_changes_nothing(self) -> None:
        (step,) = self.look().steps
        assert isinstance(step, UpdateFeatures)
        assert step.validates_only

    def test_what_it_says_is_shown_and_stays_while_it_is_asked_again(self) -> None:
        (step,) = self.look().steps
        assert isinstance(step, UpdateFeatures)
        shown = self.look(FeatureReply(step=step, refused=(("metadata.version", "it might delete metadata"),)))
        assert (shown.steps, ready(shown).reason) == ((), Reason.DRY_RUN)
        assert "it might delete metadata" in shown.status.features[0].message
        again = self.look(status=status_of(shown))
        assert (len(again.steps), again.status) == (1, shown.status)

    def test_has_no_result_before_the_controller_has_answered_to_the_present_spec(self) -> None:
        first = self.look()
        assert ready(first).reason is Reason.PROGRESSING
        assert "whether it accepts metadata.version from 27 to 20" in ready(first).message
        (step,) = first.steps
        assert isinstance(step, UpdateFeatures)
        shown = self.look(FeatureReply(step=step))
        assert ready(shown).reason is Reason.DRY_RUN
        assert ready(self.look(status=status_of(shown), level=19, generation=2)).reason is Reason.PROGRESSING

    def test_has_no_result_while_the_controller_cannot_be_asked_and_keeps_the_former_one(self) -> None:
        (step,) = self.look().steps
        assert isinstance(step, UpdateFeatures)
        trouble = FeatureReply(step=step, trouble="nobody answers")
        asked = self.look(trouble)
        assert (asked.steps, ready(asked).reason) == ((), Reason.BROKERS_UNAVAILABLE)
        assert asked.look_again_in_s
        shown = self.look(FeatureReply(step=step))
        later = self.look(trouble, status=status_of(shown))
        assert (later.steps, later.status) == ((), shown.status)
        assert later.look_again_in_s
