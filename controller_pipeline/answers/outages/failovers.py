"""How long partitions had no leader, or a dead one, after a broker went: from when the controller heard of it.

A broker that came back before anyone noticed (its epoch rose) went, too, if it lost leadership by that.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from controller_pipeline.answers.intervals.days import micros_between, seconds
from controller_pipeline.answers.intervals.states import NO_LEADER, from_the_end, in_stretches, previous
from controller_pipeline.schemas import FAILOVERS

_LOSS: Final = ("cluster_id", "controller_epoch", "seq", "broker")


def failovers(partition_intervals: DataFrame, known_spans: DataFrame, events: DataFrame) -> DataFrame:
    """FAILOVERS: each broker that went in known time. One that led nothing has 0 partitions and no times."""
    losses = _in_known_time(_losses(events), known_spans)
    lost = _lost_leadership(partition_intervals, losses).withColumn("_micros", micros_between("lost_at", "moved_at"))
    sums = lost.groupBy(*_LOSS).agg(
        f.count("*").alias("partitions"),
        f.count("moved_at").alias("moved"),
        f.max("moved_at").alias("last_moved_at"),
        seconds(f.percentile("_micros", f.lit(0.5))).alias("median_seconds"),
        seconds(f.percentile("_micros", f.lit(0.99))).alias("p99_seconds"),
        seconds(f.max("_micros")).alias("max_seconds"),
    )
    rows = losses.join(sums, list(_LOSS), "left").where(~f.col("is_bounce") | f.col("partitions").isNotNull())
    counts = {name: f.coalesce(name, f.lit(0).cast("long")) for name in ("partitions", "moved")}
    return rows.withColumns(counts).select(*FAILOVERS.schema.fieldNames())


def _losses(events: DataFrame) -> DataFrame:
    """Each end of a broker's registration; `is_bounce` where another began with the same event."""
    order = Window.partitionBy("cluster_id", "broker").orderBy("controller_epoch", "seq")
    replaced = (
        (f.col("kind") == "broker")
        & ~f.coalesce("snapshot", f.lit(False))
        & (f.lag("kind").over(order) == "broker")
        & (f.lag("controller_epoch").over(order) == f.col("controller_epoch"))
        & (f.lag("broker_epoch").over(order) != f.col("broker_epoch"))
    )
    same_event = f.lead("correlation_id").over(order) == f.col("correlation_id")
    came_back = (f.lead("kind").over(order) == "broker") & same_event
    return (
        events.where(f.col("kind").isin("broker", "broker_removed"))
        .withColumns(
            {"_replaced": f.coalesce(replaced, f.lit(False)), "_came_back": f.coalesce(came_back, f.lit(False))}
        )
        .withColumn("is_bounce", f.col("_replaced") | f.col("_came_back"))
        .where("_replaced or kind = 'broker_removed'")
        .select(*_LOSS, "event_time", "took_us", "cause", "correlation_id", "is_bounce")
    )


def _in_known_time(losses: DataFrame, known_spans: DataFrame) -> DataFrame:
    """Those of which it is known when it went, and what it led; with `lost_at`, by a clock that is believed."""
    spans = known_spans.where("has_time").select(
        "cluster_id", "controller_epoch", "first_seq", "last_seq", "began", "ended"
    )
    known = losses.join(f.broadcast(spans), ["cluster_id", "controller_epoch"])
    known = known.where("seq between first_seq and last_seq")
    known = known.withColumn("event_time", f.greatest("began", f.least("event_time", "ended")))
    heard_at = f.timestamp_micros(f.unix_micros("event_time") - f.coalesce("took_us", f.lit(0)))
    return known.withColumn("lost_at", heard_at).selectExpr("* except (first_seq, last_seq, began, ended, took_us)")


def _lost_leadership(partition_intervals: DataFrame, losses: DataFrame) -> DataFrame:
    """A row for each partition that a lost broker led: `lost_at`, and `moved_at`, null where no leader was seen since."""
    named = (*_LOSS, "event_time", "lost_at", "correlation_id", "is_bounce")
    loss = losses.select(*(f.col(name).alias(f"loss_{name}") for name in named))
    lost = _tenures(in_stretches(partition_intervals)).join(f.broadcast(loss), _was_led_by_the_lost(), "inner")
    return lost.select(*(f.col(f"loss_{name}").alias(name) for name in (*_LOSS, "lost_at")), "moved_at")


def _tenures(rows: DataFrame) -> DataFrame:
    """A row for each time that one leader stayed: its first interval, the change that ended it, and the next election."""
    after = from_the_end().rowsBetween(Window.unboundedPreceding, -1)
    change = f.struct("stretch", "seq", "correlation_id", "began")
    changed = ~previous("leader").eqNullSafe(f.col("leader"))
    elected = f.col("_changed") & (f.col("leader") != NO_LEADER)
    rows = rows.withColumn("_changed", changed).withColumns({
        "_next": f.last(f.when(f.col("_changed"), change), ignorenulls=True).over(after),
        "_elected": f.last(f.when(elected, change), ignorenulls=True).over(after),
        "stretch_ended": f.last(f.when(f.col("followed_by") != "change", f.col("ended")), ignorenulls=True).over(
            from_the_end()
        ),
    })  # fmt: skip
    return rows.where("_changed").withColumns({
        "next": f.when(f.col("_next.stretch") == f.col("stretch"), f.col("_next")),
        "moved_at": f.when(f.col("_elected.stretch") == f.col("stretch"), f.col("_elected.began")),
    })  # fmt: skip


def _was_led_by_the_lost() -> Column:
    """Did the broker lead the partition when it went? Records of the same event may be in either order."""
    by_this = f.coalesce(f.col("next.correlation_id") == f.col("loss_correlation_id"), f.lit(False))
    before = f.col("seq") < f.col("loss_seq")
    ends_later = f.coalesce(f.col("next.seq") > f.col("loss_seq"), f.col("stretch_ended") >= f.col("loss_event_time"))
    return (
        (f.col("cluster_id") == f.col("loss_cluster_id"))
        & (f.col("leader") == f.col("loss_broker"))
        & (f.col("controller_epoch") == f.col("loss_controller_epoch"))
        & (by_this | (~f.col("loss_is_bounce") & before & ends_later))
    )
