"""One API in all the versions that clients speak, for whoever answers it: only the newest.

A request of an older version is lifted into the newest one before it is answered: what the older does not know has its
default. The answer is lowered to the version of the request: what the older cannot carry is left out. So every answer is
written once, over one pair of types, and a client of 2019 gets the same decisions as one of today.

The versions are those that kio has, from Kafka's own message definitions.
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
from controller_core.wire.codecs.redaction import redacted

Request = TypeVar("Request", bound=RequestPayload)
_Message = TypeVar("_Message")

_ZERO: Final[dict[type, object]] = {bool: False, int: 0, float: 0.0, str: "", bytes: b"", tuple: ()}
_NO_TIME: Final = i32Timedelta.parse(timedelta())


class Versions(Generic[Request]):
    """The versions of one API from `oldest` up to that of the type `newest`; by default that one alone.

    `lift` makes the newest request of an older one where fields were renamed or got another meaning. `read` and `write` are
    quicker ways to read and write large messages of the newest version; whatever they do, the messages are the same."""

    def __init__(
        self,
        newest: type[Request],
        *,
        oldest: int | None = None,
        lift: Callable[[RequestPayload], Request] | None = None,
        read: Callable[[bytes], Request] | None = None,
        write: Callable[[Any, int], bytes] = encode_response,
    ) -> None:
        self.newest = redacted(newest)
        self.max = int(newest.__version__)
        self.min = self.max if oldest is None else oldest
        self.key = int(newest.__api_key__)
        self._lift = lift
        self._read = read
        self._write = write

    def __contains__(self, version: int) -> bool:
        return self.min <= version <= self.max

    def request_type(self, version: int) -> type[RequestPayload]:
        """The request of a version that is served."""
        if version == self.max:
            return cast(type[RequestPayload], self.newest)
        return redacted(load_request_schema(self.key, version))

    def response_type(self, version: int) -> type[ResponsePayload]:
        """The response of a version that is served."""
        return redacted(load_response_schema(self.key, version))

    def decoded(self, content: bytes, version: int, *, most_items: int = MOST_ITEMS) -> RequestPayload:
        """The request of a version that is served, from a frame's content. Raises `Undecodable`, `TooManyItems`."""
        if version == self.max and self._read is not None:
            return cast(RequestPayload, self._read(content))
        return decode_request(self.request_type(version), content, most_items=most_items)

    def encoded(self, response: ResponsePayload, correlation_id: int) -> bytes:
        """The response, lowered already, as a whole frame. Raises `Unencodable`."""
        write = self._write if response.__version__ == self.max else encode_response
        return write(response, correlation_id)

    def lifted(self, request: RequestPayload) -> Request:
        """The request in the newest version."""
        if isinstance(request, self.newest):
            return request
        return self._lift(request) if self._lift else converted(request, self.newest)

    def lowered(self, response: ResponsePayload, version: int) -> ResponsePayload:
        """The response in the version of the request that it answers."""
        redacted(type(response))
        if response.__version__ == version or response.__api_key__ != self.key:
            return response
        return converted(response, self.response_type(version))


def converted(message: Any, wanted: type[_Message]) -> _Message:
    """A message, or a part of one, as the same one of another version, field by field of the same name.

    An array that stands in many places, as the configurations of topics that are alike, is converted once."""
    return _converted(message, wanted, {})


_Arrays: TypeAlias = dict[tuple[int, type], tuple[Any, ...]]
"""The arrays that are converted already, by where the original is in memory, and what their parts are now."""


def _converted(message: Any, wanted: type[_Message], done: _Arrays) -> _Message:
    known = {field.name for field in fields(message)}
    values = {
        field.name: _value(getattr(message, field.name), cast(Hashable, field.type), done)
        if field.name in known
        else _absent(field)
        for field in fields(cast(Any, wanted))
    }
    return wanted(**values)


def known_versions(api_key: int) -> tuple[int, ...]:
    """The versions of an API that can be read and written here, oldest first."""
    return tuple(sorted(schema_name_map[api_key_map[api_key]]))


def empty(wanted: type[_Message]) -> _Message:
    """A message that says nothing: each field has its default, or holds nothing."""
    return wanted(**{field.name: _absent(field) for field in fields(cast(Any, wanted))})


def _value(value: Any, declared: Hashable, done: _Arrays) -> Any:
    if value is None:
        return None if _is_optional(declared) else _zero(declared)
    part = _part_type(declared)
    if part is None:
        return value
    if not isinstance(value, tuple):
        return _converted(value, part, done)
    array = done.get((id(value), part))
    if array is None:
        array = done[id(value), part] = tuple(_converted(item, part, done) for item in value)
    return array


def _absent(field: Field[Any]) -> Any:
    """What a field holds that the other version does not have: its default, or nothing."""
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    declared = cast(Hashable, field.type)
    return None if _is_optional(declared) else _zero(declared)


@cache
def _part_type(declared: Hashable) -> type | None:
    """The type of the parts that a field is made of; None where it holds plain values."""
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
