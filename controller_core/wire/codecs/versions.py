"""Converts an API between all versions that clients use, so that the answering code sees only the newest.

A request in an older version is converted to the newest: missing fields get their defaults. The answer is converted to
the version of the request: fields that it lacks are dropped. So each answer is written once, for one pair of types, and
clients of all ages get the same decisions. The versions are those in kio, from Kafka's own message definitions.
"""

from collections.abc import Callable, Hashable
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Generic, TypeAlias, TypeVar, Union, cast, get_args, get_origin

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.static.primitive import i32Timedelta
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.wire.codecs.decoding import MOST_ITEMS
from controller_core.wire.codecs.frames import decode_request, encode_response
from controller_core.wire.codecs.redaction import redact

Request = TypeVar("Request", bound=RequestPayload)
_Message = TypeVar("_Message")

_ZERO: Final[dict[type, object]] = {bool: False, int: 0, float: 0.0, str: "", bytes: b"", tuple: ()}
_NO_TIME: Final = i32Timedelta.parse(timedelta())


class Versions(Generic[Request]):
    """The versions of one API from `oldest` to that of the type `newest`; by default only the latter.

    `lift` converts an older request if fields were renamed or changed their meaning. `read` and `write` are faster
    codecs for large messages of the newest version, with the same result.
    """

    def __init__(
        self,
        newest: type[Request],
        *,
        oldest: int | None = None,
        lift: Callable[[RequestPayload], Request] | None = None,
        read: Callable[[bytes], Request] | None = None,
        write: Callable[[Any, int], bytes] = encode_response,
    ) -> None:
        self.newest = redact(newest)
        self.max = int(newest.__version__)
        self.min = self.max if oldest is None else oldest
        self.key = int(newest.__api_key__)
        self._lift = lift
        self._read = read
        self._write = write

    def __contains__(self, version: int) -> bool:
        return self.min <= version <= self.max

    def request_type(self, version: int) -> type[RequestPayload]:
        """Return the request type of a supported version."""
        if version == self.max:
            return cast(type[RequestPayload], self.newest)
        return redact(load_request_schema(self.key, version))

    def response_type(self, version: int) -> type[ResponsePayload]:
        """Return the response type of a supported version."""
        return redact(load_response_schema(self.key, version))

    def decode(self, content: bytes, version: int, *, most_items: int = MOST_ITEMS) -> RequestPayload:
        """Decode a request of a supported version from a frame's content. Raises `Undecodable` and `TooManyItems`."""
        if version == self.max and self._read is not None:
            return cast(RequestPayload, self._read(content))
        return decode_request(self.request_type(version), content, most_items=most_items)

    def encode(self, response: ResponsePayload, correlation_id: int) -> bytes:
        """Encode a response in the request's version as a whole frame. Raises `Unencodable`."""
        write = self._write if response.__version__ == self.max else encode_response
        return write(response, correlation_id)

    def lift(self, request: RequestPayload) -> Request:
        """Convert a request to the newest version."""
        if isinstance(request, self.newest):
            return request
        return self._lift(request) if self._lift else convert(request, self.newest)

    def lower(self, response: ResponsePayload, version: int) -> ResponsePayload:
        """Convert a response to the version of its request."""
        redact(type(response))
        if response.__version__ == version or response.__api_key__ != self.key:
            return response
        return convert(response, self.response_type(version))


def convert(message: Any, wanted: type[_Message]) -> _Message:
    """Convert a message or a part of one to another version, by field names.

    An array that occurs several times, such as the equal configurations of several topics, is converted once.
    """
    return _convert(message, wanted, {})


_Arrays: TypeAlias = dict[tuple[int, type], tuple[Any, ...]]
"""The converted arrays, by the memory address of the original and the target type."""


def _convert(message: Any, wanted: type[_Message], done: _Arrays) -> _Message:
    known = {field.name for field in fields(message)}
    values = {
        field.name: _value(getattr(message, field.name), cast(Hashable, field.type), done)
        if field.name in known
        else _absent(field)
        for field in fields(cast(Any, wanted))
    }
    return wanted(**values)


def list_known_versions(api_key: int) -> tuple[int, ...]:
    """Return the versions of an API that can be encoded and decoded here, oldest first."""
    return tuple(sorted(schema_name_map[api_key_map[api_key]]))


def empty(wanted: type[_Message]) -> _Message:
    """Return a message whose fields have their defaults, or zero values."""
    return wanted(**{field.name: _absent(field) for field in fields(cast(Any, wanted))})


def _value(value: Any, declared: Hashable, done: _Arrays) -> Any:
    if value is None:
        return None if _is_optional(declared) else _zero(declared)
    part = _part_type(declared)
    if part is None:
        return value
    if not isinstance(value, tuple):
        return _convert(value, part, done)
    array = done.get((id(value), part))
    if array is None:
        array = done[id(value), part] = tuple(_convert(item, part, done) for item in value)
    return array


def _absent(field: Field[Any]) -> Any:
    """Return the value of a field that the other version lacks: its default, or a zero value."""
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    declared = cast(Hashable, field.type)
    return None if _is_optional(declared) else _zero(declared)


@cache
def _part_type(declared: Hashable) -> type | None:
    """Return the message type inside a field, or None for plain values."""
    for candidate in (declared, *get_args(declared), *(inner for arg in get_args(declared) for inner in get_args(arg))):
        if isinstance(candidate, type) and is_dataclass(candidate):
            return candidate
    return None


@cache
def _is_optional(declared: Hashable) -> bool:
    return get_origin(declared) in (UnionType, Union) and NoneType in get_args(declared)


def _zero(declared: Hashable) -> object:
    origin = get_origin(declared) or declared
    if origin is i32Timedelta:
        return _NO_TIME
    return next((zero for kind, zero in _ZERO.items() if isinstance(origin, type) and issubclass(origin, kind)), 0)
