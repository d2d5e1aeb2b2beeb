"""Computes tables with DuckDB within Spark's tasks, if the files of the history are on this machine.

Spark spends more on planning and compiling a definition than on the records of most clusters, and moves all records
between tasks. A cluster is folded by itself, so one task can do it alone: DuckDB reads the kept files, and runs the
definitions (`definitions`) as `scripts.duckdb_sql` has compiled them. The task also writes the files of the table, so
no row passes through Spark. A task folds several small clusters at once.

The session itself runs the definitions for clusters whose files are larger than `LARGEST_BYTES`, for histories at other
places, and wherever it is DuckDB's own (`engine`), which has no tasks.
"""

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from kontroller.history.engine.database import BATCH_ROWS, make_arrow_schema, name_files, open_database
from kontroller.history.folding.definitions import Definition
from kontroller.history.folding.files import sort_rows, write_files
from kontroller.history.generations.folders import make_not_written
from kontroller.history.generations.generation import Part, cluster_of, folder_of, select_clusters
from kontroller.history.generations.locks import find_local_folder
from kontroller.history.schemas import INT, TEXT, Table, columns
from kontroller.history.store import Change, Store

LARGEST_BYTES: Final = 64 << 20
"""The size of a cluster's files from which on no task folds it: some 3,000,000 records."""
RUN_BYTES: Final = 16 << 20
"""The size of the files of small clusters that one task folds at once."""
MEMORY: Final = "192m"
"""The memory of a run, beside the rows that are being written. DuckDB writes what needs more to temporary files."""
_FILES: Final = pa.schema({"cluster_id": pa.string(), "files": pa.int64()})
_SQL: Final = Path(__file__).with_name("duckdb.sql")
_GLOB: Final = frozenset("*?[")
"""Characters of a path that DuckDB takes for a pattern."""

Parts = Mapping[Table, Sequence[Part]]
_WRITTEN: Final = columns(part=TEXT, error=TEXT)
"""The parts that a task has written, or the reason why it could not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The clusters that one task folds at once."""

    files: dict[str, list[str]] = field(default_factory=dict)
    """The files of the tables to read, by the tables' names."""
    folders: dict[str, str] = field(default_factory=dict)
    """The names of the clusters' folders."""

    def add(self, cluster: str, folder: str, files: Mapping[str, list[str]]) -> None:
        self.folders[cluster] = folder
        for name, of_cluster in files.items():
            self.files.setdefault(name, []).extend(of_cluster)


def compute(store: Store, definition: Definition, parts: Parts, **few: DataFrame) -> DataFrame:
    """Return the table of a definition. Raises `ChangedMeanwhile` if a part no longer exists.

    `parts`: the parts of the tables that it reads. `few`: the rows of the others, which are collected."""
    runs, large = _divide(store, parts)
    found = [_compute_embedded(store, definition, runs, few)] if runs else []
    if large:
        found.append(_compute_by_session(store, definition, parts, large, few))
    return functools.reduce(DataFrame.unionByName, found or [store.spark.createDataFrame([], definition.schema)])


def write(
    change: Change,
    table: Table,
    definition: Definition,
    source: Store,
    parts: Parts,
    files: Mapping[str, int] | None = None,
    **few: DataFrame,
) -> tuple[Part, ...]:
    """Compute a table from the parts of `source`, and write it. The parts belong to no table until they replace others.

    `parts` and `few` are those of `compute`, `files` is that of `Change.add_clusters`. Raises `NotWritten`."""
    runs, large = _divide(source, parts)
    written = _write_embedded(change, table, definition, source, runs, files or {}, few) if runs else ()
    if large:
        written += change.add_clusters(table, _compute_by_session(source, definition, parts, large, few), files)
    return written


def read_sql() -> dict[str, str]:
    """Return DuckDB's SQL of each definition, by its name."""
    head, *texts = _SQL.read_text().split("\n-- ")
    assert head.startswith("-- Generated")
    return dict(text.split("\n", 1) for text in texts)


def _divide(store: Store, parts: Parts) -> tuple[Sequence[Run], frozenset[str]]:
    """Return the runs of DuckDB, and the clusters that are left to the session."""
    first = next(iter(parts.values()))
    clusters = {cluster_of(part): folder_of(part) for part in sorted(first, key=cluster_of)}
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
    runs: list[Run] = []
    left = 0
    for cluster, size in sizes.items():
        if size <= LARGEST_BYTES:
            if not runs or size > left:
                runs.append(Run())
                left = RUN_BYTES
            left -= size
            runs[-1].add(cluster, clusters[cluster], files[cluster])
    return runs, frozenset(cluster for cluster, size in sizes.items() if size > LARGEST_BYTES)


def _compute_by_session(
    store: Store, definition: Definition, parts: Parts, clusters: Collection[str], few: Mapping[str, DataFrame]
) -> DataFrame:
    of_clusters = {table: select_clusters(of, clusters) for table, of in parts.items()}
    rows = {table.name: store.read_parts(table, of) for table, of in of_clusters.items()} | dict(few)
    made = definition.make(*(rows[table.name] for table in definition.reads))
    # DuckDB's integers may be larger than Spark's.
    return made.select(
        *(
            f.col(each.name).cast(INT).alias(each.name) if each.dataType == INT else each.name
            for each in definition.schema
        )
    )


def _compute_embedded(
    store: Store, definition: Definition, runs: Sequence[Run], few: Mapping[str, DataFrame]
) -> DataFrame:
    sql, kind = read_sql()[definition.name], make_arrow_schema(definition.schema)

    def collect(database: duckdb.DuckDBPyConnection, _: Run) -> Iterator[pa.RecordBatch]:
        for batch in database.sql(sql).to_arrow_reader(BATCH_ROWS):
            yield batch.cast(kind)

    return _run_in_tasks(store, definition, runs, few, collect, definition.schema)


def _write_embedded(
    change: Change,
    table: Table,
    definition: Definition,
    source: Store,
    runs: Sequence[Run],
    files: Mapping[str, int],
    few: Mapping[str, DataFrame],
) -> tuple[Part, ...]:
    folder = find_local_folder(change.store.path(table))
    assert folder is not None, "both stores of a history are in its folder"
    write, kind = change.name_write(), make_arrow_schema(table.schema)
    sql, place = sort_rows(table, read_sql()[definition.name]), folder / write

    def write_run(database: duckdb.DuckDBPyConnection, run: Run) -> Iterator[pa.RecordBatch]:
        several = {cluster: count for cluster, count in files.items() if cluster in run.folders}
        counts = pa.table({"cluster_id": [*several], "files": [*several.values()]}, _FILES)
        batches = database.register("several_files", counts).sql(sql).to_arrow_reader(BATCH_ROWS)
        try:
            found = [{"part": part} for part in dict.fromkeys(write_files(batches, place, run.folders, table, kind))]
        except OSError as error:
            found = [{"error": str(error)}]
        yield pa.RecordBatch.from_pylist(found, make_arrow_schema(_WRITTEN))

    rows = _run_in_tasks(source, definition, runs, few, write_run, _WRITTEN).collect()
    for row in rows:
        if row.error is not None:
            raise make_not_written(f"the table {table.name} cannot be written to {place}", row.error)
    return tuple(Part(f"{write}/{row.part}") for row in rows)


def _run_in_tasks(
    store: Store,
    definition: Definition,
    runs: Sequence[Run],
    few: Mapping[str, DataFrame],
    use: Callable[[duckdb.DuckDBPyConnection, Run], Iterator[pa.RecordBatch]],
    schema: StructType,
) -> DataFrame:
    """Return the rows that `use` makes of each run, as one task, with the tables of the definition in the database."""
    spark = store.spark
    threads = max(1, spark.sparkContext.defaultParallelism // len(runs))
    rows = {name: frame.toArrow() for name, frame in few.items()}
    tables = {table.name: table.schema for table in definition.reads}

    def fold(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                inputs = {name: runs[number].files.get(name, []) or rows.get(name) for name in tables}
                with _open(tables, inputs, threads) as database:
                    yield from use(database, runs[number])

    return spark.range(0, len(runs), 1, len(runs)).mapInArrow(fold, schema)


@contextmanager
def _open(
    tables: Mapping[str, StructType], inputs: Mapping[str, object], threads: int
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database with the tables of a definition. `inputs`: the files of each table, or its rows, or nothing."""
    with open_database(threads=threads, memory=MEMORY, keeps_order=False) as database:
        for name, kinds in tables.items():
            found = inputs[name]
            if isinstance(found, list):
                name_files(database, name, found, kinds)
            else:
                database.register(name, found or make_arrow_schema(kinds).empty_table())
        yield database
