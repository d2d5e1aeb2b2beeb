"""Writes the rows of a divided table into files within a task, in the folders that Spark makes for them.

The rows come sorted, so one file after the other is written. Equal rows give equal bytes, whatever batches they come in.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kontroller.history.schemas import Table
from kontroller.history.store import DIVIDED_BY, DIVIDED_BY_CLUSTER, RANGE

ROWS_IN_A_GROUP: Final = 1 << 15
"""The rows that are held in memory, and that readers can skip together."""
_FILE: Final = "part-0.zstd.parquet"
"""The only file of a folder. A task that runs again replaces what it had begun."""
_LAST_DAY: Final = "+294247-01-10"
"""The day of the largest time, which DuckDB takes for infinity."""
_NONE: Final = "__HIVE_DEFAULT_PARTITION__"


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
    day = f"cast(cast({time} as date) as text)"
    named = (
        f"case when isinf({time}) then '{_LAST_DAY}' when year({time}) > 9999 then '+' || {day} "
        f"else coalesce({day}, '{_NONE}') end"
    )
    divided = f"r.cluster_id as of, {named} as day, r.seq // {RANGE} as range"
    return f"select {columns}, {divided} {rows} order by of, cast({time} as date) nulls first, range, {order}"


def write_files(
    batches: Iterable[pa.RecordBatch], folder: Path, clusters: Mapping[str, str], table: Table, kind: pa.Schema
) -> Iterator[str]:
    """Write the rows of `sort_rows` below a folder, and yield the folders of parts. Raises `OSError`.

    `clusters`: the names of the clusters' folders."""
    names = DIVIDED_BY_CLUSTER if table.by_day is None else DIVIDED_BY
    for (of, *values), pieces in groupby(_cut(batches, names), itemgetter(0)):
        *days, file = (f"{name}={value}" for name, value in zip(names[1:], values, strict=True))
        part = "/".join((clusters[of], *days))
        (folder / part / file).mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(folder / part / file / _FILE, kind, compression="zstd", store_schema=False) as written:
            for group in _join(piece.select(kind.names).cast(kind) for _, piece in pieces):
                written.write_table(group)
        yield part


def _cut(
    batches: Iterable[pa.RecordBatch], names: tuple[str, ...]
) -> Iterator[tuple[tuple[object, ...], pa.RecordBatch]]:
    """Cut batches at each change of these columns, and yield the values with the rows."""
    for batch in batches:
        columns = [batch.column(name) for name in names]
        ends = {0, len(batch)}
        for column in columns:
            is_other = pc.not_equal(column[1:], column[:-1])
            ends |= {1 + index for index in pc.indices_nonzero(is_other).to_pylist()}
        for first, last in pairwise(sorted(ends)):
            yield tuple(column[first].as_py() for column in columns), batch.slice(first, last - first)


def _join(pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join and cut rows to tables of `ROWS_IN_A_GROUP`."""
    held: list[pa.RecordBatch] = []
    missing = ROWS_IN_A_GROUP
    for piece in pieces:
        left = piece
        while len(left):
            held.append(left.slice(0, missing))
            left = left.slice(missing)
            missing -= len(held[-1])
            if not missing:
                yield pa.Table.from_batches(held).combine_chunks()
                held, missing = [], ROWS_IN_A_GROUP
    if held:
        yield pa.Table.from_batches(held).combine_chunks()
