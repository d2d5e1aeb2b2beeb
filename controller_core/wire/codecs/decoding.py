"""Decodes Kafka messages from untrusted sources.

kio 0.6's reader is native code that trusts lengths: an array length beyond memory aborts the process, and an unknown
tagged field is an error. The controller's listener must survive any bytes. So this module reads messages by kio's
schema classes, checks every length against the bytes that are there, skips unknown tagged fields (KIP-482), and has one
error: `Undecodable`.

One byte can encode an item that takes a hundred bytes in memory. So all array items and tagged fields are counted too,
before they are read, and a message with too many raises `TooManyItems`. Each type's reader is built once and cached.
"""

import struct
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, Union, get_args, get_origin
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.protocol import Entity

E = TypeVar("E", bound=Entity)

MOST_ITEMS: Final = 1 << 31
"""No limit: more than any array can have."""

_MOST_LENGTH_BYTES: Final = 5


class Undecodable(Exception):
    """The bytes are not a message of the expected type. Fatal for their connection."""


class TooManyItems(Undecodable):
    """A message has too many items in all its arrays together. Smaller messages would be accepted."""

    def __init__(self, most: int) -> None:
        super().__init__(f"more than {most} items: split the request")


class Cursor:
    """The position in the bytes, and the number of items that may follow. It never reads beyond the end."""

    __slots__ = ("_items_left", "_most_items", "data", "offset")

    def __init__(self, data: bytes, offset: int, most_items: int = MOST_ITEMS) -> None:
        self.data = data
        self.offset = offset
        self._most_items = self._items_left = most_items

    def count(self, items: int) -> None:
        """Count items that follow. Raises `TooManyItems`."""
        self._items_left -= items
        if self._items_left < 0:
            raise TooManyItems(self._most_items)

    def make_inner(self, content: bytes) -> "Cursor":
        """Return a cursor for a part that was taken out of the message. Its items are counted only there."""
        return Cursor(content, 0, self._items_left)

    def take(self, length: int) -> bytes:
        end = self.offset + length
        if end > len(self.data):
            raise Undecodable(f"{length} bytes needed at offset {self.offset}, {len(self.data) - self.offset} are left")
        start, self.offset = self.offset, end
        return self.data[start:end]

    def int16(self) -> int:
        return int.from_bytes(self.take(2), "big", signed=True)

    def read_unsigned_varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise Undecodable(f"the variable-length number before offset {self.offset} has no end")


def length_at(content: bytes, offset: int) -> tuple[int, int]:
    """Return the length of a compact array or string, and the offset after it. Raises `IndexError` if there is none.

    For fast paths that read large messages without a `Cursor`, and leave unusual ones to the readers below.
    """
    value = 0
    for place in range(_MOST_LENGTH_BYTES):
        byte = content[offset + place]
        value |= (byte & 0x7F) << 7 * place
        if byte <= 0x7F:
            break
    else:
        raise IndexError
    if value == 0:
        raise IndexError
    return value - 1, offset + place + 1


_Reader: TypeAlias = Callable[[Cursor], Any]


def decode_array(entity_type: type[E], data: bytes) -> tuple[E, ...]:
    """Decode a compact array of messages that uses all bytes. Raises `Undecodable`."""
    cursor = Cursor(data, 0)
    entities: tuple[E, ...] = _array_reader(_entity_reader(entity_type), flexible=True, optional=False)(cursor)
    if cursor.offset != len(data):
        raise Undecodable(f"{len(data) - cursor.offset} bytes are left after an array of {entity_type.__name__}")
    return entities


def decode(entity_type: type[E], data: bytes, offset: int = 0, *, most_items: int = MOST_ITEMS) -> tuple[E, int]:
    """Decode one message at an offset. Return it and the offset after it. Raises `Undecodable` and `TooManyItems`."""
    cursor = Cursor(data, offset, most_items)
    try:
        entity: E = _entity_reader(entity_type)(cursor)
    except (ValueError, OverflowError) as error:  # invalid UTF-8, an unknown error code, a time out of range
        raise Undecodable(f"{entity_type.__name__} has an impossible value before offset {cursor.offset}") from error
    return entity, cursor.offset


def decode_whole(entity_type: type[E], data: bytes, offset: int = 0) -> E:
    """Decode one message that uses all bytes from the offset on. Raises `Undecodable`, also if bytes are left over."""
    entity, end = decode(entity_type, data, offset)
    if end != len(data):
        raise Undecodable(f"{len(data) - end} bytes are left after {entity_type.__name__}")
    return entity


@cache
def _entity_reader(entity_type: type[Entity]) -> _Reader:
    flexible = entity_type.__flexible__
    plain: list[tuple[str, _Reader]] = []
    tagged: dict[int, tuple[str, _Reader]] = {}
    for field in fields(entity_type):
        legacy_string = entity_type.__type__ is EntityType.header and field.name == "client_id"
        reader = _field_reader(field, flexible=flexible and not legacy_string)
        if "tag" in field.metadata:
            tagged[field.metadata["tag"]] = (field.name, reader)
        else:
            plain.append((field.name, reader))
    defaults = {name: _default(entity_type, name) for name, _ in tagged.values()}

    def read(cursor: Cursor) -> Entity:
        values = {name: reader(cursor) for name, reader in plain}
        if flexible:
            values.update(defaults)
            _read_tagged(cursor, tagged, values)
        return entity_type(**values)

    return read


def skip_tagged(cursor: Cursor) -> None:
    """Skip the tagged fields of a message without known ones. Raises `Undecodable` and `TooManyItems`."""
    _read_tagged(cursor, {}, {})


def _read_tagged(cursor: Cursor, tagged: dict[int, tuple[str, _Reader]], values: dict[str, Any]) -> None:
    number = cursor.read_unsigned_varint()
    cursor.count(number)
    for _ in range(number):
        tag = cursor.read_unsigned_varint()
        content = cursor.take(cursor.read_unsigned_varint())
        if tag in tagged:
            name, reader = tagged[tag]
            inner = cursor.make_inner(content)
            values[name] = reader(inner)
            if inner.offset != len(content):
                raise Undecodable(f"tagged field {name} says it has {len(content)} bytes and has {inner.offset}")


def _default(entity_type: type[Entity], name: str) -> Any:
    field = next(field for field in fields(entity_type) if field.name == name)
    if field.default is not MISSING:
        return field.default
    if is_dataclass(field.type) and isinstance(field.type, type):
        return field.type(**{part.name: _zero(part) for part in fields(field.type)})
    raise NotImplementedError(f"{entity_type.__name__}.{name}: a tagged field without a default")


def _zero(part: Field[Any]) -> Any:
    """Return Kafka's default for a field of an absent message."""
    if part.default is not MISSING:
        return part.default
    if part.metadata["kafka_type"] not in ("int8", "int16", "int32", "int64"):
        raise NotImplementedError(f"{part.name}: a field of a tagged message, without a default")
    return 0


def _field_reader(field: Field[Any], *, flexible: bool) -> _Reader:
    kind, optional = _strip_none(field.type)
    if get_origin(kind) is tuple:
        item, item_optional = _strip_none(get_args(kind)[0])
        one = _single_reader(item, field, flexible=flexible, optional=False)
        return _array_reader(one, flexible=flexible, optional=optional or item_optional)
    return _single_reader(kind, field, flexible=flexible, optional=optional and "tag" not in field.metadata)


def _strip_none(kind: Any) -> tuple[Any, bool]:
    if get_origin(kind) not in (UnionType, Union):
        return kind, False
    (inner,) = (argument for argument in get_args(kind) if argument is not NoneType)
    return inner, True


def _single_reader(kind: Any, field: Field[Any], *, flexible: bool, optional: bool) -> _Reader:
    if is_dataclass(kind):
        reader = _entity_reader(kind)  # type: ignore[arg-type] # a dataclass inside a kio entity is an entity
        return _nullable_entity_reader(reader) if optional else reader
    kafka_type = field.metadata["kafka_type"]
    if kafka_type in _FIXED:
        return _FIXED[kafka_type]
    if kafka_type in ("string", "bytes", "records"):
        return _bytes_reader(kafka_type == "string", flexible=flexible, optional=optional)
    raise NotImplementedError(f"field {field.name} has the type {kafka_type}")


def _array_reader(one: _Reader, *, flexible: bool, optional: bool) -> _Reader:
    def read(cursor: Cursor) -> tuple[Any, ...] | None:
        length = cursor.read_unsigned_varint() - 1 if flexible else _int32(cursor)
        if length == -1 and optional:
            return None
        if not 0 <= length <= len(cursor.data) - cursor.offset:  # every item takes at least one byte
            raise Undecodable(f"an array before offset {cursor.offset} says it has {length} items")
        cursor.count(length)
        return tuple([one(cursor) for _ in range(length)])

    return read


def _bytes_reader(text: bool, *, flexible: bool, optional: bool) -> _Reader:
    read_legacy_length = _int16 if text else _int32

    def read(cursor: Cursor) -> str | bytes | None:
        length = cursor.read_unsigned_varint() - 1 if flexible else read_legacy_length(cursor)
        if length == -1 and optional:
            return None
        if length < 0:
            raise Undecodable(f"a string before offset {cursor.offset} has the length {length}")
        content = cursor.take(length)
        return content.decode() if text else content

    return read


def _nullable_entity_reader(reader: _Reader) -> _Reader:
    def read(cursor: Cursor) -> Entity | None:
        return None if cursor.take(1) == b"\xff" else reader(cursor)

    return read


def _number(form: str) -> Callable[[Cursor], int]:
    number = struct.Struct(form)

    def read(cursor: Cursor) -> int:
        offset = cursor.offset
        if offset + number.size > len(cursor.data):
            _cut(offset)
        cursor.offset = offset + number.size
        value: int = number.unpack_from(cursor.data, offset)[0]
        return value

    return read


def _cut(offset: int) -> NoReturn:
    raise Undecodable(f"the bytes end within a number at offset {offset}")


_int16, _int32, _int64 = _number(">h"), _number(">i"), _number(">q")


def _read_uuid(cursor: Cursor) -> UUID | None:
    content = cursor.take(16)
    return UUID(bytes=content) if any(content) else None


def _read_time(cursor: Cursor) -> datetime | None:
    milliseconds = _int64(cursor)
    return None if milliseconds == -1 else datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)


_FIXED: dict[str, _Reader] = {
    "bool": _number(">?"),
    "int8": _number(">b"),
    "int16": _int16,
    "int32": _int32,
    "int64": _int64,
    "uint16": _number(">H"),
    "float64": _number(">d"),
    "uuid": _read_uuid,
    "error_code": lambda cursor: ErrorCode(_int16(cursor)),
    "timedelta_i32": lambda cursor: timedelta(milliseconds=_int32(cursor)),
    "timedelta_i64": lambda cursor: timedelta(milliseconds=_int64(cursor)),
    "datetime_i64": _read_time,
}
