"""Kafka's own text logs, `state-change.log` and `controller.log`, of clusters that have no journal (3.x with ZooKeeper).

A folder of logs is what one broker wrote, rotated and compressed as Kafka and others do. From what its controller says, as
long as it was the controller, come events as a journal has them. The logs were made for people: what each kind of line says
is in `log_lines`, and docs/text-logs.md tells what they leave out. Why something happened is a guess from the lines before
it, so all events are `inferred`.
"""

from collections.abc import Collection, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StructField

from controller_pipeline.schemas import EVENTS, FINDINGS, Table
from controller_pipeline.sources import log_lines

FILES: Final = "{state-change,controller}.log*"
ORIGIN: Final = "logs"
_PLACE: Final = ("event_time", "source", "block", "position")
"""The order of what one host wrote: its clock, and within a millisecond its files, one after the other."""


def lines(spark: SparkSession, locations: Sequence[str]) -> DataFrame:
    """All lines of the logs below the folders, with their places: `value`, `source`, `journal`, `block` and `position`.

    Raises `pyspark.errors.AnalysisException` where a folder does not exist."""
    reader = spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", FILES)
    return reader.text(list(locations)).select(
        "value",
        f.col("_metadata.file_path").alias("source"),
        f.regexp_replace("_metadata.file_path", "/[^/]*$", "").alias("journal"),
        f.col("_metadata.file_block_start").alias("block"),
        f.monotonically_increasing_id().alias("position"),
    )


def read(lines: DataFrame, *, cluster_id: str, time_zone: str = "UTC") -> tuple[DataFrame, DataFrame]:
    """The tables `EVENTS` and `FINDINGS` of the logs of one cluster.

    `time_zone`: of the brokers, as in "Europe/Berlin"; Kafka writes local times. What is about the state and cannot be
    read is counted for each file."""
    told = log_lines.parsed(lines, time_zone)
    return _events(told, cluster_id), _findings(told, cluster_id)


def _events(told: DataFrame, cluster_id: str) -> DataFrame:
    of_the_host = Window.partitionBy("journal").orderBy(*_PLACE)
    so_far = of_the_host.rowsBetween(Window.unboundedPreceding, 0)
    placed = told.where("records IS NOT NULL OR cause IS NOT NULL").withColumns(
        {
            "controller_epoch": f.last("controller_epoch", ignorenulls=True).over(so_far),
            "cause": f.last("cause", ignorenulls=True).over(so_far),
            "event": f.count("cause").over(so_far),
        }
    )
    records = placed.where("controller_epoch IS NOT NULL").selectExpr(
        "*", "posexplode(records) AS (index, record)"
    )  # fmt: skip
    numbered = _news(records.select("*", "record.*")).withColumn(
        "seq",
        f.row_number().over(Window.partitionBy("controller_epoch").orderBy(*_PLACE, "index")).cast("long") - 1,
    )
    known = {
        "cluster_id": f.lit(cluster_id),
        "origin": f.lit(ORIGIN),
        "inferred": f.lit(True),
        "snapshot": f.lit(False),
        "cause": f.coalesce("cause", f.lit("unknown")),
        "correlation_id": f.concat_ws("-", "controller_epoch", "event"),
    }
    return _as(EVENTS, numbered.withColumns(known))


def _news(records: DataFrame) -> DataFrame:
    """Without what repeats what was said before of the same thing: logs tell some changes twice."""
    of_the_thing = Window.partitionBy("about", "topic", "partition", "broker").orderBy(
        "controller_epoch", *_PLACE, "index"
    )
    about = f.regexp_replace("kind", "_removed$", "")
    compared = records.withColumn("about", about).withColumn("before", f.lag("record").over(of_the_thing))
    said, before = (f.col(name).dropFields(*_TOLD_DIFFERENTLY) for name in ("record", "before"))
    return compared.where(f.col("kind").startswith("controller") | ~said.eqNullSafe(before))


_TOLD_DIFFERENTLY: Final = ("unclean", "state_controller_epoch")
"""What may differ where a state is told again: a new controller tells what it found under its own epoch."""


def _findings(told: DataFrame, cluster_id: str) -> DataFrame:
    begin = "first(left(value, 200))"
    counted = told.where("is_unreadable").groupBy("source").agg(
        f.count("*").alias("count"), f.min("event_time").alias("event_time"), f.expr(begin).alias("example")
    )  # fmt: skip
    detail = f.concat(
        f.lit("lines that are about the state, in words of another version of Kafka; one of them: "), "example"
    )
    rows = counted.withColumns({"cluster_id": f.lit(cluster_id), "problem": f.lit("unreadable"), "detail": detail})
    return _as(FINDINGS, rows)


def _as(table: Table, rows: DataFrame) -> DataFrame:
    """The columns of a table; null where the rows have none of that name."""
    return rows.select(*(_column(field, rows.columns).alias(field.name) for field in table.schema))


def _column(field: StructField, names: Collection[str]) -> Column:
    if field.name not in names:
        return f.lit(None).cast(field.dataType)
    column = f.col(field.name)
    return f.array_compact(column) if isinstance(field.dataType, ArrayType) else column.cast(field.dataType)
