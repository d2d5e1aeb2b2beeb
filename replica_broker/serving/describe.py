"""DescribeCluster and DescribeConfigs: the cluster as this broker sees it, and configurations.

Any broker can describe a topic's configuration (`kontroller drain` asks for `min.insync.replicas`), but a broker's only
that broker itself. Values have their sources (KIP-226), because the controller's journal asks for the values of the
broker's file.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol

from kio.schema.describe_cluster.v1 import DescribeClusterRequest, DescribeClusterResponse
from kio.schema.describe_cluster.v1.response import DescribeClusterBroker
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i8, i32

from controller_core.admin.cluster.authorized_operations import NOT_ASKED, operations_on_cluster
from controller_core.admin.rights import EVERYTHING, Rights
from controller_core.model.ids import TopicName
from controller_core.model.topics.topic_configs import TOPIC_CONFIGS, ConfigType
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import NO_THROTTLE
from replica_broker.membership.heeded_configs import OF_BROKERS, TREATMENTS, Heeded
from replica_broker.membership.node import Node

DESCRIBE_CLUSTER: Final = Versions(DescribeClusterRequest, oldest=0)
DESCRIBE_CONFIGS: Final = Versions(DescribeConfigsRequest, oldest=1)

_BROKERS: Final = 1
_TOPIC, _BROKER = 2, 4
_OF_TOPIC, _DYNAMIC_DEFAULT, _STATIC, _DEFAULT = i8(1), i8(3), i8(4), i8(5)
_TYPES: Final = {
    ConfigType.BOOLEAN: i8(1),
    ConfigType.STRING: i8(2),
    ConfigType.INT: i8(3),
    ConfigType.LONG: i8(5),
    ConfigType.DOUBLE: i8(6),
    ConfigType.LIST: i8(7),
}


class DescribedConfigs(Protocol):
    """The configurations that this broker knows."""

    @property
    def own(self) -> Mapping[str, str]:
        """The settings that this process was started with, by Kafka's names."""
        ...

    @property
    def defaults(self) -> Mapping[str, str]:
        """The cluster-wide defaults of all brokers, by the topics' names."""
        ...

    def overrides(self, topic: TopicName) -> Mapping[str, str]:
        """Return the overrides of a topic."""
        ...


def on_describe_cluster(
    node: Node, listener: str, request: DescribeClusterRequest, rights: Rights = EVERYTHING
) -> DescribeClusterResponse:
    """Answer with the nodes that this broker knows, at addresses of the client's listener."""
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.mismatched_endpoint_type,
            error_message="this is a broker: it describes brokers, not KRaft controllers",
            cluster_id="",
            brokers=(),
        )
    controller = node.metadata.controller
    return DescribeClusterResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        cluster_id=node.cluster_id,
        controller_id=WireBrokerId(-1 if controller is None else controller),
        brokers=tuple(
            DescribeClusterBroker(broker_id=WireBrokerId(one.id), host=one.host, port=i32(one.port), rack=one.rack)
            for one in node.neighbours(listener)
        ),
        cluster_authorized_operations=operations_on_cluster(rights)
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )


def on_describe_configs(
    node: Node, configs: DescribedConfigs, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Answer for each resource on its own, and once if it is repeated."""
    results = tuple(_describe(node, configs, resource, request) for resource in dict.fromkeys(request.resources))
    return DescribeConfigsResponse(throttle_time=NO_THROTTLE, results=results)


def _describe(
    node: Node, configs: DescribedConfigs, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    name = resource.resource_name
    if resource.resource_type == _TOPIC:
        topic = TopicName(name)
        if not node.metadata.partitions(topic):
            return _result(resource, ErrorCode.unknown_topic_or_partition, None)
        return _result(resource, ErrorCode.none, None, _describe_topic(configs, topic, resource, request))
    if resource.resource_type != _BROKER:
        return _result(resource, ErrorCode.invalid_request, "this broker describes only topics and itself")
    if name != str(node.id):
        return _result(resource, ErrorCode.invalid_request, f"this is broker {node.id}: ask broker {name} itself")
    return _result(resource, ErrorCode.none, None, _describe_broker(configs, resource, request))


def _describe_topic(
    configs: DescribedConfigs, topic: TopicName, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> Iterator[DescribeConfigsResourceResult]:
    overrides = configs.overrides(topic)
    for name, known in TOPIC_CONFIGS.items():
        if _is_wanted(resource, name):
            own = configs.own.get(OF_BROKERS.get(name, ""), known.default)
            said = [
                (overrides.get(name), _OF_TOPIC),
                (configs.defaults.get(name), _DYNAMIC_DEFAULT),
                (own if own != known.default else None, _STATIC),
                (known.default, _DEFAULT),
            ]
            documentation = _not_done(name) if request.include_documentation else None
            synonyms = request.include_synonyms
            yield _entry(name, said, _TYPES[known.type], synonyms, read_only=False, documentation=documentation)


def _describe_broker(
    configs: DescribedConfigs, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> Iterator[DescribeConfigsResourceResult]:
    for name, value in configs.own.items():
        if _is_wanted(resource, name):
            yield _entry(name, [(value, _STATIC)], i8(2), request.include_synonyms, read_only=True)


def _not_done(name: str) -> str | None:
    """Return a remark about a configuration that this broker does not apply, or None."""
    treatment = TREATMENTS[name]
    return None if isinstance(treatment, Heeded) else f"This broker does not apply it: {treatment.why}."


def _entry(
    name: str,
    said: list[tuple[str | None, i8]],
    kind: i8,
    synonyms: bool,
    *,
    read_only: bool,
    documentation: str | None = None,
) -> DescribeConfigsResourceResult:
    there = [(value, source) for value, source in said if value is not None]
    value, source = there[0]
    return DescribeConfigsResourceResult(
        name=name,
        value=value,
        read_only=read_only,
        config_source=source,
        is_sensitive=False,
        synonyms=tuple(DescribeConfigsSynonym(name=name, value=value, source=source) for value, source in there)
        if synonyms
        else (),
        config_type=kind,
        documentation=documentation,
    )


def _is_wanted(resource: DescribeConfigsResource, name: str) -> bool:
    return not resource.configuration_keys or name in resource.configuration_keys


def _result(
    resource: DescribeConfigsResource,
    error_code: ErrorCode,
    why: str | None,
    entries: Iterable[DescribeConfigsResourceResult] = (),
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error_code,
        error_message=why,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(entries),
    )
