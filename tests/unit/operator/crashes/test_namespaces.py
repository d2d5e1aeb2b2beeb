"""A namespace with an object of every kind can be deleted in a reasonable time, even if parts of Kafka are away."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from controller_operator.kubernetes.object_store import Key
from simulation.fast_loop import run_fast
from tests.unit.operator.crashes.operated import CLUSTER, run_beside
from tests.unit.operator.crashes.world import BROKERS, World, installation

_LONGEST_S = 15 * 60


async def zookeeper(world: World) -> None:
    world.take_zookeeper_away()


async def the_controller(world: World) -> None:
    await world.cluster.active.kill()


async def the_brokers(world: World) -> None:
    for number in BROKERS:
        world.cluster.kill_broker(number)


async def all_of_kafka(world: World) -> None:
    await the_controller(world)
    await the_brokers(world)
    await zookeeper(world)


async def nothing(_world: World) -> None:
    """Take nothing away: all servers answer."""


@pytest.mark.parametrize("goes_away", [nothing, zookeeper, the_controller, the_brokers, all_of_kafka])
@pytest.mark.parametrize("restarts", [False, True], ids=["same operator", "operator restarted meanwhile"])
def test_a_namespace_with_every_kind_is_gone_within_a_quarter_of_an_hour(
    goes_away: Callable[[World], Awaitable[None]], restarts: bool
) -> None:
    async def scenario() -> None:
        async with installation() as world:
            async with run_beside(world.operate()):
                keys = await _every_kind(world)
                await goes_away(world)
                await asyncio.sleep(60)
                for key in keys:
                    await world.delete(key)
                began_s = asyncio.get_running_loop().time()
                await asyncio.sleep(60)
                if not restarts:
                    await world.wait_until(lambda: not world.api.objects)
            async with run_beside(world.operate()):
                await world.wait_until(lambda: not world.api.objects)
            assert asyncio.get_running_loop().time() - began_s < _LONGEST_S

    run_fast(scenario())


async def _every_kind(world: World) -> list[Key]:
    """Create objects that all have something to undo: a move that runs, feature levels, and a topic to be deleted."""
    world.cluster.create_topic("moving", [1, 2])
    kept = {"deletionPolicy": "Delete"}
    topic = await world.apply("KafkaTopic", "orders", {"partitions": 2, "replicationFactor": 2, **kept})
    features = await world.apply("FeatureSet", "features", {"features": [{"name": "f", "maxVersionLevel": 2}], **kept})
    await world.wait_until(lambda: world.is_ready(topic) and world.is_ready(features))
    world.cluster.broker(5).hang()
    target = {"topic": "moving", "partition": 0, "replicas": [4, 5]}
    move = await world.apply("PartitionReassignment", "move", {"partitions": [target]})
    await world.wait_until(lambda: (world.status(move).get("counts") or {}).get("moving") == 1)
    election = await world.apply("PreferredElection", "nightly", {"allPartitions": True, "schedule": "0 3 * * *"})
    await world.wait_until(lambda: world.find_reason(election) is not None)
    assert {key.kind for key, raw in world.api.objects.items() if raw["metadata"].get("finalizers")} >= {
        "KafkaTopic",
        "FeatureSet",
        "PartitionReassignment",
    }
    return [CLUSTER, topic, features, move, election]
