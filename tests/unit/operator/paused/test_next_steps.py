"""The status of a paused object of any kind shows the next steps, and these are the steps without the pause."""

import asyncio
from typing import Any

import pytest

from controller_operator.kubernetes.object_store import Key
from simulation.cluster.names import tp
from simulation.fast_loop import run_fast
from tests.unit.operator.crashes.operated import run_beside
from tests.unit.operator.crashes.world import World, installation

PAUSED = {"annotations": {"kontroller.dev/pause": "true"}}
MOVES = [{"topic": "orders", "partition": number, "replicas": [4, 5]} for number in (0, 1)]
WANTED: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "a topic that is not there": (
        "KafkaTopic",
        {"topicName": "bills", "partitions": 3, "replicationFactor": 2, "config": {"retention.ms": 5}},
        ["create topic bills with 3 partitions, replication factor 2 and retention.ms=5"],
    ),
    "a topic that is to grow": (
        "KafkaTopic",
        {"topicName": "orders", "partitions": 4, "replicationFactor": 2, "config": {"retention.ms": "7"},
         "adoptionPolicy": "Always"},
        ["write the configuration of topic orders", "give topic orders 4 partitions"],
    ),
    "a move": ("PartitionReassignment", {"partitions": MOVES}, ["move 2 partitions: orders-0, orders-1"]),
    "a move with a limit": (
        "PartitionReassignment",
        {"partitions": MOVES, "throttle": {"bytesPerSecond": 5000}},
        ["limit the move to 5000 bytes a second at each broker", "move 2 partitions: orders-0, orders-1"],
    ),
    "a few partitions at a time": (
        "PartitionReassignment",
        {"partitions": MOVES, "maxConcurrentPartitions": 1},
        ["move 1 partition: orders-0"],
    ),
    "a move to a broker that is not there": (
        "PartitionReassignment",
        {"partitions": [{"topic": "orders", "partition": 0, "replicas": [4, 9]}]},
        ["wait, UnknownBroker: broker 9 is not registered: start it, or choose another one"],
    ),
    "a move that is done": (
        "PartitionReassignment",
        {"partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]},
        [],
    ),
    "an election": (
        "PreferredElection",
        {"topics": ["orders"]},
        ["elect the preferred leaders of 1 partition: orders-0"],
    ),
    "a feature": ("FeatureSet", {"features": [{"name": "f", "maxVersionLevel": 2}]}, ["finalize f to 2"]),
}  # fmt: skip


async def wait_next_steps(world: World, key: Key) -> list[str]:
    await world.wait_until(lambda: "nextSteps" in world.status(key))
    await asyncio.sleep(30)
    found: list[str] = world.status(key)["nextSteps"]
    return found


def list_kafka_writes(world: World) -> list[str]:
    return [each for each in world.writes if each.startswith("transact") or "Request" in each]


@pytest.mark.parametrize(("kind", "spec", "words"), WANTED.values(), ids=WANTED)
def test_a_paused_object_says_what_would_be_done_and_nothing_is(
    kind: str, spec: dict[str, Any], words: list[str]
) -> None:
    async def story() -> None:
        async with installation() as world, run_beside(world.operate()):
            world.cluster.create_topic("orders", [1, 2], [2, 3])
            await world.wait_until(lambda: world.find_leader(tp("orders", 0)) == (1, [1, 2]))
            world.cluster.bounce_broker(1)
            await world.wait_until(lambda: world.find_leader(tp("orders", 0)) == (2, [1, 2]))
            key = await world.apply(kind, "asked", spec, **PAUSED)
            assert await wait_next_steps(world, key) == words
            assert list_kafka_writes(world) == []
            await world.apply(kind, "asked", spec)
            await world.wait_until(
                lambda: "nextSteps" not in world.status(key) and world.find_reason(key, "Paused") is None
            )
            await world.wait_until(lambda: bool(list_kafka_writes(world)) == any("wait" not in each for each in words))

    run_fast(story())


def test_what_a_paused_object_says_is_written_once_and_follows_the_cluster() -> None:
    async def story() -> None:
        async with installation() as world, run_beside(world.operate()):
            move = {"partitions": [{"topic": "later", "partition": 0, "replicas": [4, 5]}]}
            key = await world.apply("PartitionReassignment", "asked", move, **PAUSED)
            assert await wait_next_steps(world, key) == ["wait, UnknownTopic: the cluster has no topic later"]
            world.cluster.create_topic("later", [1, 2])
            await world.wait_until(lambda: world.status(key)["nextSteps"] == ["move 1 partition: later-0"])
            written = [each for each in world.writes if str(key) in each]
            await asyncio.sleep(600)
            assert [each for each in world.writes if str(key) in each] == written

    run_fast(story())


def test_a_namespace_is_not_told_of_steps_that_it_may_not_have_done() -> None:
    async def story() -> None:
        async with installation() as world, run_beside(world.operate()):
            await world.apply("KafkaCluster", "demo", {"zookeeper": {"connect": "zk:2181"},
                "allowedNamespaces": [{"namespace": "shop", "topicPrefix": "shop."}]})  # fmt: skip
            world.cluster.create_topic("orders", [1, 2])
            move = {"partitions": [{"topic": "orders", "partition": 0, "replicas": [4, 5]}]}
            key = await world.apply("PartitionReassignment", "asked", move, **PAUSED)
            await world.wait_until(lambda: world.status(key).get("conditions"))
            await asyncio.sleep(30)
            assert not [each for each in world.status(key).get("nextSteps", ()) if each.startswith("move")]

    run_fast(story())
