"""The commands in versions older than those of inter-broker protocol 3.9, down to 2.6.

These are LeaderAndIsr 4, StopReplica 3 and UpdateMetadata 6. No library declares them, so each is derived from the
newest version by removing newer fields. With brokers of 2.6, the controller knows no topic ids, and brokers work
without them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass
from functools import cache
from types import GenericAlias
from typing import Any, ClassVar, Final, TypeVar, get_args

from kio.schema.errors import ErrorCode
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.model.ids import PartitionId, TopicName
from controller_core.wire.codecs.redaction import redact
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

Request = TypeVar("Request", bound=RequestPayload)

FIRST_WITH_TOPIC_IDS: Final = 5
"""The first version of LeaderAndIsr whose response has topic ids."""
_CLASS_FACTS: Final = ("__type__", "__flexible__", "__api_key__", "__header_schema__")


class CommandVersions(Versions[Request]):
    """The versions of a command. `since` has the first version of each field that is newer than the oldest version."""

    def __init__(
        self, newest: type[Request], newest_response: type[ResponsePayload], *, oldest: int, since: Mapping[str, int]
    ) -> None:
        super().__init__(newest, oldest=oldest)
        self._newest_response = newest_response
        self._since = since

    def request_type(self, version: int) -> type[RequestPayload]:
        """Return the request type of a version. See `Versions`."""
        asked: type[RequestPayload] = self._derive_type(self.newest, version)
        return asked

    def response_type(self, version: int) -> type[ResponsePayload]:
        """Return the response type of a version. See `Versions`."""
        answered: type[ResponsePayload] = self._derive_type(self._newest_response, version)
        return answered

    def _derive_type(self, newest: Any, version: int) -> Any:
        if version == self.max:
            return newest
        return older(newest, version, frozenset(name for name, first in self._since.items() if version < first))


@cache
def older(message: Any, version: int, without: frozenset[str]) -> Any:
    """Return the type of a message, or of a part of one, in an older version without some fields."""
    kept = [
        (
            each.name,
            _older_type(each.type, version, without),
            field(default=each.default, default_factory=each.default_factory, metadata=each.metadata),
        )
        for each in fields(message)
        if each.name not in without
    ]
    facts = {name: getattr(message, name) for name in _CLASS_FACTS} | {"__version__": i16(version)}
    made = make_dataclass(f"{message.__name__}{version}", kept, namespace=facts, frozen=True, slots=True, kw_only=True)
    return redact(made)


def _older_type(declared: Any, version: int, without: frozenset[str]) -> Any:
    part = next(iter(get_args(declared)), None)
    if isinstance(part, type) and is_dataclass(part):
        return GenericAlias(tuple, (older(part, version, without), ...))
    return declared


class _Response4:
    __slots__ = ()
    __type__: ClassVar[EntityType] = EntityType.nested
    __version__: ClassVar[i16] = i16(4)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(4)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrPartitionError4(_Response4):
    topic_name: TopicName = field(metadata={"kafka_type": "string"})
    partition_index: PartitionId = field(metadata={"kafka_type": "int32"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrResponse4(_Response4):
    """The response of version 4. It lists all partitions, each with its topic's name."""

    __type__: ClassVar[EntityType] = EntityType.response
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    partition_errors: tuple[LeaderAndIsrPartitionError4, ...]


LEADER_AND_ISR: Final = CommandVersions(
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    oldest=4,
    since={"type_": 5, "topic_id": FIRST_WITH_TOPIC_IDS, "leader_recovery_state": 6, "is_kraft_controller": 7},
)
STOP_REPLICA: Final = CommandVersions(
    StopReplicaRequest, StopReplicaResponse, oldest=3, since={"is_kraft_controller": 4}
)
UPDATE_METADATA: Final = CommandVersions(
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    oldest=6,
    since={"topic_id": 7, "is_kraft_controller": 8, "type_": 8},
)


def leader_and_isr_answer(
    asked: LeaderAndIsrRequest, response: LeaderAndIsrResponse, version: int
) -> LeaderAndIsrResponse | LeaderAndIsrResponse4:
    """Convert the response to the command's version; the older form has the topics' names in the command's order."""
    if version >= FIRST_WITH_TOPIC_IDS:
        return response
    return LeaderAndIsrResponse4(
        error_code=response.error_code,
        partition_errors=tuple(
            LeaderAndIsrPartitionError4(
                topic_name=topic.topic_name, partition_index=error.partition_index, error_code=error.error_code
            )
            for topic, answered in zip(asked.topic_states, response.topics, strict=False)
            for error in answered.partition_errors
        ),
    )
