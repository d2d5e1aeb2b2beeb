"""The plans for a KafkaTopic, by the state of the topic and the policies of the object."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controller_core.model.ids import BrokerId, PartitionId, TopicId, TopicName, TopicVersion
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import AddPartitions, AlterTopicConfig, CreateTopic, MarkTopicForDeletion
from controller_operator.plans.outcome import Context, FinalizerWish, ForgetMove, Plan, StartMove
from controller_operator.plans.topic.case import Surroundings
from controller_operator.plans.topic.planner import decide
from controller_operator.plans.topic_ids import format_id, new_topic_id, parse_id
from controller_operator.resources import KafkaTopic, PartitionReassignment
from controller_operator.resources.conditions import ConditionType, Reason
from tests.unit.operator.clusters import (
    NOW,
    ORDERS,
    ORDERS_ID,
    ORDERS_SHOWN,
    assign,
    healthy,
    kafka_topic,
    lead,
    raw,
    ready,
    status_of,
    topic,
    view,
)

LOOK = Context(now=NOW)
FRESH = replace(LOOK, is_view_fresh=True)
ALONE = Surroundings(moves={})
FINALIZER = "kontroller.dev/finalizer"
DELETED: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]}


def plan(resource: KafkaTopic, cluster: Snapshot, context: Context = LOOK, around: Surroundings = ALONE) -> Plan[Any]:
    return decide(resource, cluster, context, around)


def settle(spec: dict[str, Any] | None = None, *, cluster: Snapshot | None = None, **metadata: Any) -> KafkaTopic:
    """An object whose topic is as the spec says, and has been seen so."""
    seen = cluster or view(healthy([1, 2], [2, 3], config=(spec or {}).get("config")))
    adopted = plan(kafka_topic(spec), seen)
    return kafka_topic(spec, status=status_of(adopted), **metadata)


def _again(before: KafkaTopic, spec: dict[str, Any], **metadata: Any) -> KafkaTopic:
    """Return the object with another spec, and the status that the plan before wrote."""
    return kafka_topic(spec, status=before.status.dump_for_kubernetes(), **{"generation": 2, **metadata})


class TestCreation:
    def test_the_topics_id_is_on_record_before_the_topic_is_made(self) -> None:
        first = plan(kafka_topic({"config": {"retention.ms": "1"}}), view())
        (step,) = first.steps
        assert isinstance(step, CreateTopic)
        assert first.status.topic_id == format_id(step.assignment.topic_id)
        assert (len(step.assignment.partitions), step.config) == (2, {"retention.ms": "1"})
        assert all(len(each.replicas) == 2 for each in step.assignment.partitions.values())

    @pytest.mark.parametrize(
        ("metadata", "cluster"),
        [({}, view()), ({}, view(controller=None)), ({"annotations": {"kontroller.dev/pause": "true"}}, view())],
        ids=["asked for", "in the way", "paused"],
    )
    def test_the_plan_of_a_topic_that_is_not_there_is_to_create_it(
        self, metadata: dict[str, Any], cluster: Snapshot
    ) -> None:
        shown = plan(kafka_topic({"config": {"retention.ms": "1"}}, **metadata), cluster).status.plan
        assert [(each.action, each.key, each.live, each.desired) for each in shown.changes] == [
            ("CreateTopic", "orders", None, "2 partitions, replication factor 2"),
            ("SetConfig", "config.retention.ms", None, "1"),
        ]

    def test_there_is_no_plan_for_a_topic_that_was_deleted_elsewhere_and_stays_so(self) -> None:
        assert plan(settle({"driftPolicy": "Report"}), view(), FRESH).status.plan is None

    def test_an_attempt_that_is_repeated_is_the_same(self) -> None:
        first = plan(kafka_topic(), view())
        assert plan(kafka_topic(status=status_of(first)), view()).steps == first.steps

    def test_after_a_restart_the_created_topic_is_known_as_our_own_whatever_the_adoption_policy(self) -> None:
        never = {"adoptionPolicy": "Never"}
        first = plan(kafka_topic(never), view())
        made = healthy([1, 2], [2, 3], topic_id=parse_id(first.status.topic_id))
        again = plan(kafka_topic(never, status=status_of(first)), view(made))
        assert ready(again).reason is Reason.RECONCILED
        assert again.notices == ()

    def test_another_topic_of_that_name_made_in_between_is_not_ours(self) -> None:
        never = {"adoptionPolicy": "Never"}
        first = plan(kafka_topic(never), view())
        again = plan(kafka_topic(never, status=status_of(first)), view(healthy([1, 2], [2, 3])))
        assert ready(again).reason is Reason.NOT_ADOPTED

    def test_brokers_that_take_no_new_replicas_get_none(self) -> None:
        cordoned = view(brokers=(1, 2, 3, 4), cordoned=frozenset({BrokerId(2)}))
        (step,) = plan(kafka_topic({"partitions": 12, "replicationFactor": 2}), cordoned).steps
        assert isinstance(step, CreateTopic)
        assert {broker for each in step.assignment.partitions.values() for broker in each.replicas} == {1, 3, 4}

    def test_brokers_that_take_no_new_replicas_are_named_where_there_are_too_few(self) -> None:
        found = ready(
            plan(kafka_topic({"replicationFactor": 2}), view(brokers=(1, 2), cordoned=frozenset({BrokerId(2)})))
        )
        assert found.reason is Reason.NOT_ENOUGH_BROKERS
        assert "there are 1" in found.message
        assert found.message.endswith("all cordoned take no new replicas: 2")

    def test_the_replicas_of_the_spec_are_used(self) -> None:
        spec = {"partitions": None, "replicationFactor": None, "replicaAssignment": [[3, 1], [1, 2]]}
        (step,) = plan(kafka_topic(spec), view()).steps
        assert isinstance(step, CreateTopic)
        assert [each.replicas for each in step.assignment.partitions.values()] == [(3, 1), (1, 2)]

    @pytest.mark.parametrize(
        ("spec", "cluster", "reason", "is_stalled"),
        [
            ({}, view(controller=None), Reason.NO_CONTROLLER, False),
            ({"replicationFactor": 3}, view(brokers=(1, 2)), Reason.NOT_ENOUGH_BROKERS, False),
            (
                {"partitions": None, "replicationFactor": None, "replicaAssignment": [[9]]},
                view(),
                Reason.UNKNOWN_BROKER,
                False,
            ),
            ({"config": {"retention.ms": "soon"}}, view(), Reason.INVALID_CONFIG, True),
            ({"topicName": "or.ders"}, view(healthy([1], name="or_ders")), Reason.RESOURCE_CONFLICT, True),
            ({}, view(deleting=frozenset({ORDERS})), Reason.TOPIC_BEING_DELETED, False),
        ],
    )
    def test_what_stands_in_the_way_is_named(
        self, spec: dict[str, Any], cluster: Snapshot, reason: Reason, is_stalled: bool
    ) -> None:
        refused = plan(kafka_topic(spec), cluster)
        assert refused.steps == ()
        assert ready(refused).reason is reason
        assert (refused.status.condition(ConditionType.STALLED) is not None) is is_stalled
        assert (refused.status.condition(ConditionType.RECONCILING) is not None) is not is_stalled

    def test_a_finalizer_is_held_only_where_the_topic_is_to_go_with_the_object(self) -> None:
        assert plan(kafka_topic(), view()).finalizer is FinalizerWish.KEEP_AS_IS
        assert plan(kafka_topic({"deletionPolicy": "Delete"}), view()).finalizer is FinalizerWish.HOLD
        held = kafka_topic(finalizers=[FINALIZER])
        assert plan(held, view()).finalizer is FinalizerWish.RELEASE


class TestAdoption:
    @pytest.mark.parametrize(
        ("policy", "config", "reason"),
        [
            ("IfEqual", {"retention.ms": "1"}, Reason.RECONCILED),
            ("IfEqual", {"retention.ms": "1", "segment.ms": "2"}, Reason.RECONCILED),
            ("IfEqual", {"retention.ms": "2"}, Reason.NOT_ADOPTED),
            ("Never", {"retention.ms": "1"}, Reason.NOT_ADOPTED),
            ("Always", {"retention.ms": "2"}, Reason.PROGRESSING),
        ],
    )
    def test_the_policy_decides(self, policy: str, config: dict[str, str], reason: Reason) -> None:
        spec = {"adoptionPolicy": policy, "config": {"retention.ms": "1"}}
        taken = plan(kafka_topic(spec), view(healthy([1, 2], [2, 3], config=config)))
        assert ready(taken).reason is reason
        assert (taken.status.topic_id == ORDERS_SHOWN) is (reason is not Reason.NOT_ADOPTED)
        assert bool(taken.steps) is (policy == "Always")

    def test_a_topic_that_is_not_adopted_shows_what_adoption_would_change(self) -> None:
        spec = {"partitions": 4, "config": {"retention.ms": "1"}}
        refused = plan(kafka_topic(spec), view(healthy([1, 2], [2, 3])))
        assert [(change.action, change.key, change.desired) for change in refused.status.plan.changes] == [
            ("AddPartitions", "partitions", "4"),
            ("SetConfig", "config.retention.ms", "1"),
        ]

    def test_a_topic_recreated_elsewhere_is_reported_and_adopted_anew_by_the_policy(self) -> None:
        other = TopicId(new_topic_id("x", ORDERS, None))
        cluster = view(healthy([1, 2], [2, 3], topic_id=other))
        equal = plan(settle(), cluster)
        assert [notice.reason for notice in equal.notices] == ["TopicRecreated", "TopicAdopted"]
        assert equal.status.topic_id == format_id(other)
        never = plan(settle({"adoptionPolicy": "Never"}, cluster=None), cluster)
        assert ready(never).reason is Reason.NOT_ADOPTED


class TestChanges:
    def test_partitions_are_added_and_the_others_left_as_they_are(self) -> None:
        grown = plan(_again(settle(), {"partitions": 4}), view(healthy([1, 2], [2, 3])))
        (step,) = grown.steps
        assert isinstance(step, AddPartitions)
        assert step.version == TopicVersion(4)
        assert step.assignment.topic_id == ORDERS_ID
        assert [step.assignment.partitions[PartitionId(n)].replicas for n in (0, 1)] == [(1, 2), (2, 3)]
        assert len(step.assignment.partitions) == 4

    def test_partitions_are_not_added_while_replicas_move(self) -> None:
        moving = topic((assign([2, 3, 1], [3], [1]), lead(1, [1, 2])), (assign([2, 3]), lead(2, [2, 3])))
        waiting = plan(kafka_topic({"partitions": 3}, status={"topicId": ORDERS_SHOWN, "counts": {}}), view(moving))
        assert waiting.steps == ()
        assert ready(waiting).reason is Reason.WAITING_FOR_OTHER_REASSIGNMENT

    def test_fewer_partitions_than_there_are_is_refused(self) -> None:
        owned = {"topicId": ORDERS_SHOWN, "counts": {}}
        refused = plan(kafka_topic(status=owned), view(healthy([1, 2], [2, 3], [3, 1])))
        assert refused.steps == ()
        assert ready(refused).reason is Reason.PARTITIONS_CANNOT_DECREASE

    def test_keys_that_the_spec_drops_are_removed_and_others_left_alone(self) -> None:
        before = settle({"config": {"retention.ms": "1", "segment.ms": "2"}})
        live = {"retention.ms": "1", "segment.ms": "2", "flush.ms": "3"}
        changed = kafka_topic(
            {"config": {"retention.ms": "9"}}, status=before.status.dump_for_kubernetes(), generation=2
        )
        altered = plan(changed, view(healthy([1, 2], [2, 3], config=live)))
        assert altered.steps == (
            AlterTopicConfig(
                topic=ORDERS,
                config={"retention.ms": "9", "flush.ms": "3"},
                version=TopicVersion(1),
                changes={"retention.ms": "9", "segment.ms": None},
            ),
        )
        assert altered.status.config_keys == ("retention.ms", "segment.ms")

        done = kafka_topic({"config": {"retention.ms": "9"}}, status=status_of(altered), generation=2)
        after = plan(done, view(healthy([1, 2], [2, 3], config={"retention.ms": "9", "flush.ms": "3"})))
        assert after.status.config_keys == ("retention.ms",)
        assert ready(after).reason is Reason.RECONCILED

    @pytest.mark.parametrize(
        ("policy", "reason", "is_put_right", "drifted"),
        [
            ("Enforce", Reason.PROGRESSING, True, "True"),
            ("Report", Reason.DRIFTED, False, "True"),
            ("Ignore", Reason.RECONCILED, False, "False"),
        ],
    )
    def test_what_was_changed_elsewhere_goes_by_the_drift_policy(
        self, policy: str, reason: Reason, is_put_right: bool, drifted: str
    ) -> None:
        spec = {"driftPolicy": policy, "config": {"retention.ms": "1"}}
        changed = plan(settle(spec), view(healthy([1, 2], [2, 3], config={"retention.ms": "5"})))
        assert ready(changed).reason is reason
        assert (ready(changed).status == "True") is not is_put_right
        assert (changed.status.condition(ConditionType.STALLED), bool(changed.steps)) == (None, is_put_right)
        condition = changed.status.condition(ConditionType.DRIFTED)
        assert condition is not None
        assert condition.status == drifted
        assert [each.key for each in changed.status.drift] == ([] if policy == "Ignore" else ["config.retention.ms"])

    def test_what_is_wrong_with_the_partitions_is_more_than_a_reported_change(self) -> None:
        spec = {"driftPolicy": "Report", "config": {"retention.ms": "1"}}
        offline = topic((assign([1, 2]), lead(-1, [2])), (assign([2, 3]), lead(2, [2, 3])))
        said = plan(settle(spec), view(offline))
        assert (ready(said).status, ready(said).reason) == ("False", Reason.PARTITIONS_OFFLINE)
        drifted = said.status.condition(ConditionType.DRIFTED)
        assert drifted is not None
        assert drifted.status == "True"

    @pytest.mark.parametrize("policy", ["Enforce", "Report", "Ignore"])
    def test_a_changed_spec_is_carried_out_whatever_the_drift_policy(self, policy: str) -> None:
        before = settle({"driftPolicy": policy, "config": {"retention.ms": "1"}})
        spec = {"driftPolicy": policy, "config": {"retention.ms": "2"}}
        changed = kafka_topic(spec, status=before.status.dump_for_kubernetes(), generation=2)
        altered = plan(changed, view(healthy([1, 2], [2, 3], config={"retention.ms": "1"})))
        assert [type(step) for step in altered.steps] == [AlterTopicConfig]

    def test_an_outage_in_between_does_not_turn_drift_into_a_change_of_the_spec(self) -> None:
        spec = {"driftPolicy": "Report", "config": {"retention.ms": "1"}}
        drifted = view(healthy([1, 2], [2, 3], config={"retention.ms": "5"}))
        during = plan(settle(spec), replace(drifted, deleting=frozenset({ORDERS})))
        assert ready(during).reason is Reason.TOPIC_BEING_DELETED
        after = plan(kafka_topic(spec, status=status_of(during)), drifted)
        assert (ready(after).reason, after.steps) == (Reason.DRIFTED, ())

    @pytest.mark.parametrize("policy", ["Report", "Ignore"])
    @pytest.mark.parametrize("was_seen", [True, False], ids=["drift on record", "drift while nobody looked"])
    @pytest.mark.parametrize(
        "edit", [{"deletionPolicy": "Delete"}, {"config": {"retention.ms": "1", "segment.ms": "9"}}, {"partitions": 3}]
    )
    def test_an_edit_of_something_else_does_not_undo_what_is_left_changed(
        self, policy: str, was_seen: bool, edit: dict[str, Any]
    ) -> None:
        spec = {"driftPolicy": policy, "config": {"retention.ms": "1"}}
        drifted = view(healthy([1, 2], [2, 3], config={"retention.ms": "5"}))
        before = settle(spec)
        if was_seen:
            before = kafka_topic(spec, status=status_of(plan(before, drifted)))
        edited = _again(before, {**spec, **edit})
        for _ in range(2):  # also during the edit, and if an operator starts again
            altered = plan(edited, drifted)
            assert [step.config for step in altered.steps if isinstance(step, AlterTopicConfig)] == (
                [{"retention.ms": "5", "segment.ms": "9"}] if "config" in edit else []
            )
            shown = [] if policy == "Ignore" else ["config.retention.ms"]
            assert [each.key for each in altered.status.drift] == shown
            edited = kafka_topic({**spec, **edit}, status=status_of(altered), generation=2)

    def test_reporting_a_drift_from_now_on_does_not_undo_it_first(self) -> None:
        spec = {"config": {"retention.ms": "1"}}
        drifted = view(healthy([1, 2], [2, 3], config={"retention.ms": "5"}))
        contested = plan(settle(spec), drifted)
        assert contested.steps
        left = plan(_again(kafka_topic(spec, status=status_of(contested)), {**spec, "driftPolicy": "Report"}), drifted)
        assert (left.steps, ready(left).reason, left.status.plan) == ((), Reason.DRIFTED, None)
        enforced = plan(_again(kafka_topic(spec, status=status_of(left)), spec), drifted)
        assert [type(step) for step in enforced.steps] == [AlterTopicConfig]

    @pytest.mark.parametrize("policy", ["Report", "Ignore"])
    @pytest.mark.parametrize(
        ("config", "becomes"),
        [({"retention.ms": "2"}, {"retention.ms": "2"}), ({}, {}), ({"retention.ms": "5"}, None)],
        ids=["another value", "taken away", "made equal"],
    )
    def test_a_drifted_key_that_is_edited_itself_is_carried_out(
        self, policy: str, config: dict[str, str], becomes: dict[str, str] | None
    ) -> None:
        spec = {"driftPolicy": policy, "config": {"retention.ms": "1"}}
        drifted = view(healthy([1, 2], [2, 3], config={"retention.ms": "5"}))
        before = kafka_topic(spec, status=status_of(plan(settle(spec), drifted)))
        altered = plan(_again(before, {**spec, "config": config}), drifted)
        assert [step.config for step in altered.steps if isinstance(step, AlterTopicConfig)] == (
            [] if becomes is None else [becomes]
        )
        assert altered.status.drift == ()

    @pytest.mark.parametrize("policy", ["Report", "Ignore"])
    def test_a_key_that_was_dropped_and_is_set_elsewhere_again_is_nobodys_while_another_edit_is_under_way(
        self, policy: str
    ) -> None:
        spec = {"driftPolicy": policy, "config": {"retention.ms": "1"}}
        waiting = {"driftPolicy": policy, "partitions": 3}
        moving = topic((assign([2, 3, 1], [3], [1]), lead(1, [1, 2])), (assign([2, 3]), lead(2, [2, 3])))
        dropped = plan(_again(settle(spec), waiting), view(moving))
        assert dropped.status.config_keys == ()
        again = kafka_topic(waiting, status=status_of(dropped), generation=2)
        set_elsewhere = replace(moving, config={"retention.ms": "7"})
        assert plan(again, view(set_elsewhere)).steps == ()

    @pytest.mark.parametrize("policy", ["Report", "Ignore"])
    def test_of_replicas_only_those_that_the_spec_moves_are_moved(self, policy: str) -> None:
        spec = {"driftPolicy": policy, "partitions": None, "replicationFactor": None}
        first = {**spec, "replicaAssignment": [[1, 2], [2, 3]]}
        drifted = view(healthy([5, 6], [2, 3]))
        before = kafka_topic(first, status=status_of(plan(settle(first), drifted)))
        assert plan(_again(before, {**first, "deletionPolicy": "Delete"}), drifted).steps == ()
        (step,) = plan(_again(before, {**spec, "replicaAssignment": [[1, 2], [3, 4]]}), drifted).steps
        assert isinstance(step, StartMove)
        assert [(tp.partition, to) for tp, to in step.partitions] == [(1, (3, 4))]
        (step,) = plan(_again(before, {**spec, "replicaAssignment": [[2, 1], [2, 3]]}), drifted).steps
        assert isinstance(step, StartMove)
        assert [(tp.partition, to) for tp, to in step.partitions] == [(0, (2, 1))]

    @pytest.mark.parametrize("policy", ["Report", "Ignore"])
    def test_a_replication_factor_and_partitions_changed_elsewhere_stay_so(self, policy: str) -> None:
        spec = {"driftPolicy": policy}
        drifted = view(healthy([1, 2, 3], [2, 3, 4], [3, 4, 5]))
        before = kafka_topic(spec, status=status_of(plan(settle(spec), drifted)))
        assert plan(_again(before, {**spec, "deletionPolicy": "Delete"}), drifted).steps == ()
        grown = plan(_again(before, {**spec, "partitions": 4}), drifted)
        assert [type(step) for step in grown.steps] == [AddPartitions]

    @pytest.mark.parametrize("policy", ["Report", "Ignore"])
    def test_a_status_without_a_record_of_what_was_applied_gives_no_reason_to_undo_anything(self, policy: str) -> None:
        spec = {"driftPolicy": policy, "config": {"retention.ms": "1"}}
        status = {**settle(spec).status.dump_for_kubernetes(), "applied": None}
        drifted = view(healthy([1, 2], [2, 3], config={"retention.ms": "5"}))
        left = plan(kafka_topic({**spec, "deletionPolicy": "Delete"}, status=status, generation=2), drifted)
        assert left.steps == ()
        assert left.status.applied == {"partitions": "2", "replicationFactor": "2", "config.retention.ms": "1"}

    def test_what_is_remembered_of_a_spec_stays_small(self) -> None:
        assignment = [[1 + n % 3, 4 + n % 3] for n in range(5000)]
        spec = {
            "partitions": None,
            "replicationFactor": None,
            "replicaAssignment": assignment,
            "config": {"cleanup.policy": ",".join(["delete"] * 2000)},
        }
        seen = plan(settle(spec, cluster=view(healthy(*assignment, config=spec["config"]))), view())
        assert len(str(seen.status.applied)) < 400

    def test_a_topic_deleted_elsewhere_is_made_again_with_another_id_or_reported(self) -> None:
        assert plan(settle(), view()).needs_fresh_view
        again = plan(settle(), view(), FRESH)
        assert [type(step) for step in again.steps] == [CreateTopic]
        assert again.status.topic_id not in (None, ORDERS_SHOWN)
        assert [notice.reason for notice in again.notices] == ["TopicDeleted"]
        reported = plan(settle({"driftPolicy": "Report"}), view(), FRESH)
        assert (ready(reported).reason, reported.steps) == (Reason.TOPIC_DELETED, ())
        drifted = reported.status.condition(ConditionType.DRIFTED)
        assert drifted is not None
        assert (drifted.status, drifted.reason) == ("Unknown", Reason.TOPIC_DELETED)

    @pytest.mark.parametrize("policy", ["Report", "Ignore"])
    def test_drift_is_known_again_after_an_outage_and_changes_nothing(self, policy: str) -> None:
        spec = {"driftPolicy": policy, "config": {"retention.ms": "1"}}
        drifted = view(healthy([1, 2], [2, 3], config={"retention.ms": "5"}))
        away = plan(
            kafka_topic(spec, status=status_of(plan(settle(spec), drifted))), view(deleting=frozenset({ORDERS}))
        )
        back = plan(kafka_topic(spec, status=status_of(away)), drifted)
        condition = back.status.condition(ConditionType.DRIFTED)
        assert condition is not None
        assert (condition.status, back.steps) == ("True" if policy == "Report" else "False", ())

    def test_nothing_changes_in_the_status_when_nothing_changed(self) -> None:
        resource = settle()
        later = replace(LOOK, now=NOW.replace(hour=5))
        assert plan(resource, view(healthy([1, 2], [2, 3])), later).status == resource.status


class TestMoves:
    GROWN = {"replicationFactor": 3}  # noqa: RUF012 - read only

    def resource(self) -> KafkaTopic:
        return kafka_topic(self.GROWN, status=settle().status.dump_for_kubernetes(), generation=2)

    def move(self, step: StartMove, phase: str | None) -> dict[str, PartitionReassignment]:
        partitions = [{"topic": ORDERS, "partition": 0, "replicas": [1, 2, 3]}]
        made = raw("PartitionReassignment", {"partitions": partitions}, status={"phase": phase} if phase else {})
        return {step.name: PartitionReassignment.model_validate(made)}

    def start(self) -> StartMove:
        (step,) = plan(self.resource(), view(healthy([1, 2], [2, 3]))).steps
        assert isinstance(step, StartMove)
        return step

    def test_another_replication_factor_moves_every_partition_and_keeps_what_is_there(self) -> None:
        step = self.start()
        assert [(tp.partition, replicas[:2], len(replicas)) for tp, replicas in step.partitions] == [
            (0, (1, 2), 3),
            (1, (2, 3), 3),
        ]
        assert self.start().name == step.name

    def test_the_spec_says_how_fast_and_how_many_at_a_time_and_the_move_is_the_same_one(self) -> None:
        how = {"throttle": {"bytesPerSecond": 5000}, "maxConcurrentPartitions": 1}
        spec = {**self.GROWN, "reassignment": how}
        (step,) = plan(_again(settle(), spec), view(healthy([1, 2], [2, 3]))).steps
        assert step == replace(self.start(), bytes_per_second=5000, max_concurrent_partitions=1)

    @pytest.mark.parametrize(
        ("phase", "reason", "steps"),
        [
            (None, Reason.PROGRESSING, []),
            ("Running", Reason.PROGRESSING, []),
            ("Failed", Reason.PARTITIONS_FAILED, []),
            ("Completed", Reason.PROGRESSING, [ForgetMove]),
        ],
    )
    def test_a_move_that_is_there_is_not_made_again(
        self, phase: str | None, reason: Reason, steps: list[type[object]]
    ) -> None:
        around = Surroundings(moves=self.move(self.start(), phase))
        waiting = plan(self.resource(), view(healthy([1, 2], [2, 3])), around=around)
        assert ready(waiting).reason is reason
        assert [type(step) for step in waiting.steps] == steps


class TestDeletion:
    def delete(self, **changes: Any) -> KafkaTopic:
        return settle({"deletionPolicy": "Delete", **changes.pop("spec", {})}, **DELETED, **changes)

    def test_the_mark_is_set_and_the_object_waits_for_the_topic_to_go(self) -> None:
        cluster = view(healthy([1, 2], [2, 3]))
        first = plan(self.delete(), cluster)
        assert first.steps == (MarkTopicForDeletion(topic=ORDERS, topic_id=ORDERS_ID),)
        marked = kafka_topic({"deletionPolicy": "Delete"}, status=status_of(first), **DELETED)
        waiting = plan(marked, replace(cluster, deleting=frozenset({ORDERS})))
        assert (waiting.finalizer, waiting.steps) == (FinalizerWish.KEEP_AS_IS, ())
        assert ready(waiting).reason is Reason.TOPIC_BEING_DELETED
        gone = kafka_topic({"deletionPolicy": "Delete"}, status=status_of(waiting), **DELETED)
        assert plan(gone, view()).needs_fresh_view
        assert plan(gone, view(), FRESH).finalizer is FinalizerWish.RELEASE

    def test_the_object_is_let_go_when_the_cluster_takes_the_mark_back(self) -> None:
        cluster = view(healthy([1, 2], [2, 3]))
        first = plan(self.delete(), cluster)
        marked = kafka_topic({"deletionPolicy": "Delete"}, status=status_of(first), **DELETED)
        refused = plan(marked, cluster, replace(FRESH, done=first.steps))
        assert refused.finalizer is FinalizerWish.RELEASE
        assert [notice.reason for notice in refused.notices] == ["DeletionForbidden"]

    def test_a_topic_with_another_id_is_never_deleted(self) -> None:
        other = view(healthy([1, 2], topic_id=new_topic_id("x", ORDERS, None)))
        released = plan(self.delete(), other)
        assert (released.finalizer, released.steps) == (FinalizerWish.RELEASE, ())

    @pytest.mark.parametrize(
        ("changes", "around"),
        [
            ({"annotations": {"kontroller.dev/pause": "true"}}, ALONE),
            ({"spec": {"deletionPolicy": "Retain"}}, ALONE),
            ({}, Surroundings(owner=kafka_topic(name="other"), moves={})),
        ],
    )
    def test_a_paused_a_retained_and_somebody_elses_topic_stay(
        self, changes: dict[str, Any], around: Surroundings
    ) -> None:
        released = plan(self.delete(**changes), view(healthy([1, 2], [2, 3])), around=around)
        assert (released.finalizer, released.steps) == (FinalizerWish.RELEASE, ())


def test_the_younger_of_two_claims_does_nothing_and_names_the_winner() -> None:
    lost = plan(kafka_topic(), view(), around=Surroundings(owner=kafka_topic(name="older"), moves={}))
    assert lost.steps == ()
    assert ready(lost).reason is Reason.RESOURCE_CONFLICT
    assert "shop/older" in ready(lost).message


def test_a_paused_object_shows_what_it_would_do_and_does_nothing() -> None:
    paused = _again(settle(), {"partitions": 3}, annotations={"kontroller.dev/pause": "true"})
    shown = plan(paused, view(healthy([1, 2], [2, 3])))
    assert shown.steps == ()
    assert [change.key for change in shown.status.plan.changes] == ["partitions"]
    assert ready(shown).reason is Reason.PAUSED


def test_a_paused_object_does_not_show_what_would_be_left_as_it_is() -> None:
    spec = {"driftPolicy": "Report", "config": {"retention.ms": "1"}}
    paused = _again(settle(spec), {**spec, "partitions": 3}, annotations={"kontroller.dev/pause": "true"})
    shown = plan(paused, view(healthy([1, 2], [2, 3], config={"retention.ms": "5"})))
    assert [change.key for change in shown.status.plan.changes] == ["partitions"]


def test_a_topic_without_partitions_gets_those_of_the_spec() -> None:
    adopted = plan(kafka_topic({"adoptionPolicy": "Always"}), view(topic()))
    (step,) = adopted.steps
    assert isinstance(step, AddPartitions)
    assert [len(each.replicas) for each in step.assignment.partitions.values()] == [2, 2]
    assert adopted.status.replication_factor is None


def test_partitions_without_a_leader_make_the_topic_unready() -> None:
    offline = view(topic((assign([1, 2]), lead(-1, [1])), (assign([2, 3]), lead(2, [2, 3]))))
    shown = plan(settle(), offline)
    assert ready(shown).reason is Reason.PARTITIONS_OFFLINE
    assert shown.status.counts.offline == 1
    assert shown.status.partitions[0].leader == BrokerId(-1)


def _just_created() -> KafkaTopic:
    return kafka_topic({"partitions": 1}, status=status_of(plan(kafka_topic({"partitions": 1}), view())))


def _look_after(seconds: float) -> Context:
    return replace(LOOK, now=NOW + timedelta(seconds=seconds))


def test_that_a_new_topic_has_no_leaders_yet_is_only_said_where_it_lasts() -> None:
    created = _just_created()
    unled = view(topic((assign([1, 2]), None), topic_id=parse_id(created.status.topic_id or "")))
    assert plan(created, unled, _look_after(0)).may_wait_s > 0
    due = plan(created, unled, _look_after(5))
    assert (due.may_wait_s, ready(due).reason) == (0, Reason.PARTITIONS_OFFLINE)


def test_that_a_new_topic_has_leaders_is_said_at_once() -> None:
    created = _just_created()
    led_by_1 = view(healthy([1, 2], topic_id=parse_id(created.status.topic_id or "")))
    assert plan(created, led_by_1, _look_after(0)).may_wait_s == 0


def test_that_a_topic_has_lost_its_leaders_is_said_at_once() -> None:
    created = _just_created()
    lost = view(topic((assign([1, 2]), lead(-1, [1])), topic_id=parse_id(created.status.topic_id or "")))
    assert plan(created, lost, _look_after(0)).may_wait_s == 0
    in_order = settle({"partitions": 1}, cluster=view(healthy([1, 2])))
    assert plan(in_order, view(topic((assign([1, 2]), None))), _look_after(0)).may_wait_s == 0


@pytest.mark.parametrize(("name", "other"), [("a.b", "a_b"), ("a_b.c", "a.b_c")])
def test_a_topic_that_metrics_cannot_tell_from_another_is_not_created(name: str, other: str) -> None:
    refused = plan(kafka_topic({"topicName": name}), view(healthy([1, 2], name=other)))
    assert (refused.steps, ready(refused).reason) == ((), Reason.RESOURCE_CONFLICT)


def test_topic_ids_are_never_repeated_and_never_begin_with_a_dash() -> None:
    ids = [format_id(new_topic_id(f"uid-{n}", TopicName("t"), None)) or "" for n in range(2000)]
    assert len(set(ids)) == 2000
    assert not any(each.startswith("-") for each in ids)
    assert new_topic_id("uid-1", TopicName("t"), None) != new_topic_id("uid-1", TopicName("t"), ids[1])
