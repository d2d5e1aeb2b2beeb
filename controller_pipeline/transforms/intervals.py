"""From records to intervals: each record of a thing lasts until the next one, or until nothing more is known.

Records within known spans are enough for that: a span begins with a snapshot, which names everything that is there. The
entries of its later snapshots say nothing new, which `proofs` checks.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_pipeline.transforms.lines import LOGS


def placed(events: DataFrame, spans: DataFrame) -> DataFrame:
    """The records within known spans, without the entries of later snapshots, and where they are in time: `at` is within
    the span, whatever the clock said.

    `chain`: the first of the spans that say something together, more than one where they are of logs. Of its end:
    `chain_ended`, `known_again`, `last_epoch`, `last_seq`; `is_final`: after it only a mention says anything."""
    rows = events.join(f.broadcast(chained(spans)), ["cluster_id", "controller_epoch"])
    rows = rows.where("seq between first_seq and span_last_seq and (not snapshot or seq <= snapshot_seq)")
    return rows.withColumn("at", f.expr("greatest(span_began, least(event_time, span_ended))"))


def chained(spans: DataFrame) -> DataFrame:
    """The spans with what `placed` adds; `is_by_mention`: a thing is known from its first mention on, since `told_from`.

    What was known before such a chain is unknown until it is mentioned again, and that may be never."""
    by_span = "over (partition by cluster_id order by span"
    of_chain = "over (partition by cluster_id, chain)"
    is_by_mention = f"origin = '{LOGS}'"
    before = [f"lag({name}) {by_span})" for name in ("origin", "controller_epoch")]
    goes_on = f"{is_by_mention} and {before[0]} = '{LOGS}' and {before[1]} = controller_epoch - 1"
    rows = spans.selectExpr("*", f"if({goes_on}, null, span) as chain_began")
    rows = rows.selectExpr("*", f"max(chain_began) {by_span}) as chain", f"{is_by_mention} as is_by_mention")
    later = f"{by_span} rows between 1 following and unbounded following)"
    snapshot_again = f"min(if({is_by_mention}, null, began)) {later}"
    history_ended = "max(greatest(ended, known_again)) over (partition by cluster_id)"
    again = f"if(lead(is_by_mention) {by_span}), coalesce({snapshot_again}, {history_ended}), known_again) as until"
    last_snapshot = f"max(if({is_by_mention}, null, ended)) {by_span})"
    # Without a snapshot to come, what nobody mentions is unknown to the end of the history.
    is_final = f"{snapshot_again} is null and coalesce(lead(is_by_mention) {by_span}), true) as is_last_span"
    told_from = f"coalesce({last_snapshot}, min(began) over (partition by cluster_id)) as told_from"
    rows = rows.selectExpr("*", again, told_from, is_final)
    return rows.selectExpr(
        "cluster_id",
        "xxhash64(cluster_id) as cluster_key",
        "controller_epoch",
        "span",
        "chain",
        "is_by_mention",
        "told_from",
        "first_seq",
        "snapshot_seq",
        "last_seq as span_last_seq",
        "began as span_began",
        "ended as span_ended",
        f"max(ended) {of_chain} as chain_ended",
        f"max_by(until, span) {of_chain} as known_again",
        f"max(controller_epoch) {of_chain} as last_epoch",
        f"max_by(last_seq, span) {of_chain} as last_seq",
        f"max_by(is_last_span, span) {of_chain} as is_final",
    )


def lasting(
    rows: DataFrame, key: Sequence[str], latest: Sequence[str] = (), also_next: Sequence[str] = ()
) -> DataFrame:
    """Adds `began`, `ended`, and `next_span` and `next_seq` (null where the chain has no more of the thing) and `next_at`.

    `latest`: columns that become the last value so far that is not null. `also_next`: columns of which the next record's
    is added (`next_...`). All of it is one pass over rows that are sorted once."""
    over = f"over (partition by {', '.join(key)} order by span, seq"
    so_far = f"{over} rows between unbounded preceding and current row)"
    added = {"began": f"max(at) {so_far}"}
    added |= {f"next_{name}": f"lead({name}) {over})" for name in ("chain", "span", "seq", "at", *also_next)}
    added |= {name: f"last({name}, true) {so_far}" for name in latest}
    rows = rows.withColumns({name: f.expr(value) for name, value in added.items()})
    is_in_chain = "next_chain <=> chain"
    ends = {
        "ended": f"if({is_in_chain}, greatest(began, next_at), chain_ended)",
        "next_span": f"if({is_in_chain}, next_span, null)",
        "next_seq": f"if({is_in_chain}, next_seq, null)",
    }
    rows = rows.withColumns({name: f.expr(value) for name, value in ends.items()})
    return rows.selectExpr("* except (next_chain)")


def with_unknown(rows: DataFrame, state: Sequence[str]) -> DataFrame:
    """What lasted until the end of its chain is followed by an interval in which the `state` is not known: until a
    snapshot, the next mention, or the end of the history.

    Adds `is_known` and `is_last`. The `controller_epoch` and `seq` of what is unknown are the first that are."""
    is_followed = "next_seq is null and known_again is not null"
    rows = rows.selectExpr("*", f"explode(if({is_followed}, array(true, false), array(true))) as is_known")
    of_unknown = {
        "began": "chain_ended",
        "ended": "least(known_again, next_at)",
        "controller_epoch": "last_epoch",
        "seq": "last_seq + 1",
    } | dict.fromkeys(state, "null")
    values = {name: f"if(is_known, {name}, {value})" for name, value in of_unknown.items()}
    values["is_last"] = "if(is_known, next_seq is null and known_again is null, is_final and next_at is null)"
    return rows.withColumns({name: f.expr(value) for name, value in values.items()})
