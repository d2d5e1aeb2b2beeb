"""A broker's knowledge of the cluster, and its answers to clients in each version."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.schema.metadata.v12 import MetadataRequest
from kio.schema.metadata.v12.request import MetadataRequestTopic
from kio.schema.types import TopicName as WireTopicName
from kio.static.protocol import RequestPayload

from controller_core.model.ids import LEADER_DURING_DELETE, PartitionId, TopicId, TopicName, TopicPartition
from controller_core.wire.codecs.versions import convert
from controller_core.wire.messages import ErrorCode
from replica_broker.membership.node import Node
from replica_broker.serving.metadata import VERSIONS, on_metadata
from tests.unit.replica_broker.serving.told import ORDERS_ID, broker, node, state, topic, update

ORDERS = topic("orders", [state(0, 1), state(1, 3)])
ALL = MetadataRequest(topics=None, include_topic_authorized_operations=False)


def answer_request(told: Node, request: RequestPayload, listener: str = "PLAINTEXT") -> Any:
    return asyncio.run(on_metadata(told, listener, request))


def make_request(*names: str | None, topic_id: UUID | None = None) -> MetadataRequest:
    topics = tuple(
        MetadataRequestTopic(topic_id=topic_id, name=None if name is None else WireTopicName(name)) for name in names
    )
    return MetadataRequest(topics=topics, include_topic_authorized_operations=False)


def test_every_update_replaces_the_brokers_and_adds_to_the_partitions() -> None:
    cache = node(ORDERS).metadata
    cache.update(update(topic("orders", [state(0, 2)]), brokers=[broker(1), broker(2)]))
    assert set(cache.brokers) == {1, 2}
    assert {number: known.leader for number, known in cache.partitions(TopicName("orders")).items()} == {0: 2, 1: 3}


def test_a_topic_goes_with_its_last_partition() -> None:
    cache = node(ORDERS).metadata
    gone = cache.update(update(topic("orders", [state(n, LEADER_DURING_DELETE) for n in (0, 1)])))
    assert gone == tuple(TopicPartition(TopicName("orders"), PartitionId(number)) for number in (0, 1))
    assert not list(cache.topics)
    assert cache.topic_named(ORDERS_ID) is None


def test_a_topic_that_was_created_again_has_only_its_new_id() -> None:
    cache = node(ORDERS).metadata
    cache.update(update(topic("orders", [state(0, 1)], topic_id=TopicId(UUID(int=8)))))
    assert cache.topic_named(ORDERS_ID) is None
    assert cache.topic_id(TopicName("orders")) == UUID(int=8)


@pytest.mark.parametrize("version", range(VERSIONS.min, VERSIONS.max + 1))
def test_all_topics_are_answered_in_each_version(version: int) -> None:
    request: Any = convert(ALL, load_request_schema(3, version))
    answer = answer_request(node(ORDERS), request)
    assert answer.__version__ == version
    assert [(t.name, len(t.partitions)) for t in answer.topics] == [("orders", 2)]
    assert VERSIONS.encode(answer, 1)


def test_the_controller_and_the_cluster_are_named() -> None:
    answer = answer_request(node(), ALL)
    assert (answer.cluster_id, answer.controller_id) == ("the-cluster", 1)
    assert [one.port for one in answer.brokers] == [9001, 9002, 9003]


def test_a_topic_that_nobody_has_told_of_is_not_created() -> None:
    (answer,) = answer_request(node(), make_request("new")).topics
    assert answer.error_code is ErrorCode.unknown_topic_or_partition


def test_a_topic_is_found_by_its_id() -> None:
    (found,) = answer_request(node(ORDERS), make_request(None, topic_id=ORDERS_ID)).topics
    (missing,) = answer_request(node(ORDERS), make_request(None, topic_id=UUID(int=9))).topics
    assert (found.name, missing.error_code) == ("orders", ErrorCode.unknown_topic_id)


def test_a_leader_that_is_not_alive_is_none() -> None:
    (answer,) = answer_request(node(topic("orders", [state(0, 9)])), ALL).topics
    (partition,) = answer.partitions
    assert (partition.leader_id, partition.error_code) == (-1, ErrorCode.leader_not_available)
