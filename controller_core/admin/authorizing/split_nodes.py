"""Splits requests to the controller as a node, by rights: configurations, and the producers of a topic."""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.response import AlterConfigsResourceResponse as ReplacingResult
from kio.schema.alter_configs.v2.response import AlterConfigsResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse, DescribeConfigsResult
from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.describe_producers.v0.response import DescribeProducersResponse, PartitionResponse, TopicResponse
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

from controller_core.admin.cluster.own_configs import AlteredResource
from controller_core.admin.rights import Rights
from controller_core.admin.splitting import Split, find_refused_parts, remove_refused_parts
from controller_core.model.authorization.acls import THE_CLUSTER, Operation, make_topic_resource

_TOPIC: Final = 2
_MESSAGES: Final = {
    ErrorCode.topic_authorization_failed: "Topic authorization failed.",
    ErrorCode.cluster_authorization_failed: "Cluster authorization failed.",
    ErrorCode.invalid_request: "Each resource must appear at most once.",
}


async def describe_configs(
    request: DescribeConfigsRequest, rights: Rights
) -> Split[DescribeConfigsRequest, DescribeConfigsResponse]:
    """Split by a right on the topic, or on the cluster for nodes."""

    def why_not(resource: DescribeConfigsResource) -> DescribeConfigsResult | None:
        error_code = _why_not(resource, rights, Operation.DESCRIBE_CONFIGS)
        if error_code is None:
            return None
        return DescribeConfigsResult(
            error_code=error_code,
            error_message=_MESSAGES[error_code],
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=(),
        )

    refused = await find_refused_parts(request.resources, why_not)
    return remove_refused_parts(request, "resources", refused, DescribeConfigsResponse, "results")


async def alter_configs(
    request: IncrementalAlterConfigsRequest, rights: Rights
) -> Split[IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse]:
    """Split like `describe_configs`.

    Duplicate resources are refused for every caller, as by newer brokers. They are not passed on: older brokers alter
    such a resource, in the name of the controller.
    """
    return await _authorize_alteration(request, rights, AlterConfigsResourceResponse, IncrementalAlterConfigsResponse)


async def replace_configs(
    request: AlterConfigsRequest, rights: Rights
) -> Split[AlterConfigsRequest, AlterConfigsResponse]:
    """Split like `alter_configs`."""
    return await _authorize_alteration(request, rights, ReplacingResult, AlterConfigsResponse)


async def _authorize_alteration(
    request: Any, rights: Rights, result_type: Callable[..., Any], response_type: Callable[..., Any]
) -> Split[Any, Any]:
    named = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)

    def why_not(resource: AlteredResource) -> Any:
        is_duplicate = named[resource.resource_type, resource.resource_name] > 1
        error_code = ErrorCode.invalid_request if is_duplicate else _why_not(resource, rights, Operation.ALTER_CONFIGS)
        if error_code is None:
            return None
        return result_type(
            error_code=error_code,
            error_message=_MESSAGES[error_code],
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )

    refused = await find_refused_parts(request.resources, why_not)
    return remove_refused_parts(request, "resources", refused, response_type, "responses")


async def describe_producers(
    request: DescribeProducersRequest, rights: Rights
) -> Split[DescribeProducersRequest, DescribeProducersResponse]:
    """Split by the right to read the topic."""

    def why_not(asked: TopicRequest) -> TopicResponse | None:
        if rights.may(Operation.READ, make_topic_resource(asked.name)):
            return None
        partitions = tuple(
            PartitionResponse(
                partition_index=index,
                error_code=ErrorCode.topic_authorization_failed,
                error_message=None,
                active_producers=(),
            )
            for index in asked.partition_indexes
        )
        return TopicResponse(name=asked.name, partitions=partitions)

    refused = await find_refused_parts(request.topics, why_not)
    return remove_refused_parts(request, "topics", refused, DescribeProducersResponse, "topics")


def _why_not(
    resource: DescribeConfigsResource | AlteredResource, rights: Rights, operation: Operation
) -> ErrorCode | None:
    if resource.resource_type == _TOPIC:
        is_allowed = rights.may(operation, make_topic_resource(resource.resource_name))
        return None if is_allowed else ErrorCode.topic_authorization_failed
    return None if rights.may(operation, THE_CLUSTER) else ErrorCode.cluster_authorization_failed
