"""CreateTopics: which topics there are afterwards, and the error code of each that there is not."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i16, i32, i32Timedelta

from controller_core.model.ids import TopicName
from controller_core.zk import codecs, paths
from simulation.checks import assert_sound, simulate_cluster
from simulation.cluster import Cluster, tp
from simulation.process import ProcessSettings


def topic(
    name: str,
    partitions: int = -1,
    factor: int = -1,
    *,
    assignment: Mapping[int, Sequence[int]] | None = None,
    config: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        name=WireTopicName(name),
        num_partitions=i32(partitions),
        replication_factor=i16(factor),
        assignments=tuple(
            CreatableReplicaAssignment(
                partition_index=i32(number), broker_ids=tuple(WireBrokerId(broker) for broker in brokers)
            )
            for number, brokers in (assignment or {}).items()
        ),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()),
    )


def request(*topics: CreatableTopic, timeout_ms: int = 1000, validate_only: bool = False) -> CreateTopicsRequest:
    timeout = i32Timedelta.parse(timedelta(milliseconds=timeout_ms))
    return CreateTopicsRequest(topics=topics, timeout=timeout, validate_only=validate_only)


async def codes(cluster: Cluster, *topics: CreatableTopic) -> list[ErrorCode]:
    response = await cluster.request(request(*topics))
    return [result.error_code for result in response.topics]


@asynccontextmanager
async def serve_with(settings: ProcessSettings) -> AsyncIterator[Cluster]:
    async with simulate_cluster() as cluster:
        cluster.settings = settings
        cluster.start_brokers(1, 2, 3)
        await cluster.serve()
        yield cluster


@pytest.fixture
async def served() -> AsyncIterator[Cluster]:
    async with serve_with(ProcessSettings()) as cluster:
        cluster.create_topic("there", [1, 2])
        await cluster.settle()
        yield cluster


async def test_a_topic_is_created_served_and_described(served: Cluster) -> None:
    response = await served.request(request(topic("orders", 3, 2, config={"retention.ms": "5000"})))
    (result,) = response.topics
    assert result.error_code is ErrorCode.none
    assert (result.num_partitions, result.replication_factor) == (3, 2)
    assert result.topic_id == served.topic("orders").topic_id
    configs = {config.name: (config.value, config.config_source) for config in result.configs}
    assert configs["retention.ms"] == ("5000", 1)
    assert configs["cleanup.policy"] == ("delete", 5)
    assert [len(served.list_replicas(tp("orders", number))) for number in range(3)] == [2, 2, 2]
    assert all(1000 not in served.list_replicas(tp("orders", number)) for number in range(3))
    node = served.data(paths.topic_config(TopicName("orders")))
    assert node is not None
    assert codecs.decode_config(node) == {"retention.ms": "5000"}
    assert_sound(served)


async def test_an_assignment_is_taken_as_it_is_given(served: Cluster) -> None:
    assert await codes(served, topic("orders", assignment={0: [3, 1], 1: [2, 3]})) == [ErrorCode.none]
    assert served.list_replicas(tp("orders", 0)) == [3, 1]
    assert served.leadership(tp("orders", 1)) == (2, [2, 3])


async def test_what_is_not_said_is_the_clusters_default(served: Cluster) -> None:
    assert await codes(served, topic("orders")) == [ErrorCode.none]
    assert len(served.topic("orders").partitions) == served.settings.num_partitions
    assert len(served.list_replicas(tp("orders"))) == served.settings.default_replication_factor


@pytest.mark.parametrize(
    ("known", "asked", "code", "option"),
    [
        ((None, None), topic("orders"), ErrorCode.invalid_replication_factor, "--default-replication-factor"),
        ((6, None), topic("orders", 2), ErrorCode.invalid_replication_factor, "--default-replication-factor"),
        ((None, 3), topic("orders", factor=2), ErrorCode.invalid_partitions, "--num-partitions"),
    ],
)
async def test_a_default_that_the_controller_does_not_know_is_refused_with_the_option_to_set(
    known: tuple[int | None, int | None], asked: CreatableTopic, code: ErrorCode, option: str
) -> None:
    async with serve_with(ProcessSettings(num_partitions=known[0], default_replication_factor=known[1])) as cluster:
        before = cluster.zk.tree.zxid
        (result,) = (await cluster.request(request(asked))).topics
        assert result.error_code is code
        assert option in str(result.error_message)
        assert cluster.zk.tree.zxid == before


async def test_a_topic_that_says_its_numbers_needs_no_defaults() -> None:
    async with serve_with(ProcessSettings(num_partitions=None, default_replication_factor=None)) as cluster:
        asked = topic("orders", 2, 3), topic("listed", assignment={0: [3, 1]})
        assert await codes(cluster, *asked) == [ErrorCode.none] * 2


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (topic("there", 1, 1), ErrorCode.topic_already_exists),
        (topic("there", 0, 0, config={"retention.ms": None}), ErrorCode.topic_already_exists),
        (topic("a", 0, 0, config={"retention.ms": None}), ErrorCode.invalid_config),
        (topic("a", 1, 1, assignment={0: [1]}), ErrorCode.invalid_request),
        (topic("a", 0, 1), ErrorCode.invalid_partitions),
        (topic("a", -2, 1), ErrorCode.invalid_partitions),
        (topic("a", 2**31 - 1, 1), ErrorCode.invalid_partitions),
        (topic("a", 90_000, 3), ErrorCode.invalid_partitions),
        (topic("a", 1, 0), ErrorCode.invalid_replication_factor),
        (topic("a", 1, 4), ErrorCode.invalid_replication_factor),
        (topic("a/b", 0, 1), ErrorCode.invalid_partitions),
        (topic("a/b", 1, 1), ErrorCode.invalid_topic_exception),
        (topic("", 1, 1), ErrorCode.invalid_topic_exception),
        (topic(".", 1, 1), ErrorCode.invalid_topic_exception),
        (topic("x" * 250, 1, 1), ErrorCode.invalid_topic_exception),
        (topic("\0", 1, 1), ErrorCode.invalid_topic_exception),
        (topic("__cluster_metadata", 1, 1), ErrorCode.invalid_request),
        (topic("a", assignment={0: [1, 2], 1: [1]}), ErrorCode.invalid_replica_assignment),
        (topic("a", assignment={0: [1, 1]}), ErrorCode.invalid_replica_assignment),
        (topic("a", assignment={0: []}), ErrorCode.invalid_replica_assignment),
        (topic("a", assignment={1: [1]}), ErrorCode.invalid_replica_assignment),
        (topic("a", assignment={0: [-1]}), ErrorCode.invalid_replica_assignment),
        (topic("a", assignment={0: [1000]}), ErrorCode.invalid_replica_assignment),
        (topic("a", 1, 1, config={"no.such.key": "1"}), ErrorCode.invalid_config),
        (topic("a", 1, 1, config={"retention.ms": "soon"}), ErrorCode.invalid_config),
        (topic("a", 1, 1, config={"remote.storage.enable": "true"}), ErrorCode.invalid_config),
        (
            topic("a", 1, 1, config={"leader.replication.throttled.replicas": "0:1," * 262_144 + "0:1"}),
            ErrorCode.invalid_partitions,
        ),
    ],
)
async def test_what_cannot_be_created_is_refused_and_leaves_nothing(
    served: Cluster, asked: CreatableTopic, code: ErrorCode
) -> None:
    before = served.zk.tree.zxid
    assert await codes(served, asked) == [code]
    assert served.zk.tree.zxid == before


async def test_one_bad_topic_is_no_others_concern(served: Cluster) -> None:
    answered = await codes(served, topic("there", 1, 1), topic("good", 1, 1), topic("bad", 1, 9))
    assert answered == [ErrorCode.topic_already_exists, ErrorCode.none, ErrorCode.invalid_replication_factor]
    assert served.leadership(tp("good"))[0] in (1, 2, 3)


async def test_a_name_that_stands_twice_is_refused_twice(served: Cluster) -> None:
    assert await codes(served, topic("a", 1, 1), topic("a", 2, 1)) == [ErrorCode.invalid_request] * 2
    assert not served.exists(paths.topic(TopicName("a")))


async def test_names_that_metrics_cannot_tell_apart_collide(served: Cluster) -> None:
    assert await codes(served, topic("a.b", 1, 1), topic("a_b", 1, 1)) == [
        ErrorCode.none,
        ErrorCode.invalid_topic_exception,
    ]
    assert await codes(served, topic("a_b", 1, 1)) == [ErrorCode.invalid_topic_exception]


async def test_a_topic_that_is_marked_for_deletion_exists(served: Cluster) -> None:
    served.kill_broker(2)
    served.request_deletion("there")
    await served.settle()
    assert await codes(served, topic("there", 1, 1)) == [ErrorCode.topic_already_exists]


async def test_validation_alone_changes_nothing(served: Cluster) -> None:
    before = served.zk.tree.zxid
    response = await served.request(request(topic("orders", 2, 2), topic("there", 1, 1), validate_only=True))
    assert [result.error_code for result in response.topics] == [ErrorCode.none, ErrorCode.topic_already_exists]
    assert response.topics[0].num_partitions == 2
    assert served.zk.tree.zxid == before


async def test_who_gives_no_time_is_answered_so_though_the_topic_is_created(served: Cluster) -> None:
    response = await served.request(request(topic("orders", 1, 1), timeout_ms=0))
    assert response.topics[0].error_code is ErrorCode.request_timed_out
    assert served.leadership(tp("orders"))[0] in (1, 2, 3)


async def test_the_answer_waits_for_leaders_until_the_clients_time_is_over(served: Cluster) -> None:
    asked = request(topic("waiting", assignment={0: [9]}), topic("fine", 1, 1), timeout_ms=20_000)
    answer = asyncio.create_task(served.active.answer(asked))
    await served.settle(passing_ms=10_000)
    assert not answer.done()
    await served.settle(passing_ms=25_000)
    assert [r.error_code for r in answer.result().topics] == [ErrorCode.request_timed_out, ErrorCode.none]


async def test_the_answer_comes_as_soon_as_there_is_a_leader(served: Cluster) -> None:
    answer = asyncio.create_task(
        served.active.answer(request(topic("waiting", assignment={0: [9]}), timeout_ms=10_000_000))
    )
    await served.settle()
    served.start_broker(9)
    await served.settle()
    assert answer.result().topics[0].error_code is ErrorCode.none


async def test_a_controller_that_loses_its_role_answers_who_waits(served: Cluster) -> None:
    answer: asyncio.Task[Any] = asyncio.create_task(
        served.active.answer(request(topic("waiting", assignment={0: [9]}), timeout_ms=10_000_000))
    )
    await served.settle()
    served.zk.expire(served.active.session)
    await served.settle()
    assert answer.result().topics[0].error_code is ErrorCode.not_controller


async def test_a_configuration_that_a_deleted_topic_left_is_replaced(served: Cluster) -> None:
    served.put(paths.topic_config(TopicName("again")), codecs.encode_config({"retention.ms": "1"}))
    assert await codes(served, topic("again", 1, 1)) == [ErrorCode.none]
    data = served.data(paths.topic_config(TopicName("again")))
    assert data is not None
    assert codecs.decode_config(data) == {}


async def test_ten_thousand_topics_in_one_request_are_answered(served: Cluster) -> None:
    names = [f"bad name {number}" for number in range(10_000)]
    assert set(await codes(served, *(topic(name, 1, 1) for name in names))) == {ErrorCode.invalid_topic_exception}


async def test_a_request_is_refused_what_would_keep_everybody_else_waiting(served: Cluster) -> None:
    topics = [topic(f"large-{number}", 40_000, 1) for number in range(10)]
    response = await served.request(request(*topics, validate_only=True))
    answered = [result.error_code for result in response.topics]
    assert answered == [ErrorCode.none] * 2 + [ErrorCode.policy_violation] * 8


async def test_what_is_late_has_its_id_all_the_same(served: Cluster) -> None:
    response = await served.request(request(topic("orders", 1, 1), timeout_ms=-5))
    assert response.topics[0].error_code is ErrorCode.request_timed_out
    assert response.topics[0].topic_id == served.topic("orders").topic_id


async def test_remote_storage_needs_brokers_that_have_it() -> None:
    async with simulate_cluster() as cluster:
        cluster.settings = ProcessSettings(remote_log_storage_system_enable=True)
        cluster.start_brokers(1)
        await cluster.serve()
        assert await codes(cluster, topic("cold", 1, 1, config={"remote.storage.enable": " True"})) == [ErrorCode.none]


async def test_no_topics_are_an_empty_answer(served: Cluster) -> None:
    assert await codes(served) == []
