"""The operator at work: applied objects take effect, and an error of one object is reported and disturbs no other."""

import asyncio
from typing import Any

import pytest
from aiohttp import ClientSession

from controller_core.model.ids import TopicName
from controller_core.zk import paths
from controller_operator.kubernetes.object_api import ApiForbidden, ApiUnavailable, ObjectGone
from controller_operator.kubernetes.object_store import Key
from controller_operator.plans.decision import decide
from controller_operator.probes import serve_probes
from controller_operator.reconciling.runtime import OperatorRuntime
from controller_operator.settings import OperatorSettings
from devcluster.running.ports import release_port, reserve_port
from tests.unit.operator.clusters import raw
from tests.unit.operator.running.operating import CLUSTER, Operating, run_operator
from tests.unit.operator.running.simulated_watcher import SimulatedWatcher

ORDERS = Key("KafkaTopic", "shop", "orders")


def a_topic(name: str = "orders", spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return raw("KafkaTopic", {"partitions": 1, "replicationFactor": 1, **(spec or {})}, name=name, **metadata)


def has_topic(around: Operating, name: str) -> bool:
    return around.zookeeper.tree.read(paths.topic(TopicName(name))) is not None


async def test_what_users_apply_is_seen_by_the_watch_and_comes_about() -> None:
    async with run_operator(a_topic("early")) as around:
        await around.api.apply(a_topic())
        await around.wait_until(lambda: has_topic(around, "early") and has_topic(around, "orders"))
        await around.wait_for_reason(CLUSTER, "Reconciled")


async def test_replicas_move_as_the_topic_says() -> None:
    how = {"throttle": {"bytesPerSecond": 5000}, "maxConcurrentPartitions": 1}
    async with run_operator(a_topic()) as around:
        await around.wait_until(lambda: has_topic(around, "orders"))
        await around.wait_for_reason(ORDERS, "PartitionsOffline")
        await around.api.apply(a_topic(spec={"replicationFactor": 2, "reassignment": how}, generation=2))
        await around.wait_until(lambda: around.runtime.store.keys("PartitionReassignment"))
        (key,) = around.runtime.store.keys("PartitionReassignment")
        spec = (around.api.peek(key) or {})["spec"]
        assert {name: spec.get(name) for name in how} == how


async def test_the_operator_is_ready_as_long_as_it_sees_its_objects() -> None:
    async with run_operator() as around:
        await around.wait_for_reason(CLUSTER, "Reconciled")
        assert around.runtime.trouble is None
        assert around.runtime.is_stuck() is None
        around.api.missing_kinds.add("FeatureSet")
        for _ in range(5):
            await around.api.interrupt(ApiUnavailable("the watches end"))
        await around.wait_until(lambda: "CustomResourceDefinitions" in (around.runtime.trouble or ""))
        around.api.missing_kinds.clear()
        await around.wait_until(lambda: around.runtime.trouble is None)


async def test_an_operator_that_waits_for_its_definitions_is_alive_and_not_ready() -> None:
    around = Operating()
    around.api.missing_kinds.add("KafkaCluster")
    watcher = SimulatedWatcher(around.api)
    runtime = OperatorRuntime(OperatorSettings(all_namespaces=True), around.api, watcher, around.connect)
    beginning = asyncio.create_task(runtime.start())
    await around.wait_until(lambda: "CustomResourceDefinitions" in (runtime.trouble or ""))
    assert runtime.is_stuck() is None
    around.api.missing_kinds.clear()
    await beginning
    assert runtime.trouble is None
    await runtime.stop()


async def test_an_operator_serves_the_kinds_that_are_there_and_says_which_is_missing() -> None:
    around = Operating()
    around.api.missing_kinds.add("FeatureSet")
    await around.api.apply(a_topic())
    watcher = SimulatedWatcher(around.api)
    runtime = OperatorRuntime(OperatorSettings(all_namespaces=True), around.api, watcher, around.connect)
    await runtime.start()
    assert runtime.store.get(ORDERS) is not None
    assert runtime.trouble == "FeatureSet: no such kind: are the CustomResourceDefinitions installed?"
    await runtime.stop()


async def test_a_right_that_is_missing_ends_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    around = Operating()
    runtime = OperatorRuntime(
        OperatorSettings(all_namespaces=True), around.api, SimulatedWatcher(around.api), around.connect
    )

    async def refuse() -> None:
        raise ApiForbidden("403")

    around.api.before_listing_arrives = refuse
    with pytest.raises(ApiForbidden):
        await runtime.start()
    assert runtime.trouble is not None
    await runtime.stop()


async def test_an_api_server_that_is_away_at_the_start_is_waited_for() -> None:
    around = Operating()
    runtime = OperatorRuntime(
        OperatorSettings(all_namespaces=True), around.api, SimulatedWatcher(around.api), around.connect
    )

    async def reset() -> None:
        around.api.before_listing_arrives = None
        raise ApiUnavailable("connection reset")

    around.api.before_listing_arrives = reset
    await runtime.start()
    assert runtime.trouble is None
    await runtime.stop()


async def test_what_no_watch_told_is_found_by_the_next_comparison_with_a_listing() -> None:
    async with run_operator(a_topic(), resync_interval_seconds=0.05) as around:
        await around.wait_for_reason(CLUSTER, "Reconciled")
        await around.watcher.stop()
        await around.api.remove(ORDERS)
        await around.api.apply(a_topic("late"))
        await around.wait_until(lambda: around.runtime.store.get(ORDERS) is None)
        await around.wait_until(lambda: has_topic(around, "late"))


async def test_a_background_task_that_ended_is_no_health() -> None:
    async with run_operator() as around:
        task = next(iter(around.runtime._tasks))
        task.cancel()
        await around.wait_until(task.done)
        assert task.get_name() in (around.runtime.is_stuck() or "")


async def test_probes_say_what_is_wrong() -> None:
    said: dict[str, str | None] = {"health": None, "readiness": "objects are being listed"}
    port = reserve_port()
    release_port(port)
    where = f"http://127.0.0.1:{port}"
    stop = await serve_probes(f"{where}/healthz", health=lambda: said["health"], readiness=lambda: said["readiness"])
    async with (
        ClientSession() as client,
        client.get(f"{where}/healthz") as alive,
        client.get(f"{where}/readyz") as ready,
    ):
        assert (alive.status, ready.status) == (200, 503)
        assert await ready.text() == "objects are being listed\n"
    await stop()


async def test_the_views_of_clusters_that_are_gone_are_gone() -> None:
    async with run_operator() as around:
        await around.wait_for_reason(CLUSTER, "Reconciled")
        assert around.runtime._last_views
        await around.api.remove(CLUSTER)
        await around.wait_until(lambda: not around.runtime._last_views)


async def test_an_object_stays_known_when_something_else_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subresource, a namespace of an event, an owned object: none of them is the object itself."""
    async with run_operator(a_topic()) as around:
        await around.wait_until(lambda: (around.api.peek(ORDERS) or {})["status"].get("counts"))

        async def not_found(_raw: Any, _patch: Any) -> Any:
            raise ObjectGone("404 no such subresource")

        with monkeypatch.context() as missing:
            missing.setattr(around.api, "patch_status", not_found)
            await around.api.apply(a_topic(spec={"partitions": 2}))
            await around.wait_until(lambda: around.api.requests["get"])
        await around.wait_until(lambda: (around.api.peek(ORDERS) or {})["status"]["counts"]["partitions"] == 2)


async def test_an_object_that_fails_again_and_again_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_operator(a_topic("bad")) as around:

        def stumble(resource: Any, seen: Any) -> Any:
            if resource.metadata.name == "bad":
                raise ZeroDivisionError
            return decide(resource, seen)

        monkeypatch.setattr("controller_operator.reconciling.reconciler.decide", stumble)
        await around.wait_until_looked_at(Key("KafkaTopic", "shop", "bad"))
        await around.api.apply(a_topic())
        await around.wait_until(lambda: has_topic(around, "orders"))
        assert around.runtime.is_stuck() is None
