"""No object waits for ever for its deletion, even if parts are away or broken. An event names the leftovers."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from controller_core.model.ids import TopicName
from controller_core.zk import paths
from controller_core.zk.session import AccessRefused
from controller_operator.kubernetes.object_api import ApiForbidden
from controller_operator.kubernetes.object_store import Key, StoredObject
from controller_operator.plans.outcome import DELETION_PATIENCE
from controller_operator.reconciling import letting_go
from controller_operator.resources import FeatureSet, KafkaTopic
from controller_operator.resources.common import FINALIZER
from tests.unit.operator.clusters import NOW, raw
from tests.unit.operator.running.operating import Operating, run_operator

ORDERS = Key("KafkaTopic", "shop", "orders")
LEVELS = Key("FeatureSet", "shop", "levels")
MOVE = Key("PartitionReassignment", "shop", "move")
SPECS: dict[Key, dict[str, Any]] = {
    ORDERS: {"partitions": 1, "replicationFactor": 1, "deletionPolicy": "Delete"},
    LEVELS: {"features": [{"name": "metadata.version", "maxVersionLevel": 1}], "deletionPolicy": "Delete"},
    MOVE: {"partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}]},
}
NO_WAIT: dict[str, float] = {
    "unreachable_grace_seconds": 0,
    "objects_unreachable_grace_seconds": 0,
    "missing_cluster_grace_seconds": 0,
}


def make_raw(key: Key, **spec: Any) -> dict[str, Any]:
    return raw(key.kind, {**SPECS[key], **spec}, name=key.name, finalizers=[FINALIZER])


@pytest.fixture
def _has_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator has been there for long."""
    monkeypatch.setattr(letting_go, "_TRIES_FIRST_S", 0.0)


async def delete(around: Operating, key: Key, *, ago: timedelta = DELETION_PATIENCE) -> None:
    await around.api.remove(key)
    await around.api.date_deletion(key, (datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%SZ"))


@pytest.mark.usefixtures("_has_tried")
@pytest.mark.parametrize("key", SPECS, ids=lambda key: key.kind)
async def test_every_kind_is_let_go_while_zookeeper_is_away(key: Key) -> None:
    async with run_operator(make_raw(key), **NO_WAIT) as around:
        await around.wait_until(lambda: around.condition(key))
        around.take_zookeeper_away()
        await delete(around, key)
        await around.wait_until(lambda: around.peek_gone(key))
        (event,) = around.events("ClusterUnreachable")
        assert event["type"] == "Warning"
        assert "out of reach" in event["message"]


@pytest.mark.usefixtures("_has_tried")
async def test_an_object_waits_for_zookeeper_before_it_is_let_go() -> None:
    async with run_operator(make_raw(ORDERS), **NO_WAIT) as around:
        await around.wait_until(lambda: around.condition(ORDERS))
        around.take_zookeeper_away()
        await delete(around, ORDERS, ago=DELETION_PATIENCE - timedelta(seconds=30))
        await around.wait_for_reason(ORDERS, "ZooKeeperUnavailable")
        await around.wait_until_looked_at(ORDERS)
        assert not around.peek_gone(ORDERS)


async def test_an_operator_that_was_away_tries_before_it_gives_up() -> None:
    async with run_operator(make_raw(ORDERS), **NO_WAIT) as around:
        await around.wait_until(lambda: around.condition(ORDERS))
        around.take_zookeeper_away()
        await delete(around, ORDERS, ago=timedelta(days=1))
        await around.wait_for_reason(ORDERS, "ZooKeeperUnavailable")
        await around.wait_until_looked_at(ORDERS)
        assert not around.peek_gone(ORDERS)


@pytest.mark.usefixtures("_has_tried")
async def test_an_operator_that_began_with_its_clock_ahead_still_gives_up() -> None:
    clock, writer = [NOW + timedelta(days=365)], cast("Any", None)
    letting = letting_go.LettingGo(writer, lambda: clock[-1], missing_cluster_grace_s=0.0)
    clock.append(NOW)
    deleted: dict[str, Any] = {"deletionTimestamp": (NOW - DELETION_PATIENCE).isoformat(), "finalizers": [FINALIZER]}
    assert letting.is_overdue(StoredObject(raw(ORDERS.kind, SPECS[ORDERS], name=ORDERS.name, **deleted)))


async def test_a_topic_that_nobody_deletes_is_left_to_the_cluster_with_its_mark() -> None:
    async with run_operator(make_raw(ORDERS)) as around:
        await around.wait_until(lambda: around.zookeeper.tree.read(paths.topic(TopicName("orders"))))
        await around.wait_until(lambda: (around.api.peek(ORDERS) or {})["status"].get("counts"))
        await delete(around, ORDERS)
        await around.wait_until(lambda: around.peek_gone(ORDERS))
        assert around.zookeeper.tree.read(paths.delete_topic(TopicName("orders"))) is not None
        assert "marked for deletion" in around.events("DeletionUnfinished")[0]["message"]


@pytest.mark.usefixtures("_has_tried")
async def test_a_deletion_that_zookeeper_refuses_again_and_again_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_operator(make_raw(ORDERS)) as around:
        await around.wait_until(lambda: (around.api.peek(ORDERS) or {})["status"].get("counts"))

        async def refuse(_ops: Any) -> None:
            raise AccessRefused("an ACL of /admin/delete_topics")

        for session in around.sessions:
            monkeypatch.setattr(session, "transact", refuse)
        await delete(around, ORDERS)
        await around.wait_until(lambda: around.peek_gone(ORDERS))
        assert "AccessRefused: an ACL" in around.events("DeletionUnfinished")[0]["message"]


@pytest.mark.parametrize("key", SPECS, ids=lambda key: key.kind)
async def test_an_object_that_cannot_be_read_says_which_field_and_can_be_deleted(key: Key) -> None:
    async with run_operator(make_raw(key, fromTheFuture=1)) as around:
        await around.wait_for_reason(key, "InvalidSpec")
        assert "spec.fromTheFuture" in around.condition(key)["message"]
        assert around.condition(key)["status"] == "False"
        assert around.condition(key, "Stalled")["status"] == "True"
        assert len(around.events("InvalidSpec")) == 1
        writes = len(around.api.status_patches)
        await around.wait_until_looked_at(key)
        assert len([each for each, _ in around.api.status_patches[writes:] if each == key]) == 0
        await around.api.remove(key)
        await around.wait_until(lambda: around.peek_gone(key))
        assert "cannot be read" in around.events("InvalidSpec")[-1]["message"]


async def test_an_object_that_can_be_read_again_goes_on() -> None:
    async with run_operator(make_raw(ORDERS, fromTheFuture=1)) as around:
        await around.wait_for_reason(ORDERS, "InvalidSpec")
        await around.api.apply(make_raw(ORDERS))
        await around.wait_until(lambda: around.condition(ORDERS).get("reason") not in (None, "InvalidSpec"))
        assert around.condition(ORDERS, "Stalled") == {}


async def test_an_unreadable_status_is_left_as_another_version_wrote_it() -> None:
    async with run_operator() as around:
        await around.api.apply({**make_raw(MOVE), "status": {"phase": "Levitating", "observedGeneration": 1}})
        await around.wait_for_reason(MOVE, "InvalidSpec")
        assert "status.phase" in around.condition(MOVE)["message"]
        assert (around.api.peek(MOVE) or {})["status"]["phase"] == "Levitating"


async def test_a_topic_whose_policy_became_delete_too_late_stays_and_an_event_says_so() -> None:
    retained = raw("KafkaTopic", {**SPECS[ORDERS], "deletionPolicy": "Retain"}, name="orders")
    async with run_operator(retained, **NO_WAIT) as around:
        await around.wait_until(lambda: around.condition(ORDERS).get("reason") == "PartitionsOffline")
        around.take_zookeeper_away()
        await around.wait_for_reason(ORDERS, "ZooKeeperUnavailable")
        await around.api.apply(raw("KafkaTopic", SPECS[ORDERS], name="orders"))
        await around.api.remove(ORDERS)
        await around.wait_until(lambda: around.events("TopicRetained"))
        (event,) = around.events("TopicRetained")
        assert event["type"] == "Warning"
        assert event["message"] == (
            "topic orders stays: the object was deleted before the operator had put its finalizer kontroller.dev/finalizer "
            "on it. Create the object again, and delete it when it has the finalizer"
        )
        around.bring_zookeeper_back()
        assert around.zookeeper.tree.read(paths.topic(TopicName("orders")))


OWNED: dict[Key, tuple[type[KafkaTopic | FeatureSet], dict[str, Any], str]] = {
    ORDERS: (KafkaTopic, {"topicId": "AAAAAAAAAAAAAAAAAAAABw"}, "TopicRetained"),
    LEVELS: (FeatureSet, {"finalized": "metadata.version=1"}, "FeaturesRetained"),
}


async def test_a_topic_that_its_object_retains_goes_to_the_other_object_and_both_say_so() -> None:
    retained = {"partitions": 1, "replicationFactor": 1}
    async with run_operator(raw("KafkaTopic", retained, name="orders")) as around:
        await around.wait_until(lambda: (around.api.peek(ORDERS) or {})["status"].get("counts"))
        heir = Key("KafkaTopic", "shop", "z-heir")
        await around.api.apply(raw("KafkaTopic", {**retained, "topicName": "orders"}, name=heir.name))
        await around.wait_for_reason(heir, "ResourceConflict")
        topic_id = (around.api.peek(ORDERS) or {})["status"]["topicId"]
        await around.api.remove(ORDERS)
        await around.wait_until(lambda: (around.api.peek(heir) or {})["status"].get("topicId") == topic_id)
        await around.wait_until(lambda: len(around.events("TopicHandedOver")) == 2)
        told = {each["involvedObject"]["name"]: each["message"] for each in around.events("TopicHandedOver")}
        assert told == {
            "orders": "topic orders stays with its data: shop/z-heir takes it over",
            "z-heir": "took topic orders over from shop/orders, with all of its data",
        }


@pytest.mark.parametrize("key", OWNED, ids=lambda key: key.kind)
@pytest.mark.parametrize(
    ("metadata", "changes", "is_told"),
    [
        ({}, {}, True),
        ({}, {"deletionPolicy": "Retain"}, False),
        ({"annotations": {"kontroller.dev/pause": "true"}}, {}, False),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, {}, False),
    ],
    ids=["not held", "to be retained", "paused", "let go by the operator"],
)
def test_only_what_was_not_held_by_the_finalizer_is_left_behind(
    key: Key, metadata: dict[str, Any], changes: dict[str, Any], is_told: bool
) -> None:
    kind, status, reason = OWNED[key]
    gone = kind.model_validate(raw(key.kind, {**SPECS[key], **changes}, name=key.name, status=status, **metadata))
    notice = letting_go.make_leftover_notice(gone)
    assert (notice.reason if notice is not None else None) == (reason if is_told else None)
    unseen = kind.model_validate(raw(key.kind, SPECS[key], name=key.name))
    assert letting_go.make_leftover_notice(unseen) is None


class TestApproval:
    """A deletion that nobody approves, in a namespace that is deleted too."""

    async def test_the_topic_stays_and_is_recorded_as_left_behind(self) -> None:
        async with run_operator(make_raw(ORDERS, approval="Required")) as around:
            await around.wait_until(lambda: (around.api.peek(ORDERS) or {})["status"].get("counts"))
            await around.api.remove(ORDERS)
            await around.wait_for_reason(ORDERS, "AwaitingApproval")
            await around.wait_until(lambda: around.events("AwaitingApproval"))
            around.api.ending_namespaces.add("shop")
            await around.wait_until_looked_at(ORDERS, times=1)
            await around.wait_until(lambda: around.peek_gone(ORDERS))
            assert around.events("DeletionNotApproved")
            assert around.zookeeper.tree.read(paths.topic(TopicName("orders")))
            assert around.runtime.metrics.left_behind.labels("KafkaTopic")._value.get() == 1

    async def test_an_operator_that_may_not_read_namespaces_waits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async with run_operator(make_raw(ORDERS, approval="Required")) as around:
            monkeypatch.setattr(around.api, "is_ending", refuse_to_say)
            await around.wait_until(lambda: (around.api.peek(ORDERS) or {})["status"].get("counts"))
            await around.api.remove(ORDERS)
            await around.wait_for_reason(ORDERS, "AwaitingApproval")


async def refuse_to_say(_namespace: str) -> bool:
    raise ApiForbidden("403 Forbidden")
