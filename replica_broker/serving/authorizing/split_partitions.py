"""Splits requests about partitions by rights on their topics, with Kafka's errors (`KafkaApis`)."""

from functools import partial
from typing import Final

from kio.schema.delete_records.v2.request import DeleteRecordsRequest, DeleteRecordsTopic
from kio.schema.delete_records.v2.response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v9.request import ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v9.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.schema.offset_for_leader_epoch.v4.request import OffsetForLeaderEpochRequest, OffsetForLeaderTopic
from kio.schema.offset_for_leader_epoch.v4.response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kio.schema.produce.v11.request import ProduceRequest, TopicProduceData
from kio.schema.produce.v11.response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from kio.static.primitive import i64

from controller_core.admin.rights import Rights
from controller_core.admin.splitting import Split, find_refused_parts, remove_refused_parts
from controller_core.model.authorization.acls import (
    THE_CLUSTER,
    Operation,
    make_topic_resource,
)
from controller_core.wire.listener.owned_api import NoAnswerNow

_REFUSED: Final = ErrorCode.topic_authorization_failed


async def produce(request: ProduceRequest, rights: Rights) -> Split[ProduceRequest, ProduceResponse | None]:
    """Split by the right to write. Messages of transactions need no further right here: they are refused for everybody.

    Without acks there is no response, so a refusal closes the connection.
    """

    def why_not(asked: TopicProduceData) -> TopicProduceResponse | None:
        if rights.may(Operation.WRITE, make_topic_resource(asked.name)):
            return None
        partitions = tuple(
            PartitionProduceResponse(index=one.index, error_code=_REFUSED, base_offset=i64(-1), record_errors=())
            for one in asked.partition_data
        )
        return TopicProduceResponse(name=asked.name, partition_responses=partitions)

    refused = await find_refused_parts(request.topic_data, why_not)
    split = remove_refused_parts(
        request, "topic_data", refused, partial(ProduceResponse, node_endpoints=()), "responses"
    )
    if request.acks != 0:
        return split

    def merge(response: ProduceResponse | None) -> None:
        if refused:
            raise NoAnswerNow("a message without acks was refused by ACLs")

    return Split(allowed=split.allowed, merge=merge)


async def list_offsets(request: ListOffsetsRequest, rights: Rights) -> Split[ListOffsetsRequest, ListOffsetsResponse]:
    """Split by the right to describe, also for followers."""

    def why_not(asked: ListOffsetsTopic) -> ListOffsetsTopicResponse | None:
        if rights.may(Operation.DESCRIBE, make_topic_resource(asked.name)):
            return None
        partitions = tuple(
            ListOffsetsPartitionResponse(partition_index=one.partition_index, error_code=_REFUSED)
            for one in asked.partitions
        )
        return ListOffsetsTopicResponse(name=asked.name, partitions=partitions)

    refused = await find_refused_parts(request.topics, why_not)
    return remove_refused_parts(request, "topics", refused, ListOffsetsResponse, "topics")


async def find_epoch_ends(
    request: OffsetForLeaderEpochRequest, rights: Rights
) -> Split[OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse]:
    """Split by the right to describe. The right of brokers, ClusterAction, covers all topics."""
    may_ask_all = rights.may(Operation.CLUSTER_ACTION, THE_CLUSTER, is_wanted=False)

    def why_not(asked: OffsetForLeaderTopic) -> OffsetForLeaderTopicResult | None:
        if may_ask_all or rights.may(Operation.DESCRIBE, make_topic_resource(asked.topic)):
            return None
        partitions = tuple(EpochEndOffset(error_code=_REFUSED, partition=one.partition) for one in asked.partitions)
        return OffsetForLeaderTopicResult(topic=asked.topic, partitions=partitions)

    refused = await find_refused_parts(request.topics, why_not)
    return remove_refused_parts(request, "topics", refused, OffsetForLeaderEpochResponse, "topics")


async def delete_records(
    request: DeleteRecordsRequest, rights: Rights
) -> Split[DeleteRecordsRequest, DeleteRecordsResponse]:
    """Split by the right to delete."""

    def why_not(asked: DeleteRecordsTopic) -> DeleteRecordsTopicResult | None:
        if rights.may(Operation.DELETE, make_topic_resource(asked.name)):
            return None
        partitions = tuple(
            DeleteRecordsPartitionResult(
                partition_index=one.partition_index, low_watermark=i64(-1), error_code=_REFUSED
            )
            for one in asked.partitions
        )
        return DeleteRecordsTopicResult(name=asked.name, partitions=partitions)

    refused = await find_refused_parts(request.topics, why_not)
    return remove_refused_parts(request, "topics", refused, DeleteRecordsResponse, "topics")
