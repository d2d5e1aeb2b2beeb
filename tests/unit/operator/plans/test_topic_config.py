"""Configuration of a topic that its KafkaTopic does not name, and configuration that contradicts itself."""

from dataclasses import replace
from typing import Any

import pytest

from controller_core.model.ids import BrokerId, TopicVersion
from controller_core.model.snapshot import Snapshot, TopicSnapshot
from controller_core.zk import paths
from controller_operator.kafka.actions import AlterTopicConfig
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.topic.planner import decide
from controller_operator.resources import KafkaTopic
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from tests.unit.operator.clusters import NOW, ORDERS, assign, healthy, kafka_topic, lead, ready, status_of, topic, view

LEADER = "leader.replication.throttled.replicas"
FOLLOWER = "follower.replication.throttled.replicas"
NAMED = {"cleanup.policy": "delete"}
BY_HAND = {**NAMED, "retention.ms": "1000"}
REMOVE = {"undeclaredConfigPolicy": "Remove"}


def plan(resource: KafkaTopic, cluster: Snapshot) -> Plan[Any]:
    return decide(resource, cluster, Context(now=NOW))


def make_view(config: dict[str, str] | None = None, **about: Any) -> Snapshot:
    """A cluster with the topic, with this configuration."""
    return view(healthy([1, 2], [2, 3], config=config), **about)


def settle(**spec: Any) -> KafkaTopic:
    """An object whose topic is as the spec says and has nothing else, and has been seen so."""
    wanted = {"config": NAMED, **spec}
    return kafka_topic(wanted, status=status_of(plan(kafka_topic(wanted), make_view(wanted["config"]))))


def edit_topic(before: Plan[Any], **spec: Any) -> KafkaTopic:
    return kafka_topic({"config": NAMED, **spec}, status=status_of(before), generation=2)


def list_written(planned: Plan[Any]) -> list[dict[str, str]]:
    """The whole configurations that a plan writes."""
    return [dict(step.config) for step in planned.steps if isinstance(step, AlterTopicConfig)]


def read_drifted(planned: Plan[Any]) -> tuple[ConditionStatus, str]:
    condition = planned.status.condition(ConditionType.DRIFTED)
    assert condition is not None
    return condition.status, condition.message


def list_shown(planned: Plan[Any]) -> list[tuple[str, str]]:
    return [(each.key, each.value) for each in planned.status.undeclared_config.keys]


class TestKept:
    def test_a_key_that_was_set_by_hand_is_shown_and_stays(self) -> None:
        found = plan(settle(), make_view(BY_HAND))
        assert (found.status.undeclared_config.total, list_shown(found)) == (1, [("retention.ms", "1000")])
        words = "has 1 configuration key that the spec does not name, kept by undeclaredConfigPolicy: retention.ms=1000"
        assert (ready(found).status, ready(found).reason) == (ConditionStatus.TRUE, Reason.RECONCILED)
        assert ready(found).message == f"topic orders is as the spec says, and {words}"
        assert read_drifted(found) == (ConditionStatus.FALSE, f"the topic is as the spec says, and {words}")
        assert (found.steps, found.status.drift, found.status.plan) == ((), (), None)
        (notice,) = found.notices
        assert (notice.reason, notice.is_warning) == ("UndeclaredConfig", True)
        assert notice.message == f"topic orders {words.removesuffix('=1000')}", "no value of a configuration is logged"

    def test_it_is_told_once_and_again_when_it_changes(self) -> None:
        first = plan(settle(), make_view(BY_HAND))
        seen = kafka_topic({"config": NAMED}, status=status_of(first))
        assert plan(seen, make_view(BY_HAND)).notices == ()
        assert len(plan(seen, make_view({**BY_HAND, "retention.ms": "2000"})).notices) == 1
        gone = plan(seen, make_view(NAMED))
        assert (gone.notices, gone.status.undeclared_config.total) == ((), 0)
        assert ready(gone).message == "topic orders is as the spec says"

    def test_the_same_value_at_another_time_is_another_event(self) -> None:
        at = [
            replace(healthy([1, 2], [2, 3], config=BY_HAND), config_version=TopicVersion(version)) for version in (5, 6)
        ]
        ((first,), (second,)) = (plan(settle(), view(each)).notices for each in at)
        assert first != second

    def test_a_topic_that_is_taken_over_with_its_configuration_is_no_event(self) -> None:
        adopted = plan(kafka_topic({"config": NAMED}), make_view(BY_HAND))
        assert [each.reason for each in adopted.notices] == ["TopicAdopted"]
        assert list_shown(adopted) == [("retention.ms", "1000")]

    def test_a_value_that_is_the_default_is_shown_too_as_it_stays_when_the_default_changes(self) -> None:
        assert list_shown(plan(settle(), make_view({**NAMED, "retention.ms": "604800000"}))) == [
            ("retention.ms", "604800000")
        ]

    def test_what_the_object_has_set_is_not_undeclared_while_it_is_taken_back(self) -> None:
        before = settle(config=BY_HAND)
        dropped = plan(
            kafka_topic({"config": NAMED}, status=before.status.dump_for_kubernetes(), generation=2), make_view(BY_HAND)
        )
        assert list_written(dropped) == [NAMED]
        assert dropped.status.undeclared_config.total == 0

    def test_a_name_in_the_spec_makes_it_the_objects_own(self) -> None:
        taken = plan(edit_topic(plan(settle(), make_view(BY_HAND)), config=BY_HAND), make_view(BY_HAND))
        assert (taken.steps, taken.status.undeclared_config.total) == ((), 0)
        assert taken.status.config_keys == ("cleanup.policy", "retention.ms")

    def test_however_much_is_set_the_status_stays_small(self) -> None:
        live = {f"{'k' * 5_000}{number:04}": "v" * 5_000 for number in range(1_000)}
        found = plan(settle(), make_view({**NAMED, **live}))
        assert (found.status.undeclared_config.total, len(list_shown(found))) == (1_000, 50)
        assert len(str(found.status.dump_for_kubernetes())) < 50_000
        assert "and 995 more" in ready(found).message

    def test_a_configuration_that_is_not_told_is_not_said_to_be_empty(self) -> None:
        untold = replace(healthy([1, 2], [2, 3]), is_config_known=False)
        assert plan(kafka_topic(), view(untold)).status.undeclared_config is None

    @pytest.mark.parametrize("spec", [{}, {"config": NAMED}], ids=["no configuration", "some"])
    def test_a_configuration_that_makes_no_sense_is_left_to_a_person(self, spec: dict[str, Any]) -> None:
        path = paths.topic_config(ORDERS)
        seen = view(replace(healthy([1, 2], [2, 3]), is_config_known=False), malformed={path: "found oops"})
        stalled = plan(kafka_topic(spec), seen)
        assert (ready(stalled).reason, stalled.steps) == (Reason.INVALID_CONFIG, ())
        assert ready(stalled).message == f"{path} is malformed, and a person must repair or delete it: found oops"
        assert stalled.status.undeclared_config is None
        assert plan(kafka_topic(spec), view(malformed={path: "found oops"})).steps, "no topic, so it is created"


class TestRemoved:
    def test_a_key_that_was_set_by_hand_is_put_right_as_any_other_change(self) -> None:
        found = plan(settle(**REMOVE), make_view(BY_HAND))
        assert list_written(found) == [NAMED]
        assert [step.changes for step in found.steps if isinstance(step, AlterTopicConfig)] == [{"retention.ms": None}]
        assert [(each.key, each.desired, each.live) for each in found.status.drift] == [
            ("config.retention.ms", None, "1000")
        ]
        assert [each.reason for each in found.notices] == ["DriftCorrected"]
        assert found.status.corrections.count == 1

    @pytest.mark.parametrize(("policy", "is_drift"), [("Report", True), ("Ignore", False)])
    def test_the_drift_policy_says_whether_it_is_removed(self, policy: str, is_drift: bool) -> None:
        found = plan(settle(driftPolicy=policy, **REMOVE), make_view(BY_HAND))
        assert found.steps == ()
        assert [each.key for each in found.status.drift] == (["config.retention.ms"] if is_drift else [])
        assert (read_drifted(found)[0] is ConditionStatus.TRUE) is is_drift
        assert found.status.undeclared_config.total == 1

    @pytest.mark.parametrize("policy", ["Enforce", "Report", "Ignore"])
    def test_to_ask_for_it_is_a_change_of_the_spec_which_is_carried_out(self, policy: str) -> None:
        kept = plan(settle(driftPolicy=policy), make_view(BY_HAND))
        asked = edit_topic(kept, driftPolicy=policy, **REMOVE)
        for _ in range(2):  # also if an operator starts again before the end
            found = plan(asked, make_view(BY_HAND))
            assert list_written(found) == [NAMED]
            assert found.notices == ()
            asked = kafka_topic(
                {"config": NAMED, "driftPolicy": policy, **REMOVE}, status=status_of(found), generation=2
            )
        done = plan(asked, make_view(NAMED))
        later = kafka_topic({"config": NAMED, "driftPolicy": policy, **REMOVE}, status=status_of(done), generation=2)
        assert bool(plan(later, make_view(BY_HAND)).steps) is (policy == "Enforce")

    @pytest.mark.parametrize(("policy", "reason"), [("IfEqual", Reason.NOT_ADOPTED), ("Always", Reason.PROGRESSING)])
    def test_a_topic_with_more_than_the_spec_names_is_not_equal(self, policy: str, reason: Reason) -> None:
        found = plan(kafka_topic({"config": NAMED, "adoptionPolicy": policy, **REMOVE}), make_view(BY_HAND))
        assert ready(found).reason is reason
        assert list_written(found) == ([NAMED] if policy == "Always" else [])
        if policy == "IfEqual":
            assert "config.retention.ms is 1000, which the spec does not name" in ready(found).message

    def test_the_plan_of_a_paused_object_has_it(self) -> None:
        paused = kafka_topic(
            {"config": NAMED, **REMOVE},
            status=settle(**REMOVE).status.dump_for_kubernetes(),
            annotations={"kontroller.dev/pause": "true"},
        )
        found = plan(paused, make_view(BY_HAND))
        assert found.steps == ()
        assert [(each.action, each.key) for each in found.status.plan.changes] == [
            ("UnsetConfig", "config.retention.ms")
        ]

    def test_nothing_is_removed_that_the_operator_is_not_told(self) -> None:
        untold = view(replace(healthy([1, 2], [2, 3]), is_config_known=False))
        found = plan(kafka_topic(REMOVE), untold)
        assert (found.steps, ready(found).reason) == ((), Reason.NOT_ADMITTED)

    def test_the_record_of_its_keys_stays_within_the_schema(self) -> None:
        live = {f"no.such.key.{number}": "1" for number in range(1_000)}
        found = plan(settle(**REMOVE), make_view({**NAMED, **live}))
        assert list_written(found) == [NAMED]
        assert kafka_topic(status=status_of(found)).status.config_keys == ("cleanup.policy",)


class TestThrottles:
    def make_throttled(self, *, moving: bool = True) -> TopicSnapshot:
        lists = {LEADER: "0:1,00:2", FOLLOWER: "0:3"}
        state = (assign([2, 3, 1], [3], [1]) if moving else assign([1, 2]), lead(1, [1, 2]))
        return topic(state, (assign([2, 3]), lead(2, [2, 3])), config={**NAMED, **lists})

    @pytest.mark.parametrize("moving", [True, False])
    @pytest.mark.parametrize("policy", ["Keep", "Remove"])
    def test_the_lists_of_a_move_are_neither_shown_nor_removed(self, policy: str, moving: bool) -> None:
        found = plan(settle(undeclaredConfigPolicy=policy), view(self.make_throttled(moving=moving)))
        assert list_written(found) == []
        assert (found.status.undeclared_config.total, found.status.drift) == (0, ())

    def test_other_keys_are_removed_and_the_lists_stay(self) -> None:
        live = self.make_throttled()
        found = plan(settle(**REMOVE), view(replace(live, config={**live.config, "retention.ms": "1"})))
        assert list_written(found) == [dict(live.config)]

    @pytest.mark.parametrize("key", [LEADER, FOLLOWER])
    def test_a_spec_that_names_them_is_stalled_with_the_field_to_use(self, key: str) -> None:
        found = plan(settle(config={key: "*"}), make_view({key: "*"}))
        assert found.steps == ()
        assert ready(found).reason is Reason.INVALID_CONFIG
        assert "set reassignment.throttle" in ready(found).message
        assert found.status.condition(ConditionType.STALLED) is not None

    def test_what_an_earlier_spec_has_set_is_taken_back_when_nothing_moves(self) -> None:
        """An operator that took such keys may have set them."""
        status = {**settle().status.dump_for_kubernetes(), "configKeys": ["cleanup.policy", FOLLOWER, LEADER]}
        during = plan(kafka_topic({"config": NAMED}, status=status, generation=2), view(self.make_throttled()))
        assert (list_written(during), during.status.config_keys) == ([], ("cleanup.policy", FOLLOWER, LEADER))
        resource = kafka_topic({"config": NAMED}, status=status_of(during), generation=2)
        after = plan(resource, view(self.make_throttled(moving=False)))
        assert list_written(after) == [NAMED]


class TestContradictions:
    @pytest.mark.parametrize(
        "replicas",
        [
            {"replicationFactor": 2},
            {"partitions": None, "replicationFactor": None, "replicaAssignment": [[1, 2], [2, 3]]},
        ],
        ids=["factor", "assignment"],
    )
    @pytest.mark.parametrize("cluster", [view(), make_view()], ids=["to be created", "there already"])
    def test_more_in_sync_than_replicas_is_stalled_before_anything_is_written(
        self, cluster: Snapshot, replicas: dict[str, Any]
    ) -> None:
        found = plan(kafka_topic({"config": {"min.insync.replicas": "3"}, **replicas}), cluster)
        assert (found.steps, ready(found).reason) == ((), Reason.INVALID_CONFIG)
        assert "Set it to 2 or less, or give each partition 3 replicas" in ready(found).message

    def test_fewer_replicas_than_the_spec_wants_in_sync_are_not_made(self) -> None:
        before = settle(config={"min.insync.replicas": "2"})
        spec = {"config": {"min.insync.replicas": "2"}, "replicationFactor": 1}
        fewer = kafka_topic(spec, status=before.status.dump_for_kubernetes(), generation=2)
        found = plan(fewer, make_view({"min.insync.replicas": "2"}))
        assert (found.steps, ready(found).reason) == ((), Reason.INVALID_CONFIG)

    def test_a_key_that_contradicts_what_was_set_elsewhere_is_not_written(self) -> None:
        """A broker that reads a contradiction from ZooKeeper does not load the topic's logs."""
        live = {**NAMED, "max.compaction.lag.ms": "10"}
        spec = {"config": {**NAMED, "min.compaction.lag.ms": "20"}}
        found = plan(edit_topic(plan(settle(), make_view(live)), **spec), make_view(live))
        assert (found.steps, ready(found).reason) == ((), Reason.INVALID_CONFIG)
        assert "min.compaction.lag.ms (20) > max.compaction.lag.ms (10)" in ready(found).message
        assert "undeclaredConfigPolicy" in ready(found).message
        removed = plan(edit_topic(plan(settle(), make_view(live)), **spec, **REMOVE), make_view(live))
        assert list_written(removed) == [spec["config"]]

    def test_without_zookeeper_the_keys_of_later_releases_are_left_to_the_controller(self) -> None:
        spec = {"config": {"remote.copy.lag.ms": "5"}}
        assert ready(plan(kafka_topic(spec), view())).reason is Reason.INVALID_CONFIG
        assert plan(kafka_topic(spec), view(voters=(BrokerId(1),))).steps
