"""Applies plain Python to small groups of rows, where SQL is not enough: the marks of a cluster, or the journals of an
epoch.

`GroupedData.applyInArrow` would do the same, but with Spark Connect it requests the columns of its input at once, which
a function of a declared pipeline may not do.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StructType

from kontroller.history.engine.session import Rows

Compute: TypeAlias = Callable[[DataFrame], DataFrame]
"""Returns the rows as they are, or computed and kept, so that later plans are short."""


def leave(rows: DataFrame) -> DataFrame:
    """Return the rows as they are: the functions of a declared pipeline may compute nothing."""
    return rows


def apply_to_groups(
    rows: DataFrame,
    keys: Sequence[str],
    names: Sequence[str],
    made: Callable[[Sequence[Row]], Iterable[Mapping[str, object]]],
    schema: StructType,
) -> DataFrame:
    """Return all rows of `schema` that `made` returns for the rows with equal keys. It receives the columns `names`.

    A group is in memory as a whole, and in no order."""

    if isinstance(rows, Rows):
        return rows.apply_to_groups(keys, names, made, schema)

    def apply_to_group(group: list[Row]) -> list[tuple[object, ...]]:
        return [tuple(row[name] for name in schema.fieldNames()) for row in made(group)]

    groups = rows.groupBy(*keys).agg(f.collect_list(f.struct(*names)).alias("group"))
    return groups.select(f.inline(f.udf(apply_to_group, ArrayType(schema), useArrow=False)("group")))
