"""Parses the records of a metadata log, by the schemas that Kafka publishes for them, up to those of Kafka 4.4.

A record is the version of its frame, the key and the version of its kind, all as unsigned varints, and its fields.
Kinds that no journal needs are not parsed. An unknown version may have its fields anywhere, so it is refused instead of
guessed. Callers skip unknown kinds."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

from controller_core.model.ids import BrokerEpoch, BrokerId, PartitionId, TopicId, TopicName
from controller_core.model.metadata import Endpoint, FeatureRange, SecurityProtocol
from controller_core.recorder.metadata_log.batches import LogUnreadable
from controller_core.wire.codecs.decoding import Cursor, Undecodable

T = TypeVar("T")
_REMEDY: Final = "use a release of Kontroller that knows it"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBroker:
    broker: BrokerId
    epoch: BrokerEpoch
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, FeatureRange]
    rack: str | None
    is_fenced: bool
    is_shutting_down: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBroker:
    broker: BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChange:
    """The changes of a registration; None: unchanged."""

    broker: BrokerId
    is_fenced: bool | None = None
    """True if the broker is not live."""
    is_shutting_down: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    name: TopicName
    topic_id: TopicId


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopic:
    topic_id: TopicId


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A complete partition."""

    topic_id: TopicId
    partition: PartitionId
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    removing: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...]
    leader: BrokerId
    recovery_state: int
    leader_epoch: int
    partition_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChange:
    """The changes of a partition; None: unchanged."""

    topic_id: TopicId
    partition: PartitionId
    isr: tuple[BrokerId, ...] | None = None
    leader: BrokerId | None = None
    """The leader epoch rises, even if it is the same leader."""
    replicas: tuple[BrokerId, ...] | None = None
    removing: tuple[BrokerId, ...] | None = None
    adding: tuple[BrokerId, ...] | None = None
    recovery_state: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    resource_type: int
    resource: str
    name: str
    value: str | None
    """None: the configuration is removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevel:
    name: str
    level: int
    """0: the feature is removed."""


class Transaction(Enum):
    """A marker. The records of a transaction take effect at its end, and never if it is aborted."""

    BEGIN = 23
    END = 24
    ABORT = 25


MetadataRecord: TypeAlias = (
    RegisterBroker | UnregisterBroker | BrokerChange | Topic | RemoveTopic | Partition | PartitionChange | Config
    | FeatureLevel | Transaction
)  # fmt: skip


class UnknownKind(Exception):
    """A record of an unknown kind. Later releases of Kafka may have new ones."""

    def __init__(self, api_key: int) -> None:
        super().__init__(f"records of kind {api_key} are unknown")
        self.api_key = api_key


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChange:
    """A control record: the quorum has a new leader from here on."""

    leader: BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class KRaftVersion:
    """A control record: the level of the feature `kraft.version`."""

    level: int


def read_record(content: bytes) -> MetadataRecord | None:
    """Parse a record; None if it has nothing for a journal. Raises `UnknownKind`, `LogUnreadable`."""
    cursor = Cursor(content, 0)
    try:
        frame, api_key, version = (cursor.read_unsigned_varint() for _ in range(3))
        if frame != 1:
            raise LogUnreadable(f"a record of the metadata log has a frame of version {frame}, 1 is known: {_REMEDY}")
        if api_key in _NOT_RECORDED:
            return None
        if api_key not in _READERS:
            raise UnknownKind(api_key)
        newest, reader = _READERS[api_key]
        if version > newest:
            raise LogUnreadable(
                f"a record of the kind {api_key} has version {version}, up to {newest} is known: {_REMEDY}"
            )
        record = reader(cursor, version)
    except (Undecodable, ValueError, struct.error) as error:
        raise LogUnreadable(f"a record of the metadata log cannot be read: {error}") from error
    if cursor.offset != len(content):
        raise LogUnreadable(f"{len(content) - cursor.offset} bytes are left of a record of the kind {api_key}")
    return record


def read_control(key: bytes | None, value: bytes | None) -> LeaderChange | KRaftVersion | None:
    """Parse a control record; None if it has nothing for a journal. Raises `LogUnreadable`."""
    if key is None or len(key) < _CONTROL_KEY.size or value is None:
        raise LogUnreadable("a control record of the metadata log does not name its kind")
    _, kind = _CONTROL_KEY.unpack_from(key)
    try:
        cursor = Cursor(value, 2)  # behind the version
        match kind:
            case 2:
                return LeaderChange(leader=BrokerId(_read_int32(cursor)))
            case 5:
                return KRaftVersion(level=cursor.int16())
            case _:
                return None
    except Undecodable as error:
        raise LogUnreadable(f"a control record of the metadata log cannot be read: {error}") from error


_CONTROL_KEY: Final = struct.Struct(">hh")
_UNCHANGED_LEADER: Final = -2


def _read_registration(cursor: Cursor, version: int) -> RegisterBroker:
    broker = BrokerId(_read_int32(cursor))
    if version >= 2:
        cursor.take(1)  # the flag for a migration from ZooKeeper
    cursor.take(16)  # its incarnation
    epoch = BrokerEpoch(_read_int64(cursor))
    endpoints = _read_array(cursor, _read_endpoint)
    features = dict(_read_array(cursor, _read_feature))
    rack = _read_text(cursor)
    is_fenced = cursor.take(1) != b"\0"
    is_shutting_down = version >= 1 and cursor.take(1) != b"\0"
    _read_tags(cursor)
    return RegisterBroker(
        broker=broker,
        epoch=epoch,
        endpoints=endpoints,
        features=features,
        rack=rack,
        is_fenced=is_fenced,
        is_shutting_down=is_shutting_down,
    )


def _read_endpoint(cursor: Cursor) -> Endpoint:
    listener, host = _require_text(_read_text(cursor)), _require_text(_read_text(cursor))
    port, protocol = int.from_bytes(cursor.take(2), "big"), cursor.int16()
    _read_tags(cursor)
    return Endpoint(listener=listener, security_protocol=SecurityProtocol(protocol).name, host=host, port=port)


def _read_feature(cursor: Cursor) -> tuple[str, FeatureRange]:
    name, oldest, newest = _require_text(_read_text(cursor)), cursor.int16(), cursor.int16()
    _read_tags(cursor)
    return name, FeatureRange(min_version=oldest, max_version=newest)


def _read_unregistration(cursor: Cursor, _: int) -> UnregisterBroker:
    broker = BrokerId(_read_int32(cursor))
    _read_int64(cursor)
    _read_tags(cursor)
    return UnregisterBroker(broker=broker)


def _read_fencing(cursor: Cursor, *, is_fenced: bool) -> BrokerChange:
    broker = _read_unregistration(cursor, 0).broker
    return BrokerChange(broker=broker, is_fenced=is_fenced)


def _read_broker_change(cursor: Cursor, _: int) -> BrokerChange:
    broker = BrokerId(_read_int32(cursor))
    _read_int64(cursor)
    fenced, shutting_down = (_parse_byte(tags.get(tag, b"\0")) for tags in [_read_tags(cursor)] for tag in (0, 1))
    return BrokerChange(
        broker=broker,
        is_fenced=fenced > 0 if fenced else None,
        is_shutting_down=shutting_down > 0 if shutting_down else None,
    )


def _read_topic(cursor: Cursor, _: int) -> Topic:
    name, topic_id = TopicName(_require_text(_read_text(cursor))), _read_topic_id(cursor)
    _read_tags(cursor)
    return Topic(name=name, topic_id=topic_id)


def _read_topic_removal(cursor: Cursor, _: int) -> RemoveTopic:
    topic_id = _read_topic_id(cursor)
    _read_tags(cursor)
    return RemoveTopic(topic_id=topic_id)


def _read_partition(cursor: Cursor, version: int) -> Partition:
    partition, topic_id = PartitionId(_read_int32(cursor)), _read_topic_id(cursor)
    replicas, isr, removing, adding = (_read_brokers(cursor) for _ in range(4))
    leader, leader_epoch, partition_epoch = _read_int32(cursor), _read_int32(cursor), _read_int32(cursor)
    if version >= 1:
        _read_array(cursor, lambda within: within.take(16))  # the directories of the replicas
    recovery_state = _read_tags(cursor).get(0)
    return Partition(
        topic_id=topic_id,
        partition=partition,
        replicas=replicas,
        isr=isr,
        removing=removing,
        adding=adding,
        leader=BrokerId(leader),
        recovery_state=0 if recovery_state is None else _parse_byte(recovery_state),
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
    )


def _read_partition_change(cursor: Cursor, _: int) -> PartitionChange:
    partition, topic_id = PartitionId(_read_int32(cursor)), _read_topic_id(cursor)
    tags = _read_tags(cursor)

    def brokers(tag: int) -> tuple[BrokerId, ...] | None:
        content = tags.get(tag)
        if content is None or content == b"\0":  # null
            return None
        return _read_brokers(Cursor(content, 0))

    leader = int.from_bytes(tags[1], "big", signed=True) if 1 in tags else _UNCHANGED_LEADER
    recovery_state = _parse_byte(tags[5]) if 5 in tags else -1
    return PartitionChange(
        topic_id=topic_id,
        partition=partition,
        isr=brokers(0),
        leader=None if leader == _UNCHANGED_LEADER else BrokerId(leader),
        replicas=brokers(2),
        removing=brokers(3),
        adding=brokers(4),
        recovery_state=None if recovery_state < 0 else recovery_state,
    )


def _read_config(cursor: Cursor, _: int) -> Config:
    resource_type = _parse_byte(cursor.take(1))
    resource, name, value = _require_text(_read_text(cursor)), _require_text(_read_text(cursor)), _read_text(cursor)
    _read_tags(cursor)
    return Config(resource_type=resource_type, resource=resource, name=name, value=value)


def _read_feature_level(cursor: Cursor, _: int) -> FeatureLevel:
    name, level = _require_text(_read_text(cursor)), cursor.int16()
    _read_tags(cursor)
    return FeatureLevel(name=name, level=level)


def _read_marker(marker: Transaction, cursor: Cursor, _: int) -> Transaction:
    _read_tags(cursor)
    return marker


_READERS: Final[Mapping[int, tuple[int, Callable[[Cursor, int], MetadataRecord | None]]]] = {
    0: (4, _read_registration),
    1: (0, _read_unregistration),
    2: (0, _read_topic),
    3: (2, _read_partition),
    4: (0, _read_config),
    5: (2, _read_partition_change),
    7: (0, lambda cursor, _: _read_fencing(cursor, is_fenced=True)),
    8: (0, lambda cursor, _: _read_fencing(cursor, is_fenced=False)),
    9: (0, _read_topic_removal),
    12: (0, _read_feature_level),
    17: (3, _read_broker_change),
    **{marker.value: (0, partial(_read_marker, marker)) for marker in Transaction},
}
"""By the key of the kind: the newest known version, and the function that parses it."""

_NOT_RECORDED: Final = frozenset({10, 11, 14, 15, 18, 19, 20, 21, 22, 26, 27, 28, 29})
"""Delegation tokens, SCRAM credentials, quotas, producer ids, ACLs, empty records, migration, controllers, ELR."""


def _read_int32(cursor: Cursor) -> int:
    return int.from_bytes(cursor.take(4), "big", signed=True)


def _read_int64(cursor: Cursor) -> int:
    return int.from_bytes(cursor.take(8), "big", signed=True)


def _parse_byte(content: bytes) -> int:
    return int.from_bytes(content[:1], "big", signed=True)


def _read_topic_id(cursor: Cursor) -> TopicId:
    return TopicId(UUID(bytes=cursor.take(16)))


def _read_brokers(cursor: Cursor) -> tuple[BrokerId, ...]:
    return _read_array(cursor, lambda within: BrokerId(_read_int32(within)))


def _read_array(cursor: Cursor, one: Callable[[Cursor], T]) -> tuple[T, ...]:
    length = cursor.read_unsigned_varint() - 1
    if not 0 <= length <= len(cursor.data) - cursor.offset:  # every item takes a byte at least
        raise Undecodable(f"an array says it has {length} items")
    return tuple([one(cursor) for _ in range(length)])


def _read_text(cursor: Cursor) -> str | None:
    length = cursor.read_unsigned_varint() - 1
    return None if length == -1 else cursor.take(length).decode()


def _require_text(text: str | None) -> str:
    if text is None:
        raise Undecodable("a required text is null")
    return text


def _read_tags(cursor: Cursor) -> dict[int, bytes]:
    """Parse the tagged fields. Unknown ones are skipped, as KIP-482 demands."""
    return {
        cursor.read_unsigned_varint(): cursor.take(cursor.read_unsigned_varint())
        for _ in range(cursor.read_unsigned_varint())
    }
