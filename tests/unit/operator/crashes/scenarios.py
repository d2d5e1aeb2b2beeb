"""Scenarios that are the same with ZooKeeper and without."""

from controller_operator.kubernetes.object_store import Key
from tests.unit.operator.crashes.operated import Operated
from tests.unit.operator.crashes.quorum_world import QuorumWorld
from tests.unit.operator.crashes.world import World


async def a_topic_gets_other_replicas(world: Operated) -> None:
    key = await world.apply("KafkaTopic", "orders", {"replicaAssignment": [[1, 2], [2, 3]]})
    await world.wait_until(lambda: world.is_ready(key))
    await world.apply("KafkaTopic", "orders", {"replicaAssignment": [[4, 5], [5, 6]]})
    await world.wait_until(lambda: world.is_ready(key))


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
