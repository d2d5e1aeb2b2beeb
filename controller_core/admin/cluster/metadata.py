"""Metadata: the locations of partitions, as Kafka's ZooKeeper-mode brokers answer it in each version.

A topic exists here as for brokers: from the state of its first partition until its deletion begins. Some requests are
left to a broker: those for a missing topic that may be created automatically (only brokers know that setting), and
those for so many partitions that the answer would keep the controller busy. If no broker answers, the controller does,
in slices: each topic is shown as it is at that moment. A request that may create topics is left to a broker only for a
caller who may create them, because the broker takes the controller for the caller.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from controller_core.admin.cluster.cluster_view import ClusterView
from controller_core.controller.loop.slices import SLICE, slice_up
from controller_core.model.authorization.acls import Operation, make_topic_resource
from controller_core.model.ids import NO_LEADER, BrokerId, TopicId, TopicName, TopicPartition
from controller_core.model.topics import topic_names
from controller_core.wire.codecs.versions import Versions, convert
from controller_core.wire.listener.owned_api import AskBroker
from controller_core.wire.listener.workers import Lane, run_in_thread
from controller_core.wire.messages import NO_THROTTLE

VERSIONS: Final = Versions(MetadataRequest, oldest=0)

MOST_PARTITIONS: Final = 2_000
"""Larger answers are left to a broker, and so are requests for more topics."""
CREATE_TOPICS: Final = 19
"""The API whose right creates a topic automatically, too."""

_FIRST_WITH_LISTENER_ERROR: Final = 6
_LAST_WITH_CLUSTER_OPERATIONS: Final = 10
_FIRST_BY_ID: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The content of a request in any version. `names` and `ids` are both None if it asks for all topics."""

    version: int
    names: Sequence[TopicName] | None
    ids: Sequence[TopicId] | None
    may_create: bool
    wants_topic_operations: bool
    wants_cluster_operations: bool

    @property
    def is_all(self) -> bool:
        return self.names is None and self.ids is None


async def on_metadata(view: ClusterView, request: RequestPayload) -> ResponsePayload | AskBroker:
    """Answer a request of any version."""
    asked = _parse_request(request)
    if isinstance(asked, ErrorCode):
        return _refusal(request, asked)
    judged_as = CREATE_TOPICS if asked.may_create else None
    if not view.state.is_loaded:
        return AskBroker(judged_as=judged_as)

    async def answer() -> ResponsePayload:
        return await _response(view, asked, *_find_topics(view, asked))

    if asked.is_all:
        return AskBroker(otherwise=answer) if len(view.state.states) > MOST_PARTITIONS else await answer()
    if len(asked.names or asked.ids or ()) > MOST_PARTITIONS:
        return AskBroker(otherwise=answer, judged_as=judged_as)
    names, _ = _find_topics(view, asked)
    if asked.may_create and any(not _is_known(view, name) and not topic_names.explain_illegal(name) for name in names):
        return AskBroker(otherwise=answer, judged_as=judged_as)
    return (
        AskBroker(otherwise=answer, judged_as=judged_as)
        if sum(_partitions(view, name) for name in names) > MOST_PARTITIONS
        else await answer()
    )


# The request


def _parse_request(request: Any) -> _Asked | ErrorCode:
    """Parse a request. Return the error of the whole request if its version does not support its content."""
    version = int(request.__version__)
    is_all = request.topics is None or (version == 0 and not request.topics)
    topics = () if is_all else request.topics
    ids = [topic_id for topic in topics if (topic_id := getattr(topic, "topic_id", None)) is not None]
    names = [topic.name for topic in topics]
    if version < _FIRST_BY_ID and (ids or None in names):
        return ErrorCode.invalid_request
    if not ids and None in names:
        return ErrorCode.unknown_server_error  # Kafka fails on a topic with neither name nor id
    return _Asked(
        version=version,
        names=None if is_all or ids else list(dict.fromkeys(names)),
        ids=list(dict.fromkeys(ids)) or None,
        may_create=not is_all and not ids and getattr(request, "allow_auto_topic_creation", True),
        wants_topic_operations=getattr(request, "include_topic_authorized_operations", False),
        wants_cluster_operations=getattr(request, "include_cluster_authorized_operations", False),
    )


def _find_topics(view: ClusterView, asked: _Asked) -> tuple[Sequence[TopicName], Sequence[TopicId]]:
    """Return the names of the requested topics, known or not, and the requested ids of unknown topics."""
    if asked.ids is None:
        return asked.names if asked.names is not None else list(view.state.topics), ()
    names: list[TopicName] = []
    unknown: list[TopicId] = []
    for topic_id in asked.ids:
        name = view.state.find_topic_name(topic_id)
        if name is not None and _is_known(view, name):
            names.append(name)
        else:
            unknown.append(topic_id)
    return names, unknown


def _may_know(view: ClusterView, asked: _Asked, name: TopicName) -> bool:
    return view.rights.may(Operation.DESCRIBE, make_topic_resource(name), is_wanted=not asked.is_all)


def _is_known(view: ClusterView, name: TopicName) -> bool:
    deletion = view.state.deletions.get(name)
    is_going = deletion is not None and deletion.started
    return not is_going and any(partition in view.state.states for partition in view.state.list_partitions_of(name))


def _partitions(view: ClusterView, name: TopicName) -> int:
    topic = view.state.topics.get(name)
    return 0 if topic is None else len(topic.partitions)


# The answer


async def _response(
    view: ClusterView, asked: _Asked, names: Iterable[TopicName], unknown_ids: Iterable[TopicId]
) -> ResponsePayload:
    nodes = list(view.nodes())
    reachable = {node.id for node in nodes}
    topics = [
        await _topic(view, asked, name, reachable) if _may_know(view, asked, name) else _secret(view, asked, name)
        async for name in slice_up(names, lambda name: 1 + _partitions(view, name))
        if not asked.is_all or (_is_known(view, name) and _may_know(view, asked, name))
    ]
    response = MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=tuple(
            MetadataResponseBroker(node_id=WireBrokerId(node.id), host=node.host, port=i32(node.port), rack=node.rack)
            for node in nodes
        ),
        cluster_id=view.cluster_id,
        controller_id=WireBrokerId(view.controller.id),
        topics=(*(_make_failed_topic(ErrorCode.unknown_topic_id, None, topic_id) for topic_id in unknown_ids), *topics),
    )
    operations = operations_on_cluster(view.rights) if asked.wants_cluster_operations else NOT_ASKED
    lowered = partial(_convert_to_version, response, asked.version, operations)
    is_large = sum(len(topic.partitions) for topic in topics) > SLICE
    return await run_in_thread(Lane.CLIENTS, lowered) if is_large else lowered()


def _convert_to_version(response: MetadataResponse, version: int, operations: i32 = NOT_ASKED) -> ResponsePayload:
    """Convert the answer. Only intermediate versions have the operations on the cluster, so they are added on the way
    down."""
    if version > _LAST_WITH_CLUSTER_OPERATIONS:
        return VERSIONS.lower(response, version)
    middle = replace(convert(response, MetadataResponse10), cluster_authorized_operations=operations)
    return convert(middle, VERSIONS.response_type(version))


async def _topic(view: ClusterView, asked: _Asked, name: TopicName, reachable: set[BrokerId]) -> MetadataResponseTopic:
    operations = operations_on(make_topic_resource(name), view.rights) if asked.wants_topic_operations else NOT_ASKED
    if not _is_known(view, name):
        illegal = topic_names.explain_illegal(name)
        error_code = ErrorCode.invalid_topic_exception if illegal else ErrorCode.unknown_topic_or_partition
        return replace(_make_failed_topic(error_code, name, None), topic_authorized_operations=operations)
    topic_id = view.state.topics[name].topic_id
    partitions = [
        _partition(view, asked.version, partition, reachable)
        async for partition in slice_up(view.state.list_partitions_of(name))
        if partition in view.state.states
    ]
    return MetadataResponseTopic(
        error_code=ErrorCode.none,
        name=WireTopicName(name),
        topic_id=topic_id,
        is_internal=name in topic_names.INTERNAL_TOPICS,
        partitions=tuple(partitions),
        topic_authorized_operations=operations,
    )


def _secret(view: ClusterView, asked: _Asked, name: TopicName) -> MetadataResponseTopic:
    """Return an unauthorized topic. It shows only the name or id that the request used."""
    of_id = view.state.topics.get(name) if asked.ids is not None else None
    known = (name, None) if asked.ids is None else (None, of_id and of_id.topic_id)
    return replace(_make_failed_topic(ErrorCode.topic_authorization_failed, *known), is_internal=False)


def _partition(
    view: ClusterView, version: int, partition: TopicPartition, reachable: set[BrokerId]
) -> MetadataResponsePartition:
    """Return a partition. A leader without the listener counts as no leader. Version 0 omits such replicas, with an
    error code."""
    leadership = view.state.states[partition].leader_and_isr
    replicas = view.state.assignment(partition).replicas
    shown, shown_isr = replicas, leadership.isr
    if version == 0:
        shown, shown_isr = (tuple(b for b in brokers if b in reachable) for brokers in (replicas, leadership.isr))
    if leadership.leader in reachable:
        is_cut = (shown, shown_isr) != (replicas, leadership.isr)
        leader, error_code = leadership.leader, ErrorCode.replica_not_available if is_cut else ErrorCode.none
    else:
        names_listener = version >= _FIRST_WITH_LISTENER_ERROR and leadership.leader in view.state.brokers
        leader = NO_LEADER
        error_code = ErrorCode.listener_not_found if names_listener else ErrorCode.leader_not_available
    return MetadataResponsePartition(
        error_code=error_code,
        partition_index=i32(partition.partition),
        leader_id=WireBrokerId(leader),
        leader_epoch=i32(leadership.leader_epoch),
        replica_nodes=_ids(shown),
        isr_nodes=_ids(shown_isr),
        offline_replicas=_ids(b for b in replicas if not view.state.is_served_by(partition, b)),
    )


def _make_failed_topic(error_code: ErrorCode, name: str | None, topic_id: TopicId | None) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error_code,
        name=None if name is None else WireTopicName(name),
        topic_id=topic_id,
        is_internal=name in topic_names.INTERNAL_TOPICS,
        partitions=(),
    )


def _refusal(request: Any, error_code: ErrorCode) -> ResponsePayload:
    """Return the answer that refuses every requested topic."""
    topics = tuple(
        replace(_make_failed_topic(error_code, topic.name or "", topic.topic_id), is_internal=False)
        for topic in request.topics
    )
    return _convert_to_version(
        MetadataResponse(throttle_time=NO_THROTTLE, brokers=(), topics=topics), int(request.__version__)
    )


def _ids(brokers: Iterable[BrokerId]) -> tuple[WireBrokerId, ...]:
    return tuple(WireBrokerId(broker) for broker in brokers)
