"""Metadata: brokers, topics and partitions, from what the controller sent (`MetadataCache`).

A request never creates a topic. An unknown one gets UNKNOWN_TOPIC_OR_PARTITION, as from a stock broker with
`auto.create.topics.enable=false`.
"""

from collections.abc import Iterable, Sequence, Set
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

from controller_core.admin.cluster.authorized_operations import NOT_ASKED, operations_on, operations_on_cluster
from controller_core.admin.rights import EVERYTHING, Rights
from controller_core.controller.loop.slices import slice_up
from controller_core.model.authorization.acls import Operation, make_topic_resource
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
    rights: Rights
    wants_operations: bool

    def list_operations(self, name: TopicName) -> i32:
        """Return the operations that the client may do on a topic, if it asks for them."""
        return operations_on(make_topic_resource(name), self.rights) if self.wants_operations else NOT_ASKED


async def on_metadata(
    node: Node, listener: str, request: RequestPayload, rights: Rights = EVERYTHING
) -> ResponsePayload:
    """Answer a request of any version, with addresses of the client's listener.

    Topics that the client may not describe are left out if it asks for all, and get TOPIC_AUTHORIZATION_FAILED if it
    names them, whether they exist or not.
    """
    asked: Any = request
    version = int(request.__version__)
    neighbours = list(node.neighbours(listener))
    wants_operations = getattr(asked, "include_topic_authorized_operations", False)
    view = _View(
        node=node,
        version=version,
        reachable=frozenset(neighbour.id for neighbour in neighbours),
        rights=rights,
        wants_operations=wants_operations,
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
        topics=tuple(await _topics(view, asked)),
    )
    wants_of_cluster = getattr(asked, "include_cluster_authorized_operations", False)
    return _convert_to_version(
        response, version, operations=operations_on_cluster(rights) if wants_of_cluster else NOT_ASKED
    )


def _convert_to_version(response: MetadataResponse, version: int, *, operations: i32) -> ResponsePayload:
    """Convert the response to a version.

    Only versions in the middle have the cluster's operations, so they are added there.
    """
    if version > _LAST_WITH_CLUSTER_OPERATIONS:
        return VERSIONS.lower(response, version)
    middle = convert(response, MetadataResponse10)
    return convert(replace(middle, cluster_authorized_operations=operations), VERSIONS.response_type(version))


async def _topics(view: _View, asked: Any) -> Iterable[MetadataResponseTopic]:
    if asked.topics is None or (view.version == 0 and not asked.topics):
        names = list(view.node.metadata.topics)
        secret = await _find_secret(view, names, is_named=False)
        return [_describe_known(view, name) for name in names if name not in secret]
    topics: Sequence[Any] = asked.topics
    ids = [getattr(topic, "topic_id", None) for topic in topics]
    if view.version < _FIRST_BY_ID and (any(ids) or any(topic.name is None for topic in topics)):
        return [_make_failed_topic(ErrorCode.invalid_request, topic.name or "", None) for topic in topics]
    if any(ids):
        by_id = {TopicId(each): view.node.metadata.topic_named(TopicId(each)) for each in ids if each is not None}
        secret = await _find_secret(view, [name for name in by_id.values() if name is not None])
        return [_find_by_id(view, topic_id, name, secret) for topic_id, name in by_id.items()]
    asked_names = list(dict.fromkeys(TopicName(topic.name or "") for topic in topics))
    secret = await _find_secret(view, asked_names)
    return [_make_secret_topic(name, None) if name in secret else _find_by_name(view, name) for name in asked_names]


async def _find_secret(view: _View, names: list[TopicName], *, is_named: bool = True) -> Set[TopicName]:
    """Return the topics that the client may not describe. `is_named`: it asks for them by name or id."""
    if view.rights is EVERYTHING:
        return frozenset()
    return {
        name
        async for name in slice_up(names)
        if not view.rights.may(Operation.DESCRIBE, make_topic_resource(name), is_wanted=is_named)
    }


def _make_secret_topic(name: TopicName | None, topic_id: TopicId | None) -> MetadataResponseTopic:
    """Return a topic that the client may not describe. It shows only the name or id that the request used."""
    return replace(_make_failed_topic(ErrorCode.topic_authorization_failed, name, topic_id), is_internal=False)


def _find_by_id(
    view: _View, topic_id: TopicId, name: TopicName | None, secret: Set[TopicName]
) -> MetadataResponseTopic:
    if name is None:
        return _make_failed_topic(ErrorCode.unknown_topic_id, None, topic_id)
    return _make_secret_topic(None, topic_id) if name in secret else _describe_known(view, name)


def _find_by_name(view: _View, name: TopicName) -> MetadataResponseTopic:
    if view.node.metadata.partitions(name):
        return _describe_known(view, name)
    illegal = topic_names.explain_illegal(name)
    error_code = ErrorCode.invalid_topic_exception if illegal else ErrorCode.unknown_topic_or_partition
    return replace(_make_failed_topic(error_code, name, None), topic_authorized_operations=view.list_operations(name))


def _describe_known(view: _View, name: TopicName) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.none,
        name=WireTopicName(name),
        topic_id=view.node.metadata.topic_id(name),
        is_internal=name in topic_names.INTERNAL_TOPICS,
        partitions=tuple(_partition(view, state) for _, state in sorted(view.node.metadata.partitions(name).items())),
        topic_authorized_operations=view.list_operations(name),
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
