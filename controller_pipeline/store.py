"""Where tables are kept: folders of Parquet files, one folder a table.

What is written is sorted by the table's order, so the same history gives the same bytes. Of a table that is partitioned by
day some days can be replaced while the others are left alone.
"""

from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from controller_pipeline.schemas import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The tables below `location`, a path or URI that Spark can write to."""

    spark: SparkSession
    location: str

    def path(self, table: Table) -> str:
        return f"{self.location.rstrip('/')}/{table.name}"

    def write(self, table: Table, rows: DataFrame) -> None:
        """Replaces the table."""
        self._write(table, rows, "static")

    def write_days(self, table: Table, rows: DataFrame) -> None:
        """Replaces those days of the table that occur in `rows`."""
        self._write(table, rows, "dynamic")

    def read(self, table: Table) -> DataFrame:
        """The table, with its columns alone. Raises `pyspark.errors.AnalysisException` where there is none."""
        rows = self.spark.read.schema(table.schema).parquet(self.path(table)).select(*table.schema.fieldNames())
        # A cluster without a name, by which a table is divided, comes back as null.
        return rows if table.by_day is None else rows.fillna("", ["cluster_id"])

    def read_if_kept(self, table: Table) -> DataFrame:
        """The table; no rows where there is none."""
        try:
            return self.read(table)
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return self.spark.createDataFrame([], table.schema)

    def is_whole(self, table: Table) -> bool:
        """Whether the table was written to its end."""
        folder, files = self._folder(table, "/_SUCCESS")
        return bool(files.exists(folder))

    def remove(self, table: Table) -> None:
        """Removes the table, if there is one."""
        folder, files = self._folder(table)
        files.delete(folder, True)

    def move_days(self, table: Table, to: Table) -> None:
        """Replaces those days of a table that another one has, by those, which are gone from there afterwards. When it was
        interrupted it is called again."""
        folder, files = self._folder(table)
        for cluster in files.listStatus(folder):
            for day in files.listStatus(cluster.getPath()) if cluster.isDirectory() else ():
                target, _ = self._folder(to, f"/{cluster.getPath().getName()}/{day.getPath().getName()}")
                files.delete(target, True)
                files.mkdirs(target.getParent())
                files.rename(day.getPath(), target)

    def move(self, table: Table, to: Table) -> None:
        """Replaces a table by another one, which is gone afterwards. When it was interrupted it is called again."""
        self.remove(to)
        folder, files = self._folder(table)
        target, _ = self._folder(to)
        files.rename(folder, target)

    def _write(self, table: Table, rows: DataFrame, mode: str) -> None:
        rows = rows.select(*table.schema.fieldNames())
        if table.by_day is None:
            ordered = rows.repartition(1).sortWithinPartitions(*table.order)
            ordered.write.mode("overwrite").parquet(self.path(table))
            return
        by_day = rows.withColumn("day", f.to_date(table.by_day)).repartition("cluster_id", "day")
        ordered = by_day.sortWithinPartitions("cluster_id", "day", *table.order)
        writer = ordered.write.mode("overwrite").option("partitionOverwriteMode", mode)
        writer.partitionBy("cluster_id", "day").parquet(self.path(table))

    def _folder(self, table: Table, below: str = "") -> tuple[Any, Any]:
        """A path of Hadoop's and its file system: Spark itself offers no way to remove a folder there."""
        context: Any = self.spark.sparkContext
        path = context._jvm.org.apache.hadoop.fs.Path(self.path(table) + below)
        return path, path.getFileSystem(context._jsc.hadoopConfiguration())
