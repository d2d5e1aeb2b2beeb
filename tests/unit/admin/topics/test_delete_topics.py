"""DeleteTopics: by name or by id, and an answer when they are gone."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32Timedelta

from controller_core.admin.topics.delete_topics import API
from controller_core.model.ids import TopicName
from controller_core.zk import paths
from simulation.checks import assert_sound, simulate_cluster
from simulation.cluster import Cluster, tp
from simulation.process import ProcessSettings


def name_topic(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=WireTopicName(name), topic_id=None)


def identify_topic(topic_id: UUID | None) -> DeleteTopicState:
    return DeleteTopicState(name=None, topic_id=topic_id)


def request(*topics: DeleteTopicState, timeout_ms: int = 60_000) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=topics, timeout=i32Timedelta.parse(timedelta(milliseconds=timeout_ms)))


async def codes(cluster: Cluster, *topics: DeleteTopicState) -> list[ErrorCode]:
    response = await cluster.request(request(*topics))
    return [result.error_code for result in response.responses]


@pytest.fixture
async def served() -> AsyncIterator[Cluster]:
    async with simulate_cluster() as cluster:
        cluster.start_brokers(1, 2, 3)
        await cluster.serve()
        cluster.create_topic("one", [1, 2])
        cluster.create_topic("two", [2, 3], [3, 1])
        await cluster.settle()
        yield cluster


def is_there(cluster: Cluster, name: str) -> bool:
    return cluster.exists(paths.topic(TopicName(name)))


async def test_topics_are_deleted_by_name_and_by_id(served: Cluster) -> None:
    response = await served.request(request(name_topic("one"), identify_topic(served.topic("two").topic_id)))
    assert [(result.name, result.error_code) for result in response.responses] == [
        ("one", ErrorCode.none),
        ("two", ErrorCode.none),
    ]
    assert not is_there(served, "one")
    assert not is_there(served, "two")
    assert all(not broker.logs for broker in served.brokers.values())
    assert_sound(served)


async def test_what_is_not_there_cannot_be_deleted_and_is_no_others_concern(served: Cluster) -> None:
    assert await codes(
        served,
        name_topic("ghost"),
        identify_topic(UUID(int=9)),
        identify_topic(None),
        name_topic("a/b"),
        name_topic("one"),
    ) == [
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.none,
    ]
    assert not is_there(served, "one")


async def test_a_name_and_an_id_together_refuse_the_whole_request(served: Cluster) -> None:
    both = DeleteTopicState(name=WireTopicName("one"), topic_id=UUID(int=9))
    assert await codes(served, both, name_topic("two")) == [ErrorCode.invalid_request] * 2
    assert is_there(served, "two")


async def test_where_deletion_is_off_nothing_is_deleted() -> None:
    async with simulate_cluster() as cluster:
        cluster.settings = ProcessSettings(delete_topic_enable=False)
        cluster.start_brokers(1)
        await cluster.serve()
        cluster.create_topic("one", [1])
        await cluster.settle()
        assert await codes(cluster, name_topic("one")) == [ErrorCode.topic_deletion_disabled]
        assert is_there(cluster, "one")


async def test_the_answer_waits_for_a_broker_that_hangs(served: Cluster) -> None:
    served.broker(2).hang()
    answer: asyncio.Task[Any] = asyncio.create_task(
        served.active.answer(request(name_topic("one"), name_topic("ghost")))
    )
    await served.settle(passing_ms=10_000)
    assert not answer.done()
    served.broker(2).resume()
    await served.settle()
    codes = [result.error_code for result in answer.result().responses]
    assert codes == [ErrorCode.none, ErrorCode.unknown_topic_or_partition]
    assert not is_there(served, "one")


async def test_and_only_as_long_as_the_client_does(served: Cluster) -> None:
    served.broker(2).hang()
    answer: asyncio.Task[Any] = asyncio.create_task(served.active.answer(request(name_topic("one"), timeout_ms=5000)))
    await served.settle(passing_ms=20_000)
    assert answer.result().responses[0].error_code is ErrorCode.request_timed_out
    served.broker(2).resume()
    await served.settle()
    assert not is_there(served, "one")


async def test_a_broker_that_is_down_deletes_later_and_holds_up_no_answer(served: Cluster) -> None:
    served.kill_broker(2)
    await served.settle()
    assert await codes(served, name_topic("one")) == [ErrorCode.none]
    assert is_there(served, "one")
    assert tp("one") not in served.broker(1).metadata.partitions
    assert await codes(served, name_topic("one")) == [ErrorCode.unknown_topic_or_partition], "it is served no more"
    served.start_broker(2)
    await served.settle()
    assert not is_there(served, "one")


async def test_who_gives_no_time_is_answered_so_though_the_topic_goes(served: Cluster) -> None:
    response = await served.request(request(name_topic("one"), timeout_ms=0))
    assert response.responses[0].error_code is ErrorCode.request_timed_out
    assert not is_there(served, "one")


async def test_a_topic_that_stands_twice_is_answered_twice(served: Cluster) -> None:
    assert await codes(served, name_topic("one"), name_topic("one")) == [ErrorCode.none] * 2


async def test_older_versions_know_topics_by_name_alone() -> None:
    kind: Any = load_request_schema(20, 3)
    older = kind(topic_names=(WireTopicName("one"), WireTopicName("two")), timeout=i32Timedelta.parse(timedelta()))
    lifted = API.versions.lift(older)
    assert [(topic.name, topic.topic_id) for topic in lifted.topics] == [("one", None), ("two", None)]


async def test_a_topic_created_again_meanwhile_counts_as_another(served: Cluster) -> None:
    served.broker(2).hang()
    answer: asyncio.Task[Any] = asyncio.create_task(served.active.answer(request(name_topic("one"))))
    await served.settle()
    served.remove_topic("one")
    served.create_topic("one", [3])
    await served.settle()
    assert answer.result().responses[0].error_code is ErrorCode.none
    served.broker(2).resume()
    await served.settle()
