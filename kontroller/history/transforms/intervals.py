"""From records to intervals: a record is valid until the next one of its thing, or until the state becomes unknown.

Only records within known spans are needed, because a span begins with a complete snapshot. Spans without a missing
record between them are a *chain*: its state continues, and only the time between them is unknown, a *hole*. Example:
    record   span   at       says
    1-3      0      10:00    a snapshot: partition p has leader 1
    4        0      10:01    p has no leader; then the controller is frozen for an hour
    5        1      11:01    p has leader 2; record 7 at 11:02, of something else, is the last one
`place_records` adds chain, span and time to records. `add_ends`: leader 1 to 10:01, none to 11:01, leader 2 to 11:02.
`add_unknown` cuts holes out: none at 10:01, unknown to 11:01, then leader 2. A hole keeps what is proven for it.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kontroller.history.transforms.lines import LOGS

_ITSELF, _UNKNOWN, _AFTERWARDS, _AT_THE_END = range(4)
"""The parts of an interval: its first known part; a hole in it; the known part after a hole; the part after its
chain."""


def place_records(events: DataFrame, spans: DataFrame) -> DataFrame:
    """Return the records within known spans, without the entries of later snapshots, and with their place in time.

    `at` is within the span, whatever the clock was. `chain`: the first span of the chain. Columns of its end:
    `chain_ended`, `known_again`, `last_epoch`, `last_seq`. `is_final`: after it only a mention states anything."""
    rows = events.join(f.broadcast(add_chains(spans)), ["cluster_id", "controller_epoch"])
    rows = rows.where("seq between first_seq and span_last_seq and (not snapshot or seq <= snapshot_seq)")
    return rows.withColumn("at", f.expr("greatest(span_began, least(event_time, span_ended))"))


def add_chains(spans: DataFrame) -> DataFrame:
    """Return the spans with the columns that `place_records` adds.

    `is_by_mention`: a thing is known from its first mention on, since `told_from`. A state from before such a chain
    is unknown until it is mentioned again, which may never happen."""
    by_span = "over (partition by cluster_id order by span"
    of_chain = "over (partition by cluster_id, chain)"
    is_by_mention = f"origin = '{LOGS}'"
    before = [f"lag({name}) {by_span})" for name in ("origin", "controller_epoch", "snapshot_seq")]
    goes_on = f"{is_by_mention} and {before[0]} = '{LOGS}' and {before[1]} in (controller_epoch - 1, controller_epoch)"
    goes_on += f" or {before[1]} = controller_epoch and {before[2]} = snapshot_seq"
    rows = spans.selectExpr("*", f"if({goes_on}, null, span) as chain_began")
    rows = rows.selectExpr("*", f"max(chain_began) {by_span}) as chain", f"{is_by_mention} as is_by_mention")
    later = f"{by_span} rows between 1 following and unbounded following)"
    snapshot_again = f"min(if({is_by_mention}, null, began)) {later}"
    history_ended = "max(greatest(ended, known_again)) over (partition by cluster_id)"
    again = f"if(lead(is_by_mention) {by_span}), coalesce({snapshot_again}, {history_ended}), known_again) as until"
    last_snapshot = f"max(if({is_by_mention}, null, ended)) {by_span})"
    # Without a later snapshot, things that are not mentioned are unknown to the end of the history.
    is_final = f"{snapshot_again} is null and coalesce(lead(is_by_mention) {by_span}), true) as is_last_span"
    told_from = f"coalesce({last_snapshot}, min(began) over (partition by cluster_id)) as told_from"
    rows = rows.selectExpr("*", again, told_from, is_final)
    return rows.selectExpr(
        "cluster_id",
        "xxhash64(cluster_id) as cluster_key",
        "controller_epoch",
        "span",
        "chain",
        "has_time",
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


def add_ends(
    rows: DataFrame, key: Sequence[str], latest: Sequence[str] = (), also_next: Sequence[str] = ()
) -> DataFrame:
    """Add `began`, `ended`, `next_span`, `next_seq` and `next_at`. The first two of these are null if the thing ends in
    its chain.

    `latest`: columns that get their last non-null value. `also_next`: columns whose next non-null value is added
    (`next_...`). All of it is one pass over rows that are sorted once."""
    over = f"over (partition by {', '.join(key)} order by span, seq"
    so_far = f"{over} rows between unbounded preceding and current row)"
    added = {"began": f"max(at) {so_far}"}
    added |= {f"next_{name}": f"lead({name}) {over})" for name in ("chain", "span", "seq", "at")}
    added |= {f"next_{name}": f"lead({name}) ignore nulls {over})" for name in also_next}
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


def add_unknown(
    rows: DataFrame, state: Sequence[str], spans: DataFrame, proven: Mapping[str, str] | None = None
) -> DataFrame:
    """Cut intervals at the holes of their chain, and fill the time after their chain.

    An interval over a hole becomes known, unknown without `state`, and known again. An interval that lasts to the end
    of its chain is followed by an unknown one, until a snapshot, the next mention, or the end of the history.
    `proven`: SQL for the columns of `state` that can have a value in unknown time.

    Adds `is_known`, `is_last`, and `is_carried`: it repeats the state before a hole. The `controller_epoch` and `seq`
    of unknown intervals are the first unknown ones."""
    rows = _join_holes(rows, holes(spans))
    is_end = "next_seq is null and (hole_span is null or hole_after is null)"
    is_first_hole = "(hole_before is null or hole_before < span)"
    carried_until = "least(ended, next_hole_began)"
    parts = {
        _ITSELF: f"hole_span is null or {is_first_hole}",
        _UNKNOWN: "hole_span is not null",
        _AFTERWARDS: f"hole_ended < {carried_until} or (hole_span is not null and {is_end})",
        _AT_THE_END: f"{is_end} and known_again is not null",
    }
    when = ", ".join(f"if({condition}, {part}, null)" for part, condition in parts.items())
    rows = rows.selectExpr("*", f"explode(array_compact(array({when}))) as part", f"{is_end} as is_end")
    values = {
        "began": {_UNKNOWN: "hole_began", _AFTERWARDS: "hole_ended", _AT_THE_END: "chain_ended"},
        "ended": {
            _ITSELF: "coalesce(hole_began, ended)",
            _UNKNOWN: "hole_ended",
            _AFTERWARDS: carried_until,
            _AT_THE_END: "least(known_again, next_at)",
        },
        "controller_epoch": {_UNKNOWN: "hole_epoch", _AT_THE_END: "last_epoch"},
        "seq": {_UNKNOWN: "hole_seq", _AT_THE_END: "last_seq + 1"},
    } | {name: dict.fromkeys((_UNKNOWN, _AT_THE_END), (proven or {}).get(name, "null")) for name in state}
    chosen = {name: _choose_by_part(name, cases) for name, cases in values.items()}
    chosen["is_known"] = f"part in ({_ITSELF}, {_AFTERWARDS})"
    chosen["is_carried"] = f"part = {_AFTERWARDS}"
    is_last = "is_end and known_again is null"
    chosen["is_last"] = _choose_by_part("false", {
        _ITSELF: f"hole_span is null and {is_last}", _AFTERWARDS: is_last, _AT_THE_END: "is_final and next_at is null",
    })  # fmt: skip
    return rows.withColumns({name: f.expr(value) for name, value in chosen.items()})


def holes(spans: DataFrame) -> DataFrame:
    """Return the holes within chains: the span before, the times, and neighbouring holes.

    If clocks are right and no controller was silent, there are none."""
    of_chain = "over (partition by cluster_key, chain order by span)"
    rows = (
        add_chains(spans).selectExpr("*", f"lead(span_began) {of_chain} as hole_ended").where("span_ended < hole_ended")
    )
    return rows.selectExpr(
        "cluster_key as hole_cluster_key",
        "chain as hole_chain",
        "span as hole_span",
        "span_ended as hole_began",
        "hole_ended",
        "controller_epoch as hole_epoch",
        "span_last_seq + 1 as hole_seq",
        f"lag(span) {of_chain} as hole_before",
        f"lead(span) {of_chain} as hole_after",
        f"lead(span_ended) {of_chain} as next_hole_began",
    )


def _join_holes(rows: DataFrame, few: DataFrame) -> DataFrame:
    """Return each interval once for each hole before the thing's next record, and at least once.

    `hole_after` and `next_hole_began` are null if the next hole is outside of the interval."""
    on = "cluster_key = hole_cluster_key and chain = hole_chain and hole_span >= span"
    on += " and (next_span is null or hole_span < next_span)"
    rows = rows.join(f.broadcast(few), f.expr(on), "left")
    is_next_inside = "(next_span is null or hole_after < next_span)"
    inside = {name: f.expr(f"if({is_next_inside}, {name}, null)") for name in ("next_hole_began", "hole_after")}
    return rows.withColumns(inside)


def _choose_by_part(otherwise: str, values: Mapping[int, str]) -> str:
    cases = " ".join(f"when {part} then {value}" for part, value in values.items())
    return f"case part {cases} else {otherwise} end"
