"""DeleteRecords: deletes all messages before an offset, on the leader and its live followers (KIP-107).

Partitions succeed or fail on their own. The response comes when all are finished or time out. A deletion that times out
gets REQUEST_TIMED_OUT and continues. Internal topics are refused.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest
from kio.schema.delete_records.v2.response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kio.schema.errors import ErrorCode
from kio.static.primitive import i64

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.model.topics.topic_names import INTERNAL_TOPICS
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.request_limits import RequestLimits
from controller_core.wire.messages import NO_THROTTLE
from replica_broker.replicas.replicas import Replicas
from replica_broker.replicas.requests import Deleted

VERSIONS: Final = Versions(DeleteRecordsRequest, oldest=0)
LIMITS: Final = RequestLimits(max_bytes=1024 * 1024, max_items=20_000)

_INTERNAL: Final = Deleted(error_code=ErrorCode.invalid_topic_exception)


async def on_delete_records(replicas: Replicas, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Delete from each partition once, even if it is named twice; the last offset counts."""
    offsets = {
        TopicPartition(TopicName(topic.name), PartitionId(one.partition_index)): int(one.offset)
        for topic in request.topics
        if TopicName(topic.name) not in INTERNAL_TOPICS
        for one in topic.partitions
    }
    timeout_ms = int(request.timeout.total_seconds() * 1000)
    deleted = await replicas.delete_records(offsets, timeout_ms=timeout_ms)
    return DeleteRecordsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(_results(TopicName(topic.name), topic.partitions, deleted)),
            )
            for topic in request.topics
        ),
    )


def _results(
    topic: TopicName, partitions: Iterable[DeleteRecordsPartition], deleted: Mapping[TopicPartition, Deleted]
) -> Iterator[DeleteRecordsPartitionResult]:
    for asked in partitions:
        one = deleted.get(TopicPartition(topic, PartitionId(asked.partition_index)), _INTERNAL)
        yield DeleteRecordsPartitionResult(
            partition_index=asked.partition_index,
            low_watermark=i64(one.low_watermark),
            error_code=one.error_code,
        )
