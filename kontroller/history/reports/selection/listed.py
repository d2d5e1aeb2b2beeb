"""The first rows of a table as plain values, and the number of all its rows."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kontroller.history import schemas
from kontroller.history.reports.facts import Column, Kind, Listed, Value
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.selection.tables import Tables

THREADS = 4
"""Small queries spend most of their time on planning, so several run at once."""
LETTERS = 400
"""The letters of a text that the page shows. The table has the whole text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A table of the page. `rows` has the fields of `columns`. `first` is the page's order, unique to each row."""

    name: str
    table: schemas.Table
    rows: Callable[[Tables], DataFrame]
    columns: tuple[Column, ...]
    first: tuple[str, ...]
    has_rows_of_its_own: bool = False
    """True if it may have rows although the table has none."""


def list_rows(listing: Listing, tables: Tables, *, most: int) -> Listed:
    """Run one bounded query, and a count only if there are more rows than are shown."""
    if listing.table.name in tables.empty and not listing.has_rows_of_its_own:
        return Listed(name=listing.name, table=listing.table.name, columns=listing.columns, rows=(), total=0)
    rows = listing.rows(tables)
    order = [
        f.col(name.removesuffix(" desc")).desc_nulls_last() if name.endswith(" desc") else f.col(name).asc_nulls_last()
        for name in listing.first
    ]
    fields = {column.field: column.kind for column in listing.columns}
    # One row more than is shown tells if there are more, without a count in most cases.
    found = (
        rows.orderBy(*order).select(*(_plain(name, kind) for name, kind in fields.items())).limit(most + 1).collect()
    )
    total = len(found) if len(found) <= most else rows.count()
    shown = tuple({name: _value(row[name]) for name in fields} for row in found[:most])
    return Listed(name=listing.name, table=listing.table.name, columns=listing.columns, rows=shown, total=total)


def _plain(name: str, kind: Kind) -> Expression:
    """Return a column of bounded size, with times as microseconds."""
    column = f.col(name)
    if kind == "time":
        return f.unix_micros(column).alias(name)
    if kind == "text":
        return f.substring(column.cast("string"), 1, LETTERS).alias(name)
    if kind in ("brokers", "lines"):
        return f.slice(column, 1, 12).alias(name)
    return column


def _value(value: object) -> Value:
    if isinstance(value, list):
        return tuple(value)
    assert value is None or isinstance(value, str | bool | int | float)
    return value


def list_all_rows(listings: Sequence[Listing], tables: Tables, limits: Limits) -> Mapping[str, Listed]:
    with ThreadPoolExecutor(THREADS) as pool:
        found = pool.map(lambda listing: list_rows(listing, tables, most=limits.rows_of(listing.name)), listings)
        return {one.name: one for one in found}
