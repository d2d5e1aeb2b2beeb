"""The users' requests to the controller in Kafka's protocol, like those of `kafka-topics.sh`, and their answers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.create_partitions.v3.request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kio.schema.create_topics.v7.request import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta
from kio.static.protocol import RequestPayload

from devcluster.clients.requests import ConnectionClosed, send_request
from devcluster.soak.operations import Partition, Replicas
from devcluster.soak.servers import Impossible

_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=5))
_ANSWER_TIMEOUT_S: Final = 30.0
_HARMLESS: Final = {
    ErrorCode.none,
    ErrorCode.election_not_needed,
    ErrorCode.preferred_leader_not_available,
}
"""One of these answers is enough to call a request done."""
_NEVER: Final = {ErrorCode.unknown_server_error, ErrorCode.invalid_request, ErrorCode.unsupported_version}
"""Answers that no fault of the cluster excuses."""


class Refused(Impossible):
    """The controller answered that nothing is done."""


class BadAnswer(Exception):
    """The controller gave an answer that it never should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerClient:
    """A client of the current controller. Each method raises `Refused`, `BadAnswer`, or without an answer `Impossible`."""

    controller: Callable[[], int | None]
    addresses: Mapping[int, tuple[str, int]]
    """The addresses of all nodes that may be the controller."""

    def create_topic(self, topic: str, replicas: Sequence[Replicas]) -> None:
        assignments = tuple(
            CreatableReplicaAssignment(partition_index=i32(number), broker_ids=_brokers(brokers))
            for number, brokers in enumerate(replicas)
        )
        creatable = CreatableTopic(
            name=TopicName(topic),
            num_partitions=i32(-1),
            replication_factor=i16(-1),
            assignments=assignments,
            configs=(),
        )
        answer = self._ask(CreateTopicsRequest(topics=(creatable,), timeout=_TIMEOUT))
        _judge(result.error_code for result in answer.topics)

    def delete_topic(self, topic: str) -> None:
        doomed = DeleteTopicState(name=TopicName(topic), topic_id=None)
        answer = self._ask(DeleteTopicsRequest(topics=(doomed,), timeout=_TIMEOUT))
        _judge(result.error_code for result in answer.responses)

    def add_partitions(self, topic: str, count: int, replicas: Sequence[Replicas]) -> None:
        """Grow a topic to `count` partitions, the last of which have the given replicas."""
        assignments = tuple(CreatePartitionsAssignment(broker_ids=_brokers(brokers)) for brokers in replicas)
        growing = CreatePartitionsTopic(name=TopicName(topic), count=i32(count), assignments=assignments)
        answer = self._ask(CreatePartitionsRequest(topics=(growing,), timeout=_TIMEOUT, validate_only=False))
        _judge(result.error_code for result in answer.results)

    def reassign(self, targets: Mapping[Partition, Replicas | None]) -> None:
        """Reassign partitions; None cancels a reassignment."""
        topics = tuple(
            ReassignableTopic(
                name=TopicName(topic),
                partitions=tuple(
                    ReassignablePartition(
                        partition_index=i32(number), replicas=None if target is None else _brokers(target)
                    )
                    for (name, number), target in targets.items()
                    if name == topic
                ),
            )
            for topic in dict.fromkeys(topic for topic, _ in targets)
        )
        answer = self._ask(AlterPartitionReassignmentsRequest(timeout=_TIMEOUT, topics=topics))
        partitions = [result.error_code for topic in answer.responses for result in topic.partitions]
        _judge([answer.error_code] if answer.error_code is not ErrorCode.none else partitions)

    def elect_preferred(self, partitions: Sequence[Partition]) -> None:
        topics = tuple(
            TopicPartitions(
                topic=TopicName(topic), partitions=tuple(i32(number) for name, number in partitions if name == topic)
            )
            for topic in dict.fromkeys(topic for topic, _ in partitions)
        )
        answer = self._ask(ElectLeadersRequest(election_type=i8(0), topic_partitions=topics, timeout=_TIMEOUT))
        results = [result.error_code for topic in answer.replica_election_results for result in topic.partition_result]
        _judge([answer.error_code] if answer.error_code is not ErrorCode.none else results)

    def _ask(self, request: RequestPayload) -> Any:
        controller = self.controller()
        if controller is None:
            raise Refused("there is no controller")
        try:
            return send_request(self.addresses[controller], request, timeout_s=_ANSWER_TIMEOUT_S)
        except ConnectionRefusedError as error:
            raise Refused(f"controller {controller} is down") from error
        except (OSError, ConnectionClosed) as error:
            raise Impossible(f"controller {controller} does not answer: {error}") from error


def _judge(codes: Iterable[ErrorCode]) -> None:
    """Raise an error unless some of the request is done."""
    found = set(codes)
    named = ", ".join(sorted(code.name for code in found))
    if found & _NEVER:
        raise BadAnswer(f"the controller answered {named}")
    if ErrorCode.request_timed_out in found:
        raise Impossible(f"the controller answered {named}")
    if found and found.isdisjoint(_HARMLESS):
        raise Refused(f"the controller answered {named}")


def _brokers(replicas: Replicas) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(broker) for broker in replicas)
