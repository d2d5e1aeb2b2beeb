"""The states of partitions over time. Deltas are applied in order, and each record is valid until the next one.

This is most of the work of a fold. All of it is windows over one partition's records, with only the needed columns,
after one shuffle and one sort. Data of whole topics and clusters (deletions, configurations, spans) is small and is
broadcast.

A partition without a leader changes only by a write of a controller, and each write raises its partition epoch by one. So
in unknown time it is proven to have no leader if the next record of it shows that nothing was written before that
record. Example: leader -1 at epoch 7, an hour of silence, then leader 2 at epoch 8, or a snapshot with epoch 7. At epoch
9 nothing is proven: leader 2 may have been elected at any time of the hour.

Records are shuffled, sorted and joined by 64-bit hashes, two of them for a partition, because comparing names dominates
a sort. The probability that two of 100,000 topics collide is 3e-10.
"""

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from controller_core.journal.inference import UNOBSERVED
from kontroller.history.schemas import ASKED_BY, PARTITION_INTERVALS
from kontroller.history.transforms.config_intervals import min_isr_steps, static_min_isr_steps
from kontroller.history.transforms.intervals import add_ends, add_unknown, place_records
from kontroller.history.transforms.lines import LOGS, RECORDER

_CLUSTER: Final = "xxhash64(cluster_id) as cluster_key"
_TOPIC: Final = "xxhash64(topic, cluster_key) as topic_key"
_PARTITION: Final = "xxhash64(topic_key, partition) as partition_key"
_NEARLY: Final = "partition_key & -4294967296L | unix_seconds(at) & 4294967295L"
"""One half is of a partition's hash, the other is the second."""
_PLACE: Final = "struct(span, seq)"
_KEY: Final = ("partition_key", "topic_key")
_SET: Final = (Kind.LEADERSHIP, Kind.ASSIGNMENT)
_KINDS: Final = (*_SET, Kind.LEADERSHIP_REMOVED, Kind.ASSIGNMENT_REMOVED)
CREATION: Final = ("topics_changed", "topic_modified")
"""Causes of a new partition's assignment in logs."""
BROKERS_REQUESTS: Final = ("alter_partition", "controlled_shutdown", "allocate_producer_ids")
"""Causes that are requests of brokers for themselves, so that nobody asked for the change."""
_EPOCHS: Final = ("leader_epoch", "leader_recovery_state", "state_controller_epoch", "partition_epoch")
_LISTS: Final = ("replicas", "adding", "removing")
_NOBODY: Final = "slice(array(0), 1, 0)"
STATE: Final = (
    "leader",
    "isr",
    *_EPOCHS,
    *_LISTS,
    "cause",
    "correlation_id",
    *ASKED_BY,
    "took_us",
    "unclean",
)
"""Columns that are null in unknown time, except for a leader -1 that is proven. `min_insync_replicas` is one, too."""


def partition_intervals(events: DataFrame, spans: DataFrame, configs: DataFrame) -> DataFrame:
    """Return `schemas.PARTITION_INTERVALS`.

    A partition begins with its assignment, or with its leadership if that is missing. It ends with the removal of
    either, or with its topic."""
    rows = add_ends(_nearly_sorted(_records(events, spans)), _KEY, latest=_FOLDED, also_next=("event", "before"))
    rows = _end_at_deletion(_one_for_each_event(_fill_states(rows)), events, spans)
    rows = _clear_carried(add_unknown(rows, STATE, spans, proven={"leader": _PROVEN_LEADER}))
    files = static_min_isr_steps(events, spans)
    rows = _add_min_isr(rows, configs, files).select(*PARTITION_INTERVALS.schema.fieldNames())
    return rows.unionByName(_find_unmentioned(events, spans), allowMissingColumns=True)


def _records(events: DataFrame, spans: DataFrame) -> DataFrame:
    """Return the records of partitions, with hashes.

    A removed partition, or one that a snapshot finds assigned, has no leader until one is recorded."""
    rows = place_records(events.where(f"kind in ({_quote(_KINDS)})"), spans)
    begins_anew = f"kind = '{Kind.LEADERSHIP_REMOVED}' or (snapshot and kind = '{Kind.ASSIGNMENT}')"
    values = {name: f"if({begins_anew}, -1, {name})" for name in ("leader", *_EPOCHS)}
    values["isr"] = f"if({begins_anew}, {_NOBODY}, isr)"
    of_brokers = ", ".join(repr(cause) for cause in BROKERS_REQUESTS)
    values |= {name: f"if(cause in ({of_brokers}), null, {name})" for name in ASKED_BY}
    values["before"] = _BEFORE
    values["led_in"] = f"if(leader is not null or {begins_anew}, chain, null)"
    rows = rows.withColumns({name: f.expr(value) for name, value in values.items()})
    is_told = f"kind in ({_quote(_SET)}) as is_told"
    rows = rows.selectExpr("*", _TOPIC, is_told, "xxhash64(correlation_id) as event")
    return rows.selectExpr("*", _PARTITION)


_VERSION: Final = "xxhash64(coalesce(topic_id, concat('in chain ', chain)), {epoch})"
"""A hash of a partition epoch of one topic. A topic without an id is the same topic only within its chain."""
_AT_ITS_WRITE: Final = f"cause <> '{UNOBSERVED}' and (origin <> '{RECORDER}' or correlation_id rlike '^[0-9]+-@')"
"""True if a change is recorded when it is written: by a controller, or from a metadata log, whose offset is then in the
correlation id. A recorder of ZooKeeper that was frozen finds a change long after its write."""
_BEFORE: Final = f"""case kind
    when '{Kind.LEADERSHIP_REMOVED}' then xxhash64('removed')
    when '{Kind.LEADERSHIP}' then case
        when partition_epoch is null then null
        when snapshot then {_VERSION.format(epoch="partition_epoch")}
        when {_AT_ITS_WRITE} then {_VERSION.format(epoch="partition_epoch - 1")}
        else xxhash64('changed') end
    end"""
"""The version of the state that a record of it found: in a snapshot its own, otherwise that before its write."""
_PROVEN_LEADER: Final = (
    f"if(has_time and leader = -1 and next_before = {_VERSION.format(epoch='partition_epoch')}, -1, null)"
)
"""-1 if no write is possible between this record and the next one of the state. If the clock of this record is not
trusted, the leaderless time may have begun at any moment of the unknown time."""


def _nearly_sorted(rows: DataFrame) -> DataFrame:
    """Bring the records of a partition together, almost in their order.

    A window sorts by its columns, and compares two rows in memory whenever the first column, the partition, is equal,
    which was most of the work. A single number is sorted by its bytes without comparisons. The window's own sort then
    fixes the little that is out of order at low cost."""
    return rows.repartition(*_KEY).sortWithinPartitions(f.expr(_NEARLY))


_FOLDED: Final = ("leader", *_EPOCHS, "isr", *_LISTS, "led_in")


def _fill_states(rows: DataFrame) -> DataFrame:
    """Return the state after each record that states one.

    A partition that is new in a chain was not in its snapshot, so it has no leader until one is recorded there, even if
    an earlier partition of its name had one."""
    is_of_chain = "(is_by_mention or led_in <=> chain)"
    given = {name: f"if({is_of_chain}, nullif({name}, -1), null)" for name in _EPOCHS}
    given["leader"] = f"if({is_of_chain}, coalesce(leader, -1), -1)"
    given["isr"] = f"if({is_of_chain}, coalesce(isr, {_NOBODY}), {_NOBODY})"
    return rows.where("is_told").withColumns({name: f.expr(value) for name, value in given.items()})


def _one_for_each_event(rows: DataFrame) -> DataFrame:
    """Merge several records of one event into one change. An unclean election is never left out."""
    return rows.where("not (began = ended and next_seq is not null and next_event = event and not unclean)")


def _end_at_deletion(rows: DataFrame, events: DataFrame, spans: DataFrame) -> DataFrame:
    """End the assignments of a deleted topic. One record deletes all its partitions."""
    removed = place_records(events.where(f"kind = '{Kind.TOPIC_REMOVED}'"), spans)
    removed = removed.selectExpr(
        "cluster_id", _TOPIC, "chain", "seq as removed_seq", "at as removed_at", f"{_PLACE} as removed"
    )
    before = "lag(removed) over (partition by cluster_id, topic_key, chain order by removed) as removed_before"
    removed = removed.selectExpr("* except (cluster_id)", before)
    next_place = "named_struct('span', next_span, 'seq', next_seq)"
    is_next = f"{_PLACE} < removed and (removed_before is null or removed_before < {_PLACE})"
    is_next += f" and (next_seq is null or removed < {next_place})"
    rows = _join_few(rows, removed, ("topic_key", "chain"), is_next)
    return rows.withColumns({
        "ended": f.expr("if(removed_seq is null, ended, greatest(began, removed_at))"),
        "next_seq": f.expr("coalesce(removed_seq, next_seq)"),
        "next_span": f.expr("if(removed_seq is null, next_span, removed.span)"),
    })  # fmt: skip


def _clear_carried(rows: DataFrame) -> DataFrame:
    """Clear the election and the duration of states that are carried over an unknown time."""
    values = {"unclean": "unclean and not is_carried", "took_us": "if(is_carried, null, took_us)"}
    return rows.withColumns({name: f.expr(value) for name, value in values.items()})


def _add_min_isr(rows: DataFrame, configs: DataFrame, files: DataFrame) -> DataFrame:
    """Cut intervals where `min.insync.replicas` changed.

    The value is the topic's, otherwise its leader's, otherwise the default of all brokers, otherwise that of the
    leader's own file, otherwise 1. A leader never requires more than all assigned replicas, including those that a
    reassignment adds or removes (Kafka's `Partition.effectiveMinIsr`)."""
    said = min_isr_steps(configs)
    topics = said.where("scope = 'topic'").selectExpr("*", "name as topic", _CLUSTER).selectExpr(_TOPIC, *_STEP)
    leaders = said.where("scope = 'broker'").selectExpr(_CLUSTER, "int(name) as leader", *_STEP)
    brokers = said.where("scope = 'default'").selectExpr(_CLUSTER, *_STEP)
    rows = rows.selectExpr("*", "began as whole_began", "ended as whole_ended", "int(null) as asked")
    rows = _cut(rows, topics, ("topic_key",))
    rows = _cut(rows, leaders, ("cluster_key", "leader"))
    rows = _cut(rows, brokers, ("cluster_key",))
    rows = _cut(rows, files.selectExpr(_CLUSTER, "broker as leader", *_STEP), ("cluster_key", "leader"))
    is_whole = "began = whole_began"
    most = "if(size(replicas) > 0, size(replicas), null)"  # logs may not state them
    values = {
        "min_insync_replicas": f"if(is_known, least(coalesce(asked, 1), {most}), null)",
        "is_last": "is_last and ended = whole_ended",
        "cause": f"if({is_whole}, cause, 'configs_changed')",
        **{name: f"if({is_whole}, {name}, null)" for name in ("correlation_id", *ASKED_BY, "took_us")},
        "unclean": f"unclean and {is_whole}",
    }
    return rows.withColumns({name: f.expr(value) for name, value in values.items()})


_STEP: Final = ("began as step_began", "ended as step_ended", "value as step")


def _cut(rows: DataFrame, steps: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """Cut intervals without a value (`asked`) at the ends of the steps with equal keys."""
    overlaps = "step_ended > began and step_began < ended or step_began <= began and began < step_ended"
    rows = _join_few(rows, steps, keys, f"is_known and asked is null and ({overlaps})")
    of_step = {
        "began": "greatest(began, step_began)",
        "ended": "least(ended, step_ended)",
        "asked": "coalesce(asked, step)",
    }
    rows = rows.withColumns({name: f.expr(value) for name, value in of_step.items()})
    return rows.selectExpr("* except (step_began, step_ended, step)")


def _find_unmentioned(events: DataFrame, spans: DataFrame) -> DataFrame:
    """Return unknown intervals before the first mention of a partition in logs, unless the mention is its creation."""
    clusters = spans.where(f"origin = '{LOGS}'").select("cluster_id")
    of_logs = spans.join(f.broadcast(clusters), "cluster_id", "left_semi")
    rows = place_records(events.where(f"kind in ({_quote(_SET)})"), of_logs)
    envelope = ("topic_id", "inferred", "controller_id", "controller_epoch", "seq")
    mention = f.struct(*envelope, "kind", "cause", "is_by_mention", "told_from", "at")
    first = f.min_by(mention, f.expr(_PLACE)).alias("first")
    rows = (
        rows.groupBy("cluster_id", "topic", "partition")
        .agg(first)
        .select("cluster_id", "topic", "partition", "first.*")
    )
    is_created = f"kind = '{Kind.ASSIGNMENT}' and cause in ({', '.join(repr(cause) for cause in CREATION)})"
    return rows.where(f"is_by_mention and told_from < at and not ({is_created})").selectExpr(
        "cluster_id", "topic", "partition", *envelope, "told_from as began", "at as ended",
        "false as is_known", "false as is_last", "false as unclean",
    )  # fmt: skip


def _join_few(rows: DataFrame, few: DataFrame, keys: tuple[str, ...], condition: str) -> DataFrame:
    """Left-join a small table by equal keys and a condition."""
    few = few.selectExpr(f"* except ({', '.join(keys)})", *(f"{key} as its_{key}" for key in keys))
    on = " and ".join((*(f"{key} = its_{key}" for key in keys), f"({condition})"))
    joined = rows.join(f.broadcast(few), f.expr(on), "left")
    return joined.selectExpr(f"* except ({', '.join(f'its_{key}' for key in keys)})")


def _quote(kinds: Iterable[Kind]) -> str:
    return ", ".join(f"'{kind}'" for kind in kinds)
