"""Tables as folders of Parquet files, and small files that list the ones that are current.

A change writes new files beside the existing ones, then the file of a new generation that names them. So a change that
fails or is killed has changed nothing, readers go on with their generation, and no step renames a folder, which object
stores cannot do. The next change removes files that no generation names.

Rows are sorted by the table's order, so the same history gives the same bytes on any number of cores. Tables are
divided by cluster, and some by day, so that one can be replaced alone. Large clusters have several files; the row alone
decides its file.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from kontroller.history.delta.log import DeltaLog
from kontroller.history.generations.errors import ChangedMeanwhile, NotWritten
from kontroller.history.generations.folders import Folders, open_folders, translate_errors
from kontroller.history.generations.generation import (
    Generation,
    Made,
    Part,
    cluster_of,
    new_write,
    replace_clusters,
    replace_days,
    replace_days_from,
)
from kontroller.history.generations.keeping import Keeping
from kontroller.history.generations.present import (
    find_newest,
    find_previous,
    is_newest,
    keep_generation,
    remove_what_is_left_of_others,
)
from kontroller.history.schemas import Table

DIVIDED_BY: Final = ("of", "day", "range")
"""The folder levels of a table that is divided by day. Its parts are the folders of a cluster and day."""
DIVIDED_BY_CLUSTER: Final = ("of", "file")
"""The folder levels of a table that is divided by cluster alone. Its parts are the folders of a cluster."""
RANGE: Final = 1 << 20
"""The size of a range of record numbers; each range of a day is one file, some 50 MB at most."""

FILES_AT_ONCE: Final = 16
"""Files that a task holds open with their buffers. More would need more memory than reading needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The tables below `location`, a path or URI that Spark can write to. All methods raise `StoreError`."""

    spark: SparkSession
    location: str
    generation: Generation | None = None
    """The generation to read, and to change if it is still the newest; None: the newest one at each call."""
    tables: Collection[Table] = ()
    """The tables that other programs find if the store is kept in Delta Lake."""
    asked: Keeping = field(default_factory=Keeping)
    """The format for the tables from the next change on; empty: no change of the format."""

    def path(self, table: Table) -> str:
        """Return the folder of a table. The generation says which files in it are current."""
        return f"{self.location.rstrip('/')}/{table.name}"

    def read(self, table: Table) -> DataFrame:
        """Return the table with exactly its columns, and no rows if it was never written."""
        return self.read_parts(table, self.at_present.parts.get(table.name, ()))

    def has(self, table: Table) -> bool:
        """Return True if the table was ever written."""
        return table.name in self.at_present.parts

    @property
    def at_present(self) -> Generation:
        return self.generation or find_newest(self._folders)

    @contextmanager
    def open_snapshot(self) -> Iterator["Store"]:
        """Yield this store as it is now, unaffected by later changes while the block runs.

        On a local file system the files stay until the block ends. Elsewhere they stay until the second change from now
        begins, or with Delta Lake for days."""
        while True:
            present = find_newest(self._folders)
            with keep_generation(self._folders, present) as is_there:
                if is_there:
                    yield replace(self, generation=present)
                    return

    @contextmanager
    def begin_change(self, made: Made | None = None, *, is_anew: bool = False) -> Iterator["Change"]:
        """Yield a change that is committed when the block ends, unless it raises.

        Of two concurrent changes the second to end raises `ChangedMeanwhile`, and so does a change of a store at one
        generation that is not the newest. Raises `OtherFormat`.

        `made`: the source of all tables after the change. `is_anew`: drop everything from before."""
        before = find_newest(self._folders)
        if self.generation not in (None, before):
            raise self._overtaken()
        keeping = before.keeping.then(self.asked)
        logs = self._logs(keeping)
        begun = replace(before, parts={}) if is_anew else before
        change = Change(store=self, before=begun, is_compact=keeping.is_delta)
        with self._explain_overtaking(before):
            # A killed command may have left unnamed files, and a Delta log without its last commit: finish those first.
            self._remove_what_is_left(before, keeping, logs)
            yield change
        after = begun.make_next(change.parts, made, keeping)
        # The file of the generation is the commit point: before it nothing has changed, after it everything has. A very
        # slow change may find its number free again, because old generations are removed; then a newer one exists.
        if not self._folders.create(after.file, after.text()) or not is_newest(self._folders, after):
            raise self._overtaken()
        for log in logs:
            log.publish(after, before)

    @contextmanager
    def _explain_overtaking(self, before: Generation) -> Iterator[None]:
        """Raise `ChangedMeanwhile` for an error if a newer generation exists, because files of this change may have
        been removed."""
        try:
            yield
        except (NotWritten, PySparkException, Py4JJavaError) as error:
            if is_newest(self._folders, before):
                raise
            raise self._overtaken() from error

    def _overtaken(self) -> ChangedMeanwhile:
        return ChangedMeanwhile(
            f"another command has changed {self.location} since this one began: run this one again, and only one "
            "command at a time"
        )

    def _logs(self, keeping: Keeping) -> list[DeltaLog]:
        return [DeltaLog(folders=self._folders, table=table) for table in self.tables if keeping.is_delta]

    def _remove_what_is_left(self, present: Generation, keeping: Keeping, logs: list[DeltaLog]) -> None:
        """Finish the cleanup of the command before this one."""
        before = find_previous(self._folders, present)
        recorded = {log.table.name for log in logs if log.publish(present, before)}
        used = remove_what_is_left_of_others(self._folders, present, recorded)
        for log in logs:
            log.tidy(keeping.days_of(log.table.name), {part for table, part in used if table == log.table.name})

    def read_parts(self, table: Table, parts: tuple[Part, ...]) -> DataFrame:
        """Return some of the parts of the table."""
        if not parts:
            return self.spark.createDataFrame([], table.schema)
        # The files have all columns. Without this option Spark would derive columns from the folders' names as well.
        reader = self.spark.read.schema(table.schema).option("recursiveFileLookup", "true")
        try:
            rows = reader.parquet(*(f"{self.path(table)}/{part}" for part in parts))
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            raise self.make_replaced_error(table) from error
        return rows.select(*table.schema.fieldNames())

    def make_replaced_error(self, table: Table) -> ChangedMeanwhile:
        """Return the error for a part of the table that no longer exists."""
        return ChangedMeanwhile(
            f"another command has replaced {self.path(table)} since this one began to read: run it again"
        )

    @property
    def _folders(self) -> Folders:
        return open_folders(self.spark, self.location)


@dataclass(slots=True, kw_only=True)
class Change:
    """A change that becomes the next generation. `read` returns what has been written so far."""

    store: Store
    before: Generation
    is_compact: bool
    """True: write each day into as few files as possible, even if rows are added."""
    parts: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    """The parts of the tables that have been written so far."""

    def read(self, table: Table) -> DataFrame:
        return self.store.read_parts(table, self.parts_of(table))

    def write(self, table: Table, rows: DataFrame) -> None:
        """Replace the table, which is small and not divided, by one file."""
        ordered = rows.select(*table.schema.fieldNames()).coalesce(1).sortWithinPartitions(*table.order)
        self.parts[table.name] = (Part(self._write(table, ordered)),)

    def write_clusters(
        self, table: Table, rows: DataFrame, clusters: Collection[str], files: Mapping[str, int] | None = None
    ) -> DataFrame:
        """Replace the rows of these clusters by `rows`, and return the rows as written. `rows` has no other clusters.

        Use this for tables that are written by clusters only. `files` is that of `add_clusters`."""
        return self.replace_clusters(table, clusters, self.add_clusters(table, rows, files))

    def add_clusters(self, table: Table, rows: DataFrame, files: Mapping[str, int] | None = None) -> tuple[Part, ...]:
        """Write the rows of clusters. The parts belong to no table until they replace others.

        `files`: the number of files of each cluster, 1 if not given; a table that is divided by day as well has one or
        more for each day."""
        ordered = divide_by_cluster(table, rows, files or {}) if table.by_day is None else divide_by_day(table, rows)
        return self._write_divided(table, ordered)

    def replace_clusters(self, table: Table, clusters: Collection[str], parts: tuple[Part, ...]) -> DataFrame:
        """Put these parts in the place of all parts of these clusters, and return their rows."""
        self.parts[table.name] = replace_clusters(self.parts_of(table), clusters, parts)
        return self.read_parts(table, parts)

    def replace_days_from(self, table: Table, days: Mapping[str, str], parts: tuple[Part, ...]) -> DataFrame:
        """Put these parts in the place of each cluster's parts from its day (such as 2026-01-31) on, and return their
        rows.

        The table is divided by day, and the parts have only these clusters and days."""
        self.parts[table.name] = replace_days_from(self.parts_of(table), days, parts)
        return self.read_parts(table, parts)

    def write_days(self, table: Table, rows: DataFrame) -> None:
        """Replace the days of the table that occur in `rows`. Use this for tables that are written by days only."""
        self.replace_days(table, self._write_divided(table, divide_by_day(table, rows)))

    def add_days(self, table: Table, rows: DataFrame, day: str) -> tuple[Part, ...]:
        """Write rows without a shuffle, each task into files of its own, unless `is_compact`.

        The parts belong to no table until `replace_days`. `day`: an expression; rows for which it is null get parts of
        their own (`is_without_day`)."""
        divided = rows.select(*table.schema.fieldNames()).withColumns(_folders(f.expr(day)))
        if self.is_compact:
            return self._write_divided(table, _sort_divided(table, divided))
        with _several_files_at_once(rows.sparkSession):
            return self._write_divided(table, divided)

    def replace_days(self, table: Table, parts: tuple[Part, ...]) -> None:
        """Put these parts in the place of the parts of the same days."""
        self.parts[table.name] = replace_days(self.parts_of(table), parts)

    def remove_days(self, table: Table, days: Collection[tuple[str, str]]) -> None:
        """Remove these clusters' days, such as `2026-01-31`, from the table."""
        left = (part for part in self.parts_of(table) if (cluster_of(part), part.rpartition("/day=")[2]) not in days)
        self.parts[table.name] = tuple(left)

    def read_parts(self, table: Table, parts: tuple[Part, ...]) -> DataFrame:
        return self.store.read_parts(table, parts)

    def parts_of(self, table: Table) -> tuple[Part, ...]:
        return self.parts.get(table.name, self.before.parts.get(table.name, ()))

    def name_write(self) -> str:
        """Return a name for the parts of one write."""
        return new_write(self.before.number + 1)

    def _write_divided(self, table: Table, rows: DataFrame) -> tuple[Part, ...]:
        """Write rows into folders by the columns that divide the table, and return their parts."""
        write = self._write(table, rows, DIVIDED_BY_CLUSTER if table.by_day is None else DIVIDED_BY)
        folders, folder = self.store._folders, f"{table.name}/{write}"
        names = folders.clusters(folder) if table.by_day is None else folders.days(folder)
        return tuple(Part(f"{write}/{name}") for name in names)

    def _write(self, table: Table, rows: DataFrame, divided_by: tuple[str, ...] = ()) -> str:
        """Write rows unsorted into folders by these columns, and return the name of the write."""
        write = self.name_write()
        path = f"{self.store.path(table)}/{write}"
        with translate_errors(f"the table {table.name} cannot be written to {path}"):
            rows.write.mode("error").partitionBy(*divided_by).parquet(path)
        return write


@contextmanager
def _several_files_at_once(spark: SparkSession) -> Iterator[None]:
    """Let each task keep the files of several days open while the block runs.

    Otherwise Spark sorts the rows of a task by day if they have more days than it may have open files."""
    setting = "spark.sql.maxConcurrentOutputFileWriters"
    before = spark.conf.get(setting)
    spark.conf.set(setting, str(FILES_AT_ONCE))
    try:
        yield
    finally:
        spark.conf.set(setting, str(before))


def divide_by_cluster(table: Table, rows: DataFrame, files: Mapping[str, int]) -> DataFrame:
    """Divide the rows of a table by cluster, and those of large clusters into several files.

    The hash of the ordering columns selects the file, so all files of a cluster have about the same size, even if most
    rows are of one topic or partition."""
    several = f.create_map(*(f.lit(value) for cluster_files in files.items() for value in cluster_files))
    of_cluster = f.coalesce(f.try_element_at(several, f.col("cluster_id")), f.lit(1)) if files else f.lit(1)
    file = f.pmod(f.xxhash64(*table.order), of_cluster).cast("int")
    divided = rows.select(*table.schema.fieldNames()).withColumns({"of": f.col("cluster_id"), "file": file})
    return divided.repartition(*DIVIDED_BY_CLUSTER).sortWithinPartitions(*DIVIDED_BY_CLUSTER, *table.order)


def divide_by_day(table: Table, rows: DataFrame) -> DataFrame:
    """Divide the rows of a table by cluster, day and range of record numbers. Each range is one file; most days have
    one.

    The dividing columns stay in the files as well, because parts are read one by one."""
    assert table.by_day is not None
    return _sort_divided(table, rows.select(*table.schema.fieldNames()).withColumns(_folders(f.to_date(table.by_day))))


def _sort_divided(table: Table, divided: DataFrame) -> DataFrame:
    return divided.repartition(*DIVIDED_BY).sortWithinPartitions(*DIVIDED_BY, *table.order)


def _folders(day: Column) -> dict[str, Column]:
    return {"of": f.col("cluster_id"), "day": day, "range": f.floor(f.col("seq") / RANGE)}
