"""Conversion between follower fetches and Kafka's messages of inter-broker protocol 3.9: Fetch 17, by topic ids.

A controller of an inter-broker protocol before 2.8 sends no topic ids. If one of the partitions has none, the request
uses the topics' names, in the last version that has them, Fetch 12.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12 import request as v12
from kio.schema.fetch.v12.response import FetchResponse as FetchResponse12
from kio.schema.fetch.v17 import request as v17
from kio.schema.fetch.v17.response import FetchableTopicResponse, FetchResponse
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32, i32Timedelta, i64

from controller_core.model.ids import BrokerId, LeaderEpoch, TopicName, TopicPartition
from replica_broker.replicas.requests import Asked, EpochEnd, Fetch, Fetched

AnyFetchRequest: TypeAlias = v17.FetchRequest | v12.FetchRequest
AnyFetchResponse: TypeAlias = FetchResponse | FetchResponse12


def fetch_request(asked: Fetch) -> AnyFetchRequest:
    """Return the request, without a fetch session."""
    wanted: dict[str, Any] = {
        "max_wait": i32Timedelta.parse(timedelta(milliseconds=asked.max_wait_ms)),
        "min_bytes": i32(asked.min_bytes),
        "max_bytes": i32(asked.max_bytes),
        "forgotten_topics_data": (),
    }
    if all(one.topic_id is not None for one in asked.partitions.values()):
        state = v17.ReplicaState(replica_id=WireBrokerId(asked.replica_id))
        return v17.FetchRequest(replica_state=state, topics=tuple(_group_by_id(asked)), **wanted)
    return v12.FetchRequest(replica_id=WireBrokerId(asked.replica_id), topics=tuple(_group_by_name(asked)), **wanted)


def response_type(request: AnyFetchRequest) -> type[AnyFetchResponse]:
    """Return the response type of a request."""
    return FetchResponse if isinstance(request, v17.FetchRequest) else FetchResponse12


def _group_by_id(asked: Fetch) -> Iterable[v17.FetchTopic]:
    by_id: dict[UUID, list[v17.FetchPartition]] = {}
    for topic_partition, one in asked.partitions.items():
        assert one.topic_id is not None, "checked before"
        by_id.setdefault(one.topic_id, []).append(v17.FetchPartition(**_partition(topic_partition, one)))
    for each, partitions in by_id.items():
        yield v17.FetchTopic(topic_id=each, partitions=tuple(partitions))


def _group_by_name(asked: Fetch) -> Iterable[v12.FetchTopic]:
    by_name: dict[TopicName, list[v12.FetchPartition]] = {}
    for topic_partition, one in asked.partitions.items():
        partition = v12.FetchPartition(**_partition(topic_partition, one))
        by_name.setdefault(topic_partition.topic, []).append(partition)
    for name, partitions in by_name.items():
        yield v12.FetchTopic(topic=WireTopicName(name), partitions=tuple(partitions))


def _partition(topic_partition: TopicPartition, one: Asked) -> dict[str, Any]:
    return {
        "partition": i32(topic_partition.partition),
        "current_leader_epoch": i32(one.current_leader_epoch),
        "fetch_offset": i64(one.offset),
        "last_fetched_epoch": i32(one.last_fetched_epoch),
        "log_start_offset": i64(one.log_start_offset),
        "partition_max_bytes": i32(one.max_bytes),
    }


def parse_response(asked: Fetch, response: AnyFetchResponse) -> dict[TopicPartition, Fetched]:
    """Return the response of each partition. An error of the whole request counts for each."""
    if response.error_code is not ErrorCode.none:
        return dict.fromkeys(asked.partitions, Fetched(error_code=response.error_code))
    called: dict[object, TopicPartition] = {}
    for each, one in asked.partitions.items():
        called[one.topic_id, each.partition] = called[each.topic, each.partition] = each
    answers = {}
    for topic in response.responses:
        name = topic.topic_id if isinstance(topic, FetchableTopicResponse) else topic.topic
        for data in topic.partitions:
            if (where := called.get((name, data.partition_index))) is not None:
                answers[where] = _parse_partition(data)
    return answers


def _parse_partition(data: Any) -> Fetched:
    diverging = data.diverging_epoch
    return Fetched(
        error_code=data.error_code,
        high_watermark=int(data.high_watermark),
        last_stable_offset=int(data.last_stable_offset),
        log_start_offset=int(data.log_start_offset),
        records=data.records or b"",
        diverging_epoch=(
            EpochEnd(LeaderEpoch(diverging.epoch), int(diverging.end_offset)) if diverging.epoch >= 0 else None
        ),
        leader=BrokerId(data.current_leader.leader_id),
        leader_epoch=LeaderEpoch(data.current_leader.leader_epoch),
    )
