"""The state of each partition over time: deltas are laid over each other, and each record lasts until the next one.

This is where most of the work is. All of it is windows over one partition's records, of the columns that are asked for;
what concerns whole topics and clusters (deletions, configurations, spans) is small and is sent to where the records are.
"""

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from controller_pipeline.schemas import PARTITION_INTERVALS
from controller_pipeline.transforms.config_intervals import min_isr_steps
from controller_pipeline.transforms.intervals import lasting, placed, with_unknown

_KEY: Final = ("cluster_id", "topic", "partition")
_SET: Final = (Kind.LEADERSHIP, Kind.ASSIGNMENT)
_KINDS: Final = (*_SET, Kind.LEADERSHIP_REMOVED, Kind.ASSIGNMENT_REMOVED)
_EPOCHS: Final = ("leader_epoch", "leader_recovery_state", "state_controller_epoch", "partition_epoch")
_LISTS: Final = ("replicas", "adding", "removing")
_NOBODY: Final = "slice(array(0), 1, 0)"
STATE: Final = (
    "leader",
    "isr",
    *_EPOCHS,
    *_LISTS,
    "min_insync_replicas",
    "cause",
    "correlation_id",
    "took_us",
    "unclean",
)


def partition_intervals(events: DataFrame, spans: DataFrame, configs: DataFrame) -> DataFrame:
    """`schemas.PARTITION_INTERVALS`. A partition begins with its assignment, or where that is missing with its leadership,
    and ends with either, or with its topic."""
    rows = folded(placed(events.where(f"kind in ({_quoted(_KINDS)})"), spans))
    rows = lasting(rows, _KEY).where(f"kind in ({_quoted(_SET)})")
    rows = _until_deletion(_one_for_each_event(rows), events, spans)
    rows = with_unknown(rows, [name for name in STATE if name != "min_insync_replicas"])
    rows = _with_min_isr(rows, configs)
    return rows.select(*PARTITION_INTERVALS.schema.fieldNames())


def folded(rows: DataFrame) -> DataFrame:
    """The whole state after each record. A partition that is gone, or is found assigned, has no leader until it is told."""
    over = f"over (partition by {', '.join(_KEY)} order by span, seq)"
    begins_anew = f"kind = '{Kind.LEADERSHIP_REMOVED}' or (snapshot and kind = '{Kind.ASSIGNMENT}')"
    latest = {name: f"last(if({begins_anew}, -1, {name}), true) {over}" for name in ("leader", *_EPOCHS)}
    latest["isr"] = f"last(if({begins_anew}, {_NOBODY}, isr), true) {over}"
    latest |= {name: f"last({name}, true) {over}" for name in _LISTS}
    latest["next_correlation"] = f"lead(correlation_id) {over}"
    rows = rows.withColumns({name: f.expr(value) for name, value in latest.items()})
    given = {name: f"nullif({name}, -1)" for name in _EPOCHS}
    given |= {"leader": "coalesce(leader, -1)", "isr": f"coalesce(isr, {_NOBODY})"}
    return rows.withColumns({name: f.expr(value) for name, value in given.items()})


def _one_for_each_event(rows: DataFrame) -> DataFrame:
    """What one event wrote in several records is one change; an unclean election is never left out."""
    return rows.where(
        "not (began = ended and next_seq is not null and next_correlation <=> correlation_id and not unclean)"
    )


def _until_deletion(rows: DataFrame, events: DataFrame, spans: DataFrame) -> DataFrame:
    """The assignments of a topic end with it, which is written once for all of its partitions."""
    deletions = placed(events.where(f"kind = '{Kind.TOPIC_REMOVED}'"), spans)
    told = f.sort_array(f.collect_list(f.struct("seq", "at")))
    ends = deletions.groupBy("cluster_id", "topic", "span").agg(told.alias("ends"))
    rows = rows.join(f.broadcast(ends), ["cluster_id", "topic", "span"], "left")
    end = "get(filter(ends, e -> e.seq > seq and (next_seq is null or e.seq < next_seq)), 0)"
    rows = rows.withColumn("deletion", f.expr(f"if(ends is null, null, {end})"))
    return rows.withColumns({
        "ended": f.expr("if(deletion is null, ended, greatest(began, deletion.at))"),
        "next_seq": f.expr("if(deletion is null, next_seq, deletion.seq)"),
    }).selectExpr("* except (ends, deletion)")  # fmt: skip


def _with_min_isr(rows: DataFrame, configs: DataFrame) -> DataFrame:
    """Cuts intervals where `min.insync.replicas` changed."""
    steps = min_isr_steps(configs)
    own = steps.where("topic is not null")
    inherited = steps.where("topic is null").selectExpr("cluster_id", "steps as inherited")
    rows = rows.join(f.broadcast(own), ["cluster_id", "topic"], "left").join(
        f.broadcast(inherited), "cluster_id", "left"
    )
    overlaps = "s.began < ended and s.ended > began or s.began <= began and began < s.ended"
    piece = "struct(greatest(s.began, began) as b, least(s.ended, ended) as e, s.value as min_insync_replicas)"
    cut = f"transform(filter(coalesce(steps, inherited), s -> {overlaps}), s -> {piece})"
    whole = "array(struct(began as b, ended as e, if(is_known, 1, null) as min_insync_replicas))"
    rows = rows.selectExpr("*", f"inline(if(is_known and coalesce(steps, inherited) is not null, {cut}, {whole}))")
    changed = {
        "began": "b",
        "ended": "e",
        "is_last": "is_last and e = ended",
        "cause": "if(b > began, 'configs_changed', cause)",
        "correlation_id": "if(b > began, null, correlation_id)",
        "took_us": "if(b > began, null, took_us)",
        "unclean": "unclean and b = began",
    }
    return rows.withColumns({name: f.expr(value) for name, value in changed.items()})


def _quoted(kinds: Iterable[Kind]) -> str:
    return ", ".join(f"'{kind}'" for kind in kinds)
