"""Columns, functions and windows with the part of PySpark's interface that the history uses. They are Spark SQL."""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from types import ModuleType
from typing import Any, Final

from pyspark.sql.types import DataType, StructType

_UNBOUNDED: Final = 1 << 40


def _write_between(column: "Column", low: object, high: object) -> "Column":
    return Column(f"({column.operand} between {write_literal(low)} and {write_literal(high)})")


def _write_over(column: "Column", window: "Window") -> "Column":
    return Column(f"{column.sql} over ({window})")


class Column:
    """An expression of Spark SQL, with the operators of PySpark's columns."""

    between = _write_between
    over = _write_over

    def __init__(self, sql: str, *, is_open: bool = False) -> None:
        """`is_open`: the SQL may be several operands, so an operator needs parentheses around it."""
        self.sql = sql
        self.operand = f"({sql})" if is_open else sql

    def alias(self, name: str) -> "Column":
        return Column(f"{self.sql} as `{name}`")

    def cast(self, kind: DataType | str) -> "Column":
        return Column(f"cast({self.sql} as {kind if isinstance(kind, str) else kind.simpleString()})")

    def isin(self, *values: Any) -> "Column":
        each = values[0] if len(values) == 1 and isinstance(values[0], list | tuple | set | frozenset) else values
        return Column(f"({self.operand} in ({', '.join(map(write_literal, each))}))" if each else "false")

    def isNull(self) -> "Column":  # noqa: N802
        return Column(f"({self.operand} is null)")

    def isNotNull(self) -> "Column":  # noqa: N802
        return Column(f"({self.operand} is not null)")

    def eqNullSafe(self, other: object) -> "Column":  # noqa: N802
        return Column(f"({self.operand} <=> {write_literal(other)})")

    def startswith(self, text: str) -> "Column":
        return Column(f"startswith({self.sql}, {write_literal(text)})")

    def contains(self, text: str) -> "Column":
        return Column(f"contains({self.sql}, {write_literal(text)})")

    def rlike(self, pattern: str) -> "Column":
        return Column(f"rlike({self.sql}, {write_literal(pattern)})")

    def asc(self) -> "Column":
        return self

    def desc(self) -> "Column":
        return Column(f"{self.sql} desc")

    def asc_nulls_last(self) -> "Column":
        return Column(f"{self.sql} asc nulls last")

    def desc_nulls_last(self) -> "Column":
        return Column(f"{self.sql} desc nulls last")

    def withField(self, name: str, value: "Column") -> "Column":  # noqa: N802
        return Column(f"struct_update({self.sql}, {value.sql} as `{name}`)")

    def when(self, condition: "Column", value: object) -> "Column":
        return Column(f"{self.sql.removesuffix(' end')} when {condition.sql} then {write_literal(value)} end")

    def otherwise(self, value: object) -> "Column":
        return Column(f"{self.sql.removesuffix(' end')} else {write_literal(value)} end")

    def __getitem__(self, name: str) -> "Column":
        return Column(f"{self.sql}.{name}")

    def __invert__(self) -> "Column":
        return Column(f"(not {self.operand})")

    def __neg__(self) -> "Column":
        return Column(f"(-{self.operand})")


def _make_operator(sign: str) -> Callable[[Column, object], Column]:
    return lambda left, right: Column(f"({left.operand} {sign} {write_literal(right)})")


def _make_reverse_operator(sign: str) -> Callable[[Column, object], Column]:
    return lambda right, left: Column(f"({write_literal(left)} {sign} {right.operand})")


_OPERATORS: Final = {
    "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "add": "+", "sub": "-", "mul": "*",
    "truediv": "/", "and": "and", "or": "or",
}  # fmt: skip
for _name, _sign in _OPERATORS.items():
    setattr(Column, f"__{_name}__", _make_operator(_sign))
for _name in ("add", "sub", "mul"):
    setattr(Column, f"__r{_name}__", _make_reverse_operator(_OPERATORS[_name]))


def write_literal(value: object) -> str:
    match value:
        case Column():
            return value.operand
        case None:
            return "null"
        case bool() | int():
            return str(value).lower()
        case float():
            return f"double('{value!r}')"
        case date():
            return f"date '{value}'"
        case _:
            return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def write_column(value: object) -> str:
    """Return the SQL of an argument for which PySpark takes a text as the name of a column."""
    if isinstance(value, str):
        return value if "." in value or value == "*" else f"`{value}`"
    return value.sql if isinstance(value, Column) else write_literal(value)


_WITH_TEXTS: Final[Mapping[str, frozenset[int]]] = {
    "array_join": frozenset({1}),
    "concat_ws": frozenset({0}),
    "date_trunc": frozenset({0}),
    "format_string": frozenset({0}),
    "regexp_extract": frozenset({1}),
    "regexp_replace": frozenset({1, 2}),
    "substring_index": frozenset({1}),
}
"""The arguments of functions that are texts, not names of columns."""


class Functions(ModuleType):
    """The functions of `pyspark.sql.functions`. A function that is not here has the name and the arguments of SQL's."""

    def __getattr__(self, name: str) -> Callable[..., Column]:
        if name.startswith("_"):
            raise AttributeError(name)
        texts = _WITH_TEXTS.get(name, frozenset())

        def call(*values: object) -> Column:
            given = (write_literal(each) if i in texts else write_column(each) for i, each in enumerate(values))
            return Column(f"{name}({', '.join(given)})")

        return call

    def col(self, name: str) -> Column:
        return Column(write_column(name))

    def lit(self, value: object) -> Column:
        return Column(write_literal(value))

    def expr(self, sql: str) -> Column:
        return Column(sql, is_open=True)

    def desc(self, name: str) -> Column:
        return self.col(name).desc()

    def broadcast(self, rows: Any) -> Any:
        return rows

    def when(self, condition: Column, value: object) -> Column:
        return Column(f"case when {condition.sql} then {write_literal(value)} end")

    def floor(self, value: Column) -> Column:
        return Column(f"bigint(floor({value.sql}))")

    def count_distinct(self, *values: object) -> Column:
        return Column(f"count(distinct {', '.join(map(write_column, values))})")

    countDistinct = count_distinct  # noqa: N815

    def last(self, value: object, *, ignorenulls: bool) -> Column:
        assert ignorenulls
        return Column(f"last({write_column(value)}, true)")

    def sequence(self, first: Column, last: Column, step: Column) -> Column:
        return Column(f"cast(sequence({first.sql}, {last.sql}, {step.sql}) as array<date>)")

    def transform(self, values: object, change: Callable[[Column], Column]) -> Column:
        return Column(f"transform({write_column(values)}, each -> {change(Column('each')).sql})")

    def _parse_json(self, text: object, schema: StructType, options: Mapping[str, str] | None = None) -> Column:
        corrupt = (options or {}).get("columnNameOfCorruptRecord", "")
        name = f"parse_{zlib.crc32(schema.json().encode()):x}"
        PARSERS[name] = Parser(schema=schema, corrupt=corrupt)
        return Column(f"{name}({write_column(text)})")

    from_json = _parse_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Parser:
    """A function of SQL that parses lines of JSON."""

    schema: StructType
    corrupt: str


PARSERS: Final[dict[str, Parser]] = {}
"""The parsers by the names of their functions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window in Spark SQL."""

    parts: tuple[str, ...]
    order: tuple[str, ...] = ()
    rows: str = ""

    unboundedPreceding = -_UNBOUNDED  # noqa: N815
    unboundedFollowing = _UNBOUNDED  # noqa: N815

    @classmethod
    def partitionBy(cls, *names: object) -> "Window":  # noqa: N802
        return cls(parts=tuple(map(write_column, names)))

    def orderBy(self, *names: object) -> "Window":  # noqa: N802
        return Window(parts=self.parts, order=tuple(map(write_column, names)))

    def rowsBetween(self, first: int, last: int) -> "Window":  # noqa: N802
        rows = f" rows between {_write_end(first)} and {_write_end(last)}"
        return Window(parts=self.parts, order=self.order, rows=rows)

    def __str__(self) -> str:
        order = f" order by {', '.join(self.order)}" if self.order else ""
        return f"partition by {', '.join(self.parts)}{order}{self.rows}"


def _write_end(rows: int) -> str:
    if rows == 0:
        return "current row"
    number = "unbounded" if abs(rows) == _UNBOUNDED else str(abs(rows))
    return f"{number} {'preceding' if rows < 0 else 'following'}"
