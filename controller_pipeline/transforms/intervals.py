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


def lasting(
    rows: DataFrame, key: Sequence[str], latest: Sequence[str] = (), also_next: Sequence[str] = ()
) -> DataFrame:
    """Adds `began`, `ended` (in the same span) and `next_seq` (null where the span has no more of the thing).

    `latest`: columns that become the last value so far that is not null. `also_next`: columns of which the next record's is
    added (`next_...`). All of it is one pass over rows that are sorted once."""
    over = f"over (partition by {', '.join(key)} order by span, seq"
    so_far = f"{over} rows between unbounded preceding and current row)"
    added = {"began": f"max(at) {so_far}"}
    added |= {f"next_{name}": f"lead({name}) {over})" for name in ("span", "seq", "at", *also_next)}
    added |= {name: f"last({name}, true) {so_far}" for name in latest}
    rows = rows.withColumns({name: f.expr(value) for name, value in added.items()})
    is_in_span = "next_span <=> span"
    ends = {
        "ended": f"if({is_in_span}, greatest(began, next_at), span_ended)",
        "next_seq": f"if({is_in_span}, next_seq, null)",
    }
    return rows.withColumns({name: f.expr(value) for name, value in ends.items()}).drop("next_span", "next_at")


def with_unknown(rows: DataFrame, state: Sequence[str]) -> DataFrame:
    """What lasted until the end of its span is followed by an interval in which the `state` is not known.

    Adds `is_known` and `is_last`. The `seq` of what is unknown is the first that is."""
    is_followed = "next_seq is null and known_again is not null"
    rows = rows.selectExpr("*", f"explode(if({is_followed}, array(true, false), array(true))) as is_known")
    of_unknown = {"began": "span_ended", "ended": "known_again", "seq": "last_seq + 1"} | dict.fromkeys(state, "null")
    values = {name: f"if(is_known, {name}, {value})" for name, value in of_unknown.items()}
    values["is_last"] = "if(is_known, next_seq is null and known_again is null, is_final)"
    return rows.withColumns({name: f.expr(value) for name, value in values.items()})
