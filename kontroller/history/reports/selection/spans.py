"""The known spans of controllers, and the gaps between them."""

from collections import defaultdict
from collections.abc import Sequence

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as f

from kontroller.history import schemas
from kontroller.history.reports import words
from kontroller.history.reports.facts import Bar, Lane, Unknown
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.selection.tables import Tables

REASONS = {
    "resigned": "the previous controller resigned, and the next one had not written a snapshot yet",
    "silence": "the previous controller fell silent without resigning",
    "gap": "records are missing",
    "clock": "a clock was set, or is not trusted",
    "unobserved": "the recorder was disconnected, and something had changed when it came back",
    "end": "the history ends",
    "begin": "the history begins later",
}


def holes(tables: Tables) -> DataFrame:
    """Return the gaps within the period, of clusters with any known time: cluster_id, began_us, ended_us, ended_by."""
    spans = tables.clip(schemas.KNOWN_SPANS)
    in_order = Window.partitionBy("cluster_id").orderBy("span")
    next_us = f.coalesce(f.lead("began_us").over(in_order), f.lit(tables.period.ended_us))
    is_last = f.lead("span").over(in_order).isNull()
    after = spans.select(
        "cluster_id",
        f.col("ended_us").alias("began_us"),
        next_us.alias("ended_us"),
        f.when(is_last & f.col("ended_by").isNull(), "end").otherwise(f.col("ended_by")).alias("ended_by"),
    )
    before = spans.groupBy("cluster_id").agg(f.min("began_us").alias("ended_us"))
    begin = before.select(
        "cluster_id", f.lit(tables.period.began_us).alias("began_us"), "ended_us", f.lit("begin").alias("ended_by")
    )
    return after.unionByName(begin).where("began_us < ended_us")


def unknowns(tables: Tables, *, most: int) -> tuple[tuple[Unknown, ...], int]:
    """Return the longest gaps, longest first, and the number of all."""
    longest, every = (f.col("began_us") - f.col("ended_us")).asc(), holes(tables)
    found = every.orderBy(longest, "began_us", "cluster_id").limit(most + 1).collect()
    shown = tuple(_unknown(row) for row in found[:most])
    return shown, len(found) if len(found) <= most else every.count()


def _unknown(row: Row) -> Unknown:
    return Unknown(
        cluster=row["cluster_id"],
        began_us=row["began_us"],
        ended_us=row["ended_us"],
        reason=REASONS.get(row["ended_by"] or "", f"the previous span ended by {row['ended_by']}"[:200]),
    )


def span_bar(row: Row) -> Bar:
    """Return the bar of a known span, clipped to the period."""
    label = f"{row['controller_id']}, epoch {row['controller_epoch']}"
    tip = f"controller {label}: {words.format_span(row['began_us'], row['ended_us'])}"
    if row["ended_by"]:
        tip += f", ended by {row['ended_by'][:40]}"
    if row["origin"] and row["origin"] != "controller":
        tip += f" (written by: {row['origin'][:40]})"
    return Bar(
        began_us=row["began_us"],
        ended_us=row["ended_us"],
        state="controller",
        label=label,
        tip=tip,
        term=(row["cluster_id"], row["controller_epoch"]),
    )


def controller_lanes(tables: Tables, clusters: Sequence[str], limits: Limits) -> tuple[Lane, ...]:
    """Return a row for each controller of these clusters. If there are too many spans, the longest are kept."""
    rows = tables.clip(schemas.KNOWN_SPANS).where(f.col("cluster_id").isin(*clusters))
    longest = (f.col("began_us") - f.col("ended_us")).asc()
    kept = rows.orderBy(longest, "cluster_id", "span").limit(limits.spans).collect()
    lanes: dict[tuple[str, int], list[Bar]] = defaultdict(list)
    for row in sorted(kept, key=lambda row: (row["cluster_id"], row["controller_id"] or 0, row["began_us"])):
        lanes[row["cluster_id"], row["controller_id"]].append(span_bar(row))
    many = len(clusters) > 1
    return tuple(
        Lane(label=f"{cluster}: {controller}" if many else f"controller {controller}", bars=tuple(bars))
        for (cluster, controller), bars in list(lanes.items())[: limits.brokers]
    )
