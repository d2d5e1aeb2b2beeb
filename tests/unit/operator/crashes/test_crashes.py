"""An operator that dies after any of its writes leaves nothing half done: the next one comes to the same end.

Each scenario runs once to count its writes, and then once for each of them, with an operator that dies after it, or
whose request or answer is lost there. Kafka and Kubernetes are the same at the end, and an operator that is started
then writes nothing at all.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from controller_core.model.ids import PartitionId
from controller_core.zk import codecs, paths
from simulation.cluster.names import tp
from simulation.fast_loop import run_fast
from tests.unit.operator.crashes.operated import End, Mishap, differences, mostly_nightly, run_beside
from tests.unit.operator.crashes.scenarios import (
    a_running_move_of_a_topic_gets_other_throttles,
    a_topic_gets_other_replicas,
    a_topic_goes_to_another_object,
    begin_limited_move,
)
from tests.unit.operator.crashes.world import World, installation

Scenario = Callable[[World], Awaitable[object]]
YEARLY = {"topics": ["orders"], "schedule": "0 0 1 1 *"}
UNCLEAN = {"topics": ["orders"], "electionType": "Unclean", "acknowledgeDataLoss": True}


async def a_topic_is_created_and_grows(world: World) -> None:
    spec = {"partitions": 2, "replicationFactor": 3, "config": {"retention.ms": "1000"}}
    key = await world.apply("KafkaTopic", "orders", spec)
    await world.wait_until(lambda: world.is_ready(key))
    await world.apply("KafkaTopic", "orders", {**spec, "partitions": 4, "config": {"retention.ms": "2000"}})
    await world.wait_until(lambda: world.is_ready(key) and len(world.cluster.topic("orders").partitions) == 4)


async def a_topic_gets_a_new_order_of_its_replicas(world: World) -> None:
    key = await world.apply("KafkaTopic", "orders", {"replicaAssignment": [[1, 2], [2, 3]]})
    await world.wait_until(lambda: world.is_ready(key))
    await world.apply("KafkaTopic", "orders", {"replicaAssignment": [[2, 1], [2, 3]]})
    await world.wait_until(lambda: world.is_ready(key) and (world.find_leader(tp("orders", 0)) or (0,))[0] == 2)


async def a_topic_is_deleted_with_its_object(world: World) -> None:
    spec = {"partitions": 2, "replicationFactor": 2, "deletionPolicy": "Delete"}
    key = await world.apply("KafkaTopic", "orders", spec)
    await world.wait_until(lambda: world.is_ready(key))
    await world.delete(key)
    await world.wait_until(lambda: world.api.peek(key) is None)
    await world.wait_until(lambda: not world.cluster.exists(paths.topic("orders")))  # type: ignore[arg-type]


async def partitions_move(world: World) -> None:
    world.cluster.create_topic("orders", [1, 2], [2, 3])
    targets = [{"topic": "orders", "partition": number, "replicas": [4, 5]} for number in (0, 1)]
    key = await world.apply("PartitionReassignment", "move", {"partitions": targets})
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")


async def replicas_move_to_log_directories(world: World) -> None:
    """The first partition also moves to another broker; the second has its replicas already."""
    world.cluster.create_topic("orders", [1, 2], [2, 3])
    await world.wait_until(lambda: are_in_sync(world, 2))
    for number in (1, 2, 3):
        world.cluster.broker(number).log_bytes.update({tp("orders", 0): 3_000, tp("orders", 1): 3_000})
    targets = [
        {"topic": "orders", "partition": 0, "replicas": [1, 4], "logDirs": ["/data/2", "/data/2"]},
        {"topic": "orders", "partition": 1, "replicas": [2, 3], "logDirs": ["any", "/data/2"]},
    ]
    key = await world.apply("PartitionReassignment", "move", {"partitions": targets, "maxConcurrentPartitions": 1})
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    moved = {number: world.cluster.broker(number).directories.moved for number in (1, 2, 3, 4)}
    assert moved[1] == moved[4] == {tp("orders", 0): "/data/2"}
    assert (moved[2], moved[3]) == ({}, {tp("orders", 1): "/data/2"})


async def a_move_between_log_directories_is_taken_back(world: World) -> None:
    world.cluster.create_topic("orders", [1, 2])
    await world.wait_until(lambda: are_in_sync(world, 1))
    world.cluster.broker(1).log_bytes[tp("orders", 0)] = 10**9
    target = {"topic": "orders", "partition": 0, "replicas": [1, 2], "logDirs": ["/data/2", "any"]}
    key = await world.apply("PartitionReassignment", "move", {"partitions": [target]})
    await world.wait_until(lambda: world.cluster.broker(1).directories.futures)
    await world.wait_until(lambda: (world.status(key).get("counts") or {}).get("moving") == 1)
    await world.delete(key)
    await world.wait_until(lambda: world.api.peek(key) is None)
    assert not world.cluster.broker(1).directories.moved
    assert not world.cluster.broker(1).directories.futures


def are_in_sync(world: World, partitions: int) -> bool:
    """Return True if both replicas of each partition are in sync."""
    known = [world.find_leader(tp("orders", number)) for number in range(partitions)]
    return all(each is not None and len(each[1]) == 2 for each in known)


async def partitions_move_one_after_the_other(world: World) -> None:
    world.cluster.create_topic("orders", [1, 2], [2, 3])
    targets = [{"topic": "orders", "partition": number, "replicas": [4, 5]} for number in (0, 1)]
    spec = {"partitions": targets, "maxConcurrentPartitions": 1}
    key = await world.apply("PartitionReassignment", "move", {**spec, "suspend": True})
    await world.wait_until(lambda: world.status(key).get("phase") == "Suspended")
    await world.apply("PartitionReassignment", "move", spec)
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")


async def partitions_move_as_soon_as_others_are_done(world: World) -> None:
    """The first one waits for a broker that hangs; one after the other goes past it, each within the limit."""
    world.cluster.create_topic("orders", [1, 2], [2, 3], [3, 1], [1, 3])
    world.cluster.broker(6).hang()
    targets = [
        {"topic": "orders", "partition": number, "replicas": [4, 6 if number == 0 else 5]} for number in range(4)
    ]
    spec = {"partitions": targets, "maxConcurrentPartitions": 2, "throttle": {"bytesPerSecond": 5000}}
    key = await world.apply("PartitionReassignment", "move", spec)
    await world.wait_until(lambda: (world.status(key).get("counts") or {}).get("done") == 3)
    assert world.status(key)["counts"]["moving"] == 1
    assert rates_of(world, 6) == ["5000", "5000"]
    world.cluster.broker(6).resume()
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    assert not world.cluster.zk.tree.children(paths.THROTTLES)


async def two_moves_overlap(world: World) -> None:
    """The first one is held up by a broker that hangs, and the second one goes on but for the partition of both."""
    world.cluster.create_topic("orders", [1, 2], [2, 3])
    world.cluster.broker(6).hang()
    first = await world.apply("PartitionReassignment", "first", {"partitions": [target(0, 4, 6)]}, uid="first")
    await world.wait_until(lambda: (world.status(first).get("counts") or {}).get("moving") == 1)
    both = {"partitions": [target(0, 5, 4), target(1, 5, 4)]}
    second = await world.apply("PartitionReassignment", "second", both, uid="second")
    await world.wait_until(lambda: world.find_reason(second) == "WaitingForOtherReassignment")
    assert world.status(second)["counts"]["done"] == 1
    assert "for shop/first" in next(row["message"] for row in world.status(second)["partitions"] if "message" in row)
    world.cluster.broker(6).resume()
    await world.wait_until(lambda: world.status(first).get("phase") == "Completed")
    await world.wait_until(lambda: world.status(second).get("phase") == "Completed")


def target(partition: int, *replicas: int) -> dict[str, Any]:
    """Return the target of a partition of `orders`."""
    return {"topic": "orders", "partition": partition, "replicas": [*replicas]}


async def partitions_move_in_windows(world: World) -> None:
    """Two windows of a minute. The first partition is still under way when the first one closes."""
    world.cluster.create_topic("orders", [1, 2], [2, 3])
    world.cluster.broker(5).hang()
    first = world.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
    second = first + timedelta(minutes=2)
    windows = [{"schedule": f"{at:%M %H} * * *", "durationMinutes": 1} for at in (first, second)]
    targets = [{"topic": "orders", "partition": number, "replicas": [4, 5]} for number in (0, 1)]
    spec = {"partitions": targets, "maxConcurrentPartitions": 1, "schedule": {"windows": windows}}
    key = await world.apply("PartitionReassignment", "move", spec)
    await world.wait_until(lambda: (world.status(key).get("counts") or {}).get("moving") == 1)
    assert first <= world.now() < first + timedelta(minutes=1)
    await world.wait_until(lambda: world.find_reason(key) == "OutsideWindow")
    world.cluster.broker(5).resume()
    await world.wait_until(lambda: world.status(key)["counts"]["done"] == 1)
    await world.wait_until(lambda: world.cluster.topic("orders").partitions[PartitionId(1)].is_being_reassigned)
    assert second <= world.now() < second + timedelta(minutes=1)
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")


async def a_move_is_approved(world: World) -> None:
    world.cluster.create_topic("orders", [1, 2], [2, 3])
    targets = [{"topic": "orders", "partition": number, "replicas": [4, 5]} for number in (0, 1)]
    spec = {"partitions": targets, "approval": "Required"}
    key = await world.apply("PartitionReassignment", "move", spec)
    await world.wait_until(lambda: world.status(key).get("phase") == "AwaitingApproval")
    await world.apply("PartitionReassignment", "move", {**spec, "approvedPlan": world.status(key)["planHash"]})
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")


async def a_broker_is_emptied(world: World) -> None:
    world.cluster.create_topic("orders", [1, 2], [2, 3], [3, 4])
    key = await world.apply("PartitionReassignment", "empty", {"drainBrokers": [2], "maxConcurrentPartitions": 1})
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    assert not any(2 in each.replicas for each in world.cluster.topic("orders").partitions.values())


async def a_broker_is_drained_by_a_plan(world: World) -> None:
    """One partition after the other, each in a batch that is planned from a new look."""
    world.cluster.create_topic("orders", [1, 2], [1, 2], [1, 2])
    await world.wait_until(lambda: are_in_sync(world, 3))
    how = {"limits": {"maxBatchBytesPerBroker": 500}, "betweenLooksSeconds": 1}
    key = await world.apply("RebalancePlan", "drain", {"mode": "drain", "brokers": [2], **how})
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    assert not any(2 in each.replicas for each in world.cluster.topic("orders").partitions.values())
    assert world.status(key)["counts"]["done"] == 3


async def a_full_broker_is_relieved(world: World) -> None:
    """One partition after the other, until the broker has its share. The other broker keeps its replicas."""
    world.cluster.create_topic("orders", [1, 2], [1, 2], [1, 2])
    await world.wait_until(lambda: are_in_sync(world, 3))
    how = {"limits": {"maxBatchBytesPerBroker": 500}, "betweenLooksSeconds": 1}
    key = await world.apply("RebalancePlan", "relieve", {"mode": "relieve", "brokers": [2], **how})
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    held = [each.replicas for each in world.cluster.topic("orders").partitions.values()]
    assert sum(2 in replicas for replicas in held) == 1
    assert all(1 in replicas for replicas in held)
    assert world.status(key)["counts"]["done"] == 2


async def a_plan_makes_up_for_a_missed_run(world: World) -> None:
    """The run that is due moves everything, and the plan waits for the next one."""
    world.cluster.create_topic("orders", [1, 2], [1, 2], [1, 2])
    await world.wait_until(lambda: are_in_sync(world, 3))
    missed = {"phase": "Scheduled", "nextRunTime": "2020-01-01T00:00:00Z"}
    how = {"limits": {"maxBatchBytesPerBroker": 500}, "betweenLooksSeconds": 1, "schedule": YEARLY["schedule"]}
    key = await world.apply("RebalancePlan", "drain", {"mode": "drain", "brokers": [2], **how}, status=missed)
    await world.wait_until(lambda: world.status(key).get("lastRunResult") == "Completed")
    assert not any(2 in each.replicas for each in world.cluster.topic("orders").partitions.values())
    assert world.status(key)["counts"]["done"] == 3
    assert len(world.status(key)["reassignments"]) == 3


async def a_lost_broker_is_healed(world: World) -> None:
    world.cluster.create_topic("orders", [1, 2], [2, 3], [3, 4])
    await world.wait_until(lambda: are_in_sync(world, 3))
    spec = {"mode": "heal", "heal": {"afterMinutes": 1}, "betweenLooksSeconds": 1}
    key = await world.apply("RebalancePlan", "heal", spec)
    await world.wait_until(lambda: world.status(key).get("knownBrokers"))
    world.cluster.kill_broker(2)
    await world.wait_until(lambda: world.status(key).get("lastRunResult") == "Completed")
    assert not any(2 in each.replicas for each in world.cluster.topic("orders").partitions.values())
    assert world.status(key)["counts"]["done"] == 2


async def an_approved_plan_is_carried_out(world: World) -> None:
    world.cluster.create_topic("orders", [1, 2], [1, 2], [1, 2])
    await world.wait_until(lambda: are_in_sync(world, 3))
    how = {"limits": {"maxBatchBytesPerBroker": 500}, "betweenLooksSeconds": 1, "throttle": {"bytesPerSecond": 5000}}
    spec = {"mode": "drain", "brokers": [2], **how, "approval": "Required"}
    key = await world.apply("RebalancePlan", "drain", spec)
    await world.wait_until(lambda: world.status(key).get("phase") == "AwaitingApproval")
    assert world.cluster.topic("orders").partitions[PartitionId(0)].replicas == (1, 2)
    await world.apply("RebalancePlan", "drain", {**spec, "approvedPlan": world.status(key)["planHash"]})
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    assert not any(2 in each.replicas for each in world.cluster.topic("orders").partitions.values())


async def a_running_batch_is_slowed_down(world: World) -> None:
    """A follower of another topic falls behind while the batch copies to a broker that hangs."""
    world.cluster.create_topic("orders", [1, 2])
    world.cluster.create_topic("logs", [1, 3])
    await world.wait_until(lambda: are_in_sync(world, 1) and world.find_leader(tp("logs", 0)) == (1, [1, 3]))
    world.cluster.broker(5).hang()
    world.idle.add(3)
    spec = {"mode": "drain", "brokers": [2], "scope": {"topics": ["orders"], "excludeBrokers": [3, 4, 6]}}
    how = {"throttle": {"bytesPerSecond": 8000}, "betweenLooksSeconds": 1}
    key = await world.apply("RebalancePlan", "drain", {**spec, **how})

    def move() -> dict[str, Any]:
        found: dict[str, Any] = next(iter(world.api.all("PartitionReassignment")), {}).get("status", {})
        return found

    await world.wait_until(lambda: "startTime" in move() and rates_of(world, 5) == ["8000", "8000"])
    world.cluster.broker(1).log_bytes[tp("logs", 0)] = 1_000
    await world.cluster.alter_isr(tp("logs", 0), [1])
    await world.wait_until(lambda: move().get("throttle") == {"bytesPerSecond": 4000, "isSet": True})
    assert rates_of(world, 5) == ["4000", "4000"]
    world.idle.remove(3)
    world.cluster.broker(5).resume()
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    assert (find_replicas(world, 0), world.status(key)["throttlePercent"]) == ((5, 1), 50)


async def a_plan_is_made_again_after_replicas_have_changed(world: World) -> None:
    """The first batch waits for a KafkaTopic, which moves one of its partitions first."""
    topic = {"replicaAssignment": [[1, 2], [1, 2]]}
    owner = await world.apply("KafkaTopic", "orders", topic)
    await world.wait_until(lambda: world.is_ready(owner) and are_in_sync(world, 2))
    key = await world.apply("RebalancePlan", "drain", {"mode": "drain", "brokers": [2], "betweenLooksSeconds": 1})
    await world.wait_until(lambda: world.status(key).get("reassignments"))
    await world.apply("KafkaTopic", "orders", {"replicaAssignment": [[1, 3], [1, 2]]})
    await world.wait_until(lambda: world.is_ready(owner) and find_replicas(world, 0) == (1, 3))
    await world.delete(owner)
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    assert (find_replicas(world, 0), world.status(key)["counts"]["done"]) == ((1, 3), 1)
    assert 2 not in find_replicas(world, 1)


def find_replicas(world: World, partition: int) -> tuple[int, ...]:
    return world.cluster.topic("orders").partitions[PartitionId(partition)].replicas


def _is_moving(world: World) -> bool:
    return any(each.is_being_reassigned for each in world.cluster.topic("orders").partitions.values())


async def a_move_is_taken_back(world: World) -> None:
    world.cluster.create_topic("orders", [1, 2], [2, 3])
    world.cluster.broker(5).hang()
    targets = [{"topic": "orders", "partition": number, "replicas": [4, 5]} for number in (0, 1)]
    key = await world.apply("PartitionReassignment", "move", {"partitions": targets})
    await world.wait_until(lambda: (world.status(key).get("counts") or {}).get("moving") == 2)
    await world.delete(key)
    # Not before: while the operator retries, the copies would complete, and there would be nothing to take back.
    await world.wait_until(lambda: not _is_moving(world))
    world.cluster.broker(5).resume()
    await world.wait_until(lambda: world.api.peek(key) is None)


async def partitions_move_with_a_limit(world: World) -> None:
    """One of the brokers has a limit that another tool set, and the topic has a setting of its own."""
    world.cluster.create_topic("orders", [1, 2], [2, 3], config={"retention.ms": "7"})
    theirs = codecs.encode_config({"leader.replication.throttled.rate": "77"})
    world.cluster.put(f"{paths.BROKER_CONFIGS}/1", theirs)
    world.cluster.broker(5).hang()
    targets = [{"topic": "orders", "partition": number, "replicas": [4, 5]} for number in (0, 1)]
    spec = {"partitions": targets, "throttle": {"bytesPerSecond": 5000}}
    key = await world.apply("PartitionReassignment", "move", spec)
    await world.wait_until(lambda: (world.status(key).get("counts") or {}).get("moving") == 2)
    await world.apply("PartitionReassignment", "move", {**spec, "throttle": {"bytesPerSecond": 6000}})
    await world.wait_until(lambda: world.status(key).get("throttle") == {"bytesPerSecond": 6000, "isSet": True})
    assert rates_of(world, 4) == ["6000", "6000"]
    world.cluster.broker(5).resume()
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    assert rates_of(world, 1) == ["77"]
    assert rates_of(world, 4) == []
    assert not world.cluster.zk.tree.children(paths.THROTTLES)


async def a_move_with_a_limit_is_taken_back(world: World) -> None:
    key = await begin_limited_move(world)
    assert rates_of(world, 1) == ["5000", "5000"], "it began without its limit"
    await world.delete(key)
    # Not before: while the operator retries, the copies would complete, and there would be nothing to take back.
    await world.wait_until(lambda: not _is_moving(world))
    world.cluster.broker(5).resume()
    await world.wait_until(lambda: world.api.peek(key) is None)
    assert rates_of(world, 1) == []
    assert not world.cluster.zk.tree.children(paths.THROTTLES)


async def a_large_partition_moves(world: World) -> None:
    """The copy takes half a minute, so the status shows the remaining time."""
    world.cluster.create_topic("orders", [1, 2])
    await world.wait_until(lambda: world.find_leader(tp("orders", 0)) == (1, [1, 2]))
    for number in (1, 2):
        world.cluster.broker(number).log_bytes[tp("orders", 0)] = 40_000
    target = {"topic": "orders", "partition": 0, "replicas": [2, 4]}
    key = await world.apply("PartitionReassignment", "move", {"partitions": [target]})
    await world.wait_until(lambda: "timeLeft" in world.status(key).get("progress", {}))
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    assert "progress" not in world.status(key)


def rates_of(world: World, broker: int) -> list[str]:
    """The limits that are configured for a broker."""
    found = world.cluster.data(f"{paths.BROKER_CONFIGS}/{broker}")
    return [*codecs.decode_config(found, "").values()] if found else []


async def leaders_are_given_back(world: World) -> None:
    world.cluster.create_topic("orders", [1, 2], [1, 3])
    await world.wait_until(lambda: are_led(world, 1))
    world.cluster.bounce_broker(1)
    await world.wait_until(lambda: are_led(world, 2))
    key = await world.apply("PreferredElection", "back", {"topics": ["orders"]})
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")


async def a_run_that_was_missed_is_made_up_for(world: World) -> None:
    world.cluster.create_topic("orders", [1, 2], [1, 3])
    await world.wait_until(lambda: are_led(world, 1))
    world.cluster.bounce_broker(1)
    await world.wait_until(lambda: are_led(world, 2))
    missed = {"phase": "Scheduled", "nextRunTime": "2020-01-01T00:00:00Z"}
    key = await world.apply("PreferredElection", "yearly", YEARLY, status=missed)
    await world.wait_until(lambda: world.status(key).get("lastRunResult") == "Completed")
    assert are_led(world, 1)


async def a_leader_is_elected_out_of_the_isr(world: World) -> None:
    world.cluster.create_topic("orders", [1, 2])
    await world.wait_until(lambda: world.find_leader(tp("orders", 0)) == (1, [1, 2]))
    world.cluster.kill_broker(2)
    await world.wait_until(lambda: world.find_leader(tp("orders", 0)) == (1, [1]))
    world.cluster.kill_broker(1)
    await world.wait_until(lambda: world.find_leader(tp("orders", 0)) == (-1, [1]))
    world.cluster.start_broker(2)
    key = await world.apply("PreferredElection", "unclean", UNCLEAN)
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    assert world.find_leader(tp("orders", 0)) == (2, [2])


def are_led(world: World, first_leader: int) -> bool:
    """Return True if all replicas of both partitions are in sync, and the first partition has this leader."""
    known = [world.find_leader(tp("orders", number)) for number in (0, 1)]
    return all(each is not None and len(each[1]) == 2 for each in known) and known[0] == (first_leader, [1, 2])


async def a_feature_is_finalized_and_given_up(world: World) -> None:
    features = {"features": [{"name": "f", "maxVersionLevel": 2}], "deletionPolicy": "Delete"}
    key = await world.apply("FeatureSet", "features", features)
    await world.wait_until(lambda: world.is_ready(key))
    await world.delete(key)
    await world.wait_until(lambda: world.api.peek(key) is None)


async def run_to_the_end(scenario: Scenario, *writes: int, mishap: Mishap = Mishap.DEATH) -> tuple[End, list[str]]:
    """Return the state at the end, and the writes until then. Resources that have ended are not written to again."""
    async with installation() as world:
        async with run_beside(world.operate(writes, mishap)):
            await scenario(world)
            await world.wait_until_quiet()
        assert world.mishaps == len(writes)
        end, written = world.end(), list(world.writes)
        async with run_beside(world.operate()):
            await world.wait_until_quiet()
        assert world.writes == written
        return end, written


SCENARIOS = (
    a_topic_is_created_and_grows,
    a_topic_gets_other_replicas,
    a_topic_gets_a_new_order_of_its_replicas,
    a_topic_is_deleted_with_its_object,
    a_topic_goes_to_another_object,
    a_running_move_of_a_topic_gets_other_throttles,
    partitions_move,
    replicas_move_to_log_directories,
    a_move_between_log_directories_is_taken_back,
    a_move_is_approved,
    a_broker_is_emptied,
    a_broker_is_drained_by_a_plan,
    a_full_broker_is_relieved,
    a_plan_makes_up_for_a_missed_run,
    a_lost_broker_is_healed,
    an_approved_plan_is_carried_out,
    a_plan_is_made_again_after_replicas_have_changed,
    partitions_move_one_after_the_other,
    partitions_move_as_soon_as_others_are_done,
    two_moves_overlap,
    partitions_move_in_windows,
    a_move_is_taken_back,
    partitions_move_with_a_limit,
    a_move_with_a_limit_is_taken_back,
    a_large_partition_moves,
    leaders_are_given_back,
    a_run_that_was_missed_is_made_up_for,
    a_leader_is_elected_out_of_the_isr,
    a_feature_is_finalized_and_given_up,
)


def name_of(scenario: Scenario) -> str:
    return scenario.__name__


class TestWhateverHappensAtAnyWrite:
    @pytest.mark.parametrize(
        "scenario",
        mostly_nightly(
            SCENARIOS,
            a_topic_is_created_and_grows,
            a_topic_is_deleted_with_its_object,
            partitions_move,
            a_move_is_approved,
        ),
        ids=name_of,
    )
    @pytest.mark.parametrize("mishap", Mishap, ids=lambda mishap: mishap.name)
    def test_the_end_is_the_same(self, scenario: Scenario, mishap: Mishap) -> None:
        end, written = run_fast(run_to_the_end(scenario))
        for number, what in enumerate(written, start=1):
            after, _ = run_fast(run_to_the_end(scenario, number, mishap=mishap))
            assert differences(after, end) == {}, f"write {number}, {what}: {mishap.value}"

    @pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
    def test_operators_that_each_do_one_write_get_there_too(self, scenario: Scenario) -> None:
        end, written = run_fast(run_to_the_end(scenario))
        after, _ = run_fast(run_to_the_end(scenario, *[1] * (len(written) // 2)))
        assert differences(after, end) == {}

    @pytest.mark.parametrize("mishap", Mishap, ids=lambda mishap: mishap.name)
    def test_a_running_batch_is_slowed_down(self, mishap: Mishap) -> None:
        _, written = run_fast(run_to_the_end(a_running_batch_is_slowed_down))
        (limit,) = (number for number, what in enumerate(written, start=1) if what.startswith("patch_known_spec"))
        for number in (limit - 1, limit, limit + 1):
            run_fast(run_to_the_end(a_running_batch_is_slowed_down, number, mishap=mishap))
