"""Each record once: what comes twice, what several journals record, and what belongs to which cluster."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.types import MapType

from controller_pipeline.schemas import EVENTS, FINDINGS, LONG
from controller_pipeline.transforms.continuity.neighbours import EPOCH, bucket
from controller_pipeline.transforms.lines import CONTROLLER, RECORDER

_PLACE: Final = (*EPOCH, "seq")
_FROM: Final = ("origin", "journal", "source")
_MAPS: Final = tuple(field.name for field in EVENTS.schema if isinstance(field.dataType, MapType))


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


def _content() -> Column:
    """A hash of what a record says, wherever it was written."""
    recorded = (name for name in EVENTS.schema.fieldNames() if name not in _FROM)
    values = (f.to_json(name) if name in _MAPS else f.col(name) for name in recorded)
    # A null does not change the hash: the numbers between say which column was null.
    return f.xxhash64(*(part for place, value in enumerate(values) for part in (value, f.lit(place))))
