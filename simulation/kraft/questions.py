"""The answers of a broker to requests that read the state of the cluster."""

from datetime import timedelta
from typing import Final

from kio.schema.api_versions.v4 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.api_versions.v4.response import ApiVersion, FinalizedFeatureKey, SupportedFeatureKey
from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult, DescribeConfigsResult
from kio.schema.describe_quorum.v0 import DescribeQuorumRequest, DescribeQuorumResponse
from kio.schema.describe_quorum.v0.response import PartitionData, ReplicaState, TopicData
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kio.schema.list_partition_reassignments.v0.response import OngoingPartitionReassignment, OngoingTopicReassignment
from kio.schema.metadata.v11 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v11.response import MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from kio.static.protocol import RequestPayload, ResponsePayload

from simulation.kraft.cluster import TOPIC, QuorumCluster, Topic
from simulation.kraft.partitions import Partition

NO_TIME: Final = i32Timedelta.parse(timedelta())
PORT: Final = 9092
_KNOWN: Final = (ApiVersionsRequest, DescribeConfigsRequest, DescribeQuorumRequest, MetadataRequest)
_SET_FOR_TOPIC, _SET_FOR_BROKERS, _DEFAULT = i8(1), i8(3), i8(5)


def answer_question(cluster: QuorumCluster, request: RequestPayload) -> ResponsePayload | None:
    """Return the answer, or None if the request changes something."""
    match request:
        case ApiVersionsRequest():
            return _versions(cluster)
        case DescribeQuorumRequest():
            return _quorum(cluster)
        case ListPartitionReassignmentsRequest():
            return _moves(cluster)
        case DescribeConfigsRequest():
            found = (_config(each.resource_type, each.resource_name, cluster) for each in request.resources)
            return DescribeConfigsResponse(throttle_time=NO_TIME, results=tuple(found))
        case MetadataRequest():
            return _metadata(cluster, request)
        case _:
            return None


def _versions(cluster: QuorumCluster) -> ApiVersionsResponse:
    keys = (i16(int(each.__api_key__)) for each in _KNOWN)
    return ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=tuple(ApiVersion(api_key=key, min_version=i16(0), max_version=i16(9)) for key in keys),
        throttle_time=NO_TIME,
        supported_features=tuple(
            SupportedFeatureKey(name=name, min_version=i16(low), max_version=i16(high))
            for name, (low, high) in cluster.supported.items()
        ),
        finalized_features_epoch=i64(cluster.decided - 1),
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=i16(level), min_version_level=i16(level))
            for name, level in cluster.features.items()
        ),
    )


def _quorum(cluster: QuorumCluster) -> DescribeQuorumResponse:
    voters = tuple(ReplicaState(replica_id=BrokerId(each), log_end_offset=i64(0)) for each in cluster.voters)
    data = PartitionData(
        partition_index=i32(0),
        error_code=ErrorCode.none,
        leader_id=BrokerId(cluster.quorum_leader),
        leader_epoch=i32(cluster.quorum_epoch),
        high_watermark=i64(cluster.decided),
        current_voters=voters,
        observers=(),
    )
    topic = TopicData(topic_name=TopicName("__cluster_metadata"), partitions=(data,))
    return DescribeQuorumResponse(error_code=ErrorCode.none, topics=(topic,))


def _moves(cluster: QuorumCluster) -> ListPartitionReassignmentsResponse:
    moving = {name: _list_moves(topic) for name, topic in cluster.topics.items()}
    return ListPartitionReassignmentsResponse(
        throttle_time=NO_TIME,
        error_code=ErrorCode.none,
        error_message=None,
        topics=tuple(
            OngoingTopicReassignment(name=TopicName(name), partitions=each) for name, each in moving.items() if each
        ),
    )


def _list_moves(topic: Topic) -> tuple[OngoingPartitionReassignment, ...]:
    return tuple(
        OngoingPartitionReassignment(
            partition_index=i32(number),
            replicas=_ids(each.replicas),
            adding_replicas=_ids(each.adding),
            removing_replicas=_ids(each.removing),
        )
        for number, each in enumerate(topic.partitions)
        if each.is_moving
    )


def _metadata(cluster: QuorumCluster, request: MetadataRequest) -> MetadataResponse:
    names = sorted(cluster.topics) if request.topics is None else [each.name or "" for each in request.topics]
    return MetadataResponse(
        throttle_time=NO_TIME,
        brokers=tuple(
            MetadataResponseBroker(node_id=BrokerId(each), host=f"broker-{each}", port=i32(PORT), rack=None)
            for each in sorted(cluster.brokers)
        ),
        cluster_id="a-quorum",
        controller_id=BrokerId(min(cluster.brokers, default=-1)),
        topics=tuple(_topic(name, cluster) for name in names),
    )


def _topic(name: str, cluster: QuorumCluster) -> MetadataResponseTopic:
    topic = cluster.topics.get(name)
    return MetadataResponseTopic(
        error_code=ErrorCode.unknown_topic_or_partition if topic is None else ErrorCode.none,
        name=TopicName(name),
        topic_id=None if topic is None else topic.topic_id,
        partitions=tuple(_partition(number, each) for number, each in enumerate(topic.partitions if topic else ())),
    )


def _partition(number: int, partition: Partition) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=ErrorCode.none,
        partition_index=i32(number),
        leader_id=BrokerId(partition.leader),
        leader_epoch=i32(partition.leader_epoch),
        replica_nodes=_ids(partition.replicas),
        isr_nodes=_ids(partition.isr),
    )


def _config(resource_type: i8, name: str, cluster: QuorumCluster) -> DescribeConfigsResult:
    config = cluster.config_of(resource_type, name)
    said = {"min.insync.replicas": ("1", _DEFAULT)} if resource_type == TOPIC and config is not None else {}
    source = _SET_FOR_TOPIC if resource_type == TOPIC else _SET_FOR_BROKERS
    said |= {key: (value, source) for key, value in (config or {}).items()}
    return DescribeConfigsResult(
        error_code=ErrorCode.unknown_topic_or_partition if config is None else ErrorCode.none,
        error_message=None,
        resource_type=resource_type,
        resource_name=name,
        configs=tuple(_setting(key, value, source) for key, (value, source) in said.items()),
    )


def _setting(name: str, value: str, source: i8) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=name,
        value=value,
        read_only=False,
        config_source=source,
        is_sensitive=False,
        synonyms=(),
        documentation=None,
    )


def _ids(numbers: tuple[int, ...]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))
