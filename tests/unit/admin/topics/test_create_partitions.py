"""CreatePartitions: a topic grows, or the error code says why it does not."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from kio.schema.create_partitions.v3.request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32, i32Timedelta

from controller_core.model.ids import PartitionId, TopicName
from controller_core.zk import codecs, paths
from simulation.checks import assert_sound, simulate_cluster
from simulation.cluster import Cluster, tp


def topic(name: str, count: int, assignments: Sequence[Sequence[int]] | None = None) -> CreatePartitionsTopic:
    given = (
        None
        if assignments is None
        else tuple(
            CreatePartitionsAssignment(broker_ids=tuple(WireBrokerId(broker) for broker in brokers))
            for brokers in assignments
        )
    )
    return CreatePartitionsTopic(name=WireTopicName(name), count=i32(count), assignments=given)


def request(
    *topics: CreatePartitionsTopic, timeout_ms: int = 1000, validate_only: bool = False
) -> CreatePartitionsRequest:
    timeout = i32Timedelta.parse(timedelta(milliseconds=timeout_ms))
    return CreatePartitionsRequest(topics=topics, timeout=timeout, validate_only=validate_only)


async def codes(cluster: Cluster, *topics: CreatePartitionsTopic) -> list[ErrorCode]:
    response = await cluster.request(request(*topics))
    return [result.error_code for result in response.results]


@pytest.fixture
async def served() -> AsyncIterator[Cluster]:
    """`orders` with two partitions of two replicas; `moving` is being reassigned to a broker that hangs."""
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1, 2, 3)
        await cluster.serve()
        cluster.create_topic("orders", [1, 2], [2, 3])
        cluster.create_topic("moving", [1, 2])
        await cluster.settle()
        cluster.request_reassignment({tp("moving"): [1, 3]})
        await cluster.settle()
        yield cluster


async def test_a_topic_grows_and_keeps_its_id_and_its_partitions(served: Cluster) -> None:
    before = served.topic("orders")
    assert await codes(served, topic("orders", 4)) == [ErrorCode.none]
    after = served.topic("orders")
    assert after.topic_id == before.topic_id
    assert [after.partitions[number] for number in before.partitions] == list(before.partitions.values())
    assert len(after.partitions) == 4
    assert all(len(served.list_replicas(tp("orders", number))) == 2 for number in (2, 3))
    assert all(served.leadership(tp("orders", number))[0] in (1, 2, 3) for number in (2, 3))
    assert_sound(served)


async def test_the_new_partitions_are_where_the_request_says(served: Cluster) -> None:
    assert await codes(served, topic("orders", 4, [[3, 1], [2, 1]])) == [ErrorCode.none]
    assert served.list_replicas(tp("orders", 2)) == [3, 1]
    assert served.leadership(tp("orders", 3)) == (2, [2, 1])


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (topic("ghost", 3), ErrorCode.unknown_topic_or_partition),
        (topic("a/b", 3), ErrorCode.unknown_topic_or_partition),
        (topic("moving", 3), ErrorCode.reassignment_in_progress),
        (topic("orders", 2), ErrorCode.invalid_partitions),
        (topic("orders", 1), ErrorCode.invalid_partitions),
        (topic("orders", -1), ErrorCode.invalid_partitions),
        (topic("orders", 2**31 - 1), ErrorCode.invalid_partitions),
        (topic("orders", 3, [[1, 9]]), ErrorCode.invalid_replica_assignment),
        (topic("orders", 3, [[1, 1000]]), ErrorCode.invalid_replica_assignment),
        (topic("orders", 3, []), ErrorCode.invalid_replica_assignment),
        (topic("orders", 4, [[1, 2]]), ErrorCode.invalid_replica_assignment),
        (topic("orders", 3, [[]]), ErrorCode.invalid_replica_assignment),
        (topic("orders", 3, [[1, 1]]), ErrorCode.invalid_replica_assignment),
        (topic("orders", 3, [[1, 2, 3]]), ErrorCode.invalid_replica_assignment),
    ],
)
async def test_what_cannot_be_done_is_refused_and_changes_nothing(
    served: Cluster, asked: CreatePartitionsTopic, code: ErrorCode
) -> None:
    before = served.zk.tree.zxid
    assert await codes(served, asked) == [code]
    assert served.zk.tree.zxid == before


@pytest.mark.parametrize(("present", "count"), [((0, 2), 3), ((0, 2), 4), ((1,), 2)])
async def test_a_topic_with_a_gap_in_its_numbers_does_not_grow(
    served: Cluster, present: tuple[int, ...], count: int
) -> None:
    content = served.topic("orders")
    replicas = content.partitions[PartitionId(0)]
    content = replace(content, partitions={PartitionId(number): replicas for number in present})
    served.put(paths.topic(TopicName("gapped")), codecs.encode_topic(replace(content, topic_id=None)))
    await served.settle()
    before = served.topic("gapped")
    (result,) = (await served.request(request(topic("gapped", count)))).results
    assert result.error_code is ErrorCode.invalid_partitions
    assert "it would leave a gap" in str(result.error_message)
    assert served.topic("gapped") == before


async def test_no_new_replica_is_placed_on_the_controller(served: Cluster) -> None:
    (result,) = (await served.request(request(topic("orders", 3, [[1, 1000]])))).results
    assert result.error_message == "1000 is the controller, which holds no replicas: name a broker"


async def test_a_topic_on_its_way_out_does_not_grow(served: Cluster) -> None:
    served.kill_broker(3)
    served.request_deletion("orders")
    await served.settle()
    assert await codes(served, topic("orders", 3)) == [ErrorCode.invalid_topic_exception]


async def test_a_topic_whose_last_partition_is_being_removed_does_not_grow(served: Cluster) -> None:
    for number in (1, 2, 3):
        served.ours.add(number)
        served.bounce_broker(number)
    served.kill_broker(3)
    await served.settle()
    served.request_of_partition(paths.PARTITIONS_REMOVE, tp("orders", 1))
    await served.settle()
    (result,) = (await served.request(request(topic("orders", 3)))).results
    assert result.error_code is ErrorCode.invalid_partitions
    assert result.error_message == "Partitions of the topic are being removed. Wait until they are gone: 1."
    served.start_broker(3)
    await served.settle()
    assert await codes(served, topic("orders", 3)) == [ErrorCode.none]
    assert_sound(served)


async def test_too_few_brokers_for_the_replicas_of_the_topic_are_said(served: Cluster) -> None:
    served.kill_broker(2)
    served.kill_broker(3)
    await served.settle()
    assert await codes(served, topic("orders", 3)) == [ErrorCode.invalid_replication_factor]


async def test_a_topic_that_stands_twice_is_refused_once(served: Cluster) -> None:
    assert await codes(served, topic("orders", 3), topic("orders", 4)) == [ErrorCode.invalid_request]


async def test_many_topics_grow_in_one_request(served: Cluster) -> None:
    for number in range(200):
        served.create_topic(f"many-{number}", [1])
    await served.settle()
    assert set(await codes(served, *(topic(f"many-{number}", 3) for number in range(200)))) == {ErrorCode.none}
    assert all(served.leadership(tp(f"many-{number}", 2))[0] in (1, 2, 3) for number in range(200))
    assert_sound(served)


async def test_validation_alone_changes_nothing(served: Cluster) -> None:
    before = served.zk.tree.zxid
    response = await served.request(request(topic("orders", 3), topic("ghost", 1), validate_only=True))
    answered = [result.error_code for result in response.results]
    assert answered == [ErrorCode.none, ErrorCode.unknown_topic_or_partition]
    assert served.zk.tree.zxid == before


async def test_who_gives_no_time_is_answered_so_though_the_topic_grows(served: Cluster) -> None:
    response = await served.request(request(topic("orders", 3), timeout_ms=0))
    assert response.results[0].error_code is ErrorCode.request_timed_out
    assert len(served.topic("orders").partitions) == 3
