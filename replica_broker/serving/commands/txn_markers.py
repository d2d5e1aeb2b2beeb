"""WriteTxnMarkers: writes the end markers of transactions for their coordinators, which are stock brokers.

This broker refuses transactional messages. But it may become the leader during a transaction, and a transaction may
include a partition before its messages are refused. The log needs the marker in both cases: otherwise a later stock
leader would wait for it and hold back all following messages.
"""

import asyncio
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.write_txn_markers.v1.request import WritableTxnMarker, WriteTxnMarkersRequest
from kio.schema.write_txn_markers.v1.response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from kio.static.primitive import i32

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.wire.codecs.versions import Versions
from replica_broker.log.errors import LogError
from replica_broker.log.producers.markers import EndOfTransaction
from replica_broker.replicas.errors import ReplicaRefused
from replica_broker.replicas.replicas import Replicas

VERSIONS: Final = Versions(WriteTxnMarkersRequest)

_TIMEOUT_MS: Final = 30_000
"""Kafka's `request.timeout.ms`. The coordinator retries after it."""


async def on_write_txn_markers(replicas: Replicas, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """Answer for each partition when its marker is committed."""
    return WriteTxnMarkersResponse(
        markers=tuple(await asyncio.gather(*(_end_transaction(replicas, marker) for marker in request.markers)))
    )


def refuse(request: WriteTxnMarkersRequest, error_code: ErrorCode) -> WriteTxnMarkersResponse:
    """Return one error for each partition."""
    return WriteTxnMarkersResponse(
        markers=tuple(
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            WritableTxnMarkerPartitionResult(partition_index=i32(index), error_code=error_code)
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in request.markers
        )
    )


async def _end_transaction(replicas: Replicas, marker: WritableTxnMarker) -> WritableTxnMarkerResult:
    end = EndOfTransaction(
        producer_id=int(marker.producer_id),
        producer_epoch=int(marker.producer_epoch),
        coordinator_epoch=int(marker.coordinator_epoch),
        is_commit=marker.transaction_result,
    )
    named = [(topic, index) for topic in marker.topics for index in topic.partition_indexes]
    codes = iter(
        await asyncio.gather(
            *(
                _write(replicas, TopicPartition(TopicName(topic.name), PartitionId(index)), end)
                for topic, index in named
            )
        )
    )
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=tuple(
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=tuple(
                    WritableTxnMarkerPartitionResult(partition_index=i32(index), error_code=next(codes))
                    for index in topic.partition_indexes
                ),
            )
            for topic in marker.topics
        ),
    )


async def _write(replicas: Replicas, where: TopicPartition, end: EndOfTransaction) -> ErrorCode:
    try:
        await replicas.append_marker(where, end, timeout_ms=_TIMEOUT_MS)
    except (ReplicaRefused, LogError) as error:
        return error.error_code
    return ErrorCode.none
