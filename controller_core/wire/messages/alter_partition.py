"""AlterPartition, version 3: a leader requests a new ISR (seed 004), and gets the result.

Brokers of 3.9 send version 3 to a controller that offers it. These are values instead of kio's messages: when a broker
returns, its leaders report hundreds of partitions at once, and kio has an object for each member of each ISR.
`codecs.isr_changes` decodes requests to them and encodes answers from them; the code in between sees no bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
)
from controller_core.model.metadata import PartitionState

Outcome: TypeAlias = ErrorCode | PartitionState
"""The result for one partition: its current state, or the error."""


class AskedIsr(NamedTuple):
    """The ISR that a leader requests for one partition. The epochs of members are -1 without KRaft (KIP-903)."""

    partition: PartitionId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    leader_recovery_state: int
    """The value as sent, which may be invalid."""
    partition_epoch: PartitionEpoch


class AskedTopic(NamedTuple):
    """The requests of a leader for partitions of one topic."""

    topic_id: TopicId | None
    partitions: Sequence[AskedIsr]
    name: TopicName | None = None
    """Used instead of the id by brokers before version 2."""


class AnsweredIsr(NamedTuple):
    """The answer to a leader for one partition."""

    partition: PartitionId
    outcome: Outcome

    @property
    def error_code(self) -> ErrorCode:
        """The partition's error, or none."""
        return self.outcome if isinstance(self.outcome, ErrorCode) else ErrorCode.none


class AnsweredTopic(NamedTuple):
    """The answers to a leader for partitions of one topic."""

    topic_id: TopicId | None
    partitions: Sequence[AnsweredIsr]
    name: TopicName | None = None
    """The name in the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionRequest:
    """A leader's request, with its id and the epoch of its registration."""

    __type__: ClassVar[EntityType] = EntityType.request
    __version__: ClassVar[i16] = i16(3)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(56)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    broker_id: BrokerId
    broker_epoch: BrokerEpoch
    topics: tuple[AskedTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionResponse:
    """The answer: an error for the whole request, or the result of each partition, in the order of the request."""

    __type__: ClassVar[EntityType] = EntityType.response
    __version__: ClassVar[i16] = i16(3)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(56)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    error_code: ErrorCode
    topics: tuple[AnsweredTopic, ...] = ()
