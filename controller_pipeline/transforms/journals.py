"""Each record once, and what the numbers and clocks of a history say about it.

Records are put side by side by buckets of their numbers, never all of a cluster in one place: what lies between two buckets
is seen in a small table with the edges of each (`edges`).
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.types import MapType

from controller_core.journal.changes import Kind
from controller_pipeline.schemas import EVENTS, FINDINGS, LONG
from controller_pipeline.transforms.lines import CONTROLLER, LOGS, RECORDER

BUCKET: Final = 1 << 16
"""How many records of an epoch are looked at together."""

BREAKS: Final = (Kind.GAP.value, Kind.RECORDER_STARTED.value)
"""Kinds of records before which something is missing."""
EPOCH: Final = ("cluster_id", "controller_epoch")
_PLACE: Final = (*EPOCH, "seq")
_FROM: Final = ("origin", "journal", "source")
_MAPS: Final = tuple(field.name for field in EVENTS.schema if isinstance(field.dataType, MapType))
_JUMP: Final = "INTERVAL 1 DAY"


def of_their_clusters(events: DataFrame) -> DataFrame:
    """Records from before the cluster had an id, as those of the one cluster of their journal, which may have been recorded
    when they had been taken in already."""
    known = events.where("cluster_id <> ''").groupBy("journal")
    only = known.agg(f.min("cluster_id").alias("only"), f.max("cluster_id").alias("last")).where("only = last")
    rows = events.join(f.broadcast(only.select("journal", "only")), "journal", "left")
    rows = rows.withColumn("cluster_id", f.expr("if(cluster_id = '', coalesce(only, ''), cluster_id)"))
    return rows.select(*EVENTS.schema.fieldNames())


def once(events: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Each record once, from one journal where several record the same epoch differently; findings `two_journals`,
    `two_records`. Only buckets in which a number comes twice are put side by side with all that their records say."""
    recorded = events.withColumn("content", _content())
    left_out = _left_out(recorded)
    kept = recorded.join(f.broadcast(left_out.select(*EPOCH, "journal")), [*EPOCH, "journal"], "left_anti")
    repeated = kept.groupBy(*EPOCH, bucket().alias("bucket"), "seq").count().where("count > 1")
    repeated = f.broadcast(repeated.groupBy(*EPOCH, "bucket").agg(f.count("*").alias("numbers")))
    kept = kept.withColumn("bucket", bucket())
    whole = kept.join(repeated, [*EPOCH, "bucket"], "left_anti")
    first = Window.partitionBy(*EPOCH, "bucket").orderBy("seq", "content", *_FROM)
    compared = kept.join(repeated, [*EPOCH, "bucket"], "left_semi").withColumns(
        {"before": f.lag("seq").over(first), "content_before": f.lag("content").over(first)}
    )
    is_again = f.coalesce(f.col("before") == f.col("seq"), f.lit(False))
    again = compared.where(is_again & (f.col("content_before") != f.col("content")))
    findings = _of_journals(left_out).unionByName(_of_records(again))
    names = EVENTS.schema.fieldNames()
    return whole.select(*names).unionByName(compared.where(~is_again).select(*names)), findings


def numbers(events: DataFrame) -> DataFrame:
    """Findings of records that are there once: `gap`, `clock_went_back`, `clock_jumped`."""
    rows = before(events.select(*_PLACE, "event_time", "kind", "dropped", "source"), edges(events))
    is_lost = f.col("missing") > 0
    lost_detail = f.concat(
        f.col("missing"), f.lit(" records before "), f.col("seq"), f.lit(" are missing, and nothing says why")
    )
    dropped_detail = f.lit("the writer was too slow or its disk full, and says so itself")
    holes = _finding(rows.where(is_lost), "gap", f.col("missing"), lost_detail)
    gaps = _finding(rows.where(f.col("kind") == Kind.GAP.value), "gap", f.col("dropped"), dropped_detail)
    back = f.col("event_time") < f.col("time_before")
    jump = (f.col("event_time") > f.col("time_before") + f.expr(_JUMP)) & ~is_lost & ~f.col("is_first")
    clocks = f.lit("durations here are not what they were: look at the clock of the controller's machine")
    one = f.lit(1)
    went_back = _finding(rows.where(back), "clock_went_back", one, clocks)
    jumped = _finding(rows.where(jump), "clock_jumped", one, clocks)
    return holes.unionByName(gaps).unionByName(went_back).unionByName(jumped)


def edges(events: DataFrame) -> DataFrame:
    """The first and last record of each bucket, and what came before the first (`..._before`); a few rows.

    `is_broken`: something in it is missing, or says that something is. A controller that was deposed resigns when it
    notices, which may be long after the next one has begun: then `time_before` is when that began."""
    ends = f.col("kind") == Kind.CONTROLLER_RESIGNED.value
    found = events.groupBy(*EPOCH, bucket().alias("bucket")).agg(
        f.count("*").alias("records"),
        f.min("seq").alias("first_seq"),
        f.max("seq").alias("last_seq"),
        f.min_by("event_time", "seq").alias("first_time"),
        f.max_by("event_time", "seq").alias("last_time"),
        f.max_by(f.coalesce("dropped", f.lit(1)), "seq").alias("covered"),
        f.max_by(ends, "seq").alias("is_resigned"),
        f.max_by("event_time", f.when(~ends, f.col("seq"))).alias("last_in_office"),
        f.max_by("controller_id", "seq").alias("controller_id"),
        f.max(f.col("origin") == RECORDER).alias("is_recorded"),
        f.max(f.col("origin") == LOGS).alias("is_of_logs"),
        f.max(f.col("kind").isin(*BREAKS)).alias("has_break"),
    )
    is_dense = f.col("last_seq") - f.col("first_seq") + 1 == f.col("records")
    history = Window.partitionBy("cluster_id").orderBy("controller_epoch", "bucket")
    last_time, was_resigned = f.lag("last_time").over(history), f.lag("is_resigned").over(history)
    deposed = f.greatest(f.lag("last_in_office").over(history), f.least(last_time, "first_time"))
    return found.withColumns({
        "is_broken": f.col("has_break") | ~is_dense,
        "epoch_before": f.lag("controller_epoch").over(history),
        "seq_before": f.lag("last_seq").over(history),
        "covered_before": f.lag("covered").over(history),
        "time_before": f.when(was_resigned, deposed).otherwise(last_time),
        "was_resigned": was_resigned,
    })  # fmt: skip


def before(rows: DataFrame, of: DataFrame) -> DataFrame:
    """To rows of whole buckets: the record before each, of whatever epoch, and how many are `missing` between the two.

    Adds `is_first` (of its epoch), `epoch_before`, `seq_before`, `time_before`, `was_resigned`, `missing`."""
    place = Window.partitionBy(*EPOCH, "bucket").orderBy("seq")
    edge = of.select(
        *EPOCH,
        "bucket",
        f.struct("epoch_before", "seq_before", "covered_before", "time_before", "was_resigned").alias("edge"),
    )
    rows = rows.withColumn("bucket", bucket()).join(f.broadcast(edge), [*EPOCH, "bucket"])
    lagged = {
        "seq_before": f.lag("seq").over(place),
        "covered_before": f.lag(f.coalesce("dropped", f.lit(1))).over(place),
        "time_before": f.lag("event_time").over(place),
        "was_resigned": f.lag(f.col("kind") == Kind.CONTROLLER_RESIGNED.value).over(place),
    }
    rows = rows.withColumns(lagged)
    is_edge = f.col("seq_before").isNull()
    taken = {name: f.when(is_edge, f.col(f"edge.{name}")).otherwise(f.col(name)) for name in lagged}
    epoch = f.when(is_edge, f.col("edge.epoch_before")).otherwise(f.col("controller_epoch"))
    rows = rows.withColumns(taken | {"epoch_before": epoch})
    is_first = f.coalesce(f.col("epoch_before") != f.col("controller_epoch"), f.lit(True))
    # The oldest segment that retention has left begins anywhere; a later epoch begins with 0.
    expected = (
        f.when(f.col("epoch_before").isNull(), f.col("seq"))
        .when(is_first, f.lit(0))
        .otherwise(f.col("seq_before") + f.col("covered_before"))
    )
    return rows.withColumns(
        {"is_first": is_first, "missing": f.greatest(f.col("seq") - expected, f.lit(0))}
    ).selectExpr("* except (edge)")


def _left_out(recorded: DataFrame) -> DataFrame:
    """The journals whose account of an epoch is not taken, with the one that is (`chosen`)."""
    by_journal = recorded.groupBy(*EPOCH, "journal", "origin").agg(f.count("*").alias("lines"))
    several = by_journal.groupBy(*EPOCH).agg(
        f.count("*").alias("journals"), f.count_distinct("origin").alias("origins")
    )
    several = several.where("journals > 1")
    contested = recorded.select(*_PLACE, "journal", "origin", "content").join(f.broadcast(several), [*EPOCH])
    by_record = contested.groupBy(*_PLACE, "journal", "origin", "origins").agg(
        f.min("content").alias("low"), f.max("content").alias("high")
    )
    every = Window.partitionBy(*_PLACE)
    differs = f.min("low").over(every) != f.max("high").over(every)
    by_record = by_record.withColumn("differs", differs | (f.col("origins") > 1))
    by_journal = by_record.groupBy(*EPOCH, "journal", "origin").agg(
        f.count("*").alias("records"), f.max("differs").alias("differs")
    )
    trust = f.when(f.col("origin") == CONTROLLER, 0).when(f.col("origin") == RECORDER, 1).otherwise(2)
    best = Window.partitionBy(*EPOCH).orderBy(trust, f.desc("records"), "journal")
    epoch = Window.partitionBy(*EPOCH)
    ranked = by_journal.withColumns({
        "rank": f.row_number().over(best),
        "chosen": f.first("journal").over(best),
        "is_contested": f.max("differs").over(epoch),
    })  # fmt: skip
    return ranked.where(f.col("is_contested") & (f.col("rank") > 1))


def _of_journals(left_out: DataFrame) -> DataFrame:
    detail = f.concat(f.lit("another writer's journal is taken for this epoch: "), f.col("chosen"))
    rows = left_out.withColumns({"source": f.col("journal"), "seq": f.lit(None), "event_time": f.lit(None)})
    return _finding(rows, "two_journals", f.col("records"), detail)


def _of_records(again: DataFrame) -> DataFrame:
    detail = f.lit("the same journal has another record of this number, which is taken")
    return _finding(again, "two_records", f.lit(1), detail)


def _finding(rows: DataFrame, problem: str, count: Column, detail: Column) -> DataFrame:
    added = {
        "problem": f.lit(problem),
        "line": f.lit(None).cast(LONG),
        "count": count.cast(LONG),
        "detail": detail,
    }
    return rows.withColumns(added).select(
        *(f.col(field.name).cast(field.dataType).alias(field.name) for field in FINDINGS.schema)
    )


def bucket() -> Column:
    return f.floor(f.col("seq") / BUCKET)


def _content() -> Column:
    """A hash of what a record says, wherever it was written."""
    recorded = (name for name in EVENTS.schema.fieldNames() if name not in _FROM)
    values = (f.to_json(name) if name in _MAPS else f.col(name) for name in recorded)
    # A null does not change the hash: the numbers between say which column was null.
    return f.xxhash64(*(part for place, value in enumerate(values) for part in (value, f.lit(place))))
