"""LeaderAndIsr, version 7: the partitions that a broker leads or follows, with their epochs.

Seed 004 sends it with every change of a leader or an ISR. The broker applies a partition's state only if its leader
epoch is larger than the known one. So a change that must take effect raises the leader epoch.
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
    __version__: ClassVar[i16] = i16(7)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(4)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader


class _Response:
    __slots__ = ()
    __type__: ClassVar[EntityType] = EntityType.nested
    __version__: ClassVar[i16] = i16(7)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(4)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrPartitionState(_Request):
    partition_index: PartitionId = field(metadata={"kafka_type": "int32"})
    controller_epoch: ControllerEpoch = field(metadata={"kafka_type": "int32"})
    """The epoch of the controller that decided this state, not necessarily that of the sender."""
    leader: BrokerId = field(metadata={"kafka_type": "int32"})
    leader_epoch: LeaderEpoch = field(metadata={"kafka_type": "int32"})
    isr: tuple[BrokerId, ...] = field(metadata={"kafka_type": "int32"})
    partition_epoch: PartitionEpoch = field(metadata={"kafka_type": "int32"})
    """The version of the partition's state znode."""
    replicas: tuple[BrokerId, ...] = field(metadata={"kafka_type": "int32"})
    adding_replicas: tuple[BrokerId, ...] = field(metadata={"kafka_type": "int32"}, default=())
    removing_replicas: tuple[BrokerId, ...] = field(metadata={"kafka_type": "int32"}, default=())
    is_new: bool = field(metadata={"kafka_type": "bool"}, default=False)
    """True if the broker may create the replica's log even if one of its log directories is offline."""
    leader_recovery_state: int = field(metadata={"kafka_type": "int8"}, default=0)
    """1 if the leader must recover from an unclean election (KIP-704), otherwise 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrTopicState(_Request):
    topic_name: TopicName = field(metadata={"kafka_type": "string"})
    topic_id: TopicId | None = field(metadata={"kafka_type": "uuid"})
    partition_states: tuple[LeaderAndIsrPartitionState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrLiveLeader(_Request):
    broker_id: BrokerId = field(metadata={"kafka_type": "int32"})
    host_name: str = field(metadata={"kafka_type": "string"})
    port: int = field(metadata={"kafka_type": "int32"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrRequest(_Request):
    __type__: ClassVar[EntityType] = EntityType.request
    controller_id: BrokerId = field(metadata={"kafka_type": "int32"})
    is_kraft_controller: bool = field(metadata={"kafka_type": "bool"}, default=False)
    """Never set by a ZooKeeper-mode controller; brokers refuse it (KIP-866)."""
    controller_epoch: ControllerEpoch = field(metadata={"kafka_type": "int32"})
    broker_epoch: BrokerEpoch = field(metadata={"kafka_type": "int64"}, default=BrokerEpoch(-1))
    """The epoch of the broker that the request is meant for; -1 disables the broker's check."""
    type_: int = field(metadata={"kafka_type": "int8"}, default=0)
    """0 (unknown) from a ZooKeeper-mode controller. 1 and 2 belong to KIP-866's migration."""
    topic_states: tuple[LeaderAndIsrTopicState, ...]
    live_leaders: tuple[LeaderAndIsrLiveLeader, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrPartitionError(_Response):
    partition_index: PartitionId = field(metadata={"kafka_type": "int32"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrTopicError(_Response):
    topic_id: TopicId | None = field(metadata={"kafka_type": "uuid"})
    partition_errors: tuple[LeaderAndIsrPartitionError, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrResponse(_Response):
    __type__: ClassVar[EntityType] = EntityType.response
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    topics: tuple[LeaderAndIsrTopicError, ...]
