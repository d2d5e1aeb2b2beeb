"""The state of each partition over time: deltas are laid over each other, and each record lasts until the next one.

This is where most of the work is. All of it is windows over one partition's records, of the columns that are asked for,
after one shuffle and one sort; what concerns whole topics and clusters (deletions, configurations, spans) is small and is
sent to where the records are.

Records are brought together, sorted and joined by numbers, not names, since comparing names is what a sort spends its time
on: hashes of 64 bits, two of them for a partition. Of 100,000 topics two have the same with a probability of 3e-10.
"""

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from kontroller.history.schemas import PARTITION_INTERVALS
from kontroller.history.transforms.config_intervals import min_isr_steps, static_min_isr_steps
from kontroller.history.transforms.intervals import lasting, placed, with_unknown
from kontroller.history.transforms.lines import LOGS

_CLUSTER: Final = "xxhash64(cluster_id) as cluster_key"
_TOPIC: Final = "xxhash64(topic, cluster_key) as topic_key"
_PARTITION: Final = "xxhash64(topic_key, partition) as partition_key"
_NEARLY: Final = "partition_key & -4294967296L | unix_seconds(at) & 4294967295L"
"""Half of a partition's number, and the second."""
_PLACE: Final = "struct(span, seq)"
_KEY: Final = ("partition_key", "topic_key")
_SET: Final = (Kind.LEADERSHIP, Kind.ASSIGNMENT)
_KINDS: Final = (*_SET, Kind.LEADERSHIP_REMOVED, Kind.ASSIGNMENT_REMOVED)
CREATION: Final = ("topics_changed", "topic_modified")
"""Causes of an assignment, as logs have them, that was none before."""
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
    "took_us",
    "unclean",
)
"""Columns that are null while nothing is known; `min_insync_replicas` is one, too."""


def partition_intervals(events: DataFrame, spans: DataFrame, configs: DataFrame) -> DataFrame:
    """`schemas.PARTITION_INTERVALS`. A partition begins with its assignment, or where that is missing with its leadership,
    and ends with either, or with its topic."""
    rows = _told(lasting(_nearly_sorted(_records(events, spans)), _KEY, latest=_FOLDED, also_next=("event",)))
    rows = _carried(with_unknown(_until_deletion(_one_for_each_event(rows), events, spans), STATE, spans))
    files = static_min_isr_steps(events, spans)
    rows = _with_min_isr(rows, configs, files).select(*PARTITION_INTERVALS.schema.fieldNames())
    return rows.unionByName(_before_the_first_mention(events, spans), allowMissingColumns=True)


def _records(events: DataFrame, spans: DataFrame) -> DataFrame:
    """The records of partitions, by numbers. One that is gone, or is found assigned, has no leader until one is
    recorded."""
    rows = placed(events.where(f"kind in ({_quoted(_KINDS)})"), spans)
    begins_anew = f"kind = '{Kind.LEADERSHIP_REMOVED}' or (snapshot and kind = '{Kind.ASSIGNMENT}')"
    values = {name: f"if({begins_anew}, -1, {name})" for name in ("leader", *_EPOCHS)}
    values["isr"] = f"if({begins_anew}, {_NOBODY}, isr)"
    values["led_in"] = f"if(leader is not null or {begins_anew}, chain, null)"
    rows = rows.withColumns({name: f.expr(value) for name, value in values.items()})
    is_told = f"kind in ({_quoted(_SET)}) as is_told"
    rows = rows.selectExpr("*", _TOPIC, is_told, "xxhash64(correlation_id) as event")
    return rows.selectExpr("*", _PARTITION)


def _nearly_sorted(rows: DataFrame) -> DataFrame:
    """The records of a partition brought together, and almost in their order.

    A window sorts by its columns, and compares two rows in memory wherever the first of these, the partition, does not
    decide: that was most of the work. A single number is sorted by its bytes without comparing anything. What little is
    out of order then, the window's own sort finds in passing."""
    return rows.repartition(*_KEY).sortWithinPartitions(f.expr(_NEARLY))


_FOLDED: Final = ("leader", *_EPOCHS, "isr", *_LISTS, "led_in")


def _told(rows: DataFrame) -> DataFrame:
    """The state after each record that says one. A partition that is new in a chain, whose snapshot did not have it, has no
    leader until one is recorded there, whoever led one of its name before."""
    is_of_chain = "(is_by_mention or led_in <=> chain)"
    given = {name: f"if({is_of_chain}, nullif({name}, -1), null)" for name in _EPOCHS}
    given["leader"] = f"if({is_of_chain}, coalesce(leader, -1), -1)"
    given["isr"] = f"if({is_of_chain}, coalesce(isr, {_NOBODY}), {_NOBODY})"
    return rows.where("is_told").withColumns({name: f.expr(value) for name, value in given.items()})


def _one_for_each_event(rows: DataFrame) -> DataFrame:
    """What one event wrote in several records is one change; an unclean election is never left out."""
    return rows.where("not (began = ended and next_seq is not null and next_event = event and not unclean)")


def _until_deletion(rows: DataFrame, events: DataFrame, spans: DataFrame) -> DataFrame:
    """The assignments of a topic end with it, which is written once for all of its partitions."""
    removed = placed(events.where(f"kind = '{Kind.TOPIC_REMOVED}'"), spans)
    removed = removed.selectExpr(
        "cluster_id", _TOPIC, "chain", "seq as removed_seq", "at as removed_at", f"{_PLACE} as removed"
    )
    before = "lag(removed) over (partition by cluster_id, topic_key, chain order by removed) as removed_before"
    removed = removed.selectExpr("* except (cluster_id)", before)
    next_place = "named_struct('span', next_span, 'seq', next_seq)"
    is_next = f"{_PLACE} < removed and (removed_before is null or removed_before < {_PLACE})"
    is_next += f" and (next_seq is null or removed < {next_place})"
    rows = _left(rows, removed, ("topic_key", "chain"), is_next)
    return rows.withColumns({
        "ended": f.expr("if(removed_seq is null, ended, greatest(began, removed_at))"),
        "next_seq": f.expr("coalesce(removed_seq, next_seq)"),
        "next_span": f.expr("if(removed_seq is null, next_span, removed.span)"),
    })  # fmt: skip


def _carried(rows: DataFrame) -> DataFrame:
    """What is as it was before an unknown time was not elected, and took no time, after it."""
    values = {"unclean": "unclean and not is_carried", "took_us": "if(is_carried, null, took_us)"}
    return rows.withColumns({name: f.expr(value) for name, value in values.items()})


def _with_min_isr(rows: DataFrame, configs: DataFrame, files: DataFrame) -> DataFrame:
    """Cuts intervals where `min.insync.replicas` changed: the topic's, else its leader's, else that of all brokers, else
    what its leader's own file says, else 1.

    A leader asks for no more than there are replicas: all that are assigned, also those that a reassignment adds or
    removes (Kafka's `Partition.effectiveMinIsr`)."""
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
    most = "if(size(replicas) > 0, size(replicas), null)"  # logs may not say them
    values = {
        "min_insync_replicas": f"if(is_known, least(coalesce(asked, 1), {most}), null)",
        "is_last": "is_last and ended = whole_ended",
        "cause": f"if({is_whole}, cause, 'configs_changed')",
        "correlation_id": f"if({is_whole}, correlation_id, null)",
        "took_us": f"if({is_whole}, took_us, null)",
        "unclean": f"unclean and {is_whole}",
    }
    return rows.withColumns({name: f.expr(value) for name, value in values.items()})


_STEP: Final = ("began as step_began", "ended as step_ended", "value as step")


def _cut(rows: DataFrame, steps: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """Cuts intervals, of which nobody has been `asked` for anything yet, where steps with the same keys begin and end."""
    overlaps = "step_ended > began and step_began < ended or step_began <= began and began < step_ended"
    rows = _left(rows, steps, keys, f"is_known and asked is null and ({overlaps})")
    of_step = {
        "began": "greatest(began, step_began)",
        "ended": "least(ended, step_ended)",
        "asked": "coalesce(asked, step)",
    }
    rows = rows.withColumns({name: f.expr(value) for name, value in of_step.items()})
    return rows.selectExpr("* except (step_began, step_ended, step)")


def _before_the_first_mention(events: DataFrame, spans: DataFrame) -> DataFrame:
    """In histories of logs a partition is unknown before its first mention, unless that says that it was created."""
    clusters = spans.where(f"origin = '{LOGS}'").select("cluster_id")
    of_logs = spans.join(f.broadcast(clusters), "cluster_id", "left_semi")
    rows = placed(events.where(f"kind in ({_quoted(_SET)})"), of_logs)
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


def _left(rows: DataFrame, few: DataFrame, keys: tuple[str, ...], condition: str) -> DataFrame:
    """To each row those of a small table with the same keys for which the condition holds, or nulls."""
    few = few.selectExpr(f"* except ({', '.join(keys)})", *(f"{key} as its_{key}" for key in keys))
    on = " and ".join((*(f"{key} = its_{key}" for key in keys), f"({condition})"))
    joined = rows.join(f.broadcast(few), f.expr(on), "left")
    return joined.selectExpr(f"* except ({', '.join(f'its_{key}' for key in keys)})")


def _quoted(kinds: Iterable[Kind]) -> str:
    return ", ".join(f"'{kind}'" for kind in kinds)
