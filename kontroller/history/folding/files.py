"""Writes the rows of a divided table into files within a task, in the folders that Spark makes for them.

The rows come sorted, so one file after the other is written. Equal rows give equal bytes, whatever batches they come in.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pyarrow as pa

from kontroller.history.engine.database import FILE
from kontroller.history.engine.files import cut, name_day, write_file
from kontroller.history.schemas import Table
from kontroller.history.store import DIVIDED_BY, DIVIDED_BY_CLUSTER, RANGE


def sort_rows(table: Table, sql: str) -> str:
    """Return DuckDB's SQL for the rows of `sql` with the columns that divide the table, sorted by these.

    It reads the number of files of large clusters from `several_files`, with `cluster_id` and `files`."""
    columns = ", ".join(f"r.{name}" for name in table.schema.fieldNames())
    order = ", ".join(f"r.{name} nulls first" for name in table.order)
    rows = f"from ({sql}) as r left join several_files as s on r.cluster_id = s.cluster_id"
    if table.by_day is None:
        values = ", ".join(f"r.{name}" for name in table.order)
        file = f"cast(hash({values}) % cast(coalesce(s.files, 1) as ubigint) as int)"
        return f"select {columns}, r.cluster_id as of, {file} as file {rows} order by of, file, {order}"
    time = f"r.{table.by_day}"
    divided = f"r.cluster_id as of, {name_day(time)} as day, r.seq // {RANGE} as range"
    return f"select {columns}, {divided} {rows} order by of, cast({time} as date) nulls first, range, {order}"


def write_files(
    batches: Iterable[pa.RecordBatch], folder: Path, clusters: Mapping[str, str], table: Table, kind: pa.Schema
) -> Iterator[str]:
    """Write the rows of `sort_rows` below a folder, and yield the folders of parts. Raises `OSError`.

    `clusters`: the names of the clusters' folders."""
    names = DIVIDED_BY_CLUSTER if table.by_day is None else DIVIDED_BY
    for (of, *values), pieces in groupby(cut(batches, names), itemgetter(0)):
        *days, file = (f"{name}={value}" for name, value in zip(names[1:], values, strict=True))
        part = "/".join((clusters[of], *days))
        write_file(folder / part / file / FILE, kind, (piece for _, piece in pieces))
        yield part
