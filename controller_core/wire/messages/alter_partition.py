"""AlterPartition, version 3: a leader asks for a new ISR (seed 004), and hears what became of it.

Brokers of 3.9 send version 3 to a controller that offers it. These are values and not kio's messages: when a broker
returns, its leaders ask for hundreds of partitions at once, and kio has an object for each member of each ISR.
`codecs.isr_changes` reads them from a request's bytes and writes an answer's bytes from them, and nobody between the two
looks at bytes.
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
"""What became of one partition's request: the state that holds now, or why it was refused."""


class AskedIsr(NamedTuple):
    """What a leader asks for one partition. The epochs of the ISR's members are -1 without KRaft (KIP-903)."""

    partition: PartitionId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    leader_recovery_state: int
    """As it was sent: it may be none that there is."""
    partition_epoch: PartitionEpoch


class AskedTopic(NamedTuple):
    """What a leader asks for partitions of one topic."""

    topic_id: TopicId | None
    partitions: Sequence[AskedIsr]
    name: TopicName | None = None
    """In place of the id, by brokers before version 2."""


class AnsweredIsr(NamedTuple):
    """What a leader hears of one partition."""

    partition: PartitionId
    outcome: Outcome

    @property
    def error_code(self) -> ErrorCode:
        """The partition's error, or none."""
        return self.outcome if isinstance(self.outcome, ErrorCode) else ErrorCode.none


class AnsweredTopic(NamedTuple):
    """What a leader hears of the partitions of one topic."""

    topic_id: TopicId | None
    partitions: Sequence[AnsweredIsr]
    name: TopicName | None = None
    """As it was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartitionRequest:
    """A leader's request, by its id and the epoch under which it registered."""

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
    """The answer: an error for the request as a whole, or what became of each partition, in the order asked."""

    __type__: ClassVar[EntityType] = EntityType.response
    __version__: ClassVar[i16] = i16(3)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(56)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    error_code: ErrorCode
    topics: tuple[AnsweredTopic, ...] = ()
