"""Reads the answers of brokers into the values that views consist of. Sends nothing.

An answer to Metadata for all topics is large and nearly always the same as the one before; parsing it takes far longer
than comparing it. `find_comparable_parts` finds the comparable parts: everything but the controller, because a broker
names a random broker as the controller."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from kio.schema.api_versions.v4 import ApiVersionsResponse
from kio.schema.describe_configs.v4.response import DescribeConfigsResult
from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsResponse
from kio.schema.metadata.v11 import MetadataResponse
from kio.schema.metadata.v11.response import MetadataResponseTopic

from controller_core.client.configs import MIN_INSYNC_REPLICAS
from controller_core.client.quorum import Quorum
from controller_core.client.snapshot import read_partition_state
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import (
    BrokerId,
    ControllerEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import (
    FeatureRange,
    PartitionState,
    ReplicaAssignment,
)
from controller_core.model.snapshot import Controller, ControllerKind
from controller_core.wire.codecs.decoding import Cursor

TOPIC_S_OWN: Final = 1
"""Source of a configuration that is set on the topic."""
"""Source of a configuration that is set as the default of all brokers."""
_HEAD_BYTES: Final = 9
"""Bytes before the brokers: correlation id, tags of the header, and throttle time."""


class MetadataParts(NamedTuple):
    """The comparable bytes of an answer to Metadata, version 11."""

    brokers: bytes
    topics: bytes


class Partition(NamedTuple):
    """A partition as a broker reports it. Only the controller knows which of its replicas are being added or
    removed."""

    replicas: tuple[BrokerId, ...]
    state: PartitionState


class Topic(NamedTuple):
    """A topic as a broker reports it."""

    topic_id: TopicId
    partitions: Mapping[PartitionId, Partition]


Topics = Mapping[TopicName, Topic]
Moves = Mapping[TopicPartition, ReplicaAssignment]
"""The partitions that are being reassigned."""


class TopicConfig(NamedTuple):
    """The configurations that are set on a topic, and its effective min.insync.replicas."""

    own: Mapping[str, str]
    min_isr: str
    is_told: bool = True
    """False if the brokers refuse to reveal it to this user."""

    def restrict_to(self, keys: Collection[str]) -> "TopicConfig":
        """Return the same configuration as an answer for these keys alone would have it."""
        return self._replace(own={key: value for key, value in self.own.items() if key in keys})


NOTHING_SET: Final = TopicConfig({}, "")
NOT_TOLD: Final = TopicConfig({}, "", is_told=False)


def find_comparable_parts(content: bytes) -> MetadataParts:
    """Split the bytes of an answer. Raises `Undecodable`."""
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


def read_leader(quorum: Quorum) -> Controller | None:
    """Return the controller that leads the quorum; None if there is none."""
    if quorum.leader is None:
        return None
    return Controller(id=quorum.leader, epoch=ControllerEpoch(quorum.epoch), kind=ControllerKind.KRAFT)


def read_topics(metadata: MetadataResponse) -> dict[TopicName, Topic]:
    """Return the topics, without those that the broker gives no details of."""
    return {
        TopicName(each.name): Topic(TopicId(each.topic_id), dict(_read_partitions(each)))
        for each in metadata.topics
        if each.name is not None and each.topic_id is not None
    }


def read_moves(response: ListPartitionReassignmentsResponse) -> Moves:
    """Return the partitions that are being reassigned."""
    return {
        TopicPartition(TopicName(topic.name), PartitionId(int(each.partition_index))): ReplicaAssignment(
            replicas=tuple(map(BrokerId, each.replicas)),
            adding=tuple(map(BrokerId, each.adding_replicas)),
            removing=tuple(map(BrokerId, each.removing_replicas)),
        )
        for topic in response.topics
        for each in topic.partitions
    }


def explains(move: ReplicaAssignment | None, replicas: Collection[BrokerId]) -> bool:
    """Return True if a broker that shows these replicas shows the partition during this move."""
    return move is not None and set(move.replicas) == set(replicas)


def make_assignment(partition: Partition, move: ReplicaAssignment | None) -> ReplicaAssignment:
    """Return the replicas of a partition, with those that are being added and removed."""
    if move is None or not explains(move, partition.replicas):
        return ReplicaAssignment(replicas=partition.replicas)
    return replace(move, replicas=partition.replicas)


def read_config(result: DescribeConfigsResult) -> TopicConfig:
    """Return the configuration of a topic. Secrets have no value, and are left out."""
    said = {each.name: each for each in result.configs}
    own = {name: each.value for name, each in said.items() if each.config_source == TOPIC_S_OWN}
    min_isr = said.get(MIN_INSYNC_REPLICAS)
    return TopicConfig(
        {name: value for name, value in own.items() if value is not None}, (min_isr.value if min_isr else "") or ""
    )


def read_finalized_features(response: ApiVersionsResponse) -> FinalizedFeatures:
    """Return the finalized features. Their epoch is the end of the metadata log that the broker has applied."""
    levels = {each.name: int(each.max_version_level) for each in response.finalized_features}
    return FinalizedFeatures(features=levels, epoch=int(response.finalized_features_epoch))


def read_supported_features(response: ApiVersionsResponse) -> dict[str, FeatureRange]:
    """Return the levels of features that a broker supports. Level 0 means not finalized, so it is left out."""
    return {
        each.name: FeatureRange(min_version=max(1, int(each.min_version)), max_version=int(each.max_version))
        for each in response.supported_features
        if each.max_version >= 1
    }


def _read_partitions(topic: MetadataResponseTopic) -> Iterator[tuple[PartitionId, Partition]]:
    for each in sorted(topic.partitions, key=lambda each: each.partition_index):
        yield (
            PartitionId(int(each.partition_index)),
            Partition(tuple(map(BrokerId, each.replica_nodes)), read_partition_state(each)),
        )


def _skip_text(cursor: Cursor) -> None:
    cursor.take(max(0, cursor.read_unsigned_varint() - 1))


def _skip_tags(cursor: Cursor) -> None:
    for _ in range(cursor.read_unsigned_varint()):
        cursor.read_unsigned_varint()
        cursor.take(cursor.read_unsigned_varint())
