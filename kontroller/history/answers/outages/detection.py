"""The time in which a partition was led by a broker that had gone, and the state did not say so yet.

A broker that dies is registered until its session with ZooKeeper is over, and leads until the controller has elected
others: nobody can write to its partitions or read from them, and nobody has written that down. How long it was is not
known; at most it was the brokers' session timeout, and what the controller took from then on.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.states import PARTITION, is_under_min_isr
from kontroller.history.answers.options import Options
from kontroller.history.answers.outages.losses import in_tenures, led_by_the_lost, losses


def led_by_the_dead(
    partition_intervals: DataFrame, known_spans: DataFrame, events: DataFrame, options: Options
) -> DataFrame:
    """Parts of known intervals, `began` to `ended`, in which the leader had perhaps gone; `is_under`: under min ISR too.

    They end with the next leader, when the broker is back, or where nothing more is known. They are no leaderless time."""
    led = in_tenures(partition_intervals)
    gone = losses(events, known_spans, led, session_timeout_ms=options.broker_session_timeout_ms)
    rows = led_by_the_lost(led, gone).withColumns({
        "is_under": is_under_min_isr(),
        "_dead_from": f.timestamp_micros(f.unix_micros("loss_lost_at") - f.col("loss_detection_us")),
    })  # fmt: skip
    rows = rows.withColumns({
        "_from": f.greatest("began", "_dead_from"),
        "_until": f.least("ended", f.coalesce("loss_back_at", "ended")),
    }).where("_from < _until")  # fmt: skip
    # A broker that came back without being elected anew is lost a second time in the same tenure.
    each = rows.groupBy(*PARTITION, "controller_epoch", "seq", "began")
    dead = each.agg(
        f.min("_from").alias("_from"), f.max("_until").alias("ended"), f.first("is_under").alias("is_under")
    )
    return dead.select(*PARTITION, f.col("_from").alias("began"), "ended", "is_under")
