"""A line of JSON becomes a record, or null fields and its own text."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, BooleanType, IntegerType, LongType, MapType, StringType

from kontroller.history.engine.records import make_parser
from kontroller.history.schemas import columns

SCHEMA = columns(
    number=LongType(),
    small=IntegerType(),
    text=StringType(),
    flag=BooleanType(),
    isr=ArrayType(IntegerType()),
    config=MapType(StringType(), StringType()),
    delta=columns(leader=IntegerType(), rack=StringType()),
    corrupt=StringType(),
)


def parse(line: str | None) -> dict[str, Any] | None:
    (record,) = make_parser(SCHEMA, "corrupt")(pa.array([line], pa.string())).to_pylist()
    return record and {name: value for name, value in record.items() if value is not None}


def test_values_of_the_right_types_are_read_and_others_of_the_line_ignored() -> None:
    line = (
        '{"number": 9223372036854775807, "small": -2, "text": "ü", "flag": false, "isr": [1, 2], "more": 1, "delta": '
    )
    line += '{"leader": 3}, "config": {"a": "b"}}'
    assert parse(line) == {
        "number": 2**63 - 1, "small": -2, "text": "ü", "flag": False, "isr": [1, 2], "config": [("a", "b")],
        "delta": {"leader": 3, "rack": None},
    }  # fmt: skip


def test_a_text_may_be_any_value() -> None:
    assert parse('{"text": {"api": [1, "x"]}}') == {"text": '{"api":[1,"x"]}'}


@pytest.mark.parametrize(
    "wrong",
    [
        '"number": 1.0', '"number": "1"', '"number": true', '"number": 9223372036854775808', '"small": 2147483648',
        '"flag": 1', '"isr": 1', '"isr": ["1"]', '"config": []', '"delta": 1', '"delta": {"leader": "x"}',
    ],
)  # fmt: skip
def test_a_value_of_another_type_makes_the_line_corrupt_and_keeps_the_others(wrong: str) -> None:
    line = f'{{"text": "kept", {wrong}}}'
    found = parse(line)
    assert found is not None
    assert (found["text"], found["corrupt"]) == ("kept", line)
    assert not found.keys() & {"number", "small", "flag", "isr", "config"}


@pytest.mark.parametrize("line", ["", "what?", "[1]", '{"number": 1', "null"])
def test_what_is_no_record_is_only_corrupt(line: str) -> None:
    assert parse(line) == {"corrupt": line}


def test_no_line_is_no_record() -> None:
    assert parse(None) is None
