"""The operator records what deleted objects leave behind, once, even if their namespace goes."""

from typing import Any

import pytest

from controller_operator.kubernetes.leftovers import Leftover
from controller_operator.kubernetes.object_api import ApiForbidden, ApiUnavailable
from controller_operator.kubernetes.object_store import Key
from controller_operator.plans.outcome import Notice
from controller_operator.reconciling import event_recorder
from controller_operator.reconciling.event_recorder import EventRecorder, Home
from controller_operator.resources.common import FINALIZER
from tests.unit.operator.clusters import raw
from tests.unit.operator.running.operating import CLUSTER, HOME, Operating, run_operator
from tests.unit.operator.simulated_api import SimulatedApiServer

ORDERS = Key("KafkaTopic", "shop", "orders")
AT = "2026-01-01T00:00:00Z"
GOING = raw("KafkaTopic", {}, deletionTimestamp=AT)
LEFT = Notice(reason="ClusterGone", message="the topic stays", is_warning=True, is_leftover=True)


def read_kept(api: SimulatedApiServer) -> list[Leftover]:
    return Leftover.all_of(api.leftovers.get((HOME.namespace, HOME.leftovers), {}))


class Terminating(SimulatedApiServer):
    """An API server that refuses new objects in the namespace `shop`, because that is being deleted."""

    trouble: ApiUnavailable | None = None

    async def create_event(self, namespace: str, event: dict[str, Any]) -> None:
        if namespace == "shop":
            raise ApiForbidden("unable to create new content in namespace shop because it is being terminated")
        await super().create_event(namespace, event)

    async def keep_leftover(self, *named: str) -> None:
        if self.trouble is not None:
            raise self.trouble
        await super().keep_leftover(*named)


async def test_a_leftover_of_a_namespace_that_is_being_deleted_is_told_beside_the_operator() -> None:
    api, counted = Terminating(), list[str]()
    recorder = EventRecorder(api, HOME, counted.append)
    for _ in range(2):
        await recorder.post(GOING, LEFT)
    left = Leftover(
        time=AT, kind="KafkaTopic", namespace="shop", name="orders", reason="ClusterGone", message=LEFT.message
    )
    assert (read_kept(api), counted) == ([left], ["KafkaTopic"])
    (event,) = api.events
    assert (event["reason"], event["type"]) == ("LeftBehind", "Warning")
    assert event["message"] == "KafkaTopic shop/orders (ClusterGone): the topic stays"
    about = event["involvedObject"]
    assert (about["kind"], about["namespace"], about["name"]) == ("ConfigMap", HOME.namespace, HOME.leftovers)


async def test_an_operator_that_is_started_again_has_it_on_record_once() -> None:
    api = Terminating()
    for _ in range(2):
        await EventRecorder(api, HOME).post(GOING, LEFT)
    assert (len(read_kept(api)), len(api.events)) == (1, 1)


async def test_a_leftover_that_the_api_server_could_not_take_is_kept_once_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_recorder, "_FIRST_PAUSE_S", 0.01)
    api = Terminating()
    api.trouble = ApiUnavailable("a blip")
    recorder = EventRecorder(api, HOME)
    await recorder.post(GOING, LEFT)
    assert read_kept(api) == []
    api.trouble = None
    await Operating().wait_until(lambda: read_kept(api))
    await recorder.close()


async def test_what_is_no_leftover_is_on_record_nowhere() -> None:
    api = SimulatedApiServer()
    await EventRecorder(api, HOME).post(GOING, Notice(reason="TopicDeleted", message="topic orders is gone"))
    assert api.leftovers == {}


async def test_a_topic_whose_cluster_goes_before_it_is_a_leftover_and_counted() -> None:
    topic = {"partitions": 1, "replicationFactor": 1, "deletionPolicy": "Delete"}
    async with run_operator(raw("KafkaTopic", topic, name="orders"), missing_cluster_grace_seconds=0) as around:
        await around.wait_until(lambda: (around.api.peek(ORDERS) or {})["status"].get("counts"))
        await around.wait_until(lambda: FINALIZER in (around.api.peek(CLUSTER) or {})["metadata"].get("finalizers", []))
        known = around.api.peek(CLUSTER) or {}
        forced = {"annotations": {"kontroller.dev/delete-before-dependents": "true"}}
        await around.api.keep({**known, "metadata": {**known["metadata"], **forced}})
        for key in (CLUSTER, ORDERS):
            await around.api.remove(key)
            await around.wait_until(lambda key=key: around.peek_gone(key))  # type: ignore[misc]  # bound at once
        assert {(each.kind, each.reason) for each in read_kept(around.api)} == {
            ("KafkaCluster", "DeletedBeforeDependents"),
            ("KafkaTopic", "ClusterGone"),
        }
        assert around.runtime.metrics.left_behind.labels("KafkaTopic")._value.get() == 1


async def test_a_cluster_does_not_wait_for_an_object_that_only_a_foreign_finalizer_holds() -> None:
    topic = raw(
        "KafkaTopic", {"partitions": 1, "replicationFactor": 1}, name="orders", finalizers=["example.com/foreign"]
    )
    async with run_operator(topic) as around:
        await around.wait_until(lambda: FINALIZER in (around.api.peek(CLUSTER) or {})["metadata"].get("finalizers", []))
        for key in (ORDERS, CLUSTER):
            await around.api.remove(key)
        await around.wait_until(lambda: around.peek_gone(CLUSTER))
        assert not around.peek_gone(ORDERS)


def test_an_entry_that_is_none_is_left_out_and_the_newest_come_first() -> None:
    def read_left(time: str) -> str:
        return Leftover(time=time, kind="k", namespace="n", name="a", reason="r", message="m").render()

    found = Leftover.all_of(
        {"1": read_left("2026-01-01"), "2": "no JSON", "3": "[]", "4": '{"a": 1}', "5": read_left("2026-01-02")}
    )
    assert [each.time for each in found] == ["2026-01-02", "2026-01-01"]


def test_each_operator_has_records_of_its_own() -> None:
    home = Home(namespace="kafka", name="other")
    assert (home.leftovers, home.throttles) == ("other-leftovers", "other-throttles")
