"""Translates Spark SQL to DuckDB's. sqlglot does most of it; this module adds functions that it does not know, or whose
treatment of nulls differs."""

import functools
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import sqlglot
from pyspark.sql.types import DataType
from sqlglot import exp

_SPARK: Final = "spark"
_DUCKDB: Final = "duckdb"


MACROS: Final = (
    "create macro distinct_values(v) as list_filter(v, lambda x, i: list_position(v, x) = i)",
    "create macro values_except(v, o) as if(o is null, null, list_filter(distinct_values(v), "
    "lambda x: not coalesce(list_contains(o, x), false)))",
    "create macro values_in_both(v, o) as if(o is null, null, list_filter(distinct_values(v), "
    "lambda x: coalesce(list_contains(o, x), false)))",
    f"create macro to_moment(x) as if(x = {2**63 - 1}, 'infinity'::timestamptz, timezone('UTC', try(make_timestamp(x))))",
)
"""Functions of arrays that keep the order of values, as Spark's do, and a function from microseconds since 1970. DuckDB
takes the largest number for infinity."""


class Item(NamedTuple):
    """A column of a query: DuckDB's SQL, and its name. The name is empty if the item stands for several columns.

    `windows`: the window functions within other ones by names. DuckDB computes them in a query of their own."""

    sql: str
    name: str
    windows: tuple[tuple[str, str], ...] = ()


@functools.cache
def translate_item(item: str) -> Item:
    """Translate an item of a select list."""
    (tree,) = sqlglot.parse_one(f"select {item}", read=_SPARK).expressions
    name = tree.output_name
    value = tree.this if isinstance(tree, exp.Alias) else tree
    several = tree.is_star or isinstance(value, exp.Inline)
    inner = {}
    for node in [*value.find_all(exp.Window)]:
        if node.find_ancestor(exp.Window) is not None:
            column = f"_window_{zlib.crc32(node.sql().encode()):x}"
            inner[column] = _write(node.copy())
            node.replace(exp.column(column))
    return Item(_write(value), "" if several else name, tuple(inner.items()))


@functools.cache
def translate_condition(sql: str) -> str:
    """Translate an expression."""
    return _write(sqlglot.parse_one(sql, read=_SPARK))


@functools.cache
def translate_order(sql: str) -> str:
    """Translate the items of an order, with Spark's places for nulls."""
    tree = sqlglot.parse_one(f"select 1 order by {sql}", read=_SPARK)
    return ", ".join(_write(each) for each in tree.args["order"].expressions)


@functools.cache
def translate_kind(kind: DataType) -> str:
    return exp.DataType.build(kind.simpleString(), dialect=_SPARK).sql(_DUCKDB)


def _write(tree: exp.Expr) -> str:
    root = exp.paren(tree, copy=False)
    for node in reversed([*tree.walk()]):
        new = _translate_node(node)
        if new is not node:
            node.replace(new)
    return str(root.this.sql(_DUCKDB))


def _translate_node(node: exp.Expr) -> exp.Expr:
    """Return what takes the place of a node, or the node."""
    if isinstance(node, exp.Anonymous):
        by_name = _BY_NAME.get(node.name)
        return node if by_name is None else by_name(*node.expressions)
    by_type = _BY_TYPE.get(type(node))
    return node if by_type is None else by_type(node)


def _call(name: str, *values: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[*values])


def _get_next(values: exp.Expr, index: exp.Expr) -> exp.Expr:
    return exp.func("list_extract", values, exp.Add(this=exp.paren(index), expression=exp.Literal.number(1)))


def _update_struct(value: exp.Expr, new: exp.Expr) -> exp.Expr:
    return exp.func("struct_update", value, exp.PropertyEQ(this=exp.to_identifier(new.alias), expression=new.this))


_BY_NAME: Final[Mapping[str, Callable[..., exp.Expr]]] = {
    "array_union": lambda values, others: _call("distinct_values", _call("list_concat", values, others)),
    "arrays_overlap": lambda values, others: _call("list_has_any", values, others),
    "bigint": lambda value: exp.cast(value, "bigint"),
    "every": lambda value: exp.func("bool_and", value),
    "get": _get_next,
    "octet_length": lambda value: exp.func("strlen", value),
    "pmod": lambda value, by: exp.func("mod", value, by),
    "struct_update": _update_struct,
    "timestamp_micros": lambda value: _call("to_moment", exp.cast(value, "bigint")),
    "xxhash64": lambda *values: exp.func("hash", *values),
}
"""The functions that sqlglot does not know."""


def _ignore_nulls(node: exp.Expr) -> exp.Expr:
    """DuckDB's `last` does not ignore nulls in windows."""
    return exp.IgnoreNulls(this=exp.LastValue(this=node.this.this)) if isinstance(node.this, exp.Last) else node


def _count_micros(node: exp.Expr) -> exp.Expr:
    # DuckDB takes the largest number for infinity, whose microseconds are null.
    most = exp.Literal.number(2**63 - 1)
    return exp.func("if", exp.func("isinf", node.this), most, exp.func("epoch_us", node.this))


def _inline(node: exp.Expr) -> exp.Expr:
    # At this depth the fields of the structs become columns.
    depth = exp.PropertyEQ(this=exp.to_identifier("max_depth"), expression=exp.Literal.number(2))
    return exp.func("unnest", node.this, depth)


def _list_values(node: exp.Expr) -> exp.Expr:
    """DuckDB's list of no values is null."""
    return node if isinstance(node.parent, exp.Window) else exp.Coalesce(this=node.copy(), expressions=[exp.Array()])


def _join_texts(node: exp.Expr) -> exp.Expr:
    """DuckDB joins at least one text."""
    return node if len(node.expressions) > 1 else exp.Literal.string("")


def _cut_bytes(node: exp.Expr) -> exp.Expr:
    """DuckDB has slices of bytes, but no substring."""
    cast = node.this
    if not isinstance(cast, exp.Cast) or not cast.is_type("binary"):
        return node
    part = _call("array_slice", _call("encode", cast.this), node.args["start"], node.args["length"])
    return _call("decode", part)


def _format_time(node: exp.Expr) -> exp.Expr:
    """sqlglot does not know Java's milliseconds."""
    node.set("format", exp.Literal.string(node.args["format"].name.replace("SSS", "%g")))
    return node


def _replace_pattern(node: exp.Expr) -> exp.Expr:
    text = re.sub(r"\$(\d)", r"\\\1", node.args["replacement"].name)
    node.set("replacement", exp.Literal.string(text))
    return node


_BY_TYPE: Final[Mapping[type[exp.Expr], Callable[[Any], exp.Expr]]] = {
    exp.ArgMax: lambda node: exp.func("arg_max_null", node.this, node.expression),
    exp.ArgMin: lambda node: exp.func("arg_min_null", node.this, node.expression),
    exp.ArrayAgg: _list_values,
    exp.ArrayDistinct: lambda node: _call("distinct_values", node.this),
    exp.ArrayExcept: lambda node: _call("values_except", node.this, node.expression),
    exp.ArrayIntersect: lambda node: _call("values_in_both", *node.expressions),
    exp.ArrayUniqueAgg: _list_values,
    exp.ConcatWs: _join_texts,
    exp.Format: lambda node: exp.func("printf", node.this, *node.expressions),
    exp.IgnoreNulls: _ignore_nulls,
    exp.Inline: _inline,
    exp.Quantile: lambda node: exp.func("quantile_cont", node.this, node.args["quantile"]),
    exp.RegexpReplace: _replace_pattern,
    exp.Substring: _cut_bytes,
    exp.SubstringIndex: lambda node: exp.func("split_part", node.this, node.args["delimiter"], node.args["count"]),
    exp.TimeToStr: _format_time,
    exp.UnixMicros: _count_micros,
}
"""The functions that sqlglot knows, and that are different in DuckDB."""
