"""The state of a simulated broker: its replicas, its logs with their directories, and its metadata cache.

This module has Kafka 3.9's rules for accepting one partition of a control request (ReplicaManager, ZkMetadataCache).
The rules for whole requests are in `simulation.brokers`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Final

from kio.schema.alter_replica_log_dirs.v2 import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from kio.schema.alter_replica_log_dirs.v2.response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirTopicResult,
)
from kio.schema.describe_log_dirs.v2 import DescribeLogDirsResponse
from kio.schema.describe_log_dirs.v2.response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32, i64

from controller_core.model.ids import (
    EPOCH_DURING_DELETE,
    LEADER_DURING_DELETE,
    NO_EPOCH,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import LogEnd
from controller_core.wire.messages import (
    NO_THROTTLE,
    ErrorCode,
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

FIRST, SECOND = DIRECTORIES = ("/data/1", "/data/2")
_LAG: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedReplica:
    """A replica in the state of the last LeaderAndIsr that its broker applied."""

    topic_id: TopicId | None
    leader: BrokerId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    partition_epoch: PartitionEpoch
    controller_epoch: ControllerEpoch
    replicas: tuple[BrokerId, ...]
    adding_replicas: tuple[BrokerId, ...]
    removing_replicas: tuple[BrokerId, ...]
    leader_recovery_state: int
    is_stopped: bool = False
    """True after a StopReplica without deletion: the log stays, and follows no leader."""


@dataclass(slots=True)
class SimulatedMetadata:
    """The broker's metadata for clients, with the controller."""

    controller_id: BrokerId | None = None
    live_brokers: dict[BrokerId, UpdateMetadataBroker] = field(default_factory=dict)
    partitions: dict[TopicPartition, UpdateMetadataPartitionState] = field(default_factory=dict)
    topic_ids: dict[TopicName, TopicId] = field(default_factory=dict)
    _known: Counter[TopicName] = field(default_factory=Counter)
    """The number of known partitions of each topic."""

    def apply(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        self.controller_id = request.controller_id
        self.live_brokers = {broker.id: broker for broker in request.live_brokers}
        for topic in request.topic_states:
            if topic.topic_id is None:
                self.topic_ids.pop(topic.topic_name, None)
        self.topic_ids |= {
            topic.topic_name: topic.topic_id for topic in request.topic_states if topic.topic_id is not None
        }
        for topic in request.topic_states:
            for state in topic.partition_states:
                self._apply_partition(TopicPartition(topic.topic_name, state.partition_index), state)
        return UpdateMetadataResponse(error_code=ErrorCode.none)

    def _apply_partition(self, topic_partition: TopicPartition, state: UpdateMetadataPartitionState) -> None:
        if state.leader != LEADER_DURING_DELETE:
            self._known[topic_partition.topic] += topic_partition not in self.partitions
            self.partitions[topic_partition] = state
            return
        if not self._known[topic_partition.topic]:
            return  # the topic's id stays if the request had one
        if self.partitions.pop(topic_partition, None) is not None:
            self._known[topic_partition.topic] -= 1
        if not self._known[topic_partition.topic]:
            self.topic_ids.pop(topic_partition.topic, None)


@dataclass(slots=True)
class SimulatedReplicas:
    """The replicas on one broker, and the logs on its disks."""

    broker: BrokerId
    hosted: dict[TopicPartition, SimulatedReplica] = field(default_factory=dict)
    logs: dict[TopicPartition, TopicId | None] = field(default_factory=dict)
    log_bytes: dict[TopicPartition, int] = field(default_factory=dict)
    log_epochs: dict[TopicPartition, list[LogEnd]] = field(default_factory=dict)
    offline: set[TopicPartition] = field(default_factory=set)
    unopened: set[TopicPartition] = field(default_factory=set)
    refused: dict[TopicPartition, ErrorCode] = field(default_factory=dict)
    without_log: set[TopicPartition] = field(default_factory=set)

    def lacks_log(self, request: LeaderAndIsrRequest) -> bool:
        """Return True if the request has a known leader epoch of a partition without a log. Kafka refuses it whole."""
        return any(
            partition in self.without_log and state.leader_epoch == self.hosted[partition].leader_epoch
            for topic in request.topic_states
            for state in topic.partition_states
            for partition in (TopicPartition(topic.topic_name, state.partition_index),)
        )

    def become_leader_or_follower(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        topics = []
        for topic in request.topic_states:
            errors = tuple(
                LeaderAndIsrPartitionError(
                    partition_index=state.partition_index,
                    error_code=self._become(
                        TopicPartition(topic.topic_name, state.partition_index), topic.topic_id, state
                    ),
                )
                for state in topic.partition_states
            )
            topics.append(LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=errors))
        return LeaderAndIsrResponse(error_code=ErrorCode.none, topics=tuple(topics))

    def _become(
        self, topic_partition: TopicPartition, topic_id: TopicId | None, state: LeaderAndIsrPartitionState
    ) -> ErrorCode:
        if topic_partition in self.offline:
            return ErrorCode.kafka_storage_error
        if topic_partition in self.unopened:
            return ErrorCode.unknown_server_error
        if (refusal := self.refused.get(topic_partition)) is not None:
            return refusal
        known_id = self.logs.get(topic_partition)
        if known_id is not None and topic_id is not None and known_id != topic_id:
            return ErrorCode.inconsistent_topic_id
        current = self.hosted.get(topic_partition)
        current_epoch = current.leader_epoch if current is not None else NO_EPOCH
        if current is not None and state.leader_epoch == current_epoch and known_id is None and topic_id is not None:
            self.logs[topic_partition] = topic_id
            self.hosted[topic_partition] = replace(current, topic_id=topic_id)
            return ErrorCode.none
        if state.leader_epoch <= current_epoch:
            return ErrorCode.stale_controller_epoch
        if self.broker not in state.replicas:
            return ErrorCode.unknown_topic_or_partition
        if current is not None and state.partition_epoch < current.partition_epoch:
            return ErrorCode.none  # Kafka keeps the newer state without an error
        self.without_log.discard(topic_partition)
        self.logs[topic_partition] = topic_id or known_id
        self.hosted[topic_partition] = _replica(topic_id, state)
        if state.leader == self.broker:
            self._begin_epoch(topic_partition, state.leader_epoch)
        return ErrorCode.none

    def find_epoch_end(self, topic_partition: TopicPartition, epoch: LeaderEpoch) -> LogEnd | None:
        """Return the end of an epoch, or of the latest one before it; None if the log has no later epoch."""
        ends = self.log_epochs.get(topic_partition, [])
        if not ends or epoch > ends[-1].leader_epoch:
            return None
        earlier = [end for end in ends if end.leader_epoch <= epoch]
        return earlier[-1] if earlier else LogEnd(epoch, 0)

    def stop(self, request: StopReplicaRequest) -> StopReplicaResponse:
        errors = tuple(
            StopReplicaPartitionError(
                topic_name=topic.topic_name,
                partition_index=state.partition_index,
                error_code=self._stop(TopicPartition(topic.topic_name, state.partition_index), state),
            )
            for topic in request.topic_states
            for state in topic.partition_states
        )
        return StopReplicaResponse(error_code=ErrorCode.none, partition_errors=errors)

    def _stop(self, topic_partition: TopicPartition, state: StopReplicaPartitionState) -> ErrorCode:
        if topic_partition in self.offline:
            return ErrorCode.kafka_storage_error
        current = self.hosted.get(topic_partition)
        checks_epoch = state.leader_epoch not in (NO_EPOCH, EPOCH_DURING_DELETE)
        if current is not None and checks_epoch and state.leader_epoch < current.leader_epoch:
            return ErrorCode.fenced_leader_epoch
        if state.delete_partition:
            self.hosted.pop(topic_partition, None)
            self.logs.pop(topic_partition, None)
            self.log_bytes.pop(topic_partition, None)
            self.log_epochs.pop(topic_partition, None)
        elif current is not None:
            self.hosted[topic_partition] = replace(current, is_stopped=True)
        return ErrorCode.none

    def _begin_epoch(self, topic_partition: TopicPartition, epoch: LeaderEpoch) -> None:
        ends = self.log_epochs.setdefault(topic_partition, [])
        offset = ends[-1].offset if ends else 0
        began_at = ends[-2].offset if len(ends) > 1 else 0
        if ends and began_at == offset:
            ends.pop()  # the next epoch replaces one without records
        ends.append(LogEnd(epoch, offset))


def _replica(topic_id: TopicId | None, state: LeaderAndIsrPartitionState) -> SimulatedReplica:
    return SimulatedReplica(
        topic_id=topic_id,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=state.partition_epoch,
        controller_epoch=state.controller_epoch,
        replicas=state.replicas,
        adding_replicas=state.adding_replicas,
        removing_replicas=state.removing_replicas,
        leader_recovery_state=state.leader_recovery_state,
    )


@dataclass(slots=True)
class SimulatedDirectories:
    """The log directories, and the copying of logs between them (KIP-113). The second one fails with the first log.

    A new log is created in the first directory, or in the one that the broker was told before. A copy replaces its log
    as soon as it has all of its bytes."""

    paths: tuple[str, ...] = (FIRST,)
    places: dict[TopicPartition, str] = field(default_factory=dict)
    """The directory of each log."""
    futures: dict[TopicPartition, str] = field(default_factory=dict)
    """The directory of each copy."""
    wanted: dict[TopicPartition, str] = field(default_factory=dict)
    """The directories of logs that do not exist yet."""
    _copied: dict[TopicPartition, int] = field(default_factory=dict)

    @property
    def moved(self) -> dict[TopicPartition, str]:
        """The directories of the logs that are not in the first one."""
        return {partition: path for partition, path in self.places.items() if path != FIRST}

    def restart(self) -> None:
        """Forget the directories of logs that do not exist yet."""
        self.wanted.clear()

    def alter(
        self, request: AlterReplicaLogDirsRequest, logs: Collection[TopicPartition], *, has_failed: bool
    ) -> AlterReplicaLogDirsResponse:
        """Begin or end copies, by Kafka's rules."""
        self._follow(logs)
        results = []
        for directory in request.dirs:
            for topic in directory.topics:
                asked = [TopicPartition(TopicName(str(topic.name)), PartitionId(int(at))) for at in topic.partitions]
                partitions = tuple(
                    AlterReplicaLogDirPartitionResult(
                        partition_index=i32(each.partition),
                        error_code=self._alter(each, str(directory.path), has_failed=has_failed),
                    )
                    for each in asked
                )
                results.append(AlterReplicaLogDirTopicResult(topic_name=topic.name, partitions=partitions))
        return AlterReplicaLogDirsResponse(throttle_time=NO_THROTTLE, results=tuple(results))

    def describe(
        self, logs: Collection[TopicPartition], asked: Collection[TopicPartition], sizes: Mapping[TopicPartition, int],
        *, has_failed: bool,
    ) -> DescribeLogDirsResponse:  # fmt: skip
        """Return the answer to a question about some logs."""
        self._follow(logs)
        return DescribeLogDirsResponse(
            throttle_time=NO_THROTTLE,
            results=tuple(
                DescribeLogDirsResult(
                    error_code=ErrorCode.kafka_storage_error if has_failed and path == SECOND else ErrorCode.none,
                    log_dir=path,
                    topics=tuple(self._describe(path, [each for each in asked if each in logs], sizes)),
                )
                for path in (DIRECTORIES if has_failed else self.paths)
            ),
        )

    def copy(self, sizes: Mapping[TopicPartition, int], most_bytes: int) -> None:
        """Copy that many bytes of each log that is being copied, or the rest of it."""
        for partition, path in [*self.futures.items()]:
            self._copied[partition] = self._copied.get(partition, 0) + most_bytes
            if self._copied[partition] >= sizes.get(partition, 0):
                self.places[partition] = path
                self._end(partition)

    def _alter(self, partition: TopicPartition, path: str, *, has_failed: bool) -> ErrorCode:
        if path not in self.paths:
            return ErrorCode.log_dir_not_found
        if has_failed and path == SECOND:
            return ErrorCode.kafka_storage_error
        if self.futures.get(partition) not in (None, path):
            self._end(partition)
        if partition not in self.places:
            self.wanted[partition] = path
            return ErrorCode.replica_not_available
        if self.places[partition] != path:
            self.futures[partition] = path
        return ErrorCode.none

    def _end(self, partition: TopicPartition) -> None:
        self.futures.pop(partition, None)
        self._copied.pop(partition, None)

    def _follow(self, logs: Collection[TopicPartition]) -> None:
        """Drop the places of deleted logs, and find those of new ones."""
        for partition in self.places.keys() - set(logs):
            del self.places[partition]
            self._end(partition)
        for partition in set(logs) - self.places.keys():
            self.places[partition] = self.wanted.pop(partition, FIRST)

    def _describe(
        self, path: str, logs: Collection[TopicPartition], sizes: Mapping[TopicPartition, int]
    ) -> Iterator[DescribeLogDirsTopic]:
        here = [each for each in logs if path in (self.places.get(each), self.futures.get(each))]
        for topic, group in groupby(sorted(here), key=attrgetter("topic")):
            partitions = tuple(
                DescribeLogDirsPartition(
                    partition_index=i32(each.partition),
                    partition_size=i64((self._copied if is_future else sizes).get(each, 0)),
                    offset_lag=i64(_LAG if is_future else 0),
                    is_future_key=is_future,
                )
                for each in group
                for is_future in (self.futures.get(each) == path,)
            )
            yield DescribeLogDirsTopic(name=WireTopicName(topic), partitions=partitions)


def log_dirs(
    logs: Iterable[TopicPartition], sizes: Mapping[TopicPartition, int], *, has_failed: bool
) -> DescribeLogDirsResponse:
    """Return a broker's answer with these logs, plus a failed directory if `has_failed`.

    Logs without a size are empty.
    """
    topics = tuple(
        DescribeLogDirsTopic(
            name=WireTopicName(topic),
            partitions=tuple(
                DescribeLogDirsPartition(
                    partition_index=i32(each.partition),
                    partition_size=i64(sizes.get(each, 0)),
                    offset_lag=i64(0),
                    is_future_key=False,
                )
                for each in group
            ),
        )
        for topic, group in groupby(sorted(logs), key=attrgetter("topic"))
    )
    works = DescribeLogDirsResult(error_code=ErrorCode.none, log_dir=FIRST, topics=topics)
    failed = DescribeLogDirsResult(error_code=ErrorCode.kafka_storage_error, log_dir=SECOND, topics=())
    return DescribeLogDirsResponse(throttle_time=NO_THROTTLE, results=(works, failed) if has_failed else (works,))
