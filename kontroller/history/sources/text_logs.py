"""Kafka's text logs, `state-change.log` and `controller.log`, of clusters without a journal (3.x with ZooKeeper).

A folder of logs is from one broker, rotated and compressed. The lines of its controller, while it was active, become
events like those of a journal. The logs were written for people: `log_lines` has the patterns, and docs/text-logs.md
lists what is missing. Causes are guessed from preceding lines, so all events are `inferred`.

Logs grow and old files are deleted, so intake keeps each line's content, identified by its time and its place within
the millisecond (`read`). Each fold finds repetitions, causes and numbers from all lines (`number_records`).
"""

from collections.abc import Collection, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StructField

from kontroller.history.schemas import EVENTS, FINDINGS, LONG, Table
from kontroller.history.sources import log_lines, set_back_clocks
from kontroller.history.sources.caps import Caps
from kontroller.history.sources.journal_files import journal_of
from kontroller.history.sources.local_files import limit_lines

FILES: Final = "{state-change,controller}.log*"
FILE_NAMES: Final = ("state-change.log*", "controller.log*")
ORIGIN: Final = "logs"
_PLACE: Final = ("event_time", "is_of_states", "is_current", "source", "block", "position")
"""The order of one host's lines: its clock, then `controller.log` before `state-change.log`, and rotated files before
the current one."""
_OF_STATES: Final = 1_000_000
"""The place of the first record of `state-change.log` within a millisecond. Those of `controller.log` begin with 0."""
UNREADABLE: Final = "unreadable_log_line"
"""The finding of a single line. `count_unreadable` turns them into `unreadable`."""


def lines(spark: SparkSession, locations: Sequence[str], caps: Caps | None = None) -> DataFrame:
    """Return all lines of the logs below the folders, with their places: `value`, `source`, `journal`, `block` and
    `position`.

    Lines above the cap are skipped. Raises `pyspark.errors.AnalysisException` if a folder does not exist."""
    reader = spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", FILES)
    reader = reader.options(**limit_lines(caps))
    return reader.text(list(locations)).select(
        "value",
        f.col("_metadata.file_path").alias("source"),
        journal_of("_metadata.file_path").alias("journal"),
        f.col("_metadata.file_block_start").alias("block"),
        f.monotonically_increasing_id().alias("position"),
    )


def read(lines: DataFrame, *, cluster_id: str, time_zone: str = "UTC") -> tuple[DataFrame, DataFrame]:
    """Parse the logs of one cluster. Return records in the columns of `EVENTS`, and a finding for each unreadable line.

    `number_records` turns the records into events, and `count_unreadable` the findings into one per folder.
    `time_zone`: of the brokers, such as "Europe/Berlin", because Kafka writes local times. `seq` is the place of a
    record within its millisecond."""
    said = log_lines.parse_lines(lines, time_zone)
    parsed = set_back_clocks.resolve_by_lines(said)
    clocks = _set_back(said.where("set_back_us > 0"), cluster_id, time_zone)
    return _events(parsed, cluster_id).unionByName(clocks), _findings(parsed, cluster_id)


def number_records(parsed: DataFrame) -> DataFrame:
    """Return the events of all logs from the records of `read`: once each, with cause, numbered in each epoch.

    Repeated statements are dropped, because logs state some changes twice. The order of intake does not matter."""
    placed = set_back_clocks.resolve_by_epochs_and_versions(parsed)
    same = ("cluster_id", "controller_epoch", "event_time", "seq", "kind")
    first = Window.partitionBy(*same).orderBy("journal", "source")
    once = placed.withColumn("copy", f.row_number().over(first)).where("copy = 1")
    of_the_epoch = Window.partitionBy("cluster_id", "controller_epoch").orderBy("event_time", "seq")
    so_far = of_the_epoch.rowsBetween(Window.unboundedPreceding, 0)
    is_why = f.col("kind") == log_lines.WHY
    why = f.last(f.when(is_why, f.struct("cause", "event_time")), ignorenulls=True).over(so_far)
    records = once.withColumn("why", why).where(~is_why)
    news = _news(records).withColumns(
        {
            "seq": f.row_number().over(of_the_epoch).cast(LONG) - 1,
            "cause": f.coalesce("why.cause", f.lit("unknown")),
            "correlation_id": f.concat_ws(
                "-", "controller_epoch", f.unix_millis(f.coalesce("why.event_time", "event_time"))
            ),
        }
    )
    return news.select(*EVENTS.schema.fieldNames())


def _news(records: DataFrame) -> DataFrame:
    order = ("controller_epoch", "event_time", "seq")
    of_the_thing = Window.partitionBy("cluster_id", "about", "topic", "partition", "broker").orderBy(*order)
    said = f.struct(*(name for name in log_lines.FIELDS if name not in _TOLD_DIFFERENTLY))
    rows = records.withColumns({"about": f.regexp_replace("kind", "_removed$", ""), "said": said})
    rows = rows.withColumn("before", f.lag("said").over(of_the_thing))
    return rows.where(f.col("kind").startswith("controller") | ~f.col("said").eqNullSafe(f.col("before")))


def count_unreadable(findings: DataFrame) -> DataFrame:
    """Return the findings, with those of single lines counted by folder and an example."""
    of_lines = findings.where(f.col("problem") == UNREADABLE)
    begin = "lines about the state, in the wording of another version of Kafka, such as: "
    rows = of_lines.groupBy("cluster_id", "source").agg(
        f.sum("count").alias("count"), f.min("event_time").alias("event_time"), f.min("detail").alias("example")
    )  # fmt: skip
    rows = rows.withColumns({"problem": f.lit("unreadable"), "detail": f.concat(f.lit(begin), "example")})
    return findings.where(f.col("problem") != UNREADABLE).unionByName(_fit_columns(FINDINGS, rows))


def _events(parsed: DataFrame, cluster_id: str) -> DataFrame:
    name = f.regexp_extract("source", "([^/]*)$", 1)
    parsed = parsed.withColumns({"is_of_states": name.startswith("state"), "is_current": name.endswith(".log")})
    of_the_host = Window.partitionBy("journal").orderBy(*_PLACE)
    so_far = of_the_host.rowsBetween(Window.unboundedPreceding, 0)
    placed = parsed.where("records IS NOT NULL OR cause IS NOT NULL").withColumn(
        "controller_epoch", f.last("controller_epoch", ignorenulls=True).over(so_far)
    )
    said = f"concat(filter({log_lines.CAUSE_RECORD}, r -> cause IS NOT NULL), coalesce(records, array()))"
    records = placed.where("controller_epoch IS NOT NULL").selectExpr("*", f"posexplode({said}) AS (index, record)")
    moment = Window.partitionBy("journal", "controller_epoch", "event_time", "is_of_states")
    place = f.row_number().over(moment.orderBy(*_PLACE, "index")).cast(LONG) - 1
    known = {
        "seq": place + f.when(f.col("is_of_states"), _OF_STATES).otherwise(0),
        "cluster_id": f.lit(cluster_id),
        "origin": f.lit(ORIGIN),
        "inferred": f.lit(True),
        "snapshot": f.lit(False),
        "cause": f.when(f.col("kind") == log_lines.WHY, f.col("cause")),
    }
    return _fit_columns(EVENTS, records.select("*", "record.*").withColumns(known))


def _set_back(lines: DataFrame, cluster_id: str, time_zone: str) -> DataFrame:
    """Return a record for each time that a host's clock was set back, from its lines with ambiguous local times."""
    clocks = lines.selectExpr(
        "journal", "set_back_us AS took_us", f"{set_back_clocks.set_back_at(time_zone)} AS event_time"
    ).distinct()
    known = {
        "seq": f.lit(0),
        "controller_epoch": f.lit(-1),
        "cluster_id": f.lit(cluster_id),
        "origin": f.lit(ORIGIN),
        "kind": f.lit(set_back_clocks.SET_BACK),
        "inferred": f.lit(True),
        "snapshot": f.lit(False),
    }
    return _fit_columns(EVENTS, clocks.withColumns(known))


_TOLD_DIFFERENTLY: Final = ("unclean", "state_controller_epoch")
"""Fields that may differ in a repetition: a new controller logs the state that it found under its own epoch."""


def _findings(parsed: DataFrame, cluster_id: str) -> DataFrame:
    rows = parsed.where("is_unreadable").withColumn("detail", f.expr("left(value, 200)"))
    rows = rows.groupBy("journal", "event_time", "detail").agg(f.count("*").alias("count"))
    known = {"cluster_id": f.lit(cluster_id), "problem": f.lit(UNREADABLE), "source": f.col("journal")}
    return _fit_columns(FINDINGS, rows.withColumns(known))


def _fit_columns(table: Table, rows: DataFrame) -> DataFrame:
    """Return the columns of a table. Missing ones are null."""
    return rows.select(*(_column(field, rows.columns).alias(field.name) for field in table.schema))


def _column(field: StructField, names: Collection[str]) -> Column:
    if field.name not in names:
        return f.lit(None).cast(field.dataType)
    column = f.col(field.name)
    return f.array_compact(column) if isinstance(field.dataType, ArrayType) else column.cast(field.dataType)
