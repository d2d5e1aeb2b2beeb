"""What brokers say of a cluster, as the values that views are made of. Nothing is asked here.

An answer to Metadata for all topics is large and nearly always the same as the one before; reading it takes far longer
than comparing it. `parts_of` finds what is to be compared: all but the controller, as which a broker names any broker.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from kio.schema.api_versions.v4 import ApiVersionsResponse
from kio.schema.describe_configs.v4.response import DescribeConfigsResult
from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsResponse
from kio.schema.metadata.v11 import MetadataResponse
from kio.schema.metadata.v11.response import MetadataResponsePartition, MetadataResponseTopic

from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import (
    NO_LEADER,
    UNTOLD_BROKER_EPOCH,
    UNTOLD_CONTROLLER_EPOCH,
    UNTOLD_PARTITION_EPOCH,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import (
    Broker,
    Endpoint,
    FeatureRange,
    LeaderAndIsr,
    PartitionState,
    ReplicaAssignment,
)
from controller_core.wire.client.min_insync_replicas import MIN_INSYNC_REPLICAS
from controller_core.wire.client.quorum import Quorum
from controller_core.wire.codecs.decoding import Cursor

TOPIC_S_OWN: Final = 1
"""Where a configuration comes from: it was set for the topic."""
_HEAD_BYTES: Final = 9
"""Of an answer: correlation id, tags of its head, and how long it was held back."""


class MetadataParts(NamedTuple):
    """The bytes of an answer to Metadata, version 11."""

    brokers: bytes
    topics: bytes


class Active(NamedTuple):
    """The controller that leads the quorum, and its epoch."""

    id: BrokerId
    epoch: ControllerEpoch


class Move(NamedTuple):
    """A partition that is being reassigned."""

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...]
    removing: tuple[BrokerId, ...]

    def explains(self, replicas: Collection[BrokerId]) -> bool:
        """Whether a broker that shows these replicas shows the partition while it moves."""
        return set(self.replicas) == set(replicas)


class Partition(NamedTuple):
    """A partition as a broker says it; which of its replicas come and go only the controller knows."""

    replicas: tuple[BrokerId, ...]
    state: PartitionState


class Topic(NamedTuple):
    """A topic as a broker says it."""

    topic_id: TopicId
    partitions: Mapping[PartitionId, Partition]


Topics = Mapping[TopicName, Topic]
Moves = Mapping[TopicPartition, Move]


class TopicConfig(NamedTuple):
    """What was set for a topic, and what holds for it in the end."""

    own: Mapping[str, str]
    min_isr: str
    is_told: bool = True
    """Whether brokers say it: they do not to who may not know it."""

    def among(self, keys: Collection[str]) -> "TopicConfig":
        """The same, had brokers been asked for these keys alone."""
        return self._replace(own={key: value for key, value in self.own.items() if key in keys})


NOTHING_SET: Final = TopicConfig({}, "")
NOT_TOLD: Final = TopicConfig({}, "", is_told=False)


def parts_of(content: bytes) -> MetadataParts:
    """Raises `Undecodable`."""
    cursor = Cursor(content, _HEAD_BYTES)
    began = cursor.offset
    for _ in range(cursor.read_unsigned_varint() - 1):
        cursor.take(4)
        _skip_text(cursor)
        cursor.take(4)
        _skip_text(cursor)
        _skip_tags(cursor)
    _skip_text(cursor)
    brokers = content[began : cursor.offset]
    cursor.take(4)
    return MetadataParts(brokers, content[cursor.offset :])


def active_in(quorum: Quorum) -> Active | None:
    """None where nobody leads."""
    return None if quorum.leader is None else Active(quorum.leader, ControllerEpoch(quorum.epoch))


def brokers_in(metadata: MetadataResponse, protocol: str) -> dict[BrokerId, Broker]:
    """The live brokers, each at the listener that was asked, which speaks `protocol`."""
    return {
        BrokerId(each.node_id): Broker(
            id=BrokerId(each.node_id),
            epoch=UNTOLD_BROKER_EPOCH,
            endpoints=(Endpoint(listener="", security_protocol=protocol, host=each.host, port=int(each.port)),),
            rack=each.rack,
        )
        for each in sorted(metadata.brokers, key=lambda each: each.node_id)
    }


def topics_in(metadata: MetadataResponse) -> dict[TopicName, Topic]:
    """The topics, but for those that the broker says nothing of."""
    return {
        TopicName(each.name): Topic(TopicId(each.topic_id), dict(_partitions(each)))
        for each in metadata.topics
        if each.name is not None and each.topic_id is not None
    }


def moves_in(response: ListPartitionReassignmentsResponse) -> dict[TopicPartition, Move]:
    """The partitions that are being reassigned."""
    return {
        TopicPartition(TopicName(topic.name), PartitionId(int(each.partition_index))): Move(
            tuple(map(BrokerId, each.replicas)),
            tuple(map(BrokerId, each.adding_replicas)),
            tuple(map(BrokerId, each.removing_replicas)),
        )
        for topic in response.topics
        for each in topic.partitions
    }


def assignment_of(partition: Partition, move: Move | None) -> ReplicaAssignment:
    """The replicas of a partition, with those that come and go."""
    if move is None or not move.explains(partition.replicas):
        return ReplicaAssignment(replicas=partition.replicas)
    return ReplicaAssignment(replicas=partition.replicas, adding=move.adding, removing=move.removing)


def config_in(result: DescribeConfigsResult) -> TopicConfig:
    """The configuration of a topic. A secret has no value, and is none of what is compared."""
    said = {each.name: each for each in result.configs}
    own = {name: each.value for name, each in said.items() if each.config_source == TOPIC_S_OWN}
    min_isr = said.get(MIN_INSYNC_REPLICAS)
    return TopicConfig(
        {name: value for name, value in own.items() if value is not None}, (min_isr.value if min_isr else "") or ""
    )


def finalized_in(response: ApiVersionsResponse) -> FinalizedFeatures:
    """The finalized features, with the end of the metadata log that the broker has applied as their epoch."""
    levels = {each.name: int(each.max_version_level) for each in response.finalized_features}
    return FinalizedFeatures(features=levels, epoch=int(response.finalized_features_epoch))


def supported_in(response: ApiVersionsResponse) -> dict[str, FeatureRange]:
    """The levels of features that a broker supports. Level 0 is not being finalized."""
    return {
        each.name: FeatureRange(min_version=max(1, int(each.min_version)), max_version=int(each.max_version))
        for each in response.supported_features
        if each.max_version >= 1
    }


def _partitions(topic: MetadataResponseTopic) -> Iterator[tuple[PartitionId, Partition]]:
    for each in sorted(topic.partitions, key=lambda each: each.partition_index):
        yield PartitionId(int(each.partition_index)), Partition(tuple(map(BrokerId, each.replica_nodes)), _state(each))


def _state(partition: MetadataResponsePartition) -> PartitionState:
    leader = BrokerId(int(partition.leader_id))
    return PartitionState(
        leader_and_isr=LeaderAndIsr(
            leader=leader if leader >= 0 else NO_LEADER,
            isr=tuple(map(BrokerId, partition.isr_nodes)),
            leader_epoch=LeaderEpoch(int(partition.leader_epoch)),
        ),
        controller_epoch=UNTOLD_CONTROLLER_EPOCH,
        partition_epoch=UNTOLD_PARTITION_EPOCH,
    )


def _skip_text(cursor: Cursor) -> None:
    cursor.take(max(0, cursor.read_unsigned_varint() - 1))


def _skip_tags(cursor: Cursor) -> None:
    for _ in range(cursor.read_unsigned_varint()):
        cursor.read_unsigned_varint()
        cursor.take(cursor.read_unsigned_varint())
