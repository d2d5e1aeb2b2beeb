"""The time that partitions had no leader, or a dead one, after the loss of a broker, from the moment the controller
noticed.

A broker that came back before anyone noticed (its epoch rose) counts as lost if it lost leaderships. The time before
the controller noticed is not in a history; figures of their own add its upper bound.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.days import micros_between, seconds
from kontroller.history.answers.options import Options
from kontroller.history.answers.outages.losses import LOSS, add_tenures, join_losses, losses
from kontroller.history.schemas import FAILOVERS


def failovers(partition_intervals: DataFrame, known_spans: DataFrame, events: DataFrame, options: Options) -> DataFrame:
    """Return FAILOVERS: each broker lost in known time. One that led nothing has 0 partitions and no times."""
    led = add_tenures(partition_intervals)
    gone = losses(events, known_spans, led, session_timeout_ms=options.broker_session_timeout_ms)
    lost = join_losses(led.where("is_election"), gone).select(
        *(f.col(f"loss_{name}").alias(name) for name in (*LOSS, "lost_at")), "moved_at"
    )
    lost = lost.withColumn("_micros", micros_between("lost_at", "moved_at"))
    sums = lost.groupBy(*LOSS).agg(
        f.count("*").alias("partitions"),
        f.count("moved_at").alias("moved"),
        f.max("moved_at").alias("last_moved_at"),
        seconds(f.percentile("_micros", f.lit(0.5))).alias("median_seconds"),
        seconds(f.percentile("_micros", f.lit(0.99))).alias("p99_seconds"),
        f.max("_micros").alias("_slowest"),
    )
    rows = gone.join(sums, list(LOSS), "left").where(~f.col("is_bounce") | f.col("partitions").isNotNull())
    counts = {name: f.coalesce(name, f.lit(0).cast("long")) for name in ("partitions", "moved")}
    rows = rows.withColumns(counts)
    detection_us = f.when(f.col("partitions") > 0, f.col("detection_us")).otherwise(f.lit(0).cast("long"))
    return rows.withColumns({
        "max_seconds": seconds("_slowest"),
        "detection_seconds": seconds(detection_us),
        "max_seconds_with_detection": seconds(f.col("_slowest") + detection_us),
    }).select(*FAILOVERS.schema.fieldNames())  # fmt: skip
