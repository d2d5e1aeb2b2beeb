"""Every call of the admin client has the same effect on both clusters, through any server."""

import asyncio
import signal

import pytest
from kio.schema.errors import ErrorCode

from controller_core.client.admin_client import AdminClient, BlockingAdminClient
from controller_core.client.errors import InvalidArgument, PartlyRefused, Refused, Unreachable
from controller_core.client.features import FeatureUpdate
from controller_core.client.reassigning.assignments import format_partitions, format_reassignment
from controller_core.client.reassigning.reassignments import Progress
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.tools.test_java_tools import fill

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


def tp(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(TopicName(topic), PartitionId(partition))


def ids(*brokers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, brokers))


async def test_a_topic_is_created_by_counts_described_grown_and_deleted(
    cluster: ConformanceCluster, admin: AdminClient, name: str
) -> None:
    await admin.create_topic(name, 2, 3, configs={"retention.ms": "60000"})
    cluster.wait_until_served(name, 2)
    cluster.wait_until_everybody_knows(name, 1)
    described = await admin.describe_topic(name)
    assert (len(described.partitions), described.replication_factor) == (2, 3)
    assert described.configs == {"retention.ms": "60000"}
    first = described.partitions[0]
    assert first.leader == first.replicas[0]
    assert sorted(first.isr) == [1, 2, 3]
    with pytest.raises(Refused) as refused:
        await admin.create_topic(name, 2, 3)
    assert refused.value.code is ErrorCode.topic_already_exists
    assert "TOPIC_ALREADY_EXISTS 36" in str(refused.value)
    assert name in (await admin.list_topics()).alive
    await admin.delete_topic(name)
    cluster.wait_until_gone(f"/brokers/topics/{name}")
    cluster.wait(lambda: cluster.metadata_of(1, name).error_code is not ErrorCode.none, "it is gone for clients")
    with pytest.raises(Refused) as refused:
        await admin.describe_topic(name)
    assert refused.value.code is ErrorCode.unknown_topic_or_partition
    with pytest.raises(Refused):
        await admin.delete_topic(name)


async def test_a_topic_is_created_by_an_assignment_and_altered_step_by_step(
    cluster: ConformanceCluster, admin: AdminClient, name: str
) -> None:
    await admin.create_topic(name, replica_assignment="1:2,2:3", configs={"cleanup.policy": "compact"})
    cluster.wait_until_served(name, 2)
    cluster.wait_until_everybody_knows(name, 1)
    altered = await admin.alter_topic(
        name, 3, "1:3,2:3,3:1", added_configs={"retention.ms": "5000"}, deleted_configs=["cleanup.policy"]
    )
    assert altered.error is None
    assert [step.what for step in altered.steps] == [
        "configurations: retention.ms, cleanup.policy",
        "partitions: 2 to 3",
        f"move of {name}-0",
    ]
    cluster.wait_until_moved(name, [1, 3])
    assert cluster.znodes.read_assignment(name, 2) == [3, 1]
    for partition in range(3):
        cluster.wait_until_everybody_knows(name, partition)
    described = await admin.describe_topic(name)
    assert described.configs == {"retention.ms": "5000"}
    assert [each.replicas for each in described.partitions] == [ids(1, 3), ids(2, 3), ids(3, 1)]


async def test_an_alteration_that_cannot_be_is_refused_before_anything_is_done(
    cluster: ConformanceCluster, admin: AdminClient, name: str
) -> None:
    await admin.create_topic(name, replica_assignment="1:2")
    cluster.wait_until_served(name)
    cluster.wait_until_everybody_knows(name)
    with pytest.raises(Refused) as refused:
        await admin.alter_topic(name, 5, added_configs={"retention.ms": "soon"})
    assert refused.value.code in (ErrorCode.invalid_config, ErrorCode.invalid_request)
    with pytest.raises(InvalidArgument, match="partitions cannot be removed"):
        await admin.alter_topic(name, 0, added_configs={"retention.ms": "1"})
    with pytest.raises(InvalidArgument, match="not live brokers"):
        await admin.alter_topic(name, replica_assignment="1:9", added_configs={"retention.ms": "1"})
    described = await admin.describe_topic(name)
    assert (described.configs, len(described.partitions)) == ({}, 1)


async def test_a_topic_that_cannot_go_yet_is_listed_as_marked(
    cluster: ConformanceCluster, admin: AdminClient, name: str
) -> None:
    """One of its replicas is on a broker that is down."""
    _, _, last = cluster.order
    await admin.create_topic(name, replica_assignment=f"{last}")
    cluster.wait_until_served(name)
    cluster.kafka.broker(last).stop()
    reaching = AdminClient({
        **cluster.properties(cluster.bootstrap), "zookeeper.connect": cluster.kafka.zookeeper_connect
    })  # fmt: skip
    await reaching.delete_topic(name)
    listed = await reaching.list_topics()
    assert name not in listed.alive
    assert listed.marked_for_deletion == (TopicName(name),)
    nobody_told = AdminClient(cluster.properties(cluster.bootstrap))
    assert (await nobody_told.list_topics()).marked_for_deletion is None
    cluster.kafka.broker(last).start()
    cluster.wait_until_gone(f"/brokers/topics/{name}")


async def test_a_move_is_waited_for_and_verified_and_one_that_cannot_begin_says_why(
    cluster: ConformanceCluster, admin: AdminClient, name: str
) -> None:
    cluster.serve_topic(name, [[1, 2], [2, 3]])
    there = format_reassignment({tp(name, 0): ids(3, 1), tp(name, 1): ids(1, 2)})
    before = await admin.verify_reassign_partitions(there)
    assert set(before.values()) == {Progress.FAILED}, "it neither moves nor is there"
    ended = await admin.reassign_partitions(there)
    assert ended.error is None
    assert cluster.znodes.read_assignment(name, 0) == [3, 1]
    assert set((await admin.verify_reassign_partitions(there)).values()) == {Progress.COMPLETED}
    assert await admin.list_reassignments() == {}
    nowhere = format_reassignment({tp(name, 0): ids(9), tp(name, 1): ids(3, 2)})
    with pytest.raises(PartlyRefused) as refused:
        await admin.reassign_partitions(nowhere)
    assert "9" in str(refused.value)
    assert "INVALID_REPLICA_ASSIGNMENT" in str(refused.value)
    assert "1 of 2 partitions have begun to move" in str(refused.value)
    cluster.wait_until_moved(name, [3, 2], partition=1)


async def test_a_move_that_takes_long_is_in_progress_and_is_cancelled(
    cluster: ConformanceCluster, admin: AdminClient, name: str
) -> None:
    first, second, third = cluster.order
    cluster.serve_topic(name, [[first, second]])
    cluster.wait_until_everybody_knows(name)
    fill(cluster, name)
    there = format_reassignment({tp(name): ids(first, third)})
    await admin.throttle_reassignment(there, 1_000)
    move = asyncio.create_task(admin.reassign_partitions(there))
    while not (found := await admin.list_reassignments()):
        assert not move.done(), await move
        await asyncio.sleep(0.1)
    assert found[tp(name)].target == ids(first, third)
    assert await admin.verify_reassign_partitions(there) == {tp(name): Progress.IN_PROGRESS}
    elsewhere = format_reassignment({tp(name): ids(second, third)})
    assert await admin.verify_reassign_partitions(elsewhere) == {tp(name): Progress.FAILED}
    assert await admin.cancel_reassignment(there) == (tp(name),)
    ended = await move
    assert ended.error is not None
    assert await admin.cancel_reassignment(there) == ()
    await admin.unthrottle_reassignment(there)
    assert cluster.znodes.read_assignment(name, 0) == [first, second]


async def test_a_throttle_is_taken_from_all_brokers_also_from_one_that_the_move_has_left(
    cluster: ConformanceCluster, admin: AdminClient, name: str
) -> None:
    cluster.serve_topic(name, [[1, 2]])
    there = format_reassignment({tp(name): ids(3, 1)})
    await admin.throttle_reassignment(there, 1 << 30)
    assert list_throttled_brokers(cluster) == [1, 2, 3]
    assert (await admin.reassign_partitions(there)).error is None
    await admin.unthrottle_reassignment(there)
    assert list_throttled_brokers(cluster) == []
    assert (await admin.describe_topic(name)).configs == {}


def list_throttled_brokers(cluster: ConformanceCluster) -> list[int]:
    """Return the brokers that have a rate, according to their configurations in ZooKeeper."""
    client = cluster.znodes.client
    paths = {broker: f"/config/brokers/{broker}" for broker in (1, 2, 3)}
    return [
        broker for broker, path in paths.items() if client.exists(path) and b"throttled.rate" in client.get(path)[0]
    ]


async def test_preferred_leaders_are_elected_and_verified(
    cluster: ConformanceCluster, admin: AdminClient, name: str
) -> None:
    cluster.serve_topic(name, [[1, 2]])
    cluster.znodes.reassign({(name, 0): [2, 1]})
    cluster.wait_until_moved(name, [2, 1])
    cluster.wait_until_everybody_knows(name)
    asked = format_partitions([tp(name), tp("ac-ghost")])
    found = await admin.verify_preferred_replica_leader_election(asked)
    assert found == {tp(name): Progress.IN_PROGRESS, tp("ac-ghost"): Progress.FAILED}
    elected = await admin.preferred_replica_leader_election(asked)
    assert elected[tp(name)] is None
    ghost = elected[tp("ac-ghost")]
    assert isinstance(ghost, Refused)
    assert ghost.code is ErrorCode.unknown_topic_or_partition
    cluster.wait_until_led(name, 2)
    cluster.wait_until_everybody_knows(name)
    found = await admin.verify_preferred_replica_leader_election(format_partitions([tp(name)]))
    assert found == {tp(name): Progress.COMPLETED}
    unneeded = await admin.elect_unclean(format_partitions([tp(name)]))
    assert unneeded[tp(name)] is None


async def test_features_are_described_and_stock_brokers_stand_in_the_way_of_any(
    cluster: ConformanceCluster, admin: AdminClient
) -> None:
    for of_controller in (False, True):
        found = await admin.describe_features(of_controller=of_controller)
        assert (dict(found.finalized), dict(found.supported)) == ({}, {})
        assert found.answered_by.host == "127.0.0.1"
    assert found.answered_by.port == cluster.controller_address[1]
    with pytest.raises(Refused, match="some-feature") as refused:
        await admin.update_features([FeatureUpdate(feature="some-feature", level=1)])
    assert refused.value.code is ErrorCode.invalid_request
    if cluster.own_controller is not None:  # Kafka's says that no broker supports it, without naming them
        assert "(live brokers: 1, 2, 3)" in str(refused.value)
    with pytest.raises(Refused, match="non-existing"):
        await admin.delete_features(["some-feature"])


def test_the_same_calls_block_for_who_has_no_event_loop(cluster: ConformanceCluster, bootstrap: str, name: str) -> None:
    with BlockingAdminClient(cluster.properties(bootstrap)) as admin:
        admin.create_topic(name, replica_assignment="1:2")
        cluster.wait_until_served(name)
        move = admin.reassign_partitions(format_reassignment({tp(name): ids(2, 3)}))
        assert move.result(timeout=60).error is None
        admin.delete_topic(name)


async def test_a_time_that_is_over_says_so(cluster: ConformanceCluster) -> None:
    first, _, last = cluster.order
    cluster.kafka.broker(last).pause()
    try:
        silent = AdminClient(cluster.properties(cluster.kafka.broker(last).address))
        with pytest.raises(Unreachable):
            await silent.describe_topic("ac-any", timeout_ms=1_000)
        both = f"{cluster.kafka.broker(last).address},{cluster.kafka.broker(first).address}"
        answered = AdminClient(cluster.properties(both))
        assert (await answered.list_topics(timeout_ms=10_000)).marked_for_deletion is None
    finally:
        cluster.kafka.broker(last).resume()


@pytest.mark.parametrize("topic", ["", ".", "a/b", "x" * 250, "ä"])
async def test_a_name_that_is_none_is_refused_by_the_server(admin: AdminClient, topic: str) -> None:
    with pytest.raises(Refused) as refused:
        await admin.create_topic(topic, 1, 1)
    assert refused.value.code is ErrorCode.invalid_topic_exception


async def test_a_controller_that_hangs_is_asked_for_nothing(cluster: ConformanceCluster) -> None:
    """It does not even answer ApiVersions, so nothing was done, and the next controller may be asked."""
    if cluster.own_controller is None:
        pytest.skip("Kafka's controller is a broker that others need")
    admin = AdminClient(cluster.properties(cluster.kafka.broker(1).address))
    await admin.list_topics()
    cluster.own_controller.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(Unreachable, match=r"asked for its versions|it did not answer in time"):
            await admin.create_topic("ac-hung", 1, 1, timeout_ms=1_500)
    finally:
        cluster.own_controller.process.send_signal(signal.SIGCONT)
    assert "ac-hung" not in (await admin.list_topics()).alive
