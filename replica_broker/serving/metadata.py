"""Metadata: brokers, topics and partitions, from what the controller sent (`MetadataCache`).

A request never creates a topic. An unknown one gets UNKNOWN_TOPIC_OR_PARTITION, as from a stock broker with
`auto.create.topics.enable=false`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v10 import MetadataResponse as MetadataResponse10
from kio.schema.metadata.v12 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v12.response import MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.admin.cluster.authorized_operations import NOT_ASKED, ON_CLUSTER, ON_TOPIC
from controller_core.model.ids import NO_LEADER, BrokerId, TopicId, TopicName
from controller_core.model.topics import topic_names
from controller_core.wire.codecs.versions import Versions, convert
from controller_core.wire.messages import NO_THROTTLE, UpdateMetadataPartitionState
from replica_broker.membership.node import Node

VERSIONS: Final = Versions(MetadataRequest, oldest=0)

_FIRST_WITH_LISTENER_ERROR: Final = 6
_LAST_WITH_CLUSTER_OPERATIONS: Final = 10
_FIRST_BY_ID: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """The known metadata, for one request."""

    node: Node
    version: int
    reachable: frozenset[BrokerId]
    operations: i32


def on_metadata(node: Node, listener: str, request: RequestPayload) -> ResponsePayload:
    """Answer a request of any version, with addresses of the client's listener."""
    asked: Any = request
    version = int(request.__version__)
    neighbours = list(node.neighbours(listener))
    wants_operations = getattr(asked, "include_topic_authorized_operations", False)
    view = _View(
        node=node,
        version=version,
        reachable=frozenset(neighbour.id for neighbour in neighbours),
        operations=ON_TOPIC if wants_operations else NOT_ASKED,
    )
    controller = node.metadata.controller
    response = MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=tuple(
            MetadataResponseBroker(node_id=WireBrokerId(one.id), host=one.host, port=i32(one.port), rack=one.rack)
            for one in neighbours
        ),
        cluster_id=node.cluster_id,
        controller_id=WireBrokerId(-1 if controller is None else controller),
        topics=tuple(_topics(view, asked)),
    )
    return _convert_to_version(response, version, wants=getattr(asked, "include_cluster_authorized_operations", False))


def _convert_to_version(response: MetadataResponse, version: int, *, wants: bool) -> ResponsePayload:
    """Convert the response to a version.

    Only versions in the middle have the cluster's operations, so they are added there.
    """
    if version > _LAST_WITH_CLUSTER_OPERATIONS:
        return VERSIONS.lower(response, version)
    middle = convert(response, MetadataResponse10)
    operations = ON_CLUSTER if wants else NOT_ASKED
    return convert(replace(middle, cluster_authorized_operations=operations), VERSIONS.response_type(version))


def _topics(view: _View, asked: Any) -> Iterable[MetadataResponseTopic]:
    if asked.topics is None or (view.version == 0 and not asked.topics):
        return [_describe_known(view, name) for name in list(view.node.metadata.topics)]
    topics: Sequence[Any] = asked.topics
    ids = [getattr(topic, "topic_id", None) for topic in topics]
    if view.version < _FIRST_BY_ID and (any(ids) or any(topic.name is None for topic in topics)):
        return [_make_failed_topic(ErrorCode.invalid_request, topic.name or "", None) for topic in topics]
    if any(ids):
        return [_find_by_id(view, TopicId(topic_id)) for topic_id in dict.fromkeys(ids) if topic_id is not None]
    return [_find_by_name(view, name) for name in dict.fromkeys(TopicName(topic.name or "") for topic in topics)]


def _find_by_id(view: _View, topic_id: TopicId) -> MetadataResponseTopic:
    name = view.node.metadata.topic_named(topic_id)
    return (
        _make_failed_topic(ErrorCode.unknown_topic_id, None, topic_id) if name is None else _describe_known(view, name)
    )


def _find_by_name(view: _View, name: TopicName) -> MetadataResponseTopic:
    if view.node.metadata.partitions(name):
        return _describe_known(view, name)
    illegal = topic_names.explain_illegal(name)
    error_code = ErrorCode.invalid_topic_exception if illegal else ErrorCode.unknown_topic_or_partition
    return replace(_make_failed_topic(error_code, name, None), topic_authorized_operations=view.operations)


def _describe_known(view: _View, name: TopicName) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.none,
        name=WireTopicName(name),
        topic_id=view.node.metadata.topic_id(name),
        is_internal=name in topic_names.INTERNAL_TOPICS,
        partitions=tuple(_partition(view, state) for _, state in sorted(view.node.metadata.partitions(name).items())),
        topic_authorized_operations=view.operations,
    )


def _partition(view: _View, state: UpdateMetadataPartitionState) -> MetadataResponsePartition:
    """Return a partition. A leader without the listener counts as none.

    Version 0 drops replicas without the listener and reports an error.
    """
    replicas, isr = state.replicas, state.isr
    if view.version == 0:
        replicas, isr = (tuple(one for one in brokers if one in view.reachable) for brokers in (replicas, isr))
    if state.leader in view.reachable:
        is_cut = (replicas, isr) != (state.replicas, state.isr)
        leader, error_code = state.leader, ErrorCode.replica_not_available if is_cut else ErrorCode.none
    else:
        names_listener = view.version >= _FIRST_WITH_LISTENER_ERROR and state.leader in view.node.metadata.brokers
        leader = NO_LEADER
        error_code = ErrorCode.listener_not_found if names_listener else ErrorCode.leader_not_available
    return MetadataResponsePartition(
        error_code=error_code,
        partition_index=i32(state.partition_index),
        leader_id=WireBrokerId(leader),
        leader_epoch=i32(state.leader_epoch),
        replica_nodes=_ids(replicas),
        isr_nodes=_ids(isr),
        offline_replicas=_ids(state.offline_replicas),
    )


def _make_failed_topic(error_code: ErrorCode, name: str | None, topic_id: TopicId | None) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error_code,
        name=None if name is None else WireTopicName(name),
        topic_id=topic_id,
        is_internal=name in topic_names.INTERNAL_TOPICS,
        partitions=(),
    )


def _ids(brokers: Iterable[BrokerId]) -> tuple[WireBrokerId, ...]:
    return tuple(WireBrokerId(broker) for broker in brokers)
