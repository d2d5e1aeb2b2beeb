"""The files of the tables beside the page: one Parquet file and one file of JSON lines each, with stable names.

Spark writes folders, and the only file of each is moved out of it. Rows are sorted, so the same rows give the same
bytes. The page is made from these files, so that an answer is computed once.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import orjson
import pyarrow.parquet
from pyspark.sql import DataFrame

from kontroller.history.reports.names import Names
from kontroller.history.reports.objective import Objective
from kontroller.history.reports.period import SECOND
from kontroller.history.reports.selection.tables import EXPORTED, Tables
from kontroller.history.reports.service_levels import WINDOWS, Level
from kontroller.history.schemas import Table

BATCH_ROWS = 10_000
TABLES_AT_ONCE = 2
"""While Spark plans one table, it computes another one."""
LEVELS = "service_levels"
_REAL, _MOMENT = pyarrow.float64(), pyarrow.timestamp("us", tz="UTC")
LEVEL_SCHEMA = pyarrow.schema(
    {
        "cluster_id": pyarrow.string(),
        "name": pyarrow.string(),  # by the report's --names; "" if it has none, as the following
        "environment": pyarrow.string(),
        "owner": pyarrow.string(),
        "window_seconds": pyarrow.int64(),  # before `as_of`
        "as_of": _MOMENT,  # the last known time; the end of the period if the cluster is silent
        "known_seconds": _REAL,  # of partitions, as the following
        "unknown_seconds": _REAL,
        "leaderless_seconds": _REAL,
        "availability_at_least": _REAL,  # if all unknown time was down; null if there was no partition
        "availability_at_most": _REAL,
        "objective": _REAL,  # of availability, from 0 to 1; null if the report has none
        "burn_rate_at_least": _REAL,  # lost over what the objective allows; of 28 days: the spent part of the budget
        "burn_rate_at_most": _REAL,
    }
)
JSON_OPTIONS = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE


def export_tables(tables: Tables, folder: Path) -> Mapping[str, Path]:
    """Write all tables of a page, and return their Parquet files by name. Files of tables that were not given are
    removed.

    Raises OSError if the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(TABLES_AT_ONCE) as pool:
        paths = pool.map(lambda table: _export_table(table, tables, folder), EXPORTED)
        return {table.name: path for table, path in zip(EXPORTED, paths, strict=True) if path}


def _export_table(table: Table, tables: Tables, folder: Path) -> Path | None:
    """Write a table and return its Parquet file, or remove its files and return None if it was not given."""
    path = folder / f"{table.name}.parquet"
    if table.name in tables.missing:
        path.unlink(missing_ok=True)
        path.with_suffix(".json").unlink(missing_ok=True)
        return None
    _write_parquet(table, tables[table], path)
    write_json_lines(path)
    return path


def export_levels(levels: Iterable[Level], objective: Objective | None, names: Names, folder: Path) -> Path:
    """Write the service level of each cluster, one row per window, and return the Parquet file.

    Raises OSError if the folder cannot be written."""
    rows = [
        {**_make_row(level, us, objective), **names.describe_cluster(level.cluster)}
        for level in levels
        for us in WINDOWS
    ]
    path = folder / f"{LEVELS}.parquet"
    with replace_file(path) as file:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema=LEVEL_SCHEMA), file)
    write_json_lines(path)
    return path


def _make_row(level: Level, window_us: int, objective: Objective | None) -> dict[str, object]:
    amount = level.windows[window_us]
    least, most = amount.availability or (None, None)
    burn = None if objective is None else amount.compute_spent(objective.allowance)
    return {
        "cluster_id": level.cluster,
        "window_seconds": window_us // SECOND,
        "as_of": level.as_of_us,
        "known_seconds": amount.known_us / SECOND,
        "unknown_seconds": amount.unknown_us / SECOND,
        "leaderless_seconds": amount.lost_us / SECOND,
        "availability_at_least": least,
        "availability_at_most": most,
        "objective": None if objective is None else float(1 - objective.allowance),
        "burn_rate_at_least": burn and float(burn[0]),
        "burn_rate_at_most": burn and float(burn[1]),
    }


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file that takes the place of `path` when the block ends. If the block raises, nothing changes."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as scratch:
        new = Path(scratch) / path.name
        with new.open("wb") as file:
            yield file
        os.replace(new, path)


def rows_in(path: Path) -> int:
    return int(pyarrow.parquet.read_metadata(path).num_rows)


def _write_parquet(table: Table, rows: DataFrame, path: Path) -> None:
    in_order = rows.select(*table.schema.fieldNames()).repartition(1).sortWithinPartitions(*table.order)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{table.name}-") as scratch:
        written = Path(scratch) / table.name
        in_order.write.parquet(str(written))
        (part,) = written.glob("part-*.parquet")
        shutil.move(part, path)


def write_json_lines(path: Path) -> None:
    """Write one row per line, with the same fields. Times are in the form 2026-11-20T02:13:04.120000Z."""
    source = pyarrow.parquet.ParquetFile(path)
    with replace_file(path.with_suffix(".json")) as lines, source:
        for batch in source.iter_batches(batch_size=BATCH_ROWS):
            lines.writelines(orjson.dumps(row, option=JSON_OPTIONS) for row in _list_rows(batch))


def _list_rows(batch: pyarrow.RecordBatch) -> list[dict[str, object]]:
    """Return the rows as Python's values. A value with a time that no calendar has is None."""
    try:
        rows: list[dict[str, object]] = batch.to_pylist()
    except (OverflowError, ValueError):
        names = batch.schema.names
        rows = [dict(zip(names, map(_read_value, values), strict=True)) for values in zip(*batch.columns, strict=True)]
    return rows


def _read_value(value: pyarrow.Scalar) -> object:
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return None
