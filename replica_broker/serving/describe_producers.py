"""DescribeProducers: the producers of a partition, as the replica on this broker knows them (KIP-664).

As in Kafka, followers answer too; `kafka-transactions describe-producers --broker-id` asks them. To protect memory, a
response describes a partition once, however often it is named, and has a limited number of producers.
"""

from collections.abc import Iterator
from typing import Final

from kio.schema.describe_producers.v0.request import DescribeProducersRequest
from kio.schema.describe_producers.v0.response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import ProducerId
from kio.static.primitive import i32, i64

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.request_limits import RequestLimits
from controller_core.wire.messages import NO_THROTTLE
from replica_broker.log.producers.states import ProducerStates
from replica_broker.replicas.errors import ReplicaRefused
from replica_broker.replicas.replicas import Replicas

VERSIONS: Final = Versions(DescribeProducersRequest)
LIMITS: Final = RequestLimits(max_bytes=1024 * 1024, max_items=20_000)
MOST_PRODUCERS: Final = 50_000
"""Limit of the producers in one response."""

_NO_SEQUENCE: Final = -1
_NO_TRANSACTION: Final = -1


def on_describe_producers(replicas: Replicas, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Answer for each partition on its own."""
    describing = _Describing(replicas)
    return DescribeProducersResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            TopicResponse(
                name=topic.name,
                partitions=tuple(
                    describing.describe(TopicPartition(TopicName(topic.name), PartitionId(index)))
                    for index in topic.partition_indexes
                ),
            )
            for topic in request.topics
        ),
    )


class _Describing:
    """One response in construction."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._left = MOST_PRODUCERS
        self._named: set[TopicPartition] = set()

    def describe(self, topic_partition: TopicPartition) -> PartitionResponse:
        if topic_partition in self._named:
            return _refuse(topic_partition, ErrorCode.invalid_request, "it is named twice")
        self._named.add(topic_partition)
        try:
            producers = self._replicas.producers(topic_partition)
        except ReplicaRefused as error:
            return _refuse(topic_partition, error.error_code, str(error))
        if len(producers) > self._left:
            why = f"it has {len(producers)} producers, the limit is {MOST_PRODUCERS}: ask for fewer partitions"
            return _refuse(topic_partition, ErrorCode.invalid_request, why)
        self._left -= len(producers)
        return PartitionResponse(
            partition_index=i32(topic_partition.partition),
            error_code=ErrorCode.none,
            active_producers=tuple(_states(producers)),
        )


def _states(producers: ProducerStates) -> Iterator[ProducerState]:
    for producer_id, state in producers:
        sequence = state.batches[-1].last_sequence if state.batches else _NO_SEQUENCE
        began = state.transaction_first_offset
        yield ProducerState(
            producer_id=ProducerId(producer_id),
            producer_epoch=i32(state.epoch),
            last_sequence=i32(sequence),
            last_timestamp=i64(state.last_timestamp_ms),
            coordinator_epoch=i32(state.coordinator_epoch),
            current_txn_start_offset=i64(_NO_TRANSACTION if began is None else began),
        )


def _refuse(topic_partition: TopicPartition, error_code: ErrorCode, why: str) -> PartitionResponse:
    return PartitionResponse(
        partition_index=i32(topic_partition.partition), error_code=error_code, error_message=why, active_producers=()
    )
