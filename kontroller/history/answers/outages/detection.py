"""The time in which a partition was led by a lost broker, and the state did not show it yet.

A broker that dies stays registered until its ZooKeeper session ends, and leads until the controller has elected others.
In this time its partitions are unavailable, and no record says so. The exact duration is unknown; it is at most the
brokers' session timeout, plus the time that the controller took afterwards.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.states import PARTITION, is_under_min_isr
from kontroller.history.answers.options import Options
from kontroller.history.answers.outages.losses import add_tenures, join_losses, losses


def find_dead_leaderships(
    partition_intervals: DataFrame, known_spans: DataFrame, events: DataFrame, options: Options
) -> DataFrame:
    """Return the parts of known intervals in which the leader may have been dead. `is_under`: also under min ISR.

    They end with the next leader, with the return of the broker, or with the known time. They are not leaderless time.
    """
    led = add_tenures(partition_intervals)
    gone = losses(events, known_spans, led, session_timeout_ms=options.broker_session_timeout_ms)
    rows = join_losses(led, gone).withColumns({
        "is_under": is_under_min_isr(),
        "_dead_from": f.timestamp_micros(f.unix_micros("loss_lost_at") - f.col("loss_detection_us")),
    })  # fmt: skip
    rows = rows.withColumns({
        "_from": f.greatest("began", "_dead_from"),
        "_until": f.least("ended", f.coalesce("loss_back_at", "ended")),
    }).where("_from < _until")  # fmt: skip
    # A broker that came back without a new election is lost a second time within the same tenure.
    each = rows.groupBy(*PARTITION, "controller_epoch", "seq", "began")
    dead = each.agg(
        f.min("_from").alias("_from"), f.max("_until").alias("ended"), f.first("is_under").alias("is_under")
    )
    return dead.select(*PARTITION, f.col("_from").alias("began"), "ended", "is_under")
