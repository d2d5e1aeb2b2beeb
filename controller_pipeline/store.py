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
from pyspark.sql import Column, DataFrame, SparkSession
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
            present = newest(self._folders)
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
        change = Change(store=self, before=before)
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
    parts: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    """Of the tables that were written so far."""

    def read(self, table: Table) -> DataFrame:
        return self.store._read(table, self.parts_of(table))

    def write(self, table: Table, rows: DataFrame, files: int = 1) -> None:
        """Replaces the table, by so many files, or by one or some for each day where it is divided."""
        ordered = in_files(table, rows, files) if table.by_day is None else by_day(table, rows)
        self.parts[table.name] = (Part(self._write(table, ordered)),)

    def write_days(self, table: Table, rows: DataFrame) -> None:
        """Replaces those days of the table that occur in `rows`. The table is written by days alone."""
        self.replace_days(table, self._days_of(table, self._write(table, by_day(table, rows))))

    def add_days(self, table: Table, rows: DataFrame, day: str) -> tuple[Part, ...]:
        """Writes rows as they come, each task files of its own, without moving a row. What has been written belongs to no
        table until `replace_days`. `day`: an expression; the rows for which it is null are apart (`is_without_day`)."""
        divided = rows.select(*table.schema.fieldNames()).withColumns(_divided(f.expr(day)))
        return self._days_of(table, self._write(table, divided))

    def replace_days(self, table: Table, parts: tuple[Part, ...]) -> None:
        """Puts these parts in the place of those of the same days."""
        self.parts[table.name] = with_days(self.parts_of(table), parts)

    def read_parts(self, table: Table, parts: tuple[Part, ...]) -> DataFrame:
        return self.store._read(table, parts)

    def parts_of(self, table: Table) -> tuple[Part, ...]:
        return self.parts.get(table.name, self.before.parts.get(table.name, ()))

    def _days_of(self, table: Table, write: str) -> tuple[Part, ...]:
        return tuple(Part(f"{write}/{day}") for day in self.store._folders.days(f"{table.name}/{write}"))

    def _write(self, table: Table, rows: DataFrame) -> str:
        """Writes rows as they are, and gives the write its name."""
        write = new_write(self.before.number + 1)
        path = f"{self.store.path(table)}/{write}"
        writer = rows.write if table.by_day is None else rows.write.partitionBy(*DIVIDED_BY)
        with told(f"the table {table.name} cannot be written to {path}"):
            writer.mode("error").parquet(path)
        return write


def in_files(table: Table, rows: DataFrame, files: int) -> DataFrame:
    """The rows of a table by tasks, each of which writes one file. What orders a row says in which it is, so that all are
    about as large, whatever topic or partition most rows are of."""
    place = f.pmod(f.xxhash64(*table.order), f.lit(files)).cast("int")
    rows = rows.select(*table.schema.fieldNames())
    return rows.repartitionById(files, place).sortWithinPartitions(*table.order)


def by_day(table: Table, rows: DataFrame) -> DataFrame:
    """The rows of a table by cluster, day and, of a day with very many, ranges of their numbers, each of which is one file.
    What divides it is in the files, too: a part is read by itself."""
    assert table.by_day is not None
    days = rows.select(*table.schema.fieldNames()).withColumns(_divided(f.to_date(table.by_day)))
    return days.repartition(*DIVIDED_BY).sortWithinPartitions(*DIVIDED_BY, *table.order)


def _divided(day: Column) -> dict[str, Column]:
    return {"of": f.col("cluster_id"), "day": day, "range": f.floor(f.col("seq") / RANGE)}
