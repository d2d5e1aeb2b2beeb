"""Where tables are kept: folders of Parquet files, and small files that say which of them are the tables at a moment.

A change writes files beside those that are there, then the file of a new generation, which names them. So a change that
fails or is killed, at whatever step, has changed nothing; who reads goes on with the generation that was there when it
began; and nothing depends on a rename of folders, which an object store does not have. What no generation names any more is
removed when the next change begins.

What is written is sorted by the table's order, so the same history gives the same bytes. Of a table that is divided by
day some days can be replaced while the others are left alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as f

from controller_pipeline.generations.errors import ChangedMeanwhile
from controller_pipeline.generations.folders import Folders, told
from controller_pipeline.generations.generation import Generation, Part, new_write, with_days
from controller_pipeline.generations.present import being_read, newest, remove_what_is_left_of_others
from controller_pipeline.schemas import Table


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

    def write(self, table: Table, rows: DataFrame) -> None:
        """Replaces the table."""
        self._write(table, rows)
        self.parts[table.name] = (Part(self.write_name),)

    def write_days(self, table: Table, rows: DataFrame) -> None:
        """Replaces those days of the table that occur in `rows`, once in a change. The table is written so alone."""
        self._write(table, rows)
        days = self.store._folders.days(f"{table.name}/{self.write_name}")
        written = tuple(Part(f"{self.write_name}/{day}") for day in days)
        self.parts[table.name] = with_days(self._parts(table), written)

    def _parts(self, table: Table) -> tuple[Part, ...]:
        return self.parts.get(table.name, self.before.parts.get(table.name, ()))

    def _write(self, table: Table, rows: DataFrame) -> None:
        path = f"{self.store.path(table)}/{self.write_name}"
        with told(f"the table {table.name} cannot be written to {path}"):
            _writer(table, rows.select(*table.schema.fieldNames())).mode("error").parquet(path)


def _writer(table: Table, rows: DataFrame) -> DataFrameWriter:
    """What writes the rows in the order of their table. What divides it is in the files, too: a part is read by itself."""
    if table.by_day is None:
        return rows.repartition(1).sortWithinPartitions(*table.order).write
    by_day = rows.withColumns({"of": f.col("cluster_id"), "day": f.to_date(table.by_day)}).repartition("of", "day")
    return by_day.sortWithinPartitions("of", "day", *table.order).write.partitionBy("of", "day")
