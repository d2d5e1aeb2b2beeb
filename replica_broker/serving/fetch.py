"""Fetch: messages for followers and consumers from partitions that this broker leads.

Requests have topic names up to version 12, and ids since. There are no fetch sessions: every response has session 0, so
each request names all its partitions, as KIP-227 permits. Consumers must ask the leader; followers do not serve them.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v17.request import FetchRequest
from kio.schema.fetch.v17.response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import Records, i32, i64
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.admin.rights import EVERYTHING, Rights
from controller_core.controller.loop.slices import slice_up
from controller_core.model.authorization.acls import THE_CLUSTER, Operation, make_topic_resource
from controller_core.model.ids import NO_EPOCH, BrokerId, LeaderEpoch, PartitionId, TopicId, TopicName, TopicPartition
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.request_limits import RequestLimits
from controller_core.wire.messages import NO_THROTTLE
from replica_broker.membership.node import Node
from replica_broker.replicas.replicas import Replicas
from replica_broker.replicas.requests import CONSUMER, Asked, Fetch, Fetched
from replica_broker.serving.answering import FindRights, find_all_rights

VERSIONS: Final = Versions(FetchRequest, oldest=4)
LIMITS: Final = RequestLimits(max_items=1_000_000)

_MOST_RECORDS_BYTES: Final = 55 * 1024 * 1024
"""Kafka's default of `fetch.max.bytes`, the limit of an answer's records whatever a request allows."""
_FIRST_BY_ID: Final = 13
_NO_SESSION: Final = 0
_READ_COMMITTED: Final = 1


@dataclass(frozen=True, slots=True)
class _Topic:
    """A requested topic, by name or id, and its partitions in order."""

    name: TopicName | None
    topic_id: UUID | None
    partitions: tuple[Any, ...]
    """In the request's version."""


async def on_fetch(
    node: Node,
    listener: str,
    replicas: Replicas,
    request: RequestPayload,
    find_rights: FindRights = find_all_rights,
) -> ResponsePayload:
    """Answer a request of any version.

    Consumers need the right to read each topic. Followers need ClusterAction; without it every partition is refused,
    because their fetches move the high watermark and the ISR.
    """
    asked: Any = request
    version = int(request.__version__)
    if getattr(asked, "session_id", _NO_SESSION) != _NO_SESSION:
        response = _response(ErrorCode.fetch_session_id_not_found, ())
        return VERSIONS.lower(response, version)
    topics = _list_topics(node, asked, version)
    replica_id = _replica_id(asked)
    refused = await _find_refused(topics, replica_id, await find_rights(as_follower=replica_id >= 0))
    allowed = [topic for topic in topics if topic.name not in refused]
    fetched = {} if refused and not allowed else await replicas.fetch(_fetch(asked, allowed))
    return _convert_to_version(node, listener, version, topics, refused, fetched)


async def _find_refused(topics: list[_Topic], replica_id: BrokerId, rights: Rights) -> Set[TopicName | None]:
    """Return the names of the topics that the caller may not fetch; None stands for all topics with unknown ids."""
    if rights is EVERYTHING:
        return frozenset()
    names = {topic.name for topic in topics}
    if replica_id >= 0:
        return frozenset() if rights.may(Operation.CLUSTER_ACTION, THE_CLUSTER) else names
    return {
        name
        async for name in slice_up(names)
        if name is not None and not rights.may(Operation.READ, make_topic_resource(name))
    }


def _list_topics(node: Node, asked: Any, version: int) -> list[_Topic]:
    """Return the topics and partitions of a request, each once, as Kafka does: a repeated one would make the answer a
    multiple of the records."""
    found: dict[object, tuple[_Topic, dict[int, Any]]] = {}
    for each in asked.topics:
        topic = _topic(node, each, version)
        _, partitions = found.setdefault((topic.name, topic.topic_id), (topic, {}))
        partitions.update((partition.partition, partition) for partition in topic.partitions)
    return [replace(topic, partitions=tuple(partitions.values())) for topic, partitions in found.values()]


def _topic(node: Node, topic: Any, version: int) -> _Topic:
    if version < _FIRST_BY_ID:
        return _Topic(TopicName(topic.topic), None, topic.partitions)
    name = None if topic.topic_id is None else node.metadata.topic_named(TopicId(topic.topic_id))
    return _Topic(name, topic.topic_id, topic.partitions)


def _replica_id(asked: Any) -> BrokerId:
    state = getattr(asked, "replica_state", None)
    return BrokerId(getattr(asked, "replica_id", CONSUMER) if state is None else state.replica_id)


def _fetch(asked: Any, topics: Iterable[_Topic]) -> Fetch:
    return Fetch(
        partitions={
            TopicPartition(topic.name, PartitionId(partition.partition)): Asked(
                offset=partition.fetch_offset,
                max_bytes=partition.partition_max_bytes,
                current_leader_epoch=LeaderEpoch(getattr(partition, "current_leader_epoch", NO_EPOCH)),
                last_fetched_epoch=LeaderEpoch(getattr(partition, "last_fetched_epoch", NO_EPOCH)),
                log_start_offset=getattr(partition, "log_start_offset", -1),
                topic_id=None if topic.topic_id is None else TopicId(topic.topic_id),
            )
            for topic in topics
            if topic.name is not None
            for partition in topic.partitions
        },
        replica_id=_replica_id(asked),
        max_wait_ms=int(asked.max_wait.total_seconds() * 1000),
        min_bytes=asked.min_bytes,
        max_bytes=min(asked.max_bytes, _MOST_RECORDS_BYTES),
        isolation_level="read committed" if asked.isolation_level == _READ_COMMITTED else "read uncommitted",
    )


def _convert_to_version(
    node: Node,
    listener: str,
    version: int,
    topics: list[_Topic],
    refused: Set[TopicName | None],
    fetched: Mapping[TopicPartition, Fetched],
) -> ResponsePayload:
    responses = tuple(
        FetchableTopicResponse(
            topic_id=topic.topic_id,
            partitions=tuple(_partitions(topic, fetched, is_refused=topic.name in refused)),
        )
        for topic in topics
    )
    response = replace(_response(ErrorCode.none, responses), node_endpoints=tuple(_leaders(node, listener, responses)))
    lowered: Any = VERSIONS.lower(response, version)
    if version >= _FIRST_BY_ID:
        return response if version == VERSIONS.max else VERSIONS.lower(response, version)
    named = tuple(replace(one, topic=topic.name) for one, topic in zip(lowered.responses, topics, strict=True))
    with_names: ResponsePayload = replace(lowered, responses=named)
    return with_names


def _partitions(
    topic: _Topic, fetched: Mapping[TopicPartition, Fetched], *, is_refused: bool
) -> Iterator[PartitionData]:
    for asked in topic.partitions:
        index = PartitionId(asked.partition)
        if is_refused:
            yield _partition(index, Fetched(error_code=ErrorCode.topic_authorization_failed))
        elif topic.name is None:
            yield _partition(index, Fetched(error_code=ErrorCode.unknown_topic_id))
        else:
            unknown = Fetched(error_code=ErrorCode.unknown_topic_or_partition)
            yield _partition(index, fetched.get(TopicPartition(topic.name, index), unknown))


def _partition(index: PartitionId, fetched: Fetched) -> PartitionData:
    diverging = fetched.diverging_epoch
    return PartitionData(
        partition_index=i32(index),
        error_code=fetched.error_code,
        high_watermark=i64(fetched.high_watermark),
        last_stable_offset=i64(fetched.last_stable_offset),
        log_start_offset=i64(fetched.log_start_offset),
        diverging_epoch=EpochEndOffset()
        if diverging is None
        else EpochEndOffset(epoch=i32(diverging.epoch), end_offset=i64(diverging.end_offset)),
        current_leader=LeaderIdAndEpoch(leader_id=WireBrokerId(fetched.leader), leader_epoch=i32(fetched.leader_epoch)),
        aborted_transactions=None,
        records=Records(fetched.records),
    )


def _leaders(node: Node, listener: str, responses: Iterable[FetchableTopicResponse]) -> Iterator[NodeEndpoint]:
    named = {int(one.current_leader.leader_id) for topic in responses for one in topic.partitions} - {-1}
    for neighbour in node.neighbours(listener) if named else ():
        if neighbour.id in named:
            yield NodeEndpoint(
                node_id=WireBrokerId(neighbour.id), host=neighbour.host, port=i32(neighbour.port), rack=neighbour.rack
            )


def _response(error_code: ErrorCode, responses: tuple[FetchableTopicResponse, ...]) -> FetchResponse:
    return FetchResponse(
        throttle_time=NO_THROTTLE, error_code=error_code, session_id=i32(_NO_SESSION), responses=responses
    )
