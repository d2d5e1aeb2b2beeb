"""Scenarios that are the same with ZooKeeper and without."""

from typing import Any

from controller_operator.kubernetes.object_store import Key
from tests.unit.operator.crashes.operated import Operated
from tests.unit.operator.crashes.quorum_world import QuorumWorld
from tests.unit.operator.crashes.world import World


async def a_topic_gets_other_replicas(world: Operated) -> None:
    key = await world.apply("KafkaTopic", "orders", {"replicaAssignment": [[1, 2], [2, 3]]})
    await world.wait_until(lambda: world.is_ready(key))
    await world.apply("KafkaTopic", "orders", {"replicaAssignment": [[4, 5], [5, 6]]})
    await world.wait_until(lambda: world.is_ready(key))


async def a_running_move_of_a_topic_gets_other_throttles(world: World | QuorumWorld) -> None:
    """The move waits for a broker that hangs. Its throttle is raised, removed, and added again."""
    key = await world.apply("KafkaTopic", "orders", {"replicaAssignment": [[1, 2]]})
    await world.wait_until(lambda: world.is_ready(key))
    world.cluster.broker(5).hang()

    def throttle() -> dict[str, Any] | None:
        (move,) = world.api.all("PartitionReassignment") or ({},)
        found: dict[str, Any] | None = move.get("status", {}).get("throttle")
        return found

    async def limit(rate: int | None) -> None:
        how = {"throttle": {"bytesPerSecond": rate}} if rate is not None else {}
        await world.apply("KafkaTopic", "orders", {"replicaAssignment": [[4, 5]], "reassignment": how})
        is_set = {"bytesPerSecond": rate, "isSet": True} if rate is not None else None
        await world.wait_until(lambda: throttle() == is_set)

    for rate in (5000, 6000, None, 7000):
        await limit(rate)
    world.cluster.broker(5).resume()
    await world.wait_until(lambda: world.is_ready(key) and "reassignment" not in world.status(key))
    assert len(world.api.all("PartitionReassignment")) == 1, "the move was made again"


async def a_topic_goes_to_another_object(world: Operated) -> None:
    spec = {"topicName": "orders", "partitions": 1, "replicationFactor": 2, "deletionPolicy": "Delete"}
    owner = await world.apply("KafkaTopic", "owner", spec)
    await world.wait_until(lambda: world.is_ready(owner))
    heir = await world.apply("KafkaTopic", "heir", {**spec, "config": {"retention.ms": "1000"}})
    await world.wait_until(lambda: world.find_reason(heir) == "ResourceConflict")
    topic_id = world.status(owner)["topicId"]
    await world.delete(owner)
    await world.wait_until(lambda: world.is_ready(heir))
    assert world.api.peek(owner) is None
    assert world.status(heir)["topicId"] == topic_id


async def begin_limited_move(world: World | QuorumWorld) -> Key:
    """Move `orders-0` from the brokers 1 and 2 to 4 and 5, which hangs, and return once the move has begun."""
    world.cluster.create_topic("orders", [1, 2])
    world.cluster.broker(5).hang()
    target = {"topic": "orders", "partition": 0, "replicas": [4, 5]}
    limit = {"bytesPerSecond": 5000}
    key = await world.apply("PartitionReassignment", "move", {"partitions": [target], "throttle": limit})
    await world.wait_until(lambda: (world.status(key).get("counts") or {}).get("moving") == 1)
    return key
