"""Without ZooKeeper, too, an operator that dies after any of its writes leaves nothing half done and does nothing
twice. As in `test_crashes`. In addition, answers of the controllers that are no verdict lead to the same end, no matter
if the request was carried out."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from controller_core.model.throttles import FOLLOWER_RATE, LEADER_RATE, LEADER_REPLICAS
from simulation.cluster.names import tp
from simulation.fast_loop import run_fast
from tests.unit.operator.crashes.operated import End, Mishap, differences, mostly_nightly, run_beside
from tests.unit.operator.crashes.quorum_world import QuorumWorld, quorum_installation
from tests.unit.operator.crashes.scenarios import (
    a_running_move_of_a_topic_gets_other_throttles,
    a_topic_gets_other_replicas,
    a_topic_goes_to_another_object,
    begin_limited_move,
)

Scenario = Callable[[QuorumWorld], Awaitable[object]]
UNJUDGED = (
    ErrorCode.request_timed_out,
    ErrorCode.not_controller,
    ErrorCode.unknown_server_error,
    ErrorCode.broker_not_available,
    ErrorCode.throttling_quota_exceeded,
    ErrorCode.coordinator_not_available,
)

OF_ANOTHER_LEADER = tuple(
    f" KafkaCluster shop/demo status {each}" for each in ("controller id", "controller epoch", "conditions 0 message")
)


async def a_topic_is_created_grows_and_is_configured(world: QuorumWorld) -> None:
    spec = {"partitions": 2, "replicationFactor": 3, "config": {"retention.ms": "1000"}}
    key = await world.apply("KafkaTopic", "orders", spec)
    await world.wait_until(lambda: world.is_ready(key))
    await world.apply("KafkaTopic", "orders", {**spec, "partitions": 4, "config": {"flush.ms": "2000"}})
    await world.wait_until(lambda: world.is_ready(key) and len(world.cluster.topics["orders"].partitions) == 4)


async def a_topic_gets_a_new_order_of_its_replicas(world: QuorumWorld) -> None:
    key = await world.apply("KafkaTopic", "orders", {"replicaAssignment": [[1, 2], [2, 3]]})
    await world.wait_until(lambda: world.is_ready(key))
    await world.apply("KafkaTopic", "orders", {"replicaAssignment": [[2, 1], [2, 3]]})
    await world.wait_until(
        lambda: world.is_ready(key) and (world.cluster.find_leadership(tp("orders", 0)) or (0,))[0] == 2
    )


async def a_topic_is_deleted_with_its_object(world: QuorumWorld) -> None:
    key = await world.apply("KafkaTopic", "orders", {"replicaAssignment": [[1, 2]], "deletionPolicy": "Delete"})
    await world.wait_until(lambda: world.is_ready(key))
    await world.delete(key)
    await world.wait_until(lambda: world.api.peek(key) is None)
    assert "orders" not in world.cluster.topics, "the object went before its topic"


async def partitions_move_one_after_the_other(world: QuorumWorld) -> None:
    world.cluster.create_topic("orders", [1, 2], [2, 3])
    targets = [{"topic": "orders", "partition": number, "replicas": [4, 5]} for number in (0, 1)]
    key = await world.apply("PartitionReassignment", "move", {"partitions": targets, "maxConcurrentPartitions": 1})
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")


async def a_move_is_taken_back(world: QuorumWorld) -> None:
    world.cluster.create_topic("orders", [1, 2], [2, 3])
    world.cluster.broker(5).hang()
    targets = [{"topic": "orders", "partition": number, "replicas": [4, 5]} for number in (0, 1)]
    key = await world.apply("PartitionReassignment", "move", {"partitions": targets})
    await world.wait_until(lambda: (world.status(key).get("counts") or {}).get("moving") == 2)
    await world.delete(key)
    await world.wait_until(lambda: not any(each.is_moving for each in world.cluster.topics["orders"].partitions))
    world.cluster.broker(5).resume()
    await world.wait_until(lambda: world.api.peek(key) is None)


async def a_move_that_a_person_takes_back_is_not_asked_for_again(world: QuorumWorld) -> None:
    (partition,) = world.cluster.create_topic("orders", [1, 2]).partitions
    world.cluster.broker(5).hang()
    target = {"topic": "orders", "partition": 0, "replicas": [4, 5]}
    key = await world.apply("PartitionReassignment", "move", {"partitions": [target]})
    await world.wait_until(lambda: (world.status(key).get("counts") or {}).get("moving") == 1)
    partition.cancel(world.cluster.brokers)
    world.cluster.broker(5).resume()
    await world.wait_until(lambda: world.status(key).get("phase") == "Failed")
    assert partition.replicas == (1, 2)


async def partitions_move_with_a_limit(world: QuorumWorld) -> None:
    """Another tool has limited the leaders, and throttles a replica of the topic."""
    world.cluster.broker_defaults[LEADER_RATE] = "77"
    world.cluster.create_topic("orders", [1, 2], [2, 3], config={LEADER_REPLICAS: "1:3", "retention.ms": "7"})
    world.cluster.broker(5).hang()
    targets = [{"topic": "orders", "partition": number, "replicas": [4, 5]} for number in (0, 1)]
    spec = {"partitions": targets, "throttle": {"bytesPerSecond": 5000}}
    key = await world.apply("PartitionReassignment", "move", spec)
    await world.wait_until(lambda: (world.status(key).get("counts") or {}).get("moving") == 2)
    assert rates_of(world) == {LEADER_RATE: "77", FOLLOWER_RATE: "5000"}, "it began without its limit"
    await world.apply("PartitionReassignment", "move", {**spec, "throttle": {"bytesPerSecond": 6000}})
    await world.wait_until(lambda: world.status(key).get("throttle") == {"bytesPerSecond": 6000, "isSet": True})
    assert rates_of(world) == {LEADER_RATE: "77", FOLLOWER_RATE: "6000"}
    world.cluster.broker(5).resume()
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    assert rates_of(world) == {LEADER_RATE: "77"}
    assert world.cluster.topics["orders"].config == {LEADER_REPLICAS: "1:3", "retention.ms": "7"}


async def a_move_with_a_limit_is_taken_back(world: QuorumWorld) -> None:
    key = await begin_limited_move(world)
    await world.delete(key)
    await world.wait_until(lambda: not any(each.is_moving for each in world.cluster.topics["orders"].partitions))
    world.cluster.broker(5).resume()
    await world.wait_until(lambda: world.api.peek(key) is None)
    assert (rates_of(world), world.cluster.topics["orders"].config) == ({}, {})


async def a_limit_without_its_object_is_removed(world: QuorumWorld) -> None:
    """Somebody takes the finalizer off the object and deletes it while its partition moves."""
    key = await begin_limited_move(world)
    found = dict(world.api.peek(key) or {})
    await world.api.keep({**found, "metadata": {**found["metadata"], "finalizers": []}})
    await world.api.remove(key)
    await world.wait_until(lambda: not rates_of(world) and not world.cluster.topics["orders"].config)
    world.cluster.broker(5).resume()
    await world.wait_until(lambda: not any(each.is_moving for each in world.cluster.topics["orders"].partitions))


def rates_of(world: QuorumWorld) -> dict[str, str]:
    return dict(world.cluster.broker_defaults)


async def leaders_are_given_back(world: QuorumWorld) -> None:
    world.cluster.create_topic("orders", [1, 2], [1, 3])
    world.cluster.bounce_broker(1)
    assert world.cluster.find_leadership(tp("orders", 0)) == (2, [1, 2])
    key = await world.apply("PreferredElection", "back", {"topics": ["orders"]})
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    assert world.cluster.find_leadership(tp("orders", 0)) == (1, [1, 2])


async def a_leader_is_elected_out_of_the_isr(world: QuorumWorld) -> None:
    world.cluster.create_topic("orders", [1, 2])
    world.cluster.kill_broker(2)
    world.cluster.kill_broker(1)
    world.cluster.start_broker(2)
    assert world.cluster.find_leadership(tp("orders", 0)) == (-1, [1])
    spec = {"topics": ["orders"], "electionType": "Unclean", "acknowledgeDataLoss": True}
    key = await world.apply("PreferredElection", "unclean", spec)
    await world.wait_until(lambda: world.status(key).get("phase") == "Completed")
    assert world.cluster.find_leadership(tp("orders", 0)) == (2, [2])


async def features_are_upgraded_and_given_up(world: QuorumWorld) -> None:
    names = {"metadata.version": 27, "f": 2}
    features = [{"name": name, "maxVersionLevel": level} for name, level in names.items()]
    key = await world.apply("FeatureSet", "features", {"features": features})
    await world.wait_until(lambda: world.is_ready(key))
    given_up = {"features": features[1:], "deletionPolicy": "Delete"}
    await world.apply("FeatureSet", "features", given_up)
    await world.wait_until(lambda: world.is_ready(key))
    await world.delete(key)
    await world.wait_until(lambda: world.api.peek(key) is None)


async def run_to_the_end(
    scenario: Scenario,
    *writes: int,
    mishap: Mishap = Mishap.DEATH,
    code: ErrorCode | None = None,
    leaderless_at: int | None = None,
) -> tuple[End, QuorumWorld]:
    """Return the state at the end. Resources that have ended are not written to again."""
    async with quorum_installation() as world:
        world.code, world.leaderless_at = code, leaderless_at
        async with run_beside(world.operate(writes, mishap)):
            await scenario(world)
            await world.wait_until_quiet()
        assert world.mishaps == len(writes)
        end, written = world.end(), list(world.writes)
        async with run_beside(world.operate()):
            await world.wait_until_quiet()
        assert world.writes[len(written) :] == []
        told: list[Any] = [event["reason"] for event in world.api.events]
        assert "TopicAdopted" not in told
        return end, world


SCENARIOS = (
    a_topic_is_created_grows_and_is_configured,
    a_topic_gets_other_replicas,
    a_topic_gets_a_new_order_of_its_replicas,
    a_topic_is_deleted_with_its_object,
    a_topic_goes_to_another_object,
    a_running_move_of_a_topic_gets_other_throttles,
    partitions_move_one_after_the_other,
    a_move_is_taken_back,
    a_move_that_a_person_takes_back_is_not_asked_for_again,
    partitions_move_with_a_limit,
    a_move_with_a_limit_is_taken_back,
    a_limit_without_its_object_is_removed,
    leaders_are_given_back,
    a_leader_is_elected_out_of_the_isr,
    features_are_upgraded_and_given_up,
)


@pytest.mark.parametrize(
    "scenario",
    mostly_nightly(SCENARIOS, a_topic_is_deleted_with_its_object, leaders_are_given_back),
    ids=lambda scenario: scenario.__name__,
)
class TestWhateverHappensAtAnyWrite:
    @pytest.mark.parametrize("mishap", Mishap, ids=lambda mishap: mishap.name)
    def test_the_end_is_the_same(self, scenario: Scenario, mishap: Mishap) -> None:
        end, world = run_fast(run_to_the_end(scenario))
        for number, what in enumerate(world.writes, start=1):
            after, _ = run_fast(run_to_the_end(scenario, number, mishap=mishap))
            assert differences(after, end) == {}, f"write {number}, {what}: {mishap.value}"

    @pytest.mark.parametrize("mishap", [Mishap.LOST_ANSWER, Mishap.LOST_REQUEST], ids=["done", "not done"])
    def test_an_answer_that_is_no_verdict_changes_nothing(self, scenario: Scenario, mishap: Mishap) -> None:
        end, world = run_fast(run_to_the_end(scenario))
        assert world.asked
        for at, code in ((number, each) for number in world.asked for each in UNJUDGED[number % 3 :: 3]):
            after, _ = run_fast(run_to_the_end(scenario, at, mishap=mishap, code=code))
            assert differences(after, end) == {}, f"write {at}, {world.writes[at - 1]}: {code.name}"

    def test_controllers_without_a_leader_for_a_while_change_nothing_and_are_told_of(self, scenario: Scenario) -> None:
        end, world = run_fast(run_to_the_end(scenario))
        for at in world.asked:
            after, disturbed = run_fast(run_to_the_end(scenario, leaderless_at=at))
            others = differences(after, end)
            assert [path for path in others if path not in OF_ANOTHER_LEADER] == [], f"{world.writes[at - 1]}: {others}"
            said = [each for each in disturbed.writes[at:] if "have no leader" in each]
            assert any(each.startswith("patch_status KafkaCluster") for each in said)
            asked = [number for number in disturbed.asked if number > at]
            assert len(asked) <= len(world.asked) + 1, "it was asked for again while nobody led"
