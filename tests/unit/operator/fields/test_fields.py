"""With any value in a field, the status is true, nothing fails unexpectedly, and the object can be deleted.

The API server refuses most wrong values. An object with them may still exist after a definition was rolled back.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from controller_core.model.ids import TopicName
from controller_core.zk import codecs, paths
from controller_operator.kubernetes.object_store import KIND_CLASSES, Key
from controller_operator.resources.conditions import Reason
from controller_operator.resources.crds import custom_resource_definition
from simulation.fast_loop import run_fast
from tests.unit.operator.clusters import raw
from tests.unit.operator.crashes.operated import CLUSTER, run_beside
from tests.unit.operator.crashes.world import World, installation
from tests.unit.operator.fields.walk import walk_fields

_CLUSTER_REF = {"name": "demo"}
_LEAST_STEPS = 10
_PATIENCE_S = 60
_WHY_NOT_READY = {"Stalled", "Reconciling", "Complete", "Failed", "Paused"}
_BASES: Mapping[str, dict[str, Any]] = {
    "KafkaCluster": {
        "zookeeper": {"connect": "zk:2181"},
        "bootstrapServers": "broker-1:9001",
        "allowedNamespaces": [{"namespace": "shop", "topicPrefix": "a"}],
    },
    "KafkaTopic": {
        "clusterRef": _CLUSTER_REF,
        "partitions": 2,
        "replicaAssignment": [[1, 2], [2, 3]],
        "config": {"retention.ms": "1000"},
        "deletionPolicy": "Delete",
    },
    "PartitionReassignment": {
        "clusterRef": _CLUSTER_REF,
        "partitions": [{"topic": "there", "partition": 0, "replicas": [3, 4]}],
        "schedule": {"windows": [{"schedule": "* * * * *", "timeZone": "Europe/Berlin", "durationMinutes": 60}]},
    },
    "PreferredElection": {"clusterRef": _CLUSTER_REF, "partitions": [{"topic": "there", "partition": 0}]},
    "RebalancePlan": {"clusterRef": _CLUSTER_REF, "mode": "drain", "brokers": [1]},
    "FeatureSet": {"clusterRef": _CLUSTER_REF, "features": [{"name": "f", "maxVersionLevel": 2}]},
}


@pytest.mark.parametrize("kind", KIND_CLASSES)
def test_whatever_a_field_says_the_status_is_true_and_the_object_can_be_deleted(kind: str) -> None:
    async def walk() -> None:
        async with _install() as world:
            for number, (what, spec) in enumerate(_steps(kind)):
                key = Key(kind, "shop", f"walked-{number}")
                await _see(world, key, spec, what)
                if spec.get("approval") == "Required" and "deletionPolicy" in spec:
                    # Its deletion would wait for another person as long as the topic would go, too.
                    await _see(world, key, {**spec, "deletionPolicy": "Retain"}, f"{what}, and the topic stays")
                if not _is_gone(world, key):
                    await world.delete(key)
                await world.wait_until(partial(_is_gone, world, key))

    run_fast(walk())


@pytest.mark.parametrize("kind", ["KafkaCluster", "KafkaTopic", "FeatureSet"])
def test_whatever_a_field_has_said_for_a_while_the_object_is_ready_when_it_is_as_before(kind: str) -> None:
    async def walk() -> None:
        async with _install() as world:
            key = Key(kind, "shop", "walked")
            for what, spec in [("at first", _BASES[kind]), *_steps(kind)]:
                await _see(world, key, spec, what)
                await _see(world, key, _BASES[kind], f"back from {what}")
                assert world.is_ready(key), f"back from {what}: {world.status(key)}"

    run_fast(walk())


@asynccontextmanager
async def _install() -> AsyncIterator[World]:
    async with installation() as world, run_beside(world.operate()):
        world.cluster.create_topic("there", [1, 2])
        await world.wait_until(lambda: world.is_ready(CLUSTER))
        yield world


def _steps(kind: str) -> list[tuple[str, dict[str, Any]]]:
    schema = custom_resource_definition(KIND_CLASSES[kind])["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    steps = list(walk_fields(schema["properties"]["spec"], _BASES[kind]))
    assert len(steps) > _LEAST_STEPS
    return steps


async def _see(world: World, key: Key, spec: dict[str, Any], what: str) -> None:
    await world.api.apply(raw(key.kind, {}, name=key.name) | {"spec": spec})
    await _wait_until_judged(world, key)
    assert _untrue(world, key) == [], what
    assert _count_unexpected_errors(world) == 0, what


async def _wait_until_judged(world: World, key: Key) -> None:
    """Waits until the operator has made up its mind about an object, or has tried to for a while."""
    for _ in range(_PATIENCE_S):
        await asyncio.sleep(1)
        if world.find_reason(key) not in (None, Reason.PROGRESSING):
            return


def _is_gone(world: World, key: Key) -> bool:
    return world.api.peek(key) is None


def _untrue(world: World, key: Key) -> list[str]:
    """Return the statements of an object's status that are untrue."""
    if _is_gone(world, key):
        return []  # its time was over at once
    said = world.status(key).get("conditions", [])
    conditions = {each["type"]: each for each in said}
    ready = conditions.get("Ready")
    if ready is None:
        return ["it says nothing"]
    wrong = []
    if len(said) != len(conditions):
        wrong.append("a condition is there twice")
    if any(each["reason"] not in list(Reason) or not each["message"] for each in said):
        wrong.append("a reason that nobody knows, or no message")
    if ready["status"] == "True" and conditions.keys() & {"Stalled", "Reconciling", "Failed"}:
        wrong.append(f"ready, and {sorted(conditions)}")
    if ready["status"] != "True" and not conditions.keys() & _WHY_NOT_READY and ready["reason"] != Reason.DRY_RUN:
        wrong.append(f"not ready, and nobody knows whether it will be: {said}")
    generation = (world.api.peek(key) or {})["metadata"]["generation"]
    if world.status(key).get("observedGeneration") != generation or ready["observedGeneration"] != generation:
        wrong.append("of another generation")
    if key.kind == "KafkaTopic" and ready["status"] == "True":
        wrong += _differences(world, key)
    return wrong


def _differences(world: World, key: Key) -> list[str]:
    """Return the differences between a topic and the spec that its status calls fulfilled."""
    spec = (world.api.peek(key) or {})["spec"]
    name = TopicName(spec.get("topicName") or key.name)
    assigned = [list(each.replicas) for each in world.cluster.topic(name).partitions.values()]
    config = codecs.decode_config(world.cluster.data(paths.topic_config(name)) or b"{}")
    wanted = {
        name: str(value).lower() if value is True else str(value) for name, value in (spec.get("config") or {}).items()
    }
    wrong = [] if spec.get("replicaAssignment") in (None, assigned) else [f"assigned: {assigned}"]
    wrong += [] if spec.get("partitions") in (None, len(assigned)) else [f"partitions: {len(assigned)}"]
    return wrong + ([] if config == wanted else [f"config: {config}"])


def _count_unexpected_errors(world: World) -> float:
    assert world.runtime is not None
    found = world.runtime.metrics.reconciliations.collect()
    return sum(each.value for metric in found for each in metric.samples if each.labels.get("result") == "error")
