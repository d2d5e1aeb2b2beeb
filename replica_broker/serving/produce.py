"""Produce: appends messages to partitions that this broker leads.

Partitions succeed or fail on their own, each when it has the requested acknowledgements. Only offsets wait for them:
records leave the memory when they are in the log, however long the client's timeout is. With acks=0 there is no
response: an error closes the connection, as in Kafka, so that the client looks for the leader again.

Stock brokers coordinate transactions. This broker could not abort a transactional message, so it refuses it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.produce.v11.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v11.response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import TZAware, i32, i64

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.request_limits import RequestLimits
from controller_core.wire.listener.owned_api import NoAnswerNow, Pending
from replica_broker.log.appending import Appended, require_one_batch
from replica_broker.log.errors import LogError
from replica_broker.membership.node import Node
from replica_broker.replicas.errors import ReplicaRefused
from replica_broker.replicas.replicas import Replicas

VERSIONS: Final = Versions(ProduceRequest, oldest=3)
LIMITS: Final = RequestLimits(max_bytes=(1 << 31) - 1)
"""The listener has a limit for the sum of its requests."""

NO_ACKS: Final = 0
_ACKS: Final = (-1, NO_ACKS, 1)
_WAIT_BYTES: Final = 4 * 1024
"""Memory of the wait for one partition's followers, about."""
_Wait = Callable[[], Awaitable[PartitionProduceResponse]]
_NO_TRANSACTIONS: Final = "this broker does not support transactions: move the partition's leadership to a stock broker"
_NOT_TOLD: Final = "no controller has sent this broker its leaderships yet"


async def on_produce(
    node: Node, listener: str, replicas: Replicas, request: ProduceRequest
) -> Pending[ProduceResponse] | None:
    """Append to each partition. Return the response, which waits for the `acks`, or None if none is wanted.

    Raises `NoAnswerNow` for an error without a response.
    """
    topics = [
        (topic.name, [_append(node, replicas, request, topic, partition) for partition in topic.partition_data])
        for topic in request.topic_data
    ]
    finish = partial(_wait_for_all, node, listener, topics)
    if request.acks == NO_ACKS:
        for answer in (one for topic in (await finish()).responses for one in topic.partition_responses):
            if answer.error_code is not ErrorCode.none:
                raise NoAnswerNow(f"a message without acks was refused: {answer.error_code.name}")
        return None
    return Pending(finish=finish, size_bytes=_WAIT_BYTES * sum(len(waits) for _, waits in topics))


async def _wait_for_all(node: Node, listener: str, topics: list[tuple[WireTopicName, list[_Wait]]]) -> ProduceResponse:
    answers = iter(await asyncio.gather(*(wait() for _, waits in topics for wait in waits)))
    responses = tuple(
        TopicProduceResponse(name=name, partition_responses=tuple(next(answers) for _ in waits))
        for name, waits in topics
    )
    return ProduceResponse(responses=responses, node_endpoints=tuple(_leaders(node, listener, responses)))


def _append(
    node: Node, replicas: Replicas, request: ProduceRequest, topic: TopicProduceData, data: PartitionProduceData
) -> _Wait:
    """Append to a partition. Return the function that waits for the `acks`, which does not refer to the request."""
    where = TopicPartition(TopicName(topic.name), PartitionId(data.index))
    if request.acks not in _ACKS:
        return partial(_refuse, where, ErrorCode.invalid_required_acks, None)
    if request.transactional_id is not None:
        return partial(_refuse, where, ErrorCode.invalid_request, _NO_TRANSACTIONS)
    if not node.metadata.is_filled:
        return partial(_refuse, where, ErrorCode.not_leader_or_follower, _NOT_TOLD)
    timeout_ms = int(request.timeout.total_seconds() * 1000)
    records = data.records or b""
    try:
        require_one_batch(records)
        wait = replicas.append(where, records, acks=int(request.acks), timeout_ms=timeout_ms)
    except (ReplicaRefused, LogError) as error:
        return partial(_refuse, where, error.error_code, str(error), _leader(node, where, error.error_code))
    return partial(_wait_for_acks, node, replicas, where, wait)


async def _wait_for_acks(
    node: Node, replicas: Replicas, where: TopicPartition, wait: Callable[[], Awaitable[Appended]]
) -> PartitionProduceResponse:
    try:
        appended = await wait()
    except (ReplicaRefused, LogError) as error:
        return await _refuse(where, error.error_code, str(error), _leader(node, where, error.error_code))
    hosted = replicas.hosted.get(where)
    return PartitionProduceResponse(
        index=i32(where.partition),
        error_code=ErrorCode.none,
        base_offset=i64(appended.first_offset),
        log_append_time=_time(appended.log_append_time_ms),
        log_start_offset=i64(-1 if hosted is None else hosted.log.log_start_offset),
        record_errors=(),
    )


async def _refuse(
    where: TopicPartition, error_code: ErrorCode, why: str | None, leader: LeaderIdAndEpoch | None = None
) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=i32(where.partition),
        error_code=error_code,
        base_offset=i64(-1),
        record_errors=(),
        error_message=why,
        current_leader=leader or LeaderIdAndEpoch(),
    )


def _leader(node: Node, where: TopicPartition, error_code: ErrorCode) -> LeaderIdAndEpoch | None:
    """Return the other leader, which saves the client a request (KIP-951)."""
    known = node.metadata.partition(where)
    if error_code is not ErrorCode.not_leader_or_follower or known is None or known.leader == node.id:
        return None
    return LeaderIdAndEpoch(leader_id=WireBrokerId(known.leader), leader_epoch=i32(known.leader_epoch))


def _leaders(node: Node, listener: str, responses: Iterable[TopicProduceResponse]) -> Iterable[NodeEndpoint]:
    named = {int(one.current_leader.leader_id) for topic in responses for one in topic.partition_responses}
    for neighbour in node.neighbours(listener):
        if neighbour.id in named:
            yield NodeEndpoint(
                node_id=WireBrokerId(neighbour.id), host=neighbour.host, port=i32(neighbour.port), rack=neighbour.rack
            )


def _time(time_ms: int) -> TZAware | None:
    return None if time_ms < 0 else TZAware.parse(datetime.fromtimestamp(time_ms / 1000, UTC))
