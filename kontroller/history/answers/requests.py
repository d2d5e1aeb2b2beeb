"""The requests of clients to change something: who asked for what, from where, and how it ended.

Strangers choose most of the texts and the number of the requests, and a journal may be anybody's. So texts are cut,
values of another type count as missing, and a report has the newest requests only (`limit_requests`).
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType

from controller_core.audit.record import MOST_CHARACTERS, Outcome
from kontroller.history.schemas import LONG, POSITION, REQUESTS, TEXT, columns
from kontroller.history.transforms.continuity.breaks import SKEW_US
from kontroller.history.transforms.continuity.clock_runs import YEAR_US
from kontroller.history.transforms.continuity.neighbours import is_request

MOST_RESOURCES: Final = 20
_MOST_COUNTED: Final = 1_000_000_000
"""The largest believed number of requests of one record, so that sums cannot overflow."""
_SAID: Final = columns(
    api=TEXT,
    outcome=TEXT,
    principal=TEXT,
    address=TEXT,
    client_id=TEXT,
    error=TEXT,
    resources=ArrayType(columns(type=TEXT, name=TEXT)),
    more_resources=LONG,
    count=LONG,
)
_TEXTS: Final = ("api", "principal", "address", "client_id", "error")
_OUTCOMES: Final = tuple(outcome.value for outcome in Outcome)


def requests(events: DataFrame, known_spans: DataFrame) -> DataFrame:
    """Return REQUESTS: a row for each audit record."""
    rows = events.where(is_request()).select(
        "cluster_id", *POSITION, "event_time", f.from_json("request", _SAID).alias("said")
    )
    rows = _drop_untrusted_times(rows, known_spans).select("cluster_id", *POSITION, "event_time", "said.*")
    name = f"left(concat_ws(' ', resource.type, resource.name), {MOST_CHARACTERS})"
    named = f"transform(slice(coalesce(resources, array()), 1, {MOST_RESOURCES}), resource -> {name})"
    values = {text: f.coalesce(f.left(f.col(text), f.lit(MOST_CHARACTERS)), f.lit("")) for text in _TEXTS} | {
        "outcome": f.when(f.col("outcome").isin(*_OUTCOMES), f.col("outcome")).otherwise(Outcome.UNKNOWN.value),
        "resources": f.expr(named),
        "resources_total": f.coalesce(f.array_size("resources"), f.lit(0)) + _limit_number("more_resources", 0),
        "count": _limit_number("count", 1),
    }
    return rows.withColumns(values).select(*REQUESTS.schema.fieldNames())


def limit_requests(rows: DataFrame, most: int) -> DataFrame:
    """Return the newest requests of each cluster and outcome, and one row for the sum of the others.

    Refused requests of a stranger so never displace those that changed something."""
    newest_first = (f.col("event_time").desc_nulls_last(), *(f.col(name).desc() for name in POSITION))
    rank = f.row_number().over(Window.partitionBy("cluster_id", "outcome").orderBy(*newest_first))
    ranked = rows.withColumn("rank", rank)
    newest = f.min_by(f.struct(*POSITION), "rank").alias("newest")
    rest = ranked.where(f.col("rank") > most).groupBy("cluster_id", "outcome")
    sums = rest.agg(f.sum("count").alias("count"), f.max("event_time").alias("event_time"), newest)
    summed = sums.select("cluster_id", "outcome", "count", "event_time", "newest.*")
    kept = ranked.where(f.col("rank") <= most).select(*REQUESTS.schema.fieldNames())
    return kept.unionByName(summed, allowMissingColumns=True)


def _limit_number(name: str, least: int) -> Column:
    """Return a number of a record that may be missing or impossible."""
    return f.least(f.greatest(f.coalesce(name, f.lit(least)), f.lit(least)), f.lit(_MOST_COUNTED)).cast(LONG)


def _drop_untrusted_times(rows: DataFrame, known_spans: DataFrame) -> DataFrame:
    """Clear the times that do not fit between the known spans before and after.

    A request may lie in unknown time, so it need not be within a span."""
    spans = known_spans.where("has_time").selectExpr(
        "cluster_id",
        "controller_epoch",
        "first_seq as seq",
        "unix_micros(began) as began_us",
        "unix_micros(ended) as ended_us",
    )
    placed = rows.unionByName(spans, allowMissingColumns=True)
    of_history = Window.partitionBy("cluster_id")
    # A window to the end of the history would be computed anew for each row, so the order is reversed.
    forwards = of_history.orderBy("controller_epoch", "seq", f.col("began_us").isNull())
    backwards = of_history.orderBy(
        f.col("controller_epoch").desc(), f.col("seq").desc(), f.col("began_us").isNull().desc()
    )
    last, last_end = (f.last(name, ignorenulls=True).over(forwards) for name in ("began_us", "ended_us"))
    following = f.last("began_us", ignorenulls=True).over(backwards)
    at_us = f.unix_micros("event_time")
    earliest_us = f.coalesce(last - SKEW_US, following - YEAR_US)
    latest_us = f.coalesce(following + SKEW_US, last_end + YEAR_US)
    placed = placed.withColumns({"earliest_us": earliest_us, "latest_us": latest_us})
    is_trusted = at_us.between(f.col("earliest_us"), f.col("latest_us"))
    requests_alone = placed.where("began_us is null")
    return requests_alone.withColumn("event_time", f.when(is_trusted, f.col("event_time")))
