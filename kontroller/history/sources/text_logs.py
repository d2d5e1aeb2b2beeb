"""Kafka's own text logs, `state-change.log` and `controller.log`, of clusters that have no journal (3.x with ZooKeeper).

A folder of logs is what one broker wrote, rotated and compressed as Kafka and others do. From what its controller says, as
long as it was the controller, come events as a journal has them. The logs were made for people: what each kind of line says
is in `log_lines`, and docs/text-logs.md says what they leave out. Why something happened is a guess from the lines before
it, so all events are `inferred`.

Logs are taken in again while they grow and old files are deleted, so what is kept is what each line says, known by its
time and its place among those of the same millisecond (`read`). What repeats it, why it happened and which number it has is
found out from all that is kept, whenever a history is made of it (`numbered`).
"""

from collections.abc import Collection, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StructField

from kontroller.history.schemas import EVENTS, FINDINGS, LONG, Table
from kontroller.history.sources import log_lines, set_back_clocks
from kontroller.history.sources.journal_files import journal_of

FILES: Final = "{state-change,controller}.log*"
ORIGIN: Final = "logs"
_PLACE: Final = ("event_time", "is_of_states", "is_current", "source", "block", "position")
"""The order of what one host wrote: its clock, and within a millisecond `controller.log` before `state-change.log`, and the
rotated files of each before the current one."""
_OF_STATES: Final = 1_000_000
"""The place of the first record of `state-change.log` in a millisecond; those of `controller.log` begin with 0."""
UNREADABLE: Final = "unreadable_log_line"
"""The finding of one line, of which `counted` makes `unreadable`."""


def lines(spark: SparkSession, locations: Sequence[str]) -> DataFrame:
    """All lines of the logs below the folders, with their places: `value`, `source`, `journal`, `block` and `position`.

    Raises `pyspark.errors.AnalysisException` where a folder does not exist."""
    reader = spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", FILES)
    return reader.text(list(locations)).select(
        "value",
        f.col("_metadata.file_path").alias("source"),
        journal_of("_metadata.file_path").alias("journal"),
        f.col("_metadata.file_block_start").alias("block"),
        f.monotonically_increasing_id().alias("position"),
    )


def read(lines: DataFrame, *, cluster_id: str, time_zone: str = "UTC") -> tuple[DataFrame, DataFrame]:
    """What the logs of one cluster say: records, in the columns of `EVENTS`, and findings, one for each line that is about
    the state and cannot be read. `numbered` makes events of the ones, `counted` makes one finding for each folder.

    `time_zone`: of the brokers, as in "Europe/Berlin"; Kafka writes local times. `seq` is the place of a record among
    those of the same millisecond."""
    said = log_lines.parsed(lines, time_zone)
    parsed = set_back_clocks.by_lines(said)
    clocks = _set_back(said.where("set_back_us > 0"), cluster_id, time_zone)
    return _events(parsed, cluster_id).unionByName(clocks), _findings(parsed, cluster_id)


def numbered(parsed: DataFrame) -> DataFrame:
    """The events of all logs, of what `read` gives: each once, with its cause, and numbered in each epoch; without what
    repeats what was said before of the same thing, as logs say some changes twice. In what order it came is all one."""
    placed = set_back_clocks.by_epochs_and_versions(parsed)
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


def counted(findings: DataFrame) -> DataFrame:
    """Findings in which those of single lines are counted for each folder, with the first as an example."""
    of_lines = findings.where(f.col("problem") == UNREADABLE)
    begin = "lines that are about the state, in words of another version of Kafka; one of them: "
    rows = of_lines.groupBy("cluster_id", "source").agg(
        f.sum("count").alias("count"), f.min("event_time").alias("event_time"), f.min("detail").alias("example")
    )  # fmt: skip
    rows = rows.withColumns({"problem": f.lit("unreadable"), "detail": f.concat(f.lit(begin), "example")})
    return findings.where(f.col("problem") != UNREADABLE).unionByName(_as(FINDINGS, rows))


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
    return _as(EVENTS, records.select("*", "record.*").withColumns(known))


def _set_back(lines: DataFrame, cluster_id: str, time_zone: str) -> DataFrame:
    """A record for each time that a host's clock was set back, of the lines whose local times came twice."""
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
    return _as(EVENTS, clocks.withColumns(known))


_TOLD_DIFFERENTLY: Final = ("unclean", "state_controller_epoch")
"""What may differ where a state is said again: a new controller logs what it found under its own epoch."""


def _findings(parsed: DataFrame, cluster_id: str) -> DataFrame:
    rows = parsed.where("is_unreadable").withColumn("detail", f.expr("left(value, 200)"))
    rows = rows.groupBy("journal", "event_time", "detail").agg(f.count("*").alias("count"))
    known = {"cluster_id": f.lit(cluster_id), "problem": f.lit(UNREADABLE), "source": f.col("journal")}
    return _as(FINDINGS, rows.withColumns(known))


def _as(table: Table, rows: DataFrame) -> DataFrame:
    """The columns of a table; null where the rows have none of that name."""
    return rows.select(*(_column(field, rows.columns).alias(field.name) for field in table.schema))


def _column(field: StructField, names: Collection[str]) -> Column:
    if field.name not in names:
        return f.lit(None).cast(field.dataType)
    column = f.col(field.name)
    return f.array_compact(column) if isinstance(field.dataType, ArrayType) else column.cast(field.dataType)
