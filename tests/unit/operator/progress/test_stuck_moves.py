"""A move that does not get on says why, tells it once, and goes on without a word when the cause is gone.

The whole installation in one process, in the loop's time: followers copy a thousand bytes a second.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from controller_operator.kubernetes.object_store import Key, Raw
from simulation.cluster.names import tp
from simulation.fast_loop import run_fast
from tests.unit.operator.crashes.operated import run_beside
from tests.unit.operator.crashes.world import World, installation

PARTITION = tp("single", 0)
SPEC: Raw = {"partitions": [{"topic": "single", "partition": 0, "replicas": [1]}]}
DRAIN: Raw = {"drainBrokers": [4]}


async def one_replica_on_broker_4(world: World, log_bytes: int = 2_000) -> None:
    world.cluster.create_topic("single", [4])
    await world.wait_until(lambda: world.find_leader(PARTITION) == (4, [4]))
    world.cluster.broker(4).log_bytes[PARTITION] = log_bytes


def row(world: World, key: Key) -> Raw:
    (found,) = world.status(key)["partitions"]
    return dict(found)


def events(world: World, reason: str, kind: str = "PartitionReassignment") -> list[Raw]:
    return [each for each in world.api.events if (each["reason"], each["involvedObject"]["kind"]) == (reason, kind)]


async def wait_until_stuck(world: World, key: Key, reason: str) -> str:
    """Wait for a reason, check that all parts of the status agree and that one event tells it; return the row's
    message."""
    await world.wait_until(lambda: world.find_reason(key) == reason)
    assert world.find_reason(key, "Reconciling") == reason
    assert world.status(key)["phase"] == "Running"
    message: str = row(world, key)["message"]
    await asyncio.sleep(60)
    (event,) = events(world, reason)
    assert event["type"] == "Warning"
    assert event["message"] == f"single-0 {message}"
    return message


async def wait_until_done(world: World, key: Key) -> None:
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    assert "message" not in row(world, key)


@asynccontextmanager
async def operate() -> AsyncIterator[World]:
    async with installation() as world, run_beside(world.operate()):
        yield world


@pytest.mark.parametrize("spec", [SPEC, DRAIN], ids=["partitions", "drainBrokers"])
def test_a_partition_without_a_leader_names_the_broker_to_start(spec: Raw) -> None:
    async def scenario() -> None:
        async with operate() as world:
            await one_replica_on_broker_4(world)
            world.cluster.kill_broker(4)
            await world.wait_until(lambda: world.find_leader(PARTITION) == (-1, [4]))
            key = await world.apply("PartitionReassignment", "off", spec)
            message = await wait_until_stuck(world, key, "PartitionsOffline")
            assert message == "has no leader, so nothing can be copied: start broker 4, which was in sync last"
            world.cluster.start_broker(4)
            await wait_until_done(world, key)

    run_fast(scenario())


def test_a_broker_that_is_to_get_a_replica_and_goes_away_is_named() -> None:
    async def scenario() -> None:
        async with operate() as world:
            await one_replica_on_broker_4(world, 30_000)
            key = await world.apply("PartitionReassignment", "off", SPEC)
            await world.wait_until(lambda: world.status(key).get("progress"))
            world.cluster.kill_broker(1)
            message = await wait_until_stuck(world, key, "BrokersMissing")
            assert message == "waits for its new replica on broker 1, which is not registered: start it"
            world.cluster.start_broker(1)
            await wait_until_done(world, key)

    run_fast(scenario())


def test_a_broker_to_which_nothing_is_copied_is_named_after_five_minutes() -> None:
    async def scenario() -> None:
        async with operate() as world:
            await one_replica_on_broker_4(world)
            world.idle.add(1)
            key = await world.apply("PartitionReassignment", "off", SPEC)
            began = asyncio.get_running_loop().time()
            message = await wait_until_stuck(world, key, "CopyStalled")
            assert asyncio.get_running_loop().time() - began >= 300
            assert message == (
                "is not copied, because for 5 minutes nothing has arrived at broker 1: look at its log, and at that of the "
                "leader, broker 4"
            )
            world.idle.clear()
            await wait_until_done(world, key)

    run_fast(scenario())


def test_a_failed_log_directory_of_the_new_broker_is_named() -> None:
    async def scenario() -> None:
        async with operate() as world:
            await one_replica_on_broker_4(world)
            world.idle.add(1)
            world.cluster.broker(1).offline.update({PARTITION, tp("others", 0)})
            key = await world.apply("PartitionReassignment", "off", SPEC)
            message = await wait_until_stuck(world, key, "LogDirectoryFailed")
            assert message.startswith("is not copied, because of a failed log directory of broker 1")
            world.cluster.broker(1).offline.clear()
            world.cluster.bounce_broker(1)
            world.idle.clear()
            await wait_until_done(world, key)

    run_fast(scenario())


@pytest.mark.parametrize(
    ("throttle", "remedy"),
    [(None, "let producers write less for a time"), ({"bytesPerSecond": 1_024}, "raise throttle.bytesPerSecond")],
    ids=["no limit", "limit"],
)
def test_producers_that_write_faster_than_brokers_copy_are_named(throttle: Raw | None, remedy: str) -> None:
    async def write(world: World) -> None:
        while True:
            await asyncio.sleep(1)
            world.cluster.broker(4).log_bytes[PARTITION] += 1_500

    async def scenario() -> None:
        async with operate() as world:
            await one_replica_on_broker_4(world, 20_000)
            limit = {"throttle": throttle} if throttle is not None else {}
            key = await world.apply("PartitionReassignment", "off", {**SPEC, **limit})
            writing = asyncio.create_task(write(world))
            try:
                message = await wait_until_stuck(world, key, "CopyFallsBehind")
            finally:
                writing.cancel()
            assert message.startswith("is copied no faster than producers write")
            assert message.endswith(remedy)
            await wait_until_done(world, key)

    run_fast(scenario())


def test_a_topic_in_deletion_names_the_broker_that_still_has_its_log() -> None:
    async def scenario() -> None:
        async with operate() as world:
            spec = {"partitions": 1, "replicationFactor": 6, "deletionPolicy": "Delete"}
            key = await world.apply("KafkaTopic", "orders", spec)
            await world.wait_until(lambda: world.is_ready(key))
            world.cluster.kill_broker(4)
            await world.delete(key)
            await world.wait_until(lambda: events(world, "TopicBeingDeleted", "KafkaTopic"))
            (event,) = events(world, "TopicBeingDeleted", "KafkaTopic")
            assert event["message"] == (
                "topic orders is being deleted: broker 4 is not registered and still has to delete its log of it: start it"
            )
            ready = next(each for each in world.status(key)["conditions"] if each["type"] == "Ready")
            assert ready["message"] == event["message"]
            world.cluster.start_broker(4)
            await world.wait_until(lambda: world.api.peek(key) is None)
            assert len(events(world, "TopicBeingDeleted", "KafkaTopic")) == 1

    run_fast(scenario())
