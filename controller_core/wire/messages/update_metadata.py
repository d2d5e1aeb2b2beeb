"""UpdateMetadata, version 8: a broker's metadata for clients, and the way it finds the controller.

The list of live brokers replaces the broker's list every time; the partitions are changes to what it has. The broker
looks up the controller's id in that list, so the controller lists itself there.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
)


class _Request:
    __slots__ = ()
    __type__: ClassVar[EntityType] = EntityType.nested
    __version__: ClassVar[i16] = i16(8)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(6)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMetadataPartitionState(_Request):
    partition_index: PartitionId = field(metadata={"kafka_type": "int32"})
    controller_epoch: ControllerEpoch = field(metadata={"kafka_type": "int32"})
    leader: BrokerId = field(metadata={"kafka_type": "int32"})
    """-2 (`LEADER_DURING_DELETE`) makes the broker forget the partition."""
    leader_epoch: LeaderEpoch = field(metadata={"kafka_type": "int32"})
    isr: tuple[BrokerId, ...] = field(metadata={"kafka_type": "int32"})
    zk_version: PartitionEpoch = field(metadata={"kafka_type": "int32"})
    replicas: tuple[BrokerId, ...] = field(metadata={"kafka_type": "int32"})
    offline_replicas: tuple[BrokerId, ...] = field(metadata={"kafka_type": "int32"}, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMetadataTopicState(_Request):
    topic_name: TopicName = field(metadata={"kafka_type": "string"})
    topic_id: TopicId | None = field(metadata={"kafka_type": "uuid"})
    partition_states: tuple[UpdateMetadataPartitionState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMetadataEndpoint(_Request):
    port: int = field(metadata={"kafka_type": "int32"})
    host: str = field(metadata={"kafka_type": "string"})
    listener: str = field(metadata={"kafka_type": "string"})
    security_protocol: int = field(metadata={"kafka_type": "int16"})
    """0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMetadataBroker(_Request):
    id: BrokerId = field(metadata={"kafka_type": "int32"})
    endpoints: tuple[UpdateMetadataEndpoint, ...]
    rack: str | None = field(metadata={"kafka_type": "string"}, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMetadataRequest(_Request):
    __type__: ClassVar[EntityType] = EntityType.request
    controller_id: BrokerId = field(metadata={"kafka_type": "int32"})
    is_kraft_controller: bool = field(metadata={"kafka_type": "bool"}, default=False)
    """Never set by a ZooKeeper-mode controller; brokers refuse it (KIP-866)."""
    type_: int = field(metadata={"kafka_type": "int8", "tag": 0}, default=0)
    """0 (unknown) from a ZooKeeper-mode controller. 1 and 2 belong to KIP-866's migration."""
    controller_epoch: ControllerEpoch = field(metadata={"kafka_type": "int32"})
    broker_epoch: BrokerEpoch = field(metadata={"kafka_type": "int64"}, default=BrokerEpoch(-1))
    """The epoch of the broker that the request is meant for; -1 disables the broker's check."""
    topic_states: tuple[UpdateMetadataTopicState, ...]
    live_brokers: tuple[UpdateMetadataBroker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMetadataResponse:
    __type__: ClassVar[EntityType] = EntityType.response
    __version__: ClassVar[i16] = i16(8)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(6)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
