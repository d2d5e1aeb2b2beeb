"""Where tables are kept: folders of Parquet files, and small files that say which of them are the tables at a moment.

A change writes files beside those that are there, then the file of a new generation, which names them. So a change that
fails or is killed, at whatever step, has changed nothing; who reads goes on with the generation that was there when it
began; and nothing depends on a rename of folders, which an object store does not have. What no generation names any more is
removed when the next change begins.

What is written is sorted by the table's order, so the same history gives the same bytes, however many cores write it.
Tables are divided by cluster, and some by day, so that a cluster or day can be replaced while the others are left alone.
What a large cluster has is several files, each in that order, and which of them a row is in follows from the row
(`by_cluster`, `by_day`).
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from kontroller.history.delta.log import DeltaLog
from kontroller.history.generations.errors import ChangedMeanwhile
from kontroller.history.generations.folders import Folders, told
from kontroller.history.generations.generation import (
    Generation,
    Made,
    Part,
    cluster_of,
    new_write,
    with_clusters,
    with_days,
    with_days_from,
)
from kontroller.history.generations.keeping import Keeping
from kontroller.history.generations.present import before as generation_before
from kontroller.history.generations.present import being_read, newest, remove_what_is_left_of_others
from kontroller.history.schemas import Table

DIVIDED_BY: Final = ("of", "day", "range")
"""The folders of a table that is divided by day; a part of it is those of a cluster and day."""
DIVIDED_BY_CLUSTER: Final = ("of", "file")
"""The folders of one that is divided by cluster alone; a part of it is those of a cluster."""
RANGE: Final = 1 << 20
"""Numbers of an epoch whose records are in one file, at most of a day: some 50 MB."""

FILES_AT_ONCE: Final = 16
"""Which a task has open, with what they hold in memory: no more than a task reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The tables below `location`, a path or URI that Spark can write to. All raise `StoreError`."""

    spark: SparkSession
    location: str
    generation: Generation | None = None
    """The one that is read; None: the newest at each moment."""
    tables: Collection[Table] = ()
    """Those that programs beside this one find, where they are kept in Delta Lake."""
    asked: Keeping = field(default_factory=Keeping)
    """How tables are to be kept from the next change on, if otherwise than until now."""

    def path(self, table: Table) -> str:
        """The folder of a table; of what is in it, the generation says what is the table."""
        return f"{self.location.rstrip('/')}/{table.name}"

    def read(self, table: Table) -> DataFrame:
        """The table, with its columns alone; no rows where it was never written."""
        return self.read_parts(table, self.at_present.parts.get(table.name, ()))

    def has(self, table: Table) -> bool:
        """Whether the table was ever written."""
        return table.name in self.at_present.parts

    @property
    def at_present(self) -> Generation:
        return self.generation or newest(self._folders)

    @contextmanager
    def reading(self) -> Iterator["Store"]:
        """This store as it is now, whatever others change while the block runs. On a file system of this machine what it
        reads stays until the block ends; elsewhere until the second change from now begins, or in Delta Lake for days."""
        while True:
            present = newest(self._folders)
            with being_read(self._folders, present) as is_there:
                if is_there:
                    yield replace(self, generation=present)
                    return

    @contextmanager
    def changing(self, made: Made | None = None, *, is_anew: bool = False) -> Iterator["Change"]:
        """A change, which is made when the block ends, and not when it raises. One at a time: of two that are made at once
        the second raises `ChangedMeanwhile`, where the file system can tell (`Folders.create`). Raises `OtherFormat`.

        `made`: what all tables are made of then. `is_anew`: nothing of before stays."""
        before = newest(self._folders)
        keeping = before.keeping.then(self.asked)
        logs = self._logs(keeping)
        self._remove_what_is_left(before, keeping, logs)
        begun = replace(before, parts={}) if is_anew else before
        change = Change(store=self, before=begun, is_compact=keeping.is_delta)
        yield change
        after = begun.after(change.parts, made, keeping)
        if not self._folders.create(after.file, after.text()):
            raise ChangedMeanwhile(
                f"{self.location} has been changed by another command since this one began: run this one again, and only "
                "one at a time"
            )
        for log in logs:
            log.publish(after, before)

    def _logs(self, keeping: Keeping) -> list[DeltaLog]:
        return [DeltaLog(folders=self._folders, table=table) for table in self.tables if keeping.is_delta]

    def _remove_what_is_left(self, present: Generation, keeping: Keeping, logs: list[DeltaLog]) -> None:
        """Ends what a command before this one was to do."""
        before = generation_before(self._folders, present)
        recorded = {log.table.name for log in logs if log.publish(present, before)}
        used = remove_what_is_left_of_others(self._folders, present, recorded)
        for log in logs:
            log.tidy(keeping.days_of(log.table.name), {part for table, part in used if table == log.table.name})

    def read_parts(self, table: Table, parts: tuple[Part, ...]) -> DataFrame:
        """Some of the parts of the table."""
        if not parts:
            return self.spark.createDataFrame([], table.schema)
        # All columns are in the files: what divides them into folders is not to be found out from these.
        reader = self.spark.read.schema(table.schema).option("recursiveFileLookup", "true")
        try:
            rows = reader.parquet(*(f"{self.path(table)}/{part}" for part in parts))
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            raise ChangedMeanwhile(
                f"{self.path(table)} has been replaced since this command began to read: run it again"
            ) from error
        return rows.select(*table.schema.fieldNames())

    @property
    def _folders(self) -> Folders:
        return Folders(spark=self.spark, location=self.location)


@dataclass(slots=True, kw_only=True)
class Change:
    """What is to become the next generation. `read` has what was written so far."""

    store: Store
    before: Generation
    is_compact: bool
    """Whether each day is to be as few files as it can be, also when it is added."""
    parts: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    """Of the tables that were written so far."""

    def read(self, table: Table) -> DataFrame:
        return self.store.read_parts(table, self.parts_of(table))

    def write(self, table: Table, rows: DataFrame) -> None:
        """Replaces the table, which is small and not divided, by one file."""
        ordered = rows.select(*table.schema.fieldNames()).coalesce(1).sortWithinPartitions(*table.order)
        self.parts[table.name] = (Part(self._write(table, ordered)),)

    def write_clusters(
        self, table: Table, rows: DataFrame, clusters: Collection[str], files: Mapping[str, int] | None = None
    ) -> DataFrame:
        """Replaces what the table has of these clusters by `rows`, which are of no other, and gives them as they were
        written. The table is written by clusters alone. `files`: how many a cluster's rows are, if not one; where the
        table is divided by day as well, there are one or some for each day."""
        ordered = by_cluster(table, rows, files or {}) if table.by_day is None else by_day(table, rows)
        parts = self._divided(table, ordered)
        self.parts[table.name] = with_clusters(self.parts_of(table), clusters, parts)
        return self.read_parts(table, parts)

    def write_from(self, table: Table, rows: DataFrame, days: Mapping[str, str]) -> DataFrame:
        """Replaces what the table, which is divided by day, has of each of these clusters from its day (as 2026-01-31) on
        by `rows`, which are of these clusters and days, and gives them as they were written."""
        parts = self._divided(table, by_day(table, rows))
        self.parts[table.name] = with_days_from(self.parts_of(table), days, parts)
        return self.read_parts(table, parts)

    def write_days(self, table: Table, rows: DataFrame) -> None:
        """Replaces those days of the table that occur in `rows`. The table is written by days alone."""
        self.replace_days(table, self._divided(table, by_day(table, rows)))

    def add_days(self, table: Table, rows: DataFrame, day: str) -> tuple[Part, ...]:
        """Writes rows as they come, each task files of its own, without moving a row, if not `is_compact`. What has been
        written belongs to no table until `replace_days`. `day`: an expression; the rows for which it is null are apart
        (`is_without_day`)."""
        divided = rows.select(*table.schema.fieldNames()).withColumns(_folders(f.expr(day)))
        if self.is_compact:
            return self._divided(table, _in_order(table, divided))
        with _several_files_at_once(rows.sparkSession):
            return self._divided(table, divided)

    def replace_days(self, table: Table, parts: tuple[Part, ...]) -> None:
        """Puts these parts in the place of those of the same days."""
        self.parts[table.name] = with_days(self.parts_of(table), parts)

    def remove_days(self, table: Table, days: Collection[tuple[str, str]]) -> None:
        """Takes these days of clusters, as `2026-01-31`, out of the table."""
        left = (part for part in self.parts_of(table) if (cluster_of(part), part.rpartition("/day=")[2]) not in days)
        self.parts[table.name] = tuple(left)

    def read_parts(self, table: Table, parts: tuple[Part, ...]) -> DataFrame:
        return self.store.read_parts(table, parts)

    def parts_of(self, table: Table) -> tuple[Part, ...]:
        return self.parts.get(table.name, self.before.parts.get(table.name, ()))

    def _divided(self, table: Table, rows: DataFrame) -> tuple[Part, ...]:
        """Writes rows into folders by the columns that divide them, and gives these parts."""
        write = self._write(table, rows, DIVIDED_BY_CLUSTER if table.by_day is None else DIVIDED_BY)
        folders, folder = self.store._folders, f"{table.name}/{write}"
        names = folders.clusters(folder) if table.by_day is None else folders.days(folder)
        return tuple(Part(f"{write}/{name}") for name in names)

    def _write(self, table: Table, rows: DataFrame, divided_by: tuple[str, ...] = ()) -> str:
        """Writes rows as they are, by these columns into folders, and gives the write its name."""
        write = new_write(self.before.number + 1)
        path = f"{self.store.path(table)}/{write}"
        with told(f"the table {table.name} cannot be written to {path}"):
            rows.write.mode("error").partitionBy(*divided_by).parquet(path)
        return write


@contextmanager
def _several_files_at_once(spark: SparkSession) -> Iterator[None]:
    """What a task writes meanwhile goes to the files of several days as it comes. Else all that it writes is sorted by day
    before, as of more days than these."""
    setting = "spark.sql.maxConcurrentOutputFileWriters"
    before = spark.conf.get(setting)
    spark.conf.set(setting, str(FILES_AT_ONCE))
    try:
        yield
    finally:
        spark.conf.set(setting, str(before))


def by_cluster(table: Table, rows: DataFrame, files: Mapping[str, int]) -> DataFrame:
    """The rows of a table by cluster and, of those that have several files, by file. What orders a row says in which it is,
    so that all of a cluster are about as large, whatever topic or partition most rows are of."""
    several = f.create_map(*(f.lit(value) for cluster_files in files.items() for value in cluster_files))
    of_cluster = f.coalesce(f.try_element_at(several, f.col("cluster_id")), f.lit(1)) if files else f.lit(1)
    file = f.pmod(f.xxhash64(*table.order), of_cluster).cast("int")
    divided = rows.select(*table.schema.fieldNames()).withColumns({"of": f.col("cluster_id"), "file": file})
    return divided.repartition(*DIVIDED_BY_CLUSTER).sortWithinPartitions(*DIVIDED_BY_CLUSTER, *table.order)


def by_day(table: Table, rows: DataFrame) -> DataFrame:
    """The rows of a table by cluster, day and, of a day with very many, ranges of their numbers, each of which is one file.
    What divides it is in the files, too: a part is read by itself."""
    assert table.by_day is not None
    return _in_order(table, rows.select(*table.schema.fieldNames()).withColumns(_folders(f.to_date(table.by_day))))


def _in_order(table: Table, divided: DataFrame) -> DataFrame:
    return divided.repartition(*DIVIDED_BY).sortWithinPartitions(*DIVIDED_BY, *table.order)


def _folders(day: Column) -> dict[str, Column]:
    return {"of": f.col("cluster_id"), "day": day, "range": f.floor(f.col("seq") / RANGE)}
