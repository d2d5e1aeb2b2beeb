"""A cluster that answers the requests of drains and probes. A test moves its brokers and replicas as it likes."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from kio.schema.api_versions.v3 import ApiVersionsRequest
from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult, DescribeConfigsResult
from kio.schema.describe_quorum.v0 import DescribeQuorumRequest
from kio.schema.describe_quorum.v1 import DescribeQuorumRequest as DescribeVotesRequest
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kio.schema.list_partition_reassignments.v0.response import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kio.schema.metadata.v11 import MetadataRequest, MetadataResponse
from kio.schema.metadata.v11.response import MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i8, i32
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.model.ids import PartitionId, TopicName
from controller_core.wire.messages import ControlledShutdownRequest, ControlledShutdownResponse, RemainingPartition
from tests.unit.client.transport.quorums import NO_TIME, make_api_versions, quorum_led_by, votes_in

CONTROLLER = 1000
QUORUM_LEADER = 101


@dataclass(slots=True)
class SimulatedTopic:
    """A topic of one partition, led by the first of its ISR."""

    replicas: list[int]
    isr: list[int]
    min_insync_replicas: int = 2
    error_code: ErrorCode = ErrorCode.none
    """The error that DescribeConfigs returns for the topic. A controller passes over topics that are being deleted."""
    adding: list[int] = field(default_factory=list)
    """The replicas that a reassignment adds."""


@dataclass(slots=True)
class AnsweringCluster:
    """Answers as a controller that takes a broker out of service when ControlledShutdown asks for it."""

    topics: dict[str, SimulatedTopic]
    alive: list[int] = field(default_factory=lambda: [1, 2, 3])
    refusals: list[ErrorCode] = field(default_factory=list)
    """The errors of the next answers to ControlledShutdown."""
    reassignments_refusal: ErrorCode = ErrorCode.none
    """The error of the answer to ListPartitionReassignments."""
    has_quorum: bool = False
    """True if the brokers have no ZooKeeper."""
    quorum_refusal: ErrorCode = ErrorCode.none
    """The error of the answer to DescribeQuorum."""
    behind_ms: dict[int, int | None] = field(default_factory=lambda: {QUORUM_LEADER: 0})
    """The controllers that vote, and how far each is behind."""
    hides_relieved: bool = False
    """True if a broker that has handed over everything is not listed as alive, as Kontroller does it."""
    relieved: set[int] = field(default_factory=set)
    """The brokers that have handed over everything."""
    shutdowns: int = 0
    looks: int = 0
    looked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by each Metadata request."""

    async def answer(self, request: RequestPayload) -> ResponsePayload:
        match request:
            case MetadataRequest():
                self.looks += 1
                self.looked.set()
                return self._metadata()
            case DescribeConfigsRequest():
                return self._configs(request)
            case ControlledShutdownRequest():
                return self._shut_down(request)
            case ListPartitionReassignmentsRequest():
                return self._reassignments()
            case ApiVersionsRequest():
                return make_api_versions(has_quorum=self.has_quorum)
            case DescribeQuorumRequest():
                return quorum_led_by(QUORUM_LEADER, self.quorum_refusal)
            case DescribeVotesRequest():
                self.looked.set()
                return votes_in(self.behind_ms, self.quorum_refusal)
        raise AssertionError(f"nobody asks for {request}")

    async def another_look(self) -> None:
        """Waits until the drain has looked again, at least once from the beginning."""
        for _ in range(2):
            self.looked.clear()
            await self.looked.wait()

    def _metadata(self) -> MetadataResponse:
        return MetadataResponse(
            throttle_time=NO_TIME,
            brokers=tuple(
                MetadataResponseBroker(node_id=WireBrokerId(broker), host="h", port=i32(9092), rack=None)
                for broker in [*self.alive, CONTROLLER]
                if not (self.hides_relieved and broker in self.relieved)
            ),
            cluster_id="c",
            controller_id=WireBrokerId(CONTROLLER),
            topics=tuple(self._topic(name, topic) for name, topic in self.topics.items()),
        )

    def _topic(self, name: str, topic: SimulatedTopic) -> MetadataResponseTopic:
        partition = MetadataResponsePartition(
            error_code=ErrorCode.none,
            partition_index=i32(0),
            leader_id=WireBrokerId(topic.isr[0] if topic.isr else -1),
            leader_epoch=i32(0),
            replica_nodes=_ids(topic.replicas),
            isr_nodes=_ids(topic.isr),
            offline_replicas=(),
        )
        return MetadataResponseTopic(
            error_code=ErrorCode.none,
            name=WireTopicName(name),
            topic_id=None,
            is_internal=False,
            partitions=(partition,),
        )

    def _configs(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(
            throttle_time=NO_TIME,
            results=tuple(self._config(resource.resource_name) for resource in request.resources),
        )

    def _config(self, name: str) -> DescribeConfigsResult:
        topic = self.topics[name]
        values: dict[str, Any] = {"name": "min.insync.replicas", "value": str(topic.min_insync_replicas)}
        config = DescribeConfigsResourceResult(
            **values, read_only=False, is_sensitive=False, synonyms=(), documentation=None
        )
        return DescribeConfigsResult(
            error_code=topic.error_code,
            error_message=None,
            resource_type=i8(2),
            resource_name=name,
            configs=(config,) if topic.error_code is ErrorCode.none else (),
        )

    def _reassignments(self) -> ListPartitionReassignmentsResponse:
        is_told = self.reassignments_refusal is ErrorCode.none
        running = [(name, topic) for name, topic in self.topics.items() if is_told and topic.adding]
        return ListPartitionReassignmentsResponse(
            throttle_time=NO_TIME,
            error_code=self.reassignments_refusal,
            error_message=None,
            topics=tuple(_reassignment(name, topic) for name, topic in running),
        )

    def _shut_down(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        self.shutdowns += 1
        if self.refusals:
            return ControlledShutdownResponse(error_code=self.refusals.pop(0), remaining_partitions=())
        if request.broker_id not in self.alive:
            return ControlledShutdownResponse(error_code=ErrorCode.broker_not_available, remaining_partitions=())
        remaining = []
        for name, topic in self.topics.items():
            if topic.error_code is not ErrorCode.none:
                continue
            if topic.isr == [request.broker_id] and len(topic.replicas) > 1:
                remaining.append(RemainingPartition(topic_name=TopicName(name), partition_index=PartitionId(0)))
            elif len(topic.replicas) > 1:
                topic.isr = [member for member in topic.isr if member != request.broker_id]
        if not remaining:
            self.relieved.add(request.broker_id)
        return ControlledShutdownResponse(error_code=ErrorCode.none, remaining_partitions=tuple(remaining))


def _reassignment(name: str, topic: SimulatedTopic) -> OngoingTopicReassignment:
    partition = OngoingPartitionReassignment(
        partition_index=i32(0),
        replicas=_ids(topic.replicas),
        adding_replicas=_ids(topic.adding),
        removing_replicas=(),
    )
    return OngoingTopicReassignment(name=WireTopicName(name), partitions=(partition,))


def _ids(numbers: list[int]) -> tuple[WireBrokerId, ...]:
    return tuple(WireBrokerId(number) for number in numbers)
