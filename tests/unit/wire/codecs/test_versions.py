"""Requests of every version are answered by the newest one: missing fields have their defaults."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest
from kio.schema.create_topics.v2 import request as create_topics_v2
from kio.schema.create_topics.v7 import response as create_topics_v7
from kio.schema.create_topics.v7.request import CreateTopicsRequest
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta

from controller_core.wire.codecs.frames import decode_request, decode_response, encode_request, encode_response
from controller_core.wire.codecs.versions import Versions, convert

CREATE_TOPICS = Versions(CreateTopicsRequest, oldest=2)


def test_an_older_request_is_lifted_part_by_part() -> None:
    old = create_topics_v2.CreateTopicsRequest(
        topics=(
            create_topics_v2.CreatableTopic(
                name=TopicName("orders"),
                num_partitions=i32(-1),
                replication_factor=i16(-1),
                assignments=(
                    create_topics_v2.CreatableReplicaAssignment(
                        partition_index=i32(0), broker_ids=(BrokerId(1), BrokerId(2))
                    ),
                ),
                configs=(create_topics_v2.CreatableTopicConfig(name="retention.ms", value=None),),
            ),
        ),
        timeout=i32Timedelta.parse(timedelta(seconds=7)),
        validate_only=True,
    )
    lifted = CREATE_TOPICS.lift(old)
    assert isinstance(lifted, CreateTopicsRequest)
    assert lifted.validate_only
    assert lifted.timeout == timedelta(seconds=7)
    assert lifted.topics[0].assignments[0].broker_ids == (1, 2)
    assert lifted.topics[0].configs[0].value is None
    assert convert(lifted, create_topics_v2.CreateTopicsRequest) == old


def test_what_an_older_response_cannot_carry_is_left_out() -> None:
    response = create_topics_v7.CreateTopicsResponse(
        throttle_time=i32Timedelta.parse(timedelta()),
        topics=(
            create_topics_v7.CreatableTopicResult(
                name=TopicName("orders"),
                topic_id=UUID(int=7),
                error_code=ErrorCode.topic_already_exists,
                error_message="it exists",
                num_partitions=i32(3),
                replication_factor=i16(2),
                configs=None,
            ),
        ),
    )
    lowered: Any = CREATE_TOPICS.lower(response, 2)
    assert lowered.__version__ == 2
    assert lowered.topics[0].error_code is ErrorCode.topic_already_exists
    assert lowered.topics[0].error_message == "it exists"
    assert not hasattr(lowered.topics[0], "topic_id")


def test_a_null_that_an_older_version_does_not_know_becomes_empty() -> None:
    newest: Any = load_request_schema(3, 12)
    everything = newest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
    oldest: Any = convert(everything, load_request_schema(3, 0))
    assert oldest.topics == ()


def test_a_request_that_lacks_a_field_has_its_default() -> None:
    oldest: Any = load_request_schema(43, 0)
    request = oldest(topic_partitions=None, timeout=i32Timedelta.parse(timedelta(seconds=1)))
    lifted = Versions(ElectLeadersRequest, oldest=0).lift(request)
    assert lifted.election_type == i8(0), "elections were preferred ones before they had a type"
    assert lifted.topic_partitions is None


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_passes_over_the_wire_and_back(version: int) -> None:
    newest = CreateTopicsRequest(topics=())
    request = convert(newest, CREATE_TOPICS.request_type(version))
    frame = encode_request(request, 1, "client")[4:]
    assert CREATE_TOPICS.lift(decode_request(CREATE_TOPICS.request_type(version), frame)) == newest
    answer = create_topics_v7.CreateTopicsResponse(throttle_time=i32Timedelta.parse(timedelta()), topics=())
    response = CREATE_TOPICS.lower(answer, version)
    response_type = load_response_schema(19, version)
    assert decode_response(response_type, encode_response(response, 1)[4:]) == response


def test_an_api_says_which_versions_it_has() -> None:
    versions = Versions(CreatePartitionsRequest, oldest=0)
    assert (versions.key, versions.min, versions.max) == (37, 0, 3)
    assert [version for version in range(-1, 6) if version in versions] == [0, 1, 2, 3]
    alone = Versions(CreatePartitionsRequest)
    assert (alone.min, alone.max) == (3, 3)


@pytest.mark.parametrize("version", [5, 7])
def test_what_the_parts_of_a_response_share_they_share_in_every_version(version: int) -> None:
    config = create_topics_v7.CreatableTopicConfigs(
        name="retention.ms", value="1", read_only=False, config_source=i8(5), is_sensitive=False
    )
    shared, other = (config, config), (config,)
    response = create_topics_v7.CreateTopicsResponse(
        throttle_time=i32Timedelta.parse(timedelta()),
        topics=tuple(
            create_topics_v7.CreatableTopicResult(
                name=TopicName(name),
                topic_id=None,
                error_code=ErrorCode.none,
                error_message=None,
                configs=configs,
            )
            for name, configs in (("a", shared), ("b", shared), ("c", other))
        ),
    )
    lowered: Any = CREATE_TOPICS.lower(response, version)
    a, b, c = (topic.configs for topic in lowered.topics)
    assert a is b
    assert [len(configs) for configs in (a, b, c)] == [2, 2, 1]
    assert encode_response(lowered, 1) == encode_response(convert(lowered, load_response_schema(19, version)), 1)
