"""Data frames that write down each step as SQL for DuckDB.

The definitions of the history's tables are functions on Spark's data frames. With these frames each step becomes Spark
SQL, because PySpark's functions have the names of SQL's, and is translated to DuckDB's dialect. Partitioning and hints
are left out, because DuckDB plans by itself.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Self, TypeVar

# `pyspark.sql.DataFrame` may be these frames already (`activation`).
from pyspark.sql.dataframe import DataFrame as SparkFrame

from kontroller.history.engine.columns import Column, write_column, write_literal
from kontroller.history.engine.steps import Steps
from kontroller.history.engine.translation import translate_condition, translate_order

_FULL: Final = ("full", "outer", "full_outer")


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """The rows of a step or table, with the part of PySpark's interface that the history uses."""

    steps: Steps
    name: str
    called: str = ""
    """The name in joins, of `alias`."""
    order: tuple[object, ...] = ()
    """The order of written files."""

    @property
    def columns(self) -> list[str]:
        return list(self.steps.columns(self.name))

    def __getattr__(self, name: str) -> Column:
        # PySpark's own methods take precedence over columns. One that is missing here must not pass for a column.
        if name.startswith("_") or hasattr(SparkFrame, name):
            raise AttributeError(name)
        return Column(f"`{self.name}`.`{name}`")

    def alias(self, name: str) -> Self:
        return replace(self, called=name)

    def select(self, *columns: Any) -> Self:
        return self._select(write_column(each) for each in _list(columns))

    def selectExpr(self, *columns: Any) -> Self:  # noqa: N802
        return self._select(_list(columns))

    def where(self, condition: str | Column) -> Self:
        sql = condition if isinstance(condition, str) else condition.sql
        return self._select(["*"], f" where {translate_condition(sql)}")

    def withColumn(self, name: str, value: Column) -> Self:  # noqa: N802
        return self.withColumns({name: value})

    def withColumns(self, values: Mapping[str, Column]) -> Self:  # noqa: N802
        names = (*self.columns, *(name for name in values if name not in self.columns))
        return self._select(f"{values[name].sql} as `{name}`" if name in values else f"`{name}`" for name in names)

    def _rename_column(self, old: str, new: str) -> Self:
        return self._rename_columns({old: new})

    def _rename_columns(self, names: Mapping[str, str]) -> Self:
        return self._select(f"`{name}` as `{names.get(name, name)}`" for name in self.columns)

    withColumnRenamed = _rename_column  # noqa: N815
    withColumnsRenamed = _rename_columns  # noqa: N815

    def drop(self, *names: str) -> Self:
        return self._select(f"`{name}`" for name in self.columns if name not in names)

    def distinct(self) -> Self:
        return self.groupBy(*self.columns).agg()

    def groupBy(self, *keys: object) -> "Groups[Self]":  # noqa: N802
        return Groups(rows=self, keys=tuple(map(write_column, keys)))

    def agg(self, *values: Column) -> Self:
        return self._select(value.sql for value in values)

    def orderBy(self, *order: object) -> Self:  # noqa: N802
        return self._select(["*"], f" order by {translate_order(', '.join(map(write_column, order)))}")

    def limit(self, count: int) -> Self:
        return self._select(["*"], f" limit {count}")

    def repartition(self, *_: object) -> Self:
        return self

    coalesce = repartition

    def sortWithinPartitions(self, *order: object) -> Self:  # noqa: N802
        return replace(self, order=order)

    def join(self, other: "Frame", on: str | Sequence[str] | Column, how: str = "inner") -> Self:
        kind = how.removeprefix("left_") if how in ("left_semi", "left_anti") else how
        if self.called:
            return self._join_named(other, on, kind)
        keys = () if isinstance(on, Column) else (on,) if isinstance(on, str) else tuple(on)
        if isinstance(on, Column):
            sql = on.sql.replace(f"`{self.name}`.", "l.").replace(f"`{other.name}`.", "r.")
            condition = translate_condition(sql)
        else:
            condition = " and ".join(f'l."{key}" = r."{key}"' for key in keys)
        items = [f"coalesce(l.`{key}`, r.`{key}`) as `{key}`" if how in _FULL else f"l.`{key}`" for key in keys]
        items += [f"l.`{name}`" for name in self.columns if name not in keys]
        if how in ("inner", "left", *_FULL):
            items += [f"r.`{name}`" for name in other.columns if name not in keys]
        return self._add(items, ("", f" as l {kind} join ", f" as r on {condition}"), other)

    def _join_named(self, other: "Frame", on: Any, kind: str) -> Self:
        """Join frames whose columns are named with the names of the frames afterwards. Each frame becomes a struct."""
        one, two = self.called, other.called
        each = on if isinstance(on, list) else [on]
        parts = (
            f'{one}."{part}" = {two}."{part}"' if isinstance(part, str) else f"({translate_condition(part.sql)})"
            for part in each
        )
        condition = " and ".join(parts)
        source = ("", f" as {one} {kind} join ", f" as {two} on {condition}")
        if kind in ("semi", "anti"):
            return replace(self._add([f"{one}.`{name}`" for name in self.columns], source, other), called=one)
        names = [*self.columns, *other.columns]
        items = [f"{called} as `{called}`" for called in (one, two) if called not in names]
        items += [f"{one}.`{name}`" for name in self.columns if names.count(name) == 1]
        items += [f"{two}.`{name}`" for name in other.columns if names.count(name) == 1]
        return self._add(items, source, other)

    def unionByName(self, other: "Frame", *, allowMissingColumns: bool = False) -> Self:  # noqa: N802, N803
        missing = set(self.columns) - set(other.columns)
        more = [name for name in other.columns if name not in self.columns]
        assert allowMissingColumns or not (missing or more)
        if more:
            wider = self._select(["*", *(f"null as `{name}`" for name in more)])
            return wider.unionByName(other, allowMissingColumns=True)
        names = ", ".join(f'null as "{name}"' if name in missing else f'"{name}"' for name in self.columns)
        return self._add(["*"], ("", f" union all select {names} from ", ""), other)  # noqa: S608

    def subtract(self, other: "Frame") -> Self:
        names = ", ".join(f'"{name}"' for name in self.columns)
        return self._add(["*"], ("", f" except select {names} from ", ""), other)  # noqa: S608

    def unpivot(self, ids: Sequence[str], values: Sequence[str], variable: str, value: str) -> Self:
        """Return a row for each of the `values` of a row."""
        assert not ids
        pairs = ", ".join(f"struct({write_literal(name)} as `{variable}`, `{name}` as `{value}`)" for name in values)
        return self._select([f"explode(array({pairs})) as pair"])._select([f"pair.{variable}", f"pair.{value}"])

    def _select(self, items: Iterable[str], rest: str = "") -> Self:
        return self._add(items, ("", f" as {self.called}{rest}" if self.called else rest))

    def _add(self, items: Iterable[str], source: tuple[str, ...], *others: "Frame") -> Self:
        name = self.steps.add(tuple(items), source, (self.name, *(other.name for other in others)))
        return replace(self, name=name, called="", order=())


def _list(columns: tuple[Any, ...]) -> Iterable[Any]:
    return columns[0] if len(columns) == 1 and isinstance(columns[0], list | tuple) else columns


F = TypeVar("F", bound=Frame)


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups(Generic[F]):
    """The groups of a frame's rows."""

    rows: F
    keys: tuple[str, ...]

    def agg(self, *values: Column) -> F:
        by = ", ".join(translate_condition(re.sub(r" as `\w+`$", "", key)) for key in self.keys)
        return self.rows._select((*self.keys, *(value.sql for value in values)), f" group by {by}" if by else "")

    def count(self) -> F:
        return self.agg(Column("count(*) as `count`"))
