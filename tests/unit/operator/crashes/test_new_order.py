"""A user who writes the replicas of a partition in another order gets the first one as its leader."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from simulation.cluster.names import tp
from simulation.fast_loop import run_fast
from tests.unit.operator.crashes.operated import run_beside
from tests.unit.operator.crashes.quorum_world import QuorumWorld, quorum_installation
from tests.unit.operator.crashes.world import World, installation

Install = Callable[[], AbstractAsyncContextManager[Any]]


def leaders(world: World | QuorumWorld) -> list[int]:
    """The leaders of the partitions of `orders`."""
    partitions = [tp("orders", number) for number in (0, 1)]
    led = [
        world.find_leader(at) if isinstance(world, World) else world.cluster.find_leadership(at) for at in partitions
    ]
    return [each[0] for each in led if each is not None]


@pytest.mark.parametrize("install", [installation, quorum_installation], ids=["ZooKeeper", "quorum"])
def test_the_first_replica_of_a_new_order_leads(install: Install) -> None:
    async def reorder() -> None:
        async with install() as world, run_beside(world.operate()):
            key = await world.apply("KafkaTopic", "orders", {"replicaAssignment": [[1, 2], [2, 3]]})
            await world.wait_until(lambda: world.is_ready(key) and leaders(world) == [1, 2])
            await world.apply("KafkaTopic", "orders", {"replicaAssignment": [[2, 1], [2, 3]]})
            await world.wait_until(lambda: world.is_ready(key) and leaders(world) == [2, 2])
            await world.wait_until_quiet()
            (move,) = [each for each in world.api.objects if each.kind == "PartitionReassignment"]
            assert world.status(move)["phase"] == "Completed"

    run_fast(reorder())
