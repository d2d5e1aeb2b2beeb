"""A broker is taken out of a cluster, with ZooKeeper and without: all objects agree before anything moves."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import pytest

from controller_operator.kubernetes.object_store import Key
from simulation.fast_loop import run_fast
from tests.unit.operator.crashes.operated import CLUSTER, run_beside
from tests.unit.operator.crashes.quorum_world import QuorumWorld, quorum_installation
from tests.unit.operator.crashes.world import World, installation

AnyWorld = World | QuorumWorld
Install = Callable[[], AbstractAsyncContextManager[Any]]
PINNED: Final = [[4, 1], [1, 2]]
both = pytest.mark.parametrize("install", [installation, quorum_installation], ids=["ZooKeeper", "quorum"])


def holders(world: AnyWorld, *topics: str) -> set[int]:
    """The brokers that have replicas of the topics."""
    return {
        broker for name in topics for each in world.cluster.topic(name).partitions.values() for broker in each.replicas
    }


def message(world: AnyWorld, key: Key, type_: str = "Ready") -> str:
    conditions = {each["type"]: each["message"] for each in world.status(key).get("conditions", ())}
    return str(conditions.get(type_, ""))


def events(world: AnyWorld, reason: str) -> list[str]:
    return [each["message"] for each in world.api.events if each["reason"] == reason]


def rows(world: AnyWorld) -> dict[int, tuple[str, str | None]]:
    return {each["id"]: (each["state"], each.get("removal")) for each in world.status(CLUSTER)["brokers"]}


async def mark(world: AnyWorld, *brokers: int) -> None:
    """Says on the KafkaCluster that the brokers are to be removed."""
    spec = {**(world.api.peek(CLUSTER) or {})["spec"], "brokersToRemove": [*brokers]}
    if not brokers:
        del spec["brokersToRemove"]
    spec.pop("clusterRef", None)
    await world.apply(CLUSTER.kind, CLUSTER.name, spec)


async def pin(world: AnyWorld) -> Key:
    """Create a topic with a partition that must be on broker 4."""
    pinned = await world.apply("KafkaTopic", "pinned", {"replicaAssignment": PINNED, "driftPolicy": "Enforce"})
    await world.wait_until(lambda: world.is_ready(pinned))
    return pinned


@both
def test_a_broker_is_removed_and_nobody_moves_anything_back(install: Install) -> None:
    async def remove() -> None:
        async with install() as world, run_beside(world.operate()):
            pinned = await pin(world)
            free = await world.apply("KafkaTopic", "free", {"partitions": 12, "replicationFactor": 2})
            await world.wait_until(lambda: world.is_ready(free))
            assert 4 in holders(world, "free")
            before = str(world.cluster.topic("free"))

            drain = await world.apply("PartitionReassignment", "drain-4", {"drainBrokers": [4]})
            await world.wait_until(lambda: world.find_reason(drain) == "PinnedByTopic")
            await world.wait_until_quiet()
            assert message(world, drain).startswith("KafkaTopic shop/pinned would move replicas back to broker 4 ")
            assert str(world.cluster.topic("free")) == before, "something moved"

            await mark(world, 4)
            await world.wait_until(lambda: world.find_reason(pinned) == "BrokerToBeRemoved")
            assert not world.is_ready(pinned)
            await world.wait_until(lambda: world.status(drain).get("phase") == "Completed")
            await world.wait_until_quiet()
            assert 4 not in holders(world, "free", "pinned")
            assert events(world, "DriftCorrected") == []
            assert len(events(world, "AssignmentOverruled")) == 1
            assert "pins replicas of partition 0 to broker 4, which is to be removed" in message(world, pinned)

            more = await world.apply("KafkaTopic", "more", {"partitions": 12, "replicationFactor": 3})
            await world.apply("KafkaTopic", "free", {"partitions": 24, "replicationFactor": 3})
            await world.wait_until(lambda: world.is_ready(more) and world.is_ready(free))
            await world.wait_until(lambda: len(world.cluster.topic("free").partitions) == 24)
            await world.wait_until_quiet()
            assert 4 not in holders(world, "free", "pinned", "more")
            await world.wait_until(lambda: rows(world)[4] == ("Registered", "Empty"))
            assert "broker 4 to be removed has no replicas and gets none: safe to stop for good" in message(
                world, CLUSTER
            )

            world.cluster.kill_broker(4)
            await world.wait_until(lambda: 4 not in rows(world))
            assert world.find_reason(CLUSTER, "Degraded") == "Healthy"
            await world.apply("KafkaTopic", "pinned", {"replicaAssignment": [[3, 1], [1, 2]], "driftPolicy": "Enforce"})
            await world.wait_until(lambda: world.is_ready(pinned))
            await mark(world)
            await world.wait_until_quiet()
            assert all(map(world.is_ready, (pinned, free, more)))

    run_fast(remove())


@both
def test_a_broker_that_is_to_stay_after_all_gets_its_pinned_replicas_back(install: Install) -> None:
    async def keep() -> None:
        async with install() as world, run_beside(world.operate()):
            pinned = await pin(world)
            await mark(world, 4)
            drain = await world.apply("PartitionReassignment", "drain-4", {"drainBrokers": [4]})
            await world.wait_until(lambda: world.status(drain).get("phase") == "Completed")
            assert 4 not in holders(world, "pinned")
            await mark(world)
            await world.wait_until(lambda: world.is_ready(pinned) and 4 in holders(world, "pinned"))

    run_fast(keep())


@both
def test_a_move_and_a_topic_that_pins_its_partition_never_fight(install: Install) -> None:
    async def fight() -> None:
        async with install() as world, run_beside(world.operate()):
            pinned = await pin(world)
            targets = [{"topic": "pinned", "partition": 0, "replicas": [3, 1]}]
            move = await world.apply("PartitionReassignment", "pinned-to-3", {"partitions": targets})
            await world.wait_until(lambda: world.find_reason(move) == "PinnedByTopic")
            assert "KafkaTopic shop/pinned would move pinned-0 back" in message(world, move)
            reported = {"replicaAssignment": PINNED, "driftPolicy": "Report"}
            await world.apply("KafkaTopic", "pinned", reported)
            await world.wait_until(lambda: world.status(move).get("phase") == "Completed")
            await world.wait_until(lambda: message(world, pinned).startswith("moved by kpr/pinned-to-3 and kept: "))
            assert world.is_ready(pinned)
            assert events(world, "DriftCorrected") == []

    run_fast(fight())
