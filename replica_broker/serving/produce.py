"""Produce: appends messages to partitions that this broker leads.

Partitions succeed or fail on their own, each when it has the requested acknowledgements. With acks=0 there is no
response: an error closes the connection, as in Kafka, so that the client looks for the leader again.

Stock brokers coordinate transactions. This broker could not abort a transactional message, so it refuses it.
"""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
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
from kio.static.primitive import TZAware, i32, i64

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.request_limits import RequestLimits
from controller_core.wire.listener.owned_api import NoAnswerNow
from replica_broker.log.appending import require_one_batch
from replica_broker.log.errors import LogError
from replica_broker.membership.node import Node
from replica_broker.replicas.errors import ReplicaRefused
from replica_broker.replicas.replicas import Replicas

VERSIONS: Final = Versions(ProduceRequest, oldest=3)
LIMITS: Final = RequestLimits(max_bytes=(1 << 31) - 1)
"""The listener has a limit for the sum of its requests."""

NO_ACKS: Final = 0
_ACKS: Final = (-1, NO_ACKS, 1)
_NO_TRANSACTIONS: Final = "this broker does not support transactions: move the partition's leadership to a stock broker"
_NOT_TOLD: Final = "no controller has sent this broker its leaderships yet"


async def on_produce(node: Node, listener: str, replicas: Replicas, request: ProduceRequest) -> ProduceResponse | None:
    """Append to each partition and wait for the `acks`. Return None if no response is wanted.

    Raises `NoAnswerNow` for an error without a response.
    """
    partitions = [(topic, partition) for topic in request.topic_data for partition in topic.partition_data]
    answers = iter(
        await asyncio.gather(*(_append(node, replicas, request, topic, partition) for topic, partition in partitions))
    )
    responses = tuple(
        TopicProduceResponse(name=topic.name, partition_responses=tuple(next(answers) for _ in topic.partition_data))
        for topic in request.topic_data
    )
    if request.acks == NO_ACKS:
        for answer in (one for topic in responses for one in topic.partition_responses):
            if answer.error_code is not ErrorCode.none:
                raise NoAnswerNow(f"a message without acks was refused: {answer.error_code.name}")
        return None
    return ProduceResponse(responses=responses, node_endpoints=tuple(_leaders(node, listener, responses)))


async def _append(
    node: Node, replicas: Replicas, request: ProduceRequest, topic: TopicProduceData, data: PartitionProduceData
) -> PartitionProduceResponse:
    where = TopicPartition(TopicName(topic.name), PartitionId(data.index))
    if request.acks not in _ACKS:
        return _refuse(data, ErrorCode.invalid_required_acks, None)
    if request.transactional_id is not None:
        return _refuse(data, ErrorCode.invalid_request, _NO_TRANSACTIONS)
    if not node.metadata.is_filled:
        return _refuse(data, ErrorCode.not_leader_or_follower, _NOT_TOLD)
    timeout_ms = int(request.timeout.total_seconds() * 1000)
    records = data.records or b""
    try:
        require_one_batch(records)
        appended = await replicas.append(where, records, acks=int(request.acks), timeout_ms=timeout_ms)
    except (ReplicaRefused, LogError) as error:
        return _refuse(data, error.error_code, str(error), _leader(node, where, error.error_code))
    hosted = replicas.hosted.get(where)
    return PartitionProduceResponse(
        index=data.index,
        error_code=ErrorCode.none,
        base_offset=i64(appended.first_offset),
        log_append_time=_time(appended.log_append_time_ms),
        log_start_offset=i64(-1 if hosted is None else hosted.log.log_start_offset),
        record_errors=(),
    )


def _refuse(
    data: PartitionProduceData, error_code: ErrorCode, why: str | None, leader: LeaderIdAndEpoch | None = None
) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=data.index,
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
