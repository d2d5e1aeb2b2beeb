"""Parses lines of JSON as Spark does: a value of another type than its field is null, and makes the line corrupt."""

from collections.abc import Callable
from typing import Any, Final

import orjson
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

Read = Callable[[Any], Any]
_BITS: Final = {IntegerType: 31, LongType: 63}


class _Mismatch(Exception):
    """A value is not of the type of its field. The argument is what is left of it."""


def make_parser(schema: StructType, corrupt: str) -> Callable[[pa.Array], pa.Array]:
    """Return a function from texts to records. The field `corrupt` gets the text of a line that is not as the schema
    says."""
    kind = to_arrow_type(schema, timezone="UTC")
    read = _make_struct_reader(StructType([each for each in schema if each.name != corrupt]))

    def parse(text: str | None) -> dict[str, Any] | None:
        if text is None:
            return None
        try:
            record: dict[str, Any] = read(orjson.loads(text))
        except orjson.JSONDecodeError:
            return {corrupt: text}
        except _Mismatch as mismatch:
            (left,) = mismatch.args
            return {**(left or {}), corrupt: text}
        return record

    return lambda texts: pa.array(map(parse, texts.to_pylist()), kind)


def _make_struct_reader(schema: StructType) -> Read:
    readers = {each.name: _make_reader(each.dataType) for each in schema}

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _Mismatch(None)
        found: dict[str, Any] = {}
        is_bad = False
        for name, each in value.items():
            reader = readers.get(name)
            if reader is not None and each is not None:
                try:
                    found[name] = reader(each)
                except _Mismatch as mismatch:
                    is_bad = True
                    found[name] = mismatch.args[0]
        if is_bad:
            raise _Mismatch(found)
        return found

    return read


def _make_reader(kind: DataType) -> Read:
    match kind:
        case StructType():
            return _make_struct_reader(kind)
        case ArrayType():
            of_items = _make_reader(kind.elementType)
            return lambda value: [item if item is None else of_items(item) for item in _expect(value, list)]
        case MapType():
            of_values = _make_reader(kind.valueType)
            return lambda value: [
                (key, each if each is None else of_values(each)) for key, each in _expect(value, dict).items()
            ]
        case StringType():
            return lambda value: value if isinstance(value, str) else orjson.dumps(value).decode()
        case BooleanType():
            return lambda value: _expect(value, bool)
        case IntegerType() | LongType():
            limit = 1 << _BITS[type(kind)]
            return lambda value: _expect_number(value, limit)
    raise AssertionError(f"no field has the type {kind}")


def _expect(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise _Mismatch(None)
    return value


def _expect_number(value: Any, limit: int) -> Any:
    if type(value) is not int or not -limit <= value < limit:
        raise _Mismatch(None)
    return value
