"""Computes tables with DuckDB within Spark's tasks, if the files of the history are on this machine.

Spark spends more on planning and compiling a definition than on the records of most clusters, and moves all records
between tasks. A cluster is folded by itself, so one task can do it alone: DuckDB reads the kept files, and runs the
definitions (`definitions`) as `scripts.duckdb_sql` has compiled them. A task folds several small clusters at once.

Spark folds clusters whose files are larger than `LARGEST_BYTES`, and histories at other places.
"""

import functools
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
from duckdb.func import PythonUDFType
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kontroller.history.folding.definitions import Definition
from kontroller.history.generations.generation import Part, cluster_of, select_clusters
from kontroller.history.generations.locks import find_local_folder
from kontroller.history.schemas import Table
from kontroller.history.store import Store

LARGEST_BYTES: Final = 64 << 20
"""The size of a cluster's files from which on Spark folds it: some 3,000,000 records."""
RUN_BYTES: Final = 16 << 20
"""The size of the files of small clusters that one task folds at once."""
MEMORY: Final = "256MB"
"""The memory of a run. DuckDB writes what needs more to temporary files."""
_ROWS_IN_A_BATCH: Final = 10_000
_SQL: Final = Path(__file__).with_name("duckdb.sql")
_GLOB: Final = frozenset("*?[")
"""Characters of a path that DuckDB takes for a pattern."""

Parts = Mapping[Table, Sequence[Part]]
Run = Mapping[str, list[str]]
"""The files of the tables to read, by the tables' names."""


def compute(store: Store, definition: Definition, parts: Parts, **few: DataFrame) -> DataFrame:
    """Return the table of a definition. Raises `ChangedMeanwhile` if a part no longer exists.

    `parts`: the parts of the tables that it reads. `few`: the rows of the others, which are collected."""
    runs, large = _divide(store, parts)
    found = [_compute_embedded(store, definition, runs, few)] if runs else []
    if large:
        of_spark = {table: select_clusters(parts[table], large) for table in parts}
        rows = {table.name: store.read_parts(table, of) for table, of in of_spark.items()} | few
        found.append(definition.make(*(rows[table.name] for table in definition.reads)))
    return functools.reduce(DataFrame.unionByName, found or [store.spark.createDataFrame([], definition.schema)])


def read_sql() -> dict[str, str]:
    """Return DuckDB's SQL of each definition, by its name."""
    head, *texts = _SQL.read_text().split("\n-- ")
    assert head.startswith("-- Generated")
    return dict(text.split("\n", 1) for text in texts)


def _divide(store: Store, parts: Parts) -> tuple[Sequence[Run], frozenset[str]]:
    """Return the runs of DuckDB, and the clusters that are left to Spark."""
    first = next(iter(parts.values()))
    clusters = sorted({cluster_of(part) for part in first})
    folder = find_local_folder(store.location)
    is_here = str(store.spark.sparkContext.master).startswith("local")
    if folder is None or not is_here or _GLOB & set(str(folder)):
        return [], frozenset(clusters)
    files: dict[str, dict[str, list[str]]] = {cluster: {} for cluster in clusters}
    sizes = dict.fromkeys(clusters, 0)
    for table, of in parts.items():
        for part in of:
            if (cluster := cluster_of(part)) in files:
                found = sorted((folder / table.name / part).rglob("*.parquet"))
                if not found:
                    raise store.make_replaced_error(table)
                files[cluster].setdefault(table.name, []).extend(map(str, found))
                sizes[cluster] += sum(file.stat().st_size for file in found)
    large = frozenset(cluster for cluster in clusters if sizes[cluster] > LARGEST_BYTES)
    return _join_small([(sizes[cluster], files[cluster]) for cluster in clusters if cluster not in large]), large


def _join_small(clusters: Iterable[tuple[int, Run]]) -> Sequence[Run]:
    """Return runs of several clusters, from the bytes and files of each."""
    runs: list[dict[str, list[str]]] = []
    left = 0
    for size, files in clusters:
        if not runs or size > left:
            runs.append({})
            left = RUN_BYTES
        left -= size
        for name, of_cluster in files.items():
            runs[-1].setdefault(name, []).extend(of_cluster)
    return runs


def _compute_embedded(
    store: Store, definition: Definition, runs: Sequence[Run], few: Mapping[str, DataFrame]
) -> DataFrame:
    """Return the table of a definition, each run as one task."""
    spark, sql, schema = store.spark, read_sql()[definition.name], definition.schema
    threads = max(1, spark.sparkContext.defaultParallelism // len(runs))
    rows = {name: frame.toArrow() for name, frame in few.items()}
    tables = {table.name: table.schema for table in definition.reads}

    def fold(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                inputs = {name: runs[number].get(name, []) or rows.get(name) for name in tables}
                yield from _run(sql, schema, tables, inputs, threads)

    return spark.range(0, len(runs), 1, len(runs)).mapInArrow(fold, schema)


def _run(
    sql: str, schema: StructType, tables: Mapping[str, StructType], inputs: Mapping[str, object], threads: int
) -> Iterator[pa.RecordBatch]:
    """Run a definition. `inputs`: the files of each table, or its rows, or nothing."""
    kind = _arrow(schema)
    with tempfile.TemporaryDirectory() as spilled, duckdb.connect(config=_settings(spilled, threads)) as database:
        database.execute("set TimeZone = 'UTC'")
        database.create_function("crc32", _crc32, ["varchar"], "bigint", type=PythonUDFType.ARROW)
        for name, columns in tables.items():
            found = inputs[name]
            if isinstance(found, list):
                # Files of older records lack the newer columns.
                database.register("nothing", _arrow(columns).empty_table())
                files = database.read_parquet(found, hive_partitioning=False, union_by_name=True)
                files.create_view(f"files_of_{name}")
                database.execute(f"create view {name} as from files_of_{name} union all by name from nothing")
            else:
                database.register(name, found or _arrow(columns).empty_table())
        for batch in database.sql(sql).to_arrow_reader(_ROWS_IN_A_BATCH):
            yield batch.cast(kind)


def _settings(spilled: str, threads: int) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "threads": threads,
        "memory_limit": MEMORY,
        "temp_directory": spilled,
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }


def _arrow(schema: StructType) -> pa.Schema:
    return to_arrow_schema(schema, timezone="UTC")


def _crc32(texts: pa.Array) -> pa.Array:
    return pa.array([zlib.crc32(text.encode()) for text in texts.to_pylist()], pa.int64())
