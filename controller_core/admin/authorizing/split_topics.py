"""Splits CreateTopics, DeleteTopics and CreatePartitions by rights on topics, with Kafka's errors (`KafkaApis`).

Kafka first refuses what is invalid for every caller, such as duplicate topics. So those parts pass on to the
controller.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse, CreatePartitionsTopicResult
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicResult, CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i16, i32

from controller_core.admin.rights import Rights
from controller_core.admin.splitting import Split, find_refused_parts, remove_refused_parts, remove_refused_topics
from controller_core.controller.loop.slices import slice_up
from controller_core.model.authorization.acls import THE_CLUSTER, Operation, make_topic_resource
from controller_core.model.ids import TopicId, TopicName
from controller_core.model.topics.topic_names import CLUSTER_METADATA_TOPIC

_REFUSED: Final = ErrorCode.topic_authorization_failed
_HIDDEN: Final = i16(_REFUSED.value)


async def create_topics(
    request: CreateTopicsRequest, rights: Rights
) -> Split[CreateTopicsRequest, CreateTopicsResponse]:
    """Split by the right to create. The right on the cluster covers all topics.

    Configuration, partition count and replication factor of a created topic are hidden from callers that may not
    describe its configuration.
    """
    named = Counter(topic.name for topic in request.topics)
    may_create_all = rights.may(Operation.CREATE, THE_CLUSTER, is_wanted=False)

    def why_not(asked: CreatableTopic) -> CreatableTopicResult | None:
        if may_create_all or named[asked.name] > 1 or TopicName(asked.name) == CLUSTER_METADATA_TOPIC:
            return None
        if rights.may(Operation.CREATE, make_topic_resource(asked.name)):
            return None
        return CreatableTopicResult(
            name=asked.name, topic_id=None, error_code=_REFUSED, error_message="Authorization failed.", configs=()
        )

    refused = await find_refused_parts(request.topics, why_not)
    hidden = {
        name
        async for name in slice_up(named)
        if not rights.may(Operation.DESCRIBE_CONFIGS, make_topic_resource(name), is_wanted=False)
    }

    def conceal(at: int, result: CreatableTopicResult) -> CreatableTopicResult:
        is_failed_later = result.error_code is not ErrorCode.none and at not in refused and named[result.name] == 1
        return result if is_failed_later or result.name not in hidden else _hide_configs(result)

    split = remove_refused_parts(request, "topics", refused, CreateTopicsResponse, "topics")

    def merge(response: CreateTopicsResponse | None) -> CreateTopicsResponse:
        merged: CreateTopicsResponse = split.merge(response)
        return replace(merged, topics=tuple(conceal(at, result) for at, result in enumerate(merged.topics)))

    return replace(split, merge=merge)


def _hide_configs(result: CreatableTopicResult) -> CreatableTopicResult:
    return replace(
        result, topic_config_error_code=_HIDDEN, configs=(), num_partitions=i32(-1), replication_factor=i16(-1)
    )


async def delete_topics(
    request: DeleteTopicsRequest, rights: Rights, name_of: Callable[[TopicId], TopicName | None]
) -> Split[DeleteTopicsRequest, DeleteTopicsResponse]:
    """Split by the right to delete. `name_of` returns the name of a topic id.

    Topic ids are not secret, but names are. A caller that uses an id sees the name only if it may describe the topic.
    """
    # Such a request is invalid as a whole, which the controller reports.
    if any(topic.name is not None and topic.topic_id is not None for topic in request.topics):
        return Split(allowed=request, merge=_whole)

    def why_not(asked: DeleteTopicState) -> DeletableTopicResult | None:
        name = asked.name if asked.topic_id is None else name_of(TopicId(asked.topic_id))
        if name is None and asked.topic_id is not None:
            # Refused here, because the controller may know this id by the time it answers.
            return DeletableTopicResult(
                name=None, topic_id=asked.topic_id, error_code=ErrorCode.unknown_topic_id, error_message=None
            )
        if name is None:
            return None
        is_secret = asked.topic_id is not None and not rights.may(Operation.DESCRIBE, make_topic_resource(name))
        if not is_secret and rights.may(Operation.DELETE, make_topic_resource(name)):
            return None
        return DeletableTopicResult(
            name=None if is_secret else WireTopicName(name),
            topic_id=asked.topic_id,
            error_code=_REFUSED,
            error_message=None,
        )

    refused = await find_refused_parts(request.topics, why_not)
    return remove_refused_parts(request, "topics", refused, DeleteTopicsResponse, "responses")


def _whole(response: DeleteTopicsResponse | None) -> DeleteTopicsResponse:
    assert response is not None, "the whole request goes on"
    return response


async def create_partitions(
    request: CreatePartitionsRequest, rights: Rights
) -> Split[CreatePartitionsRequest, CreatePartitionsResponse]:
    """Split by the right to alter."""
    named = Counter(topic.name for topic in request.topics)

    def why_not(asked: CreatePartitionsTopic) -> CreatePartitionsTopicResult | None:
        if named[asked.name] > 1 or rights.may(Operation.ALTER, make_topic_resource(asked.name)):
            return None
        return CreatePartitionsTopicResult(
            name=asked.name, error_code=_REFUSED, error_message="The topic authorization is failed."
        )

    refused = await find_refused_parts(request.topics, why_not)
    return remove_refused_topics(request, refused, CreatePartitionsResponse)
