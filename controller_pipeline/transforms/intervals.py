"""From records to intervals: each record of a thing lasts until the next one, or until nothing more is known.

Records within known spans are enough for that: a span begins with a snapshot, which names everything that is there. The
entries of its later snapshots say nothing new, which `proofs` checks.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

SPAN_COLUMNS = ("span", "at", "span_ended", "known_again", "is_final")
"""What `placed` adds."""


def placed(events: DataFrame, spans: DataFrame) -> DataFrame:
    """The records within known spans, without the entries of later snapshots, and where they are in time: `at` is within
    the span, whatever the clock said; `is_final`: no span follows."""
    around = spans.selectExpr(
        "cluster_id",
        "controller_epoch",
        "span",
        "first_seq",
        "snapshot_seq",
        "last_seq",
        "began as span_began",
        "ended as span_ended",
        "known_again",
        "lead(span) over (partition by cluster_id order by span) is null as is_final",
    )
    rows = events.join(f.broadcast(around), ["cluster_id", "controller_epoch"])
    rows = rows.where("seq between first_seq and last_seq and (not snapshot or seq <= snapshot_seq)")
    return rows.withColumn("at", f.expr("greatest(span_began, least(event_time, span_ended))"))


def lasting(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Adds `began`, `ended` (in the same span) and `next_seq` (null where the span has no more of the thing)."""
    over = f"over (partition by {', '.join(key)} order by span, seq)"
    rows = rows.selectExpr(
        "*",
        f"max(at) {over} as began",
        f"lead(struct(span, seq, at)) {over} as next",
    )
    is_in_span = "next.span <=> span"
    return rows.selectExpr(
        "*",
        f"if({is_in_span}, greatest(began, next.at), span_ended) as ended",
        f"if({is_in_span}, next.seq, null) as next_seq",
    ).selectExpr("* except (next, at)")


def with_unknown(rows: DataFrame, state: Sequence[str]) -> DataFrame:
    """What lasted until the end of its span is followed by an interval in which the `state` is not known.

    Adds `is_known` and `is_last`. The `seq` of what is unknown is the first that is."""
    known = "struct(true as is_known, next_seq is null and known_again is null as is_last, began as b, ended as e)"
    unknown = "struct(false as is_known, is_final as is_last, span_ended as b, known_again as e)"
    pieces = f"inline(if(next_seq is null and known_again is not null, array({known}, {unknown}), array({known})))"
    rows = rows.selectExpr("*", pieces)
    hidden = {name: f.expr(f"if(is_known, {name}, null)") for name in state}
    place = {"seq": f.expr("if(is_known, seq, last_seq + 1)"), "began": f.col("b"), "ended": f.col("e")}
    return rows.withColumns(hidden | place).selectExpr("* except (b, e)")
