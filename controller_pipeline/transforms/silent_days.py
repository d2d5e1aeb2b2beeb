"""Whole days of which a history has no record: neither a change nor that the controller is alive.

What was known before such days counts as known through them where no number is missing, so that somebody must look. Kafka's
own logs are left out: they say nothing while nothing happens.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_pipeline.schemas import FINDINGS
from controller_pipeline.transforms.lines import LOGS


def silent_days(events: DataFrame) -> DataFrame:
    """Findings `silent_days`, one for all days between two that have a record of the cluster; `count` is how many."""
    place = "struct(controller_epoch, seq)"
    days = events.groupBy("cluster_id", f.to_date("event_time").alias("day")).agg(
        *(f.expr(f"max_by({name}, {place}) as {name}") for name in ("controller_epoch", "seq", "source", "origin"))
    )
    before = "lag(day) over (partition by cluster_id order by day)"
    last = ("controller_epoch", "seq", "source", "origin")
    lags = (f"lag({name}) over (partition by cluster_id order by day) as {name}" for name in last)
    pairs = days.selectExpr("cluster_id", "day", f"{before} as day_before", *lags)
    silent = pairs.where(f"datediff(day, day_before) > 1 and origin <> '{LOGS}'")
    which = "date_add(day_before, 1), ' to ', date_sub(day, 1)"
    detail = f"concat('no record at all from ', {which}, ': was a controller running, and is its journal missing?')"
    return silent.selectExpr(
        "*", "'silent_days' as problem", "bigint(null) as line", "timestamp(date_add(day_before, 1)) as event_time",
        "bigint(datediff(day, day_before) - 1) as count", f"{detail} as detail",
    ).select(*FINDINGS.schema.fieldNames())  # fmt: skip
