"""Answers to requests that each broker answers for itself. The controller has no logs, groups or transactions.

Tools send them to all brokers in Metadata, which include the controller, and combine the answers: kafka-log-dirs,
kafka-transactions, kafka-consumer-groups. Or their users name one node, so the answer of another would be wrong.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kio.schema.alter_replica_log_dirs.v2.request import AlterReplicaLogDirsRequest
from kio.schema.alter_replica_log_dirs.v2.response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kio.schema.describe_log_dirs.v4.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResponse, DescribeLogDirsResult
from kio.schema.describe_producers.v0.request import DescribeProducersRequest
from kio.schema.describe_producers.v0.response import DescribeProducersResponse, PartitionResponse, TopicResponse
from kio.schema.errors import ErrorCode
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_groups.v5.response import ListGroupsResponse
from kio.schema.list_transactions.v1.request import ListTransactionsRequest
from kio.schema.list_transactions.v1.response import ListTransactionsResponse
from kio.static.protocol import ResponsePayload

from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import NO_THROTTLE

NO_LOG_DIR: Final = "none"


def no_log_dirs(_: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Return one empty directory. Java's admin client takes an answer without directories for a lack of rights."""
    return DescribeLogDirsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        results=(DescribeLogDirsResult(error_code=ErrorCode.none, log_dir=NO_LOG_DIR, topics=()),),
    )


def no_groups(_: ListGroupsRequest) -> ListGroupsResponse:
    return ListGroupsResponse(throttle_time=NO_THROTTLE, error_code=ErrorCode.none, groups=())


def no_transactions(_: ListTransactionsRequest) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        throttle_time=NO_THROTTLE, error_code=ErrorCode.none, unknown_state_filters=(), transaction_states=()
    )


def no_such_log_dir(request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    """Return LOG_DIR_NOT_FOUND for each replica, as a broker does for a directory that it does not have."""
    return no_log_dir_for(request, ErrorCode.log_dir_not_found)


def no_log_dir_for(request: AlterReplicaLogDirsRequest, error_code: ErrorCode) -> AlterReplicaLogDirsResponse:
    """Return one error for each replica."""
    topics = [topic for directory in request.dirs for topic in directory.topics]
    return AlterReplicaLogDirsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=tuple(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error_code)
                    for index in topic.partitions
                ),
            )
            for topic in topics
        ),
    )


def leads_nothing(request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Return NOT_LEADER_OR_FOLLOWER for each partition, as a broker without its replica does."""
    return DescribeProducersResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            TopicResponse(
                name=topic.name,
                partitions=tuple(
                    PartitionResponse(
                        partition_index=index,
                        error_code=ErrorCode.not_leader_or_follower,
                        error_message=None,
                        active_producers=(),
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in request.topics
        ),
    )


def _log_dirs_refused(_: DescribeLogDirsRequest, error_code: ErrorCode) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(throttle_time=NO_THROTTLE, error_code=error_code, results=())


Answers = Mapping[Versions[Any], Callable[[Any], ResponsePayload]]

ANSWERS: Final[Answers] = {
    Versions(ListGroupsRequest, oldest=0): no_groups,
    Versions(AlterReplicaLogDirsRequest, oldest=1): no_such_log_dir,
    Versions(DescribeLogDirsRequest, oldest=1): no_log_dirs,
    Versions(DescribeProducersRequest): leads_nothing,
    Versions(ListTransactionsRequest, oldest=0): no_transactions,
}
"""Each function takes a request of its newest version."""

REFUSALS: Final[Mapping[int, Callable[[Any, ErrorCode], ResponsePayload]]] = {
    AlterReplicaLogDirsRequest.__api_key__: no_log_dir_for,
    DescribeLogDirsRequest.__api_key__: _log_dirs_refused,
}
"""The refusals of the two requests that need a right on the cluster, by API key."""
