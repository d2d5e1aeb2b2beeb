"""Builds the answer to a change request from the results of its parts."""

from collections.abc import Callable
from typing import Any, TypeAlias
from uuid import UUID

from kio.schema.alter_partition_reassignments.v0 import AlterPartitionReassignmentsResponse
from kio.schema.alter_partition_reassignments.v0.response import (
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kio.schema.create_partitions.v1 import CreatePartitionsResponse
from kio.schema.create_partitions.v1.response import CreatePartitionsTopicResult
from kio.schema.create_topics.v7 import CreateTopicsResponse
from kio.schema.create_topics.v7.response import CreatableTopicResult
from kio.schema.delete_topics.v6 import DeleteTopicsResponse
from kio.schema.delete_topics.v6.response import DeletableTopicResult
from kio.schema.elect_leaders.v2 import ElectLeadersResponse
from kio.schema.elect_leaders.v2.response import PartitionResult, ReplicaElectionResult
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.response import AlterConfigsResourceResponse
from kio.schema.update_features.v1 import UpdateFeaturesResponse
from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.static.protocol import RequestPayload, ResponsePayload

from simulation.kraft.questions import NO_TIME

Judge: TypeAlias = Callable[[Any, str], ErrorCode | UUID]
"""Applies one part of a request to a topic of this name.

Returns the error code, or the id of a created topic.
"""


def answer_to(request: RequestPayload, judge: Judge) -> ResponsePayload:
    """Judge each part in order and return the answer."""
    return _ANSWERS[type(request).__name__](request, judge)


def _create_topics(request: Any, judge: Judge) -> ResponsePayload:
    results = []
    for each in request.topics:
        found = judge(each, each.name)
        code, topic_id = (found, None) if isinstance(found, ErrorCode) else (ErrorCode.none, found)
        results.append(
            CreatableTopicResult(name=each.name, topic_id=topic_id, error_code=code, error_message=None, configs=None)
        )
    return CreateTopicsResponse(throttle_time=NO_TIME, topics=tuple(results))


def _create_partitions(request: Any, judge: Judge) -> ResponsePayload:
    results = (
        CreatePartitionsTopicResult(name=each.name, error_code=_code(judge(each, each.name)), error_message=None)
        for each in request.topics
    )
    return CreatePartitionsResponse(throttle_time=NO_TIME, results=tuple(results))


def _alter_configs(request: Any, judge: Judge) -> ResponsePayload:
    results = (
        AlterConfigsResourceResponse(
            error_code=_code(judge(each, each.resource_name)),
            error_message=None,
            resource_type=each.resource_type,
            resource_name=each.resource_name,
        )
        for each in request.resources
    )
    return IncrementalAlterConfigsResponse(throttle_time=NO_TIME, responses=tuple(results))


def _delete_topics(request: Any, judge: Judge) -> ResponsePayload:
    results = (
        DeletableTopicResult(
            name=each.name, topic_id=each.topic_id, error_code=_code(judge(each, each.name or "")), error_message=None
        )
        for each in request.topics
    )
    return DeleteTopicsResponse(throttle_time=NO_TIME, responses=tuple(results))


def _alter_reassignments(request: Any, judge: Judge) -> ResponsePayload:
    results = (
        ReassignableTopicResponse(
            name=topic.name,
            partitions=tuple(
                ReassignablePartitionResponse(
                    partition_index=each.partition_index, error_code=_code(judge(each, topic.name)), error_message=None
                )
                for each in topic.partitions
            ),
        )
        for topic in request.topics
    )
    return AlterPartitionReassignmentsResponse(
        throttle_time=NO_TIME, error_code=ErrorCode.none, error_message=None, responses=tuple(results)
    )


def _elect_leaders(request: Any, judge: Judge) -> ResponsePayload:
    results = (
        ReplicaElectionResult(
            topic=topic.topic,
            partition_result=tuple(
                PartitionResult(partition_id=each, error_code=_code(judge(each, topic.topic)), error_message=None)
                for each in topic.partitions
            ),
        )
        for topic in request.topic_partitions or ()
    )
    return ElectLeadersResponse(
        throttle_time=NO_TIME, error_code=ErrorCode.none, replica_election_results=tuple(results)
    )


def _update_features(request: Any, judge: Judge) -> ResponsePayload:
    """Refuse the whole request if a part is refused."""
    codes = [_code(judge(each, each.feature)) for each in request.feature_updates]
    refused = next((code for code in codes if code is not ErrorCode.none), ErrorCode.none)
    results = (
        UpdatableFeatureResult(feature=each.feature, error_code=ErrorCode.none, error_message=None)
        for each in request.feature_updates
    )
    return UpdateFeaturesResponse(
        throttle_time=NO_TIME,
        error_code=refused,
        error_message=None,
        results=tuple(results) if refused is ErrorCode.none else (),
    )


def _code(found: ErrorCode | UUID) -> ErrorCode:
    return found if isinstance(found, ErrorCode) else ErrorCode.none


_ANSWERS = {
    "CreateTopicsRequest": _create_topics,
    "CreatePartitionsRequest": _create_partitions,
    "IncrementalAlterConfigsRequest": _alter_configs,
    "DeleteTopicsRequest": _delete_topics,
    "AlterPartitionReassignmentsRequest": _alter_reassignments,
    "ElectLeadersRequest": _elect_leaders,
    "UpdateFeaturesRequest": _update_features,
}
