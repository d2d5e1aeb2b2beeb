"""StopReplica, version 4: a broker stops a replica, and deletes its log if the request says so (KIP-570)."""

from dataclasses import dataclass, field
from typing import ClassVar

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16

from controller_core.model.ids import (
    NO_EPOCH,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionId,
    TopicName,
)


class _Request:
    __slots__ = ()
    __type__: ClassVar[EntityType] = EntityType.nested
    __version__: ClassVar[i16] = i16(4)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(5)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader


class _Response:
    __slots__ = ()
    __type__: ClassVar[EntityType] = EntityType.nested
    __version__: ClassVar[i16] = i16(4)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(5)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicaPartitionState(_Request):
    partition_index: PartitionId = field(metadata={"kafka_type": "int32"})
    leader_epoch: LeaderEpoch = field(metadata={"kafka_type": "int32"}, default=NO_EPOCH)
    """-2 (`EPOCH_DURING_DELETE`) during a topic's deletion, -1 if unknown. Both disable the check."""
    delete_partition: bool = field(metadata={"kafka_type": "bool"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicaTopicState(_Request):
    topic_name: TopicName = field(metadata={"kafka_type": "string"})
    partition_states: tuple[StopReplicaPartitionState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicaRequest(_Request):
    __type__: ClassVar[EntityType] = EntityType.request
    controller_id: BrokerId = field(metadata={"kafka_type": "int32"})
    is_kraft_controller: bool = field(metadata={"kafka_type": "bool"}, default=False)
    """Never set by a ZooKeeper-mode controller; brokers refuse it (KIP-866)."""
    controller_epoch: ControllerEpoch = field(metadata={"kafka_type": "int32"})
    broker_epoch: BrokerEpoch = field(metadata={"kafka_type": "int64"}, default=BrokerEpoch(-1))
    """The epoch of the broker that the request is meant for; -1 disables the broker's check."""
    topic_states: tuple[StopReplicaTopicState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicaPartitionError(_Response):
    topic_name: TopicName = field(metadata={"kafka_type": "string"})
    partition_index: PartitionId = field(metadata={"kafka_type": "int32"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicaResponse(_Response):
    __type__: ClassVar[EntityType] = EntityType.response
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    partition_errors: tuple[StopReplicaPartitionError, ...]
