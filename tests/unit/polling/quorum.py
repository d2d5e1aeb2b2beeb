"""A cluster without ZooKeeper as its brokers show it: real connections, and answers that a test makes up."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from kio.index import load_request_schema
from kio.schema.api_versions.v4 import ApiVersionsResponse
from kio.schema.api_versions.v4.response import ApiVersion, FinalizedFeatureKey, SupportedFeatureKey
from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult, DescribeConfigsResult
from kio.schema.describe_log_dirs.v5 import DescribeLogDirsResponse
from kio.schema.describe_log_dirs.v5.response import DescribeLogDirsResult
from kio.schema.describe_quorum.v0 import DescribeQuorumResponse
from kio.schema.describe_quorum.v0.response import PartitionData, ReplicaState, TopicData
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsResponse
from kio.schema.list_partition_reassignments.v0.response import OngoingPartitionReassignment, OngoingTopicReassignment
from kio.schema.metadata.v11 import MetadataResponse
from kio.schema.metadata.v11.response import MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from kio.static.protocol import ResponsePayload

from controller_core.client.transport.kept_client import KeptClient
from controller_core.client.transport.request_client import Address
from controller_core.polling.pace import Pace
from controller_core.polling.paced_looks import OpenKept
from controller_core.wire.codecs.frames import decode_request, encode_response, read_frame, read_request_head

NOBODY: Final = Address("127.0.0.1", 1)
NO_TIME: Final = i32Timedelta.parse(timedelta())
METADATA, API_VERSIONS, CONFIGS, LOG_DIRS, MOVES, QUORUM = 3, 18, 32, 35, 46, 55
QUICK: Final = Pace(while_moving_s=0.01, usual_s=0.01, longest_quiet_s=0.02, after_failure_s=0.01, share=1.0)


@dataclass
class Topic:
    """A topic: the replicas of each partition, all in sync unless `isr` names the members, and led by the first of
    those."""

    replicas: list[tuple[int, ...]]
    config: dict[str, str] = field(default_factory=dict)
    topic_id: UUID = field(default_factory=uuid4)
    isr: tuple[int, ...] | None = None
    leader_epoch: int = 1


@dataclass
class Quorum:
    """The answers of one broker, which stands for the whole cluster."""

    topics: dict[str, Topic] = field(default_factory=dict)
    moves: dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    """The replicas that are added to and removed from a partition."""
    features: dict[str, int] = field(default_factory=lambda: {"metadata.version": 25})
    leader: int = 101
    epoch: int = 4
    decided: int = 10
    """The offset up to which the controllers have decided."""
    undecided: int = 0
    """The number of further records that their leader has written."""
    idle_records: int = 0
    """The number of no-op records that they write between two questions about them."""
    behind: int = 0
    """The number of records that the broker is behind them."""
    log_dirs: tuple[bool, ...] = ()
    """The broker's log directories: True if the directory is cordoned. Empty if the broker is too old to say."""
    knows_quorum: bool = True
    is_away: bool = False
    """True if it closes connections instead of answering."""
    unanswered: set[int] = field(default_factory=set)
    """The APIs that it never answers."""
    failures: int = 0
    """The number of the next requests at which it closes the connection."""
    asked: Counter[int] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)
    keys: list[tuple[str, ...] | None] = field(default_factory=list)
    """The keys of configurations that were asked for, one request after the other. None: all keys."""
    address: Address = NOBODY
    also: dict[int, Address] = field(default_factory=dict)
    """Other live brokers."""
    before_answer: dict[int, Any] = field(default_factory=dict)
    """The events before an API is answered, once each."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (content := await read_frame(reader)) is not None:
            head = read_request_head(content)
            self.asked[head.api_key] += 1
            if (act := self.before_answer.pop(head.api_key, None)) is not None:
                act()
            if head.api_key in self.unanswered:
                continue
            if self.is_away or self.failures:
                self.failures = max(0, self.failures - 1)
                break
            request = decode_request(load_request_schema(head.api_key, head.api_version), content)
            answer = encode_response(self._answer(head.api_key, request), head.correlation_id)
            self.sizes[head.api_key] += len(answer)
            writer.write(answer)
        writer.close()

    def _answer(self, api_key: int, request: Any) -> ResponsePayload:
        match api_key:
            case 18:
                return self._versions()
            case 55:
                return self._quorum()
            case 46:
                return self._moves()
            case 35:
                return self._log_dirs()
            case 32:
                return self._configs(request)
            case _:
                return self._metadata()

    def _versions(self) -> ApiVersionsResponse:
        known = (
            METADATA,
            API_VERSIONS,
            *((QUORUM,) if self.knows_quorum else ()),
            *((LOG_DIRS,) if self.log_dirs else ()),
        )
        return ApiVersionsResponse(
            error_code=ErrorCode.none,
            api_keys=tuple(ApiVersion(api_key=i16(key), min_version=i16(0), max_version=i16(9)) for key in known),
            throttle_time=NO_TIME,
            supported_features=(
                SupportedFeatureKey(name="metadata.version", min_version=i16(7), max_version=i16(29)),
                SupportedFeatureKey(name="group.version", min_version=i16(0), max_version=i16(1)),
            ),
            finalized_features_epoch=i64(self.decided - 1 - self.behind),
            finalized_features=tuple(
                FinalizedFeatureKey(name=name, max_version_level=i16(level), min_version_level=i16(level))
                for name, level in self.features.items()
            ),
        )

    def _quorum(self) -> DescribeQuorumResponse:
        self.decided += self.idle_records
        data = PartitionData(
            partition_index=i32(0),
            error_code=ErrorCode.none,
            leader_id=BrokerId(self.leader),
            leader_epoch=i32(self.epoch),
            high_watermark=i64(self.decided),
            current_voters=tuple(
                ReplicaState(replica_id=BrokerId(each), log_end_offset=i64(self.decided + self.undecided))
                for each in (102, 101, 103)
            ),
            observers=(),
        )
        topic = TopicData(topic_name=TopicName("__cluster_metadata"), partitions=(data,))
        return DescribeQuorumResponse(error_code=ErrorCode.none, topics=(topic,))

    def _moves(self) -> ListPartitionReassignmentsResponse:
        return ListPartitionReassignmentsResponse(
            throttle_time=NO_TIME,
            error_code=ErrorCode.none,
            error_message=None,
            topics=tuple(
                OngoingTopicReassignment(
                    name=TopicName(topic),
                    partitions=(
                        OngoingPartitionReassignment(
                            partition_index=i32(number),
                            replicas=_ids(self.topics[topic].replicas[number]),
                            adding_replicas=_ids(adding),
                            removing_replicas=_ids(removing),
                        ),
                    ),
                )
                for (topic, number), (adding, removing) in self.moves.items()
            ),
        )

    def _log_dirs(self) -> DescribeLogDirsResponse:
        offline = DescribeLogDirsResult(error_code=ErrorCode.kafka_storage_error, log_dir="/offline", topics=())
        usable = tuple(
            DescribeLogDirsResult(error_code=ErrorCode.none, log_dir=f"/{number}", topics=(), is_cordoned=is_cordoned)
            for number, is_cordoned in enumerate(self.log_dirs)
        )
        return DescribeLogDirsResponse(throttle_time=NO_TIME, error_code=ErrorCode.none, results=(offline, *usable))

    def _metadata(self) -> MetadataResponse:
        brokers = {1: self.address, **self.also}
        return MetadataResponse(
            throttle_time=NO_TIME,
            brokers=tuple(
                MetadataResponseBroker(node_id=BrokerId(number), host=at.host, port=i32(at.port), rack=f"rack-{number}")
                for number, at in brokers.items()
            ),
            cluster_id="kraft",
            controller_id=BrokerId(self.asked[METADATA] % 7),
            topics=tuple(_topic(name, topic) for name, topic in self.topics.items()),
        )

    def _configs(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        self.keys.append(request.resources[0].configuration_keys if request.resources else None)
        return DescribeConfigsResponse(
            throttle_time=NO_TIME,
            results=tuple(
                _config(each.resource_name, self.topics.get(each.resource_name), each.configuration_keys)
                for each in request.resources
            ),
        )


@asynccontextmanager
async def serve(quorum: Quorum, *, patience_ms: int = 30_000) -> AsyncIterator[OpenKept]:
    """The broker, and how a client of it is made, which waits for an answer as long as this."""
    server = await asyncio.start_server(quorum.serve, "127.0.0.1", 0)
    quorum.address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
    try:
        yield lambda: (KeptClient([quorum.address], timeout_ms=patience_ms), "PLAINTEXT")
    finally:
        server.close()


def _ids(numbers: tuple[int, ...]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


def _topic(name: str, topic: Topic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.none,
        name=TopicName(name),
        topic_id=topic.topic_id,
        partitions=tuple(
            MetadataResponsePartition(
                error_code=ErrorCode.none,
                partition_index=i32(number),
                leader_id=BrokerId((topic.isr or replicas)[0]),
                leader_epoch=i32(topic.leader_epoch),
                replica_nodes=_ids(replicas),
                isr_nodes=_ids(topic.isr or replicas),
            )
            for number, replicas in enumerate(topic.replicas)
        ),
    )


def _config(name: str, topic: Topic | None, keys: Collection[str] | None) -> DescribeConfigsResult:
    of_the_topic: Mapping[str, str] = topic.config if topic else {}
    said = {"min.insync.replicas": ("2", 5), **{key: (value, 1) for key, value in of_the_topic.items()}}
    return DescribeConfigsResult(
        error_code=ErrorCode.none if topic else ErrorCode.unknown_topic_or_partition,
        error_message=None,
        resource_type=i8(2),
        resource_name=name,
        configs=tuple(
            DescribeConfigsResourceResult(
                name=key,
                value=value,
                read_only=False,
                config_source=i8(source),
                is_sensitive=False,
                synonyms=(),
                documentation=None,
            )
            for key, (value, source) in said.items()
            if keys is None or key in keys
        )
        if topic
        else (),
    )
