"""Where tables are kept: folders of Parquet files (or another format of Spark's), one folder a table.

What is written is sorted by the table's order, so the same history gives the same bytes. A table that is partitioned by day
is replaced day by day: a rerun of one day leaves the others alone.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from controller_pipeline.schemas import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The tables below `location`, a path or URI that Spark can write to."""

    spark: SparkSession
    location: str
    format: str = "parquet"

    def path(self, table: Table) -> str:
        return f"{self.location.rstrip('/')}/{table.name}"

    def write(self, table: Table, rows: DataFrame) -> None:
        """Replaces the table; of one that is partitioned by day, the days that occur in `rows`."""
        rows = rows.select(*table.schema.fieldNames())
        if table.by_day is None:
            rows.repartition(1).sortWithinPartitions(*table.order).write.format(self.format).mode("overwrite").save(
                self.path(table)
            )
            return
        by_day = rows.withColumn("day", f.to_date(table.by_day)).repartition("cluster_id", "day")
        writer = by_day.sortWithinPartitions("cluster_id", "day", *table.order).write.format(self.format)
        writer.mode("overwrite").partitionBy("cluster_id", "day").save(self.path(table))

    def read(self, table: Table) -> DataFrame:
        """The table, with its columns alone. Raises `pyspark.errors.AnalysisException` where there is none."""
        reader = self.spark.read.format(self.format)
        if self.format == "parquet":
            reader = reader.schema(table.schema)
        return reader.load(self.path(table)).select(*table.schema.fieldNames())
