"""Any message, made from the fields of its type."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from controller_core.wire.messages import ErrorCode

NUMBERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in NUMBERS.items()},
    "bool": st.booleans(),
    "string": TEXT,
    "uuid": st.one_of(st.none(), st.uuids().filter(lambda uuid: uuid.int != 0)),
    "error_code": st.sampled_from(ErrorCode),
    "timedelta_i32": st.integers(-(2**31), 2**31 - 1).map(lambda number: timedelta(milliseconds=number)),
    "timedelta_i64": st.integers(0, 2**40).map(lambda number: timedelta(milliseconds=number)),
    "bytes": st.binary(max_size=8),
}


Primitives = Mapping[str, st.SearchStrategy[Any]]
"""The values of a field of each of Kafka's types."""


def messages(entity_type: Any, primitives: Primitives = PRIMITIVES) -> st.SearchStrategy[Any]:
    """Any value of a message type, from its fields."""
    return st.builds(entity_type, **{part.name: values(part, primitives) for part in fields(entity_type)})


def values(part: Any, primitives: Primitives) -> st.SearchStrategy[Any]:
    kafka_type = part.metadata.get("kafka_type")
    kind = str(part.type)
    optional = "None" in kind and kafka_type != "uuid"
    if kafka_type is None:
        nested = next(kind for kind in list_nested_types(part.type) if hasattr(kind, "__dataclass_fields__"))
        value = st.deferred(lambda: messages(nested, primitives))
    else:
        value = primitives[kafka_type]
    if "tuple" in kind:
        value = st.lists(value, max_size=3).map(tuple)
    return st.none() | value if optional else value


def list_nested_types(kind: Any) -> list[Any]:
    return [kind, *(found for part in getattr(kind, "__args__", ()) for found in list_nested_types(part))]


@st.composite
def damage(draw: st.DrawFn, content: bytes, *, start: int) -> bytes:
    """The bytes after one change from `start` on: another byte, one more, an end that is cut off, or more behind it."""
    place = draw(st.integers(start, len(content) - 1))
    byte = draw(st.binary(min_size=1, max_size=1))
    match draw(st.sampled_from(["byte", "cut", "insert", "append"])):
        case "byte":
            return content[:place] + byte + content[place + 1 :]
        case "cut":
            return content[:place]
        case "insert":
            return content[:place] + byte + content[place:]
        case _:
            return content + b"\0\1"
