"""A FeatureSet asks for levels that every live broker supports, names the obstacles, and asks for nothing twice."""

from dataclasses import replace
from typing import Any

import pytest

from controller_core.model.features import FeatureUpdate, FinalizedFeatures, UpgradeType
from controller_core.model.metadata import Broker
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.requests.features import FeatureReply, UpdateFeatures
from controller_operator.plans.cluster.planner import show_cluster
from controller_operator.plans.feature_set.planner import Claims, decide
from controller_operator.plans.outcome import Context, FinalizerWish, Plan, Verdict, conditions
from controller_operator.resources import FeatureSet, KafkaCluster
from controller_operator.resources.common import FINALIZER, PAUSE_ANNOTATION
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from tests.unit.operator.clusters import NOW, broker, feature_set, raw, ready, status_of, view

LOOK = Context(now=NOW)
ALONE = Claims()
BROKERS = (broker(1, f=(1, 5), g=(1, 2)), broker(2, f=(2, 4), g=(1, 2)))
DELETE = {"deletionPolicy": "Delete"}
GONE: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]}


def cluster(finalized: dict[str, int] | None, brokers: tuple[Broker, ...] = BROKERS, **about: Any) -> Snapshot:
    """Return a cluster with these finalized levels. None: features are not set up."""
    features = None if finalized is None else FinalizedFeatures(features=finalized, epoch=7)
    return replace(view(features=features, **about), brokers={each.id: each for each in brokers})


def look(resource: FeatureSet, seen: Snapshot, *replies: FeatureReply, claims: Claims = ALONE) -> Plan[Any]:
    return decide(resource, seen, replace(LOOK, replies=replies), claims)


def list_asked(plan: Plan[Any]) -> list[tuple[str, int, UpgradeType]]:
    steps = [step for step in plan.steps if isinstance(step, UpdateFeatures)]
    assert len(steps) == len(plan.steps)
    return [(each.feature, each.max_version_level, each.upgrade_type) for step in steps for each in step.updates]


def reply(plan: Plan[Any], **changes: Any) -> FeatureReply:
    """Return a reply to the requests of a plan."""
    (step,) = plan.steps
    assert isinstance(step, UpdateFeatures)
    return FeatureReply(step=step, **changes)


def again(resource: FeatureSet, plan: Plan[Any]) -> FeatureSet:
    """The object with the status that the plan wrote."""
    return resource.model_copy(
        update={
            "status": FeatureSet.model_validate(
                raw("FeatureSet", {"features": [{"name": "f", "maxVersionLevel": 1}]}, status=status_of(plan))
            ).status
        }
    )


def condition(plan: Plan[Any], type_: ConditionType) -> ConditionStatus | None:
    found = plan.status.condition(type_)
    return found.status if found else None


UPGRADE, SAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE


@pytest.mark.parametrize(
    ("finalized", "wanted", "spec", "asks", "reason"),
    [
        ({}, {"f": 4}, {}, [("f", 4, UPGRADE)], Reason.PROGRESSING),
        (None, {"f": 4}, {}, [("f", 4, UPGRADE)], Reason.PROGRESSING),
        ({"f": 3}, {"f": 4, "g": 1}, {}, [("f", 4, UPGRADE), ("g", 1, UPGRADE)], Reason.PROGRESSING),
        ({"f": 4, "other": 9}, {"f": 4}, {}, [], Reason.RECONCILED),
        ({"f": 4}, {"f": 3}, {}, [], Reason.DOWNGRADE_NOT_ALLOWED),
        ({"f": 4}, {"f": 3}, {"allowDowngrade": True}, [("f", 3, SAFE)], Reason.PROGRESSING),
        ({"f": 4}, {"f": 1}, {"allowDowngrade": True}, [], Reason.FEATURE_UNSUPPORTED),
        ({}, {"f": 4}, {"allowDowngrade": True}, [("f", 4, UPGRADE)], Reason.PROGRESSING),
        ({}, {"f": 5}, {}, [], Reason.FEATURE_UNSUPPORTED),
        ({}, {"h": 1}, {}, [], Reason.FEATURE_UNSUPPORTED),
        ({}, {"f": 5, "g": 2}, {}, [("g", 2, UPGRADE)], Reason.PROGRESSING),
        ({"g": 2}, {"f": 5, "g": 2}, {}, [], Reason.FEATURE_UNSUPPORTED),
        ({}, {"f": 4}, {"dryRun": True}, [], Reason.DRY_RUN),
        ({"f": 4}, {"f": 4}, {"dryRun": True}, [], Reason.RECONCILED),
    ],
)
def test_it_asks_for_what_can_be_had(
    finalized: dict[str, int] | None,
    wanted: dict[str, int],
    spec: dict[str, Any],
    asks: list[tuple[str, int, UpgradeType]],
    reason: Reason,
) -> None:
    plan = look(feature_set(wanted, spec), cluster(finalized))
    assert list_asked(plan) == asks
    assert ready(plan).reason is reason
    assert (ready(plan).status is ConditionStatus.TRUE) == (reason is Reason.RECONCILED)
    is_stalled = reason in (Reason.DOWNGRADE_NOT_ALLOWED, Reason.FEATURE_UNSUPPORTED)
    assert (condition(plan, ConditionType.STALLED) is ConditionStatus.TRUE) == is_stalled


def test_the_status_shows_levels_ranges_and_the_broker_that_stands_in_the_way() -> None:
    plan = look(feature_set({"f": 5, "g": 1}), cluster({"f": 3, "g": 1}))
    status = status_of(plan)
    assert (status["finalized"], status["epoch"]) == ("f=3, g=1", 7)
    assert status["features"] == [
        {
            "name": "f", "maxVersionLevel": 5, "finalizedLevel": 3, "blockedBy": [2],
            "supported": {"minVersion": 2, "maxVersion": 4},
            "message": "f cannot be finalized at 5: broker 2 supports 2 to 4",
        },
        {
            "name": "g", "maxVersionLevel": 1, "finalizedLevel": 1, "blockedBy": [],
            "supported": {"minVersion": 1, "maxVersion": 2},
        },
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "reason", "message"),
    [
        (cluster({}, controller=None), Reason.NO_CONTROLLER, "the cluster has no controller"),
        (cluster(None, malformed={"/feature": "found nonsense"}), Reason.FEATURES_UNREADABLE, "repair or delete"),
        (cluster({}, brokers=()), Reason.FEATURE_UNSUPPORTED, "no broker is live"),
    ],
)
def test_it_asks_for_nothing_where_nobody_could_do_it(seen: Snapshot, reason: Reason, message: str) -> None:
    plan = look(feature_set({"f": 4}), seen)
    assert plan.steps == ()
    assert ready(plan).reason is reason
    assert message in ready(plan).message


def test_the_older_of_two_sets_has_the_feature() -> None:
    plan = look(feature_set({"f": 4, "g": 1}), cluster({}), claims=Claims(winners={"f": "shop/first"}))
    assert plan.steps == ()
    assert ready(plan).reason is Reason.RESOURCE_CONFLICT
    assert "f belongs to shop/first" in ready(plan).message
    assert condition(plan, ConditionType.CONFLICT) is ConditionStatus.TRUE


def test_a_paused_set_asks_for_nothing() -> None:
    plan = look(feature_set({"f": 4}, annotations={PAUSE_ANNOTATION: "true"}), cluster({}))
    assert plan.steps == ()
    assert condition(plan, ConditionType.PAUSED) is ConditionStatus.TRUE


class TestReplies:
    def test_it_waits_until_an_answered_change_is_seen(self) -> None:
        resource = feature_set({"f": 4})
        first = look(resource, cluster({}))
        second = look(resource, cluster({}), reply(first))
        assert second.steps == ()
        assert ready(second).reason is Reason.PROGRESSING
        assert second.look_again_in_s is not None
        assert ready(look(resource, cluster({"f": 4}), reply(first))).reason is Reason.RECONCILED

    def test_a_refusal_is_reported_in_the_controllers_words_and_is_no_other_features(self) -> None:
        resource = feature_set({"f": 4, "g": 1})
        first = look(resource, cluster({}))
        second = look(resource, cluster({"g": 1}), reply(first, refused=(("f", "not now"),)))
        assert (second.steps, ready(second).reason, ready(second).message) == ((), Reason.REQUEST_REFUSED, "not now")
        assert condition(second, ConditionType.STALLED) is ConditionStatus.TRUE
        assert second.look_again_in_s is not None

    def test_trouble_is_reported_and_the_request_is_made_again(self) -> None:
        resource = feature_set({"f": 4})
        second = look(resource, cluster({}), reply(look(resource, cluster({})), trouble="nobody answers"))
        assert (second.steps, ready(second).reason) == ((), Reason.BROKERS_UNAVAILABLE)
        assert "nobody answers" in ready(second).message
        assert second.look_again_in_s is not None

    @pytest.mark.parametrize("changes", [{"trouble": "nobody answers"}, {"refused": (("f", "not now"),)}])
    def test_what_is_said_does_not_change_while_the_same_is_tried_again(self, changes: dict[str, Any]) -> None:
        resource = feature_set({"f": 4})
        told = look(resource, cluster({}), reply(look(resource, cluster({})), **changes))
        retry = look(again(resource, told), cluster({}))
        assert list_asked(retry) == [("f", 4, UPGRADE)]
        assert retry.status == told.status


class TestDrift:
    def test_a_level_that_was_changed_elsewhere_is_reported_and_put_right(self) -> None:
        resource = feature_set({"f": 4})
        drifted = look(again(resource, look(resource, cluster({"f": 4}))), cluster({"f": 3}))
        assert condition(drifted, ConditionType.DRIFTED) is ConditionStatus.TRUE
        assert [notice.reason for notice in drifted.notices] == ["FeaturesDrifted"]
        assert "f is finalized at 3 instead of 4" in drifted.notices[0].message
        assert list_asked(drifted) == [("f", 4, UPGRADE)]
        right = look(again(resource, drifted), cluster({"f": 4}))
        assert condition(right, ConditionType.DRIFTED) is ConditionStatus.FALSE

    def test_a_level_that_was_changed_while_the_cluster_was_out_of_sight_is_reported_too(self) -> None:
        resource = feature_set({"f": 4})
        settled = again(resource, look(resource, cluster({"f": 4})))
        away = Verdict.make_unknown(Reason.ZOOKEEPER_UNAVAILABLE, "ZooKeeper does not answer")
        said = conditions(away, settled.status, settled.metadata, NOW)
        status = settled.status.model_copy(update={"conditions": said})
        drifted = look(settled.model_copy(update={"status": status}), cluster({"f": 3}))
        assert [notice.reason for notice in drifted.notices] == ["FeaturesDrifted"]
        assert condition(drifted, ConditionType.DRIFTED) is ConditionStatus.TRUE

    def test_a_level_that_was_raised_elsewhere_stays_where_nothing_may_be_lowered(self) -> None:
        resource = feature_set({"f": 3})
        drifted = look(again(resource, look(resource, cluster({"f": 3}))), cluster({"f": 4}))
        assert (drifted.steps, ready(drifted).reason) == ((), Reason.DOWNGRADE_NOT_ALLOWED)
        assert condition(drifted, ConditionType.DRIFTED) is ConditionStatus.TRUE
        still = look(again(resource, drifted), cluster({"f": 4}))
        assert still.status.conditions == drifted.status.conditions
        assert still.notices == ()

    def test_what_was_never_as_the_spec_says_has_not_drifted(self) -> None:
        assert condition(look(feature_set({"f": 4}), cluster({"f": 3})), ConditionType.DRIFTED) is None


class TestDeletion:
    @pytest.mark.parametrize(
        ("spec", "finalizers", "wish"),
        [
            (DELETE, [], FinalizerWish.HOLD),
            (DELETE, [FINALIZER], FinalizerWish.KEEP_AS_IS),
            ({}, [FINALIZER], FinalizerWish.RELEASE),
            ({}, [], FinalizerWish.KEEP_AS_IS),
        ],
    )
    def test_only_a_set_whose_levels_go_with_it_has_a_finalizer(
        self, spec: dict[str, Any], finalizers: list[str], wish: FinalizerWish
    ) -> None:
        assert look(feature_set({"f": 4}, spec, finalizers=finalizers), cluster({"f": 4})).finalizer is wish

    def test_the_levels_are_deleted_and_then_the_object_is_let_go(self) -> None:
        resource = feature_set({"f": 4, "g": 1}, DELETE, **GONE)
        first = look(resource, cluster({"f": 4, "g": 1, "other": 1}))
        assert list_asked(first) == [("f", 0, SAFE), ("g", 0, SAFE)]
        assert first.finalizer is FinalizerWish.KEEP_AS_IS
        assert look(resource, cluster({"f": 4, "g": 1}), reply(first)).finalizer is FinalizerWish.KEEP_AS_IS
        last = look(resource, cluster({"other": 1}), reply(first))
        assert (last.steps, last.finalizer) == ((), FinalizerWish.RELEASE)
        assert [notice.reason for notice in last.notices] == ["FeaturesDeleted"]

    def test_a_feature_of_another_set_stays(self) -> None:
        resource = feature_set({"f": 4, "g": 1}, DELETE, **GONE)
        claims = Claims(winners={"f": "shop/first"}, shared=frozenset(("f",)))
        assert list_asked(look(resource, cluster({"f": 4, "g": 1}), claims=claims)) == [("g", 0, SAFE)]

    @pytest.mark.parametrize(
        ("spec", "about", "seen", "reason"),
        [
            ({}, {}, cluster({"f": 4}), "FeaturesRetained"),
            ({**DELETE, "dryRun": True}, {}, cluster({"f": 4}), "FeaturesRetained"),
            (DELETE, {"annotations": {PAUSE_ANNOTATION: "true"}}, cluster({"f": 4}), "FeaturesRetained"),
            (DELETE, {}, cluster(None, malformed={"/feature": "nonsense"}), "FeaturesRetained"),
            (DELETE, {}, cluster(None), "FeaturesDeleted"),
        ],
    )
    def test_the_object_is_let_go_where_nothing_is_to_be_deleted(
        self, spec: dict[str, Any], about: dict[str, Any], seen: Snapshot, reason: str
    ) -> None:
        plan = look(feature_set({"f": 4}, spec, **GONE, **about), seen)
        assert (plan.steps, plan.finalizer) == ((), FinalizerWish.RELEASE)
        assert [notice.reason for notice in plan.notices] == [reason]

    def test_a_refused_deletion_lets_the_object_go_and_says_why(self) -> None:
        resource = feature_set({"f": 4}, DELETE, **GONE)
        first = look(resource, cluster({"f": 4}))
        plan = look(resource, cluster({"f": 4}), reply(first, refused=(("f", "not ever"),)))
        assert plan.finalizer is FinalizerWish.RELEASE
        assert [(notice.reason, notice.is_warning) for notice in plan.notices] == [("DeletionForbidden", True)]
        assert "not ever" in plan.notices[0].message

    @pytest.mark.parametrize(
        ("seen", "trouble"), [(cluster({"f": 4}, controller=None), None), (cluster({"f": 4}), "x")]
    )
    def test_it_waits_for_a_controller_that_answers(self, seen: Snapshot, trouble: str | None) -> None:
        resource = feature_set({"f": 4}, DELETE, **GONE)
        step = UpdateFeatures(updates=(FeatureUpdate(feature="f", max_version_level=0, upgrade_type=SAFE),))
        replies = [FeatureReply(step=step, trouble=trouble)] if trouble else []
        plan = look(resource, seen, *replies)
        assert (plan.steps, plan.finalizer) == ((), FinalizerWish.KEEP_AS_IS)
        assert plan.look_again_in_s is not None


def test_a_cluster_shows_its_finalized_features_and_their_epoch() -> None:
    resource = KafkaCluster.model_validate(
        raw("KafkaCluster", {"zookeeper": {"connect": "zk:2181"}}) | {"spec": {"zookeeper": {"connect": "zk:2181"}}}
    )
    shown = status_of(show_cluster(resource, cluster({"g": 1, "f": 4}), LOOK))["features"]
    finalized = [{"name": "f", "maxVersionLevel": 4}, {"name": "g", "maxVersionLevel": 1}]
    assert shown == {"epoch": 7, "finalized": finalized}
    assert "features" not in status_of(show_cluster(resource, cluster(None), LOOK))
