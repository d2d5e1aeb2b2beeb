"""ControlledShutdown, version 3: a stopping broker asks the controller to move its leaderships (KIP-380)."""

from dataclasses import dataclass, field
from typing import ClassVar

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16

from controller_core.model.ids import BrokerEpoch, BrokerId, PartitionId, TopicName


class _Response:
    __slots__ = ()
    __type__: ClassVar[EntityType] = EntityType.nested
    __version__: ClassVar[i16] = i16(3)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(7)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledShutdownRequest:
    __type__: ClassVar[EntityType] = EntityType.request
    __version__: ClassVar[i16] = i16(3)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(7)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    broker_id: BrokerId = field(metadata={"kafka_type": "int32"})
    broker_epoch: BrokerEpoch = field(metadata={"kafka_type": "int64"}, default=BrokerEpoch(-1))
    """The epoch of the asking broker; -1 disables the controller's check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingPartition(_Response):
    topic_name: TopicName = field(metadata={"kafka_type": "string"})
    partition_index: PartitionId = field(metadata={"kafka_type": "int32"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledShutdownResponse(_Response):
    __type__: ClassVar[EntityType] = EntityType.response
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    remaining_partitions: tuple[RemainingPartition, ...]
    """The partitions that the broker still leads. While there are any, it asks again."""
