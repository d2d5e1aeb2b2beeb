"""A move shows how much is left for as long as it runs and the brokers say it, and never waits for them.

The whole installation in one process, in the loop's time: followers copy a thousand bytes a second.
"""

import asyncio
from itertools import pairwise
from typing import Any

from controller_operator.kubernetes.object_store import Key, Raw
from simulation.cluster.names import tp
from simulation.fast_loop import run_fast
from tests.unit.operator.crashes.operated import run_beside
from tests.unit.operator.crashes.world import World, installation

PARTITION = tp("orders", 0)
TARGET = {"topic": "orders", "partition": 0, "replicas": [2, 4]}


async def a_move_begins(world: World, log_bytes: int, spec: Raw | None = None) -> Key:
    """The partition goes from the brokers 1 and 2, which have it, to 2 and 4."""
    world.cluster.create_topic("orders", [1, 2])
    await world.wait_until(lambda: (found := world.cluster.leader_of(PARTITION)) is not None and found.id == 1)
    await world.wait_until(lambda: len(world.cluster.leadership(PARTITION)[1]) == 2)
    for number in (1, 2):
        world.cluster.broker(number).log_bytes[PARTITION] = log_bytes
    key = await world.apply("PartitionReassignment", "move", {"partitions": [TARGET], **(spec or {})})
    await world.wait_until(lambda: world.status(key).get("phase") == "Running")
    return key


def progress(world: World, key: Key) -> dict[str, Any]:
    found: dict[str, Any] = world.status(key).get("progress", {})
    return found


async def end(world: World, key: Key) -> float:
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    return asyncio.get_running_loop().time()


def test_what_is_left_gets_less_with_its_rate_and_its_time_and_goes_with_the_end() -> None:
    async def scenario() -> None:
        async with installation() as world, run_beside(world.operate()):
            key = await a_move_begins(world, 60_000)
            seen: list[Raw] = []
            while world.status(key)["phase"] == "Running":
                seen += [progress(world, key)] if progress(world, key) not in (*seen, {}) else []
                await asyncio.sleep(0.1)
            lefts = [each["bytesLeft"] for each in seen]
            assert lefts == sorted(lefts, reverse=True)
            assert lefts[0] > 55_000
            first, second, *_ = seen
            assert set(first) == {"bytesLeft"}
            assert 800 <= second["bytesPerSecond"] <= 1_200
            assert second["timeLeft"] in ("50s", "1m")
            assert second["estimatedCompletionTime"].endswith(":00Z")
            assert world.status(key)["phase"] == "Completed"
            assert progress(world, key) == {}

    run_fast(scenario())


def test_a_broker_is_asked_and_the_status_written_at_most_every_ten_seconds() -> None:
    async def scenario() -> None:
        async with installation() as world, run_beside(world.operate()):
            key = await a_move_begins(world, 60_000)
            await world.wait_until(lambda: progress(world, key))
            before, began = len(world.writes), asyncio.get_running_loop().time()
            while asyncio.get_running_loop().time() < began + 40:
                assert world.runtime is not None
                world.runtime._queue.add((key,))
                await asyncio.sleep(0.2)
            assert 3 <= len(world.writes) - before <= 5
            await end(world, key)
            for number in (1, 4):
                times = [at for at, asked in world.sizes_asked if asked == number]
                assert len(times) > 3
                assert all(later - earlier >= 10 for earlier, later in pairwise(times))
            assert {asked for _, asked in world.sizes_asked} == {1, 4}

    run_fast(scenario())


def test_a_broker_that_never_answers_delays_nothing_and_nothing_is_said() -> None:
    async def took(*silent: int) -> float:
        async with installation() as world, run_beside(world.operate()):
            world.silent.update(silent)
            key = await a_move_begins(world, 20_000)
            began, shown = asyncio.get_running_loop().time(), False
            while world.status(key)["phase"] == "Running":
                shown |= bool(progress(world, key))
                await asyncio.sleep(0.1)
            assert shown is not bool(silent)
            assert world.sizes_asked
            return asyncio.get_running_loop().time() - began

    assert abs(run_fast(took(4)) - run_fast(took())) <= 1.0


def test_what_is_not_known_any_more_is_not_shown_any_more_and_comes_back() -> None:
    async def scenario() -> None:
        async with installation() as world, run_beside(world.operate()):
            key = await a_move_begins(world, 90_000)
            await world.wait_until(lambda: "timeLeft" in progress(world, key))
            world.silent.add(1)
            await world.wait_until(lambda: not progress(world, key))
            world.silent.clear()
            await world.wait_until(lambda: "timeLeft" in progress(world, key))
            await end(world, key)

    run_fast(scenario())


def test_a_failed_log_directory_that_may_hold_the_new_replica_leaves_it_unknown() -> None:
    async def scenario() -> None:
        async with installation() as world, run_beside(world.operate()):
            world.cluster.broker(4).offline.add(tp("others", 0))
            world.cluster.broker(4).offline.add(PARTITION)
            key = await a_move_begins(world, 20_000)
            await world.wait_until(lambda: len(world.sizes_asked) > 3)
            assert progress(world, key) == {}
            world.cluster.broker(4).offline.clear()

    run_fast(scenario())


def test_a_paused_move_shows_none_and_its_next_operator_measures_anew() -> None:
    async def scenario() -> None:
        async with installation() as world:
            async with run_beside(world.operate()):
                key = await a_move_begins(world, 90_000)
                await world.wait_until(lambda: "timeLeft" in progress(world, key))
            known = progress(world, key)
            async with run_beside(world.operate()):
                await world.wait_until(lambda: progress(world, key) != known)
                assert set(progress(world, key)) == {"bytesLeft"}, "it was not measured, or taken away in between"
                await world.wait_until(lambda: "timeLeft" in progress(world, key))
                annotations = {"kontroller.dev/pause": "true"}
                await world.apply("PartitionReassignment", "move", {"partitions": [TARGET]}, annotations=annotations)
                await world.wait_until(lambda: world.find_reason(key) == "Paused")
                assert progress(world, key) == {}
                await world.apply("PartitionReassignment", "move", {"partitions": [TARGET]})
                await end(world, key)

    run_fast(scenario())


def test_a_move_that_is_deleted_is_measured_no_more() -> None:
    async def scenario() -> None:
        async with installation() as world, run_beside(world.operate()):
            key = await a_move_begins(world, 90_000)
            await world.wait_until(lambda: progress(world, key))
            await world.delete(key)
            await world.wait_until(lambda: world.api.peek(key) is None)
            asked = len(world.sizes_asked)
            await asyncio.sleep(60)
            assert len(world.sizes_asked) == asked

    run_fast(scenario())
