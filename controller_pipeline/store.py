"""Where tables are kept: folders of Parquet files, and small files that say which of them are the tables at a moment.

A change writes files beside those that are there, then the file of a new generation, which names them. So a change that
fails or is killed, at whatever step, has changed nothing; who reads goes on with the generation that was there when it
began; and nothing depends on a rename of folders, which an object store does not have. What no generation names any more is
removed when the next change begins.

What is written is sorted by the table's order, so the same history gives the same bytes, however many cores write it. A
large table is several files, each in that order, and which of them a row is in follows from the row (`in_files`). Of a
table that is divided by day some days can be replaced while the others are left alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from controller_pipeline.generations.errors import ChangedMeanwhile
from controller_pipeline.generations.folders import Folders, told
from controller_pipeline.generations.generation import Generation, Part, new_write, with_days
from controller_pipeline.generations.present import being_read, newest, remove_what_is_left_of_others
from controller_pipeline.schemas import Table

DIVIDED_BY: Final = ("of", "day", "range")
"""The folders of a table that is divided by day; a part of it is those of a cluster and day."""
RANGE: Final = 1 << 20
"""Numbers of an epoch whose records are in one file, at most of a day: some 50 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The tables below `location`, a path or URI that Spark can write to. All raise `StoreError`."""

    spark: SparkSession
    location: str
    generation: Generation | None = None
    """The one that is read; None: the newest at each moment."""

    def path(self, table: Table) -> str:
        """The folder of a table; of what is in it, the generation says what is the table."""
        return f"{self.location.rstrip('/')}/{table.name}"

    def read(self, table: Table) -> DataFrame:
        """The table, with its columns alone; no rows where it was never written."""
        return self._read(table, self.at_present.parts.get(table.name, ()))

    def has(self, table: Table) -> bool:
        """Whether the table was ever written."""
        return table.name in self.at_present.parts

    @property
    def at_present(self) -> Generation:
        return self.generation or newest(self._folders)

    @contextmanager
    def reading(self) -> Iterator["Store"]:
        """This store as it is now, whatever others change while the block runs. On a file system of this machine what it
        reads stays until the block ends; elsewhere until the second change from now begins."""
        while True:
            present = self.at_present
            with being_read(self._folders, present) as is_there:
                if is_there:
                    yield replace(self, generation=present)
                    return

    @contextmanager
    def changing(self) -> Iterator["Change"]:
        """A change, which is made when the block ends, and not when it raises. One at a time: of two that are made at once
        the second raises `ChangedMeanwhile`, where the file system can tell (`Folders.create`)."""
        before = newest(self._folders)
        remove_what_is_left_of_others(self._folders, before)
        change = Change(store=self, before=before, write_name=new_write(before.number + 1))
        yield change
        after = before.after(change.parts)
        if not self._folders.create(after.file, after.text()):
            raise ChangedMeanwhile(
                f"{self.location} has been changed by another command since this one began: run this one again, and only "
                "one at a time"
            )

    def _read(self, table: Table, parts: tuple[Part, ...]) -> DataFrame:
        if not parts:
            return self.spark.createDataFrame([], table.schema)
        try:
            rows = self.spark.read.schema(table.schema).parquet(*(f"{self.path(table)}/{part}" for part in parts))
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
    write_name: str
    parts: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    """Of the tables that were written so far."""

    def read(self, table: Table) -> DataFrame:
        return self.store._read(table, self._parts(table))

    def write(self, table: Table, rows: DataFrame, files: int = 1) -> None:
        """Replaces the table, by so many files, or by one or some for each day where it is divided."""
        self._write(table, rows, files)
        self.parts[table.name] = (Part(self.write_name),)

    def write_days(self, table: Table, rows: DataFrame) -> None:
        """Replaces those days of the table that occur in `rows`, once in a change. The table is written so alone."""
        self._write(table, rows)
        days = self.store._folders.days(f"{table.name}/{self.write_name}")
        written = tuple(Part(f"{self.write_name}/{day}") for day in days)
        self.parts[table.name] = with_days(self._parts(table), written)

    def _parts(self, table: Table) -> tuple[Part, ...]:
        return self.parts.get(table.name, self.before.parts.get(table.name, ()))

    def _write(self, table: Table, rows: DataFrame, files: int = 1) -> None:
        path, rows = f"{self.store.path(table)}/{self.write_name}", rows.select(*table.schema.fieldNames())
        rows = in_files(table, rows, files) if table.by_day is None else by_day(table, rows)
        writer = rows.write if table.by_day is None else rows.write.partitionBy(*DIVIDED_BY)
        with told(f"the table {table.name} cannot be written to {path}"):
            writer.mode("error").parquet(path)


def in_files(table: Table, rows: DataFrame, files: int) -> DataFrame:
    """The rows of a table by tasks, each of which writes one file. What orders a row says in which it is, so that all are
    about as large, whatever topic or partition most rows are of."""
    place = f.pmod(f.xxhash64(*table.order), f.lit(files)).cast("int")
    return rows.repartitionById(files, place).sortWithinPartitions(*table.order)


def by_day(table: Table, rows: DataFrame) -> DataFrame:
    """The rows of a table by cluster, day and, of a day with very many, ranges of their numbers, each of which is one file.
    What divides it is in the files, too: a part is read by itself."""
    assert table.by_day is not None
    days = {"of": f.col("cluster_id"), "day": f.to_date(table.by_day), "range": f.floor(f.col("seq") / RANGE)}
    return rows.withColumns(days).repartition(*DIVIDED_BY).sortWithinPartitions(*DIVIDED_BY, *table.order)
