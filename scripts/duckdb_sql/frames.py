"""Data frames that write down each step as SQL for DuckDB.

The definitions of the history's tables are functions on Spark's data frames. With these frames each step becomes Spark
SQL, because PySpark's functions have the names of SQL's. sqlglot translates the steps to DuckDB's dialect, and DuckDB
names the columns of each step. Partitioning, order and hints are left out, because DuckDB plans by itself.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Final

import duckdb
import sqlglot
from pyspark.sql.types import DataType, StructType
from sqlglot import exp


def _write_between(column: "Column", low: object, high: object) -> "Column":
    return Column(f"({column.sql} between {_literal(low)} and {_literal(high)})")


def _write_over(column: "Column", window: "Window") -> "Column":
    return Column(f"{column.sql} over ({window})")


class Column:
    """An expression of Spark SQL, with the operators of PySpark's columns."""

    between = _write_between
    over = _write_over

    def __init__(self, sql: str) -> None:
        self.sql = sql

    def alias(self, name: str) -> "Column":
        return Column(f"{self.sql} as `{name}`")

    def cast(self, kind: DataType) -> "Column":
        return Column(f"cast({self.sql} as {kind.simpleString()})")

    def isin(self, *values: object) -> "Column":
        return Column(f"({self.sql} in ({', '.join(map(_literal, values))}))")

    def isNull(self) -> "Column":  # noqa: N802
        return Column(f"({self.sql} is null)")

    def isNotNull(self) -> "Column":  # noqa: N802
        return Column(f"({self.sql} is not null)")

    def eqNullSafe(self, other: object) -> "Column":  # noqa: N802
        return Column(f"({self.sql} <=> {_literal(other)})")

    def when(self, condition: "Column", value: object) -> "Column":
        return Column(f"{self.sql.removesuffix(' end')} when {condition.sql} then {_literal(value)} end")

    def otherwise(self, value: object) -> "Column":
        return Column(f"{self.sql.removesuffix(' end')} else {_literal(value)} end")

    def __invert__(self) -> "Column":
        return Column(f"(not {self.sql})")

    def __neg__(self) -> "Column":
        return Column(f"(-{self.sql})")


def _operator(sign: str) -> Callable[[Column, object], Column]:
    return lambda left, right: Column(f"({left.sql} {sign} {_literal(right)})")


_OPERATORS: Final = {
    "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "add": "+", "sub": "-", "mul": "*",
    "truediv": "/", "and": "and", "or": "or",
}  # fmt: skip
for _name, _sign in _OPERATORS.items():
    setattr(Column, f"__{_name}__", _operator(_sign))


def _literal(value: object) -> str:
    match value:
        case Column():
            return value.sql
        case None:
            return "null"
        case bool() | int():
            return str(value).lower()
        case _:
            return "'" + str(value).replace("'", "''") + "'"


def _column(value: object) -> str:
    """Return the SQL of an argument for which PySpark takes a text as the name of a column."""
    if isinstance(value, str):
        return value if "." in value or value == "*" else f"`{value}`"
    return _literal(value)


class Functions(ModuleType):
    """The functions of `pyspark.sql.functions`. A function that is not here has the name and the arguments of SQL's."""

    def __getattr__(self, name: str) -> Callable[..., Column]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *values: Column(f"{name}({', '.join(map(_column, values))})")

    def col(self, name: str) -> Column:
        return Column(_column(name))

    def lit(self, value: object) -> Column:
        return Column(_literal(value))

    def expr(self, sql: str) -> Column:
        return Column(sql)

    def broadcast(self, rows: "Frame") -> "Frame":
        return rows

    def when(self, condition: Column, value: object) -> Column:
        return Column(f"case when {condition.sql} then {_literal(value)} end")

    def floor(self, value: Column) -> Column:
        return Column(f"bigint(floor({value.sql}))")

    def count_distinct(self, value: object) -> Column:
        return Column(f"count(distinct {_column(value)})")

    def last(self, value: Column, *, ignorenulls: bool) -> Column:
        assert ignorenulls
        return Column(f"last({_column(value)}, true)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window in Spark SQL."""

    parts: tuple[str, ...]
    order: tuple[str, ...] = ()
    rows: str = ""

    unboundedPreceding = -(1 << 40)  # noqa: N815

    @classmethod
    def partitionBy(cls, *names: str) -> "Window":  # noqa: N802
        return cls(parts=names)

    def orderBy(self, *names: str) -> "Window":  # noqa: N802
        return Window(parts=self.parts, order=names)

    def rowsBetween(self, first: int, last: int) -> "Window":  # noqa: N802
        assert first == self.unboundedPreceding
        end = "current row" if last == 0 else f"{-last} preceding"
        return Window(parts=self.parts, order=self.order, rows=f" rows between unbounded preceding and {end}")

    def __str__(self) -> str:
        order = f" order by {', '.join(map(_column, self.order))}" if self.order else ""
        return f"partition by {', '.join(map(_column, self.parts))}{order}{self.rows}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The rows of a step or table, with the part of PySpark's interface that the definitions use."""

    steps: "Steps"
    name: str
    columns: tuple[str, ...]

    def select(self, *columns: object) -> "Frame":
        return self._select(map(_column, columns))

    def selectExpr(self, *columns: str) -> "Frame":  # noqa: N802
        return self._select(columns)

    def where(self, condition: str | Column) -> "Frame":
        return self._select("*", f" where {condition if isinstance(condition, str) else condition.sql}")

    def withColumn(self, name: str, value: Column) -> "Frame":  # noqa: N802
        return self.withColumns({name: value})

    def withColumns(self, values: Mapping[str, Column]) -> "Frame":  # noqa: N802
        names = (*self.columns, *(name for name in values if name not in self.columns))
        return self._select(f"{values[name].sql} as `{name}`" if name in values else f"`{name}`" for name in names)

    def repartition(self, *_: object) -> "Frame":
        return self

    def sortWithinPartitions(self, *_: object) -> "Frame":  # noqa: N802
        return self

    def groupBy(self, *keys: object) -> "Groups":  # noqa: N802
        return Groups(rows=self, keys=tuple(map(_column, keys)))

    def join(self, other: "Frame", on: str | Sequence[str] | Column, how: str = "inner") -> "Frame":
        keys = () if isinstance(on, Column) else (on,) if isinstance(on, str) else tuple(on)
        condition = on.sql if isinstance(on, Column) else " and ".join(f"l.`{key}` = r.`{key}`" for key in keys)
        names = [f"l.`{name}`" for name in (*keys, *(name for name in self.columns if name not in keys))]
        if how in ("inner", "left"):
            names += [f"r.`{name}`" for name in other.columns if name not in keys]
        joined = f"{self.name} as l {how.replace('_', ' ')} join {other.name} as r on {condition}"
        return self.steps.add(names, joined)

    def unionByName(self, other: "Frame", *, allowMissingColumns: bool = False) -> "Frame":  # noqa: N802, N803
        missing = set(self.columns) - set(other.columns)
        assert allowMissingColumns or not missing
        names = (f"null as `{name}`" if name in missing else f"`{name}`" for name in self.columns)
        others = f"select {', '.join(names)} from {other.name}"  # noqa: S608
        return self._select(["*"], f" union all {others}")

    def _select(self, columns: Iterable[str], rest: str = "") -> "Frame":
        return self.steps.add(columns, f"{self.name}{rest}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The groups of a frame's rows."""

    rows: Frame
    keys: tuple[str, ...]

    def agg(self, *values: Column) -> Frame:
        by = (re.sub(r" as `\w+`$", "", key) for key in self.keys)
        columns = (*self.keys, *(value.sql for value in values))
        return self.rows.steps.add(columns, f"{self.rows.name} group by {', '.join(by)}")


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a definition in their order, also as views of an empty database."""

    database: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)
    sql: dict[str, str] = field(default_factory=dict)
    """DuckDB's SQL of each step, by its name."""
    frames: dict[str, Frame] = field(default_factory=dict)
    """The frames of the steps, by their Spark SQL."""

    def add_table(self, name: str, schema: StructType) -> Frame:
        columns = ", ".join(f"{each.name} {_kind(each.dataType)}" for each in schema)
        self.database.execute(f"create table {name} ({columns})")
        return Frame(steps=self, name=name, columns=tuple(schema.fieldNames()))

    def add(self, columns: Iterable[str], source: str) -> Frame:
        sql = f"select {', '.join(columns)} from {source}"  # noqa: S608
        if sql not in self.frames:
            name = f"s{len(self.sql)}"
            self.sql[name] = _translate(sql)
            self.database.execute(f"create view {name} as {self.sql[name]}")
            found = self.database.execute(f"describe {name}").fetchall()
            self.frames[sql] = Frame(steps=self, name=name, columns=tuple(row[0] for row in found))
        return self.frames[sql]

    def text(self, rows: Frame, schema: StructType) -> str:
        """Return one query for these rows, in the columns of the schema."""
        steps = ",\n".join(f"{name} as not materialized ({sql})" for name, sql in self.sql.items())
        columns = ", ".join(f"cast({each.name} as {_kind(each.dataType)}) as {each.name}" for each in schema)
        return f"with {steps}\nselect {columns} from {rows.name}\n"


def _kind(kind: DataType) -> str:
    return exp.DataType.build(kind.simpleString(), dialect="spark").sql("duckdb")


def _translate(sql: str) -> str:
    tree = sqlglot.parse_one(sql, read="spark")
    for node in reversed([*tree.walk()]):
        node.replace(_translate_node(node))
    return tree.sql("duckdb")


def _translate_node(node: exp.Expr) -> exp.Expr:
    """Translate functions that sqlglot does not know, or whose treatment of nulls differs."""
    match node:
        case exp.IgnoreNulls(this=exp.Last(this=value)):
            return exp.IgnoreNulls(this=exp.LastValue(this=value))
        case exp.ArgMax(this=value, expression=by):
            return exp.func("arg_max_null", value, by)
        case exp.ArgMin(this=value, expression=by):
            return exp.func("arg_min_null", value, by)
        case exp.UnixMicros(this=stamp):
            # DuckDB takes the largest number for infinity, whose microseconds are null.
            return exp.func("if", exp.func("isinf", stamp), exp.Literal.number(2**63 - 1), exp.func("epoch_us", stamp))
        case exp.Anonymous(name="every", expressions=[value]):
            return exp.func("bool_and", value)
        case exp.Anonymous(name="bigint", expressions=[value]):
            return exp.cast(value, "bigint")
        case exp.Anonymous(name="xxhash64", expressions=values):
            return exp.func("hash", *values)
        case exp.Anonymous(name="get", expressions=[values, index]):
            return exp.func("list_extract", values, exp.Add(this=exp.paren(index), expression=exp.Literal.number(1)))
        case exp.Inline(this=values):
            # At this depth the fields of the structs become columns.
            depth = exp.PropertyEQ(this=exp.to_identifier("max_depth"), expression=exp.Literal.number(2))
            return exp.func("unnest", values, depth)
    return node
