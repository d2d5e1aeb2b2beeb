"""Two objects never move one partition before the outcome of the first one is written, so neither takes the other for a
user who cancels its move. The tests let both come at once, let one begin as the other ends, and let operators die at
any write."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from controller_operator.kubernetes.object_store import Key
from simulation.fast_loop import run_fast
from tests.unit.operator.crashes.operated import NIGHTLY, Mishap, Operated, run_beside
from tests.unit.operator.crashes.quorum_world import quorum_installation
from tests.unit.operator.crashes.test_taken_back import replicas_of
from tests.unit.operator.crashes.world import installation

Scenario = Callable[[Any], Awaitable[None]]
INSTALLATIONS = pytest.mark.parametrize("install", [installation, quorum_installation], ids=["ZooKeeper", "Kafka 4"])


async def _move(world: Operated, name: str, *replicas: int) -> Key:
    target = {"topic": "orders", "partition": 0, "replicas": [*replicas]}
    return await world.apply("PartitionReassignment", name, {"partitions": [target]}, uid=name)


async def two_objects_at_once(world: Any) -> None:
    world.cluster.create_topic("orders", [1, 2])
    moves = [await _move(world, name, *to) for name, to in {"first": (3, 4), "second": (5, 6)}.items()]
    for move in moves:
        await world.wait_until(lambda move=move: world.status(move).get("phase") in ("Completed", "Failed"))
    assert [world.status(move)["phase"] for move in moves] == ["Completed", "Completed"]


async def a_topic_that_wants_more_replicas_as_a_move_ends(world: Any) -> None:
    spec = {"partitions": 1, "replicationFactor": 2}
    topic = await world.apply("KafkaTopic", "orders", spec)
    await world.wait_until(lambda: world.is_ready(topic))
    (present,) = replicas_of(world)
    elsewhere = [number for number in range(1, 7) if number not in present][:2]
    move = await _move(world, "move", *elsewhere)
    await world.wait_until(lambda: world.status(move).get("phase") in ("Running", "Completed"))
    await world.apply("KafkaTopic", "orders", {**spec, "replicationFactor": 3})
    await world.wait_until(lambda: world.status(topic).get("replicationFactor") == 3)
    await world.wait_until(lambda: world.find_reason(topic) == "Reconciled")
    await world.wait_until_quiet()
    assert world.status(move)["phase"] == "Completed"
    assert len(replicas_of(world)[0]) == 3


async def run_in_turns(
    install: Callable[[], AbstractAsyncContextManager[Operated]], scenario: Scenario, *writes: int, mishap: Mishap
) -> list[str]:
    async with install() as world:
        async with run_beside(world.operate(writes, mishap)):
            await scenario(world)
            await world.wait_until_quiet()
        return world.writes


@INSTALLATIONS
@pytest.mark.parametrize("scenario", [two_objects_at_once, a_topic_that_wants_more_replicas_as_a_move_ends])
class TestEachMoveSaysHowItEnded:
    def test_without_mishaps(
        self, install: Callable[[], AbstractAsyncContextManager[Operated]], scenario: Scenario
    ) -> None:
        run_fast(run_in_turns(install, scenario, mishap=Mishap.DEATH))

    @NIGHTLY
    @pytest.mark.parametrize("mishap", Mishap, ids=lambda mishap: mishap.name)
    def test_whatever_happens_at_any_write(
        self, install: Callable[[], AbstractAsyncContextManager[Operated]], scenario: Scenario, mishap: Mishap
    ) -> None:
        for number in range(1, len(run_fast(run_in_turns(install, scenario, mishap=mishap))) + 1):
            run_fast(run_in_turns(install, scenario, number, mishap=mishap))
