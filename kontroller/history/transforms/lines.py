"""From lines to events: each line is an event that can be relied on, or a finding that says why not.

A line is judged by itself, so this works on streams as well (`checked`). What only the whole journal knows, whose it is and
who wrote it, is added by `judged`: a controller may begin to write before its cluster has an id, and a recorder is told by
the records that it had to infer.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from controller_core.journal.changes import Kind
from controller_core.journal.records import NEEDED, SCHEMA_VERSION
from kontroller.history.schemas import EVENTS, FINDINGS, FLAG, INT, LONG, TEXT, columns

CONTROLLER: Final = "controller"
RECORDER: Final = "recorder"
LOGS: Final = "logs"

_COLUMNS: Final = EVENTS.schema.fieldNames()
_DELTA: Final = StructType(EVENTS.schema.fields[_COLUMNS.index("leader") : _COLUMNS.index("reason")])
"""What a delta may name: each has a column of its own in an event."""
_RECORD: Final = columns(
    v=LONG,
    cluster_id=TEXT,
    controller_id=INT,
    controller_epoch=LONG,
    seq=LONG,
    event_time_us=LONG,
    took_us=LONG,
    kind=TEXT,
    cause=TEXT,
    correlation_id=TEXT,
    inferred=FLAG,
    snapshot=FLAG,
    unclean=FLAG,
    topic=TEXT,
    topic_id=TEXT,
    partition=INT,
    broker=INT,
    delta=_DELTA,
    dropped=LONG,
    entries=LONG,
    checksum=LONG,
    reason=TEXT,
    alive_interval_ms=LONG,
    corrupt=TEXT,
)
_ENVELOPE: Final = (
    "v", "controller_id", "controller_epoch", "seq", "event_time_us", "kind", "cause", "correlation_id",
)  # fmt: skip

IN_FULL: Final[Mapping[str, tuple[str, ...]]] = {
    Kind.BROKER: ("broker_epoch", "endpoints", "supported_features"),
    Kind.TOPIC: ("czxid",),
    Kind.FEATURES: ("finalized_features", "features_epoch"),
    Kind.TOPIC_CONFIG: ("config",),
    Kind.BROKER_CONFIG: ("config",),
    Kind.BROKER_STATIC_CONFIG: ("broker_epoch", "config"),
    Kind.OFFLINE_REPLICAS: ("partitions",),
}
"""What a delta of a kind that is always recorded in full must name."""
IN_FULL_IN_SNAPSHOTS: Final[Mapping[str, tuple[str, ...]]] = {
    Kind.ASSIGNMENT: ("replicas", "adding", "removing", "origin_order"),
    Kind.LEADERSHIP: (
        "leader", "isr", "leader_epoch", "leader_recovery_state", "state_controller_epoch", "partition_epoch",
    ),
}  # fmt: skip

_NEVER_NEGATIVE: Final = (
    "controller_id", "controller_epoch", "seq", "event_time_us", "took_us", "partition", "broker", "entries", "checksum",
    "alive_interval_ms",
)  # fmt: skip


def judged(checked: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Events, as often as they come, and findings: `torn`, `unreadable`, `newer_schema`, `incomplete`, `impossible`.

    Both are made of the lines that are `checked`, and so are facts about whole journals, so that those had better be
    kept."""
    found = checked.join(f.broadcast(_facts(checked)), "journal", "left")
    known = f.when(f.col("cluster_id") == "", f.coalesce("journal_cluster_id", f.lit(""))).otherwise(
        f.col("cluster_id")
    )
    is_recorded = f.array_contains("recorded", known) | f.array_contains("recorded", f.col("cluster_id"))
    origin = f.when(is_recorded, f.lit(RECORDER)).otherwise(f.col("origin"))
    found = found.withColumns({"origin": origin, "cluster_id": known})
    events = found.where("bad_line is null").select(*_COLUMNS)
    return events, _findings(found.where("bad_line is not null"))


def of_their_writers(events: DataFrame, recorded: DataFrame | None = None) -> DataFrame:
    """Events with the origin that their whole journal shows, which may have been taken in at different times: what somebody
    recorded who looked on has records that were inferred, and such that were not.

    `recorded`: each `journal` and `cluster_id` of which such a record is known; None: those that are among the events."""
    if recorded is None:
        recorded = events.where(is_recorders()).select("journal", "cluster_id").distinct()
    known = f.broadcast(recorded.withColumn("is_recorded", f.lit(True)))
    rows = events.join(known, ["journal", "cluster_id"], "left")
    return rows.withColumn("origin", f.expr(f"if(is_recorded, '{RECORDER}', origin)")).select(*_COLUMNS)


def is_recorders() -> Column:
    """Whether an event shows that its journal is of somebody who looked on."""
    return (f.col("inferred") | (f.col("kind") == Kind.RECORDER_STARTED.value)) & (f.col("origin") != LOGS)


def checked(lines: DataFrame) -> DataFrame:
    """A row for each line: the columns of an event, `line`, and, where it is none, the line itself as `bad_line`.

    What is wrong with it is found by `judged`. Here it would be most of the work of every good line: a program that tells
    all that may be wrong is so long that the Java machine does not compile it."""
    rows = _parsed(lines, "value", "source", "journal", "line")
    rows = rows.select("*", f.explode(f.array(f.when(~_is_good(), f.col("value")))).alias("bad_line"))
    rows = rows.select("*", f.inline(f.array("delta")))
    return rows.select(
        "journal",
        "source",
        "line",
        f.coalesce("cluster_id", f.lit("")).alias("cluster_id"),
        f.when(f.col("inferred"), f.lit(RECORDER)).otherwise(f.lit(CONTROLLER)).alias("origin"),
        f.timestamp_micros("event_time_us").alias("event_time"),
        *(f.coalesce(f.col(name), f.lit(False)).alias(name) for name in _FLAGS),
        *(name for name in _RECORD.fieldNames() if name not in _OWN),
        *_DELTA.fieldNames(),
        f.lit(None).cast(LONG).alias("left_out"),
        "bad_line",
    )


def _parsed(rows: DataFrame, value: str, *names: str) -> DataFrame:
    """The columns of these names, and those of the records that are in the lines `value`.

    As a generator, not columns, as is what is asked of all these: a filter on a column is moved below it, where the parsing
    would be repeated for each field that the condition names, and the optimizer tries all combinations of what these fields
    are called. And each generator is a method of its own of what Spark compiles, so that Java compiles it, too."""
    record = f.from_json(value, _RECORD, {"columnNameOfCorruptRecord": "corrupt"})
    return rows.select(value, *names, f.inline(f.array(record)))


_FLAGS: Final = ("inferred", "snapshot", "unclean")
_OWN: Final = ("v", "cluster_id", "event_time_us", "delta", "corrupt", *_FLAGS)
"""Columns of a record that an event does not have, or not as they are."""


def _facts(checked: DataFrame) -> DataFrame:
    """Of each journal: the cluster that it belongs to, where it is one, and the clusters that a recorder watched."""
    rows = checked.where("kind is not null")
    is_recorded = f.col("inferred") | (f.col("kind") == Kind.RECORDER_STARTED.value)
    by_cluster = rows.groupBy("journal", "cluster_id").agg(f.max(is_recorded).alias("is_recorded"))
    known = f.nullif("cluster_id", f.lit(""))
    only = f.when(f.min(known) == f.max(known), f.max(known))
    watched = f.collect_set(f.when(f.col("is_recorded"), f.col("cluster_id")))
    return by_cluster.groupBy("journal").agg(only.alias("journal_cluster_id"), watched.alias("recorded"))


def _findings(bad: DataFrame) -> DataFrame:
    """FINDINGS of lines that are no events, in columns of `checked`."""
    own = bad.select("source", "line", f.col("cluster_id").alias("known_cluster_id"), f.col("bad_line").alias("value"))
    rows = _parsed(own, "value", "source", "line", "known_cluster_id")
    rows = rows.select("*", f.explode(f.array(_problem())).alias("problem"))
    found = {
        "cluster_id": f.col("known_cluster_id"),
        "event_time": f.timestamp_micros("event_time_us"),
        "count": f.lit(1).cast(LONG),
        "detail": _detail(),
    }
    return rows.withColumns(found).select(*FINDINGS.schema.fieldNames())


def _problem() -> Column:
    return (
        f.when(f.col("v") > SCHEMA_VERSION, f.lit("newer_schema"))
        .when(
            f.col("corrupt").isNotNull() | (f.trim("value") == ""),
            f.when(_is_torn(), f.lit("torn")).otherwise(f.lit("unreadable")),
        )
        .when(~_is_complete(), f.lit("incomplete"))
        .otherwise(f.lit("impossible"))
    )


def _is_good() -> Column:
    """Whether a line is an event; never null."""
    is_read = f.col("corrupt").isNull() & (f.coalesce("v", f.lit(SCHEMA_VERSION)) <= SCHEMA_VERSION)
    return is_read & _is_complete() & _is_possible()


def _is_complete() -> Column:
    """Whether nothing is null that its kind needs; never null. What most records are is asked for first."""
    in_snapshots = _needed_in_snapshots()
    kinds = sorted(_needed().items(), key=lambda needed: needed[0] not in in_snapshots)
    cases = (
        f"when '{kind}' then {_none_is_null(names)} "
        f"and (not coalesce(snapshot, false) or {_none_is_null(in_snapshots.get(kind, ()))})"
        for kind, names in kinds
    )
    return f.expr(f"{_none_is_null(_ENVELOPE)} and case kind {' '.join(cases)} else true end")


def _none_is_null(names: Iterable[str]) -> str:
    return " and ".join(("true", *(f"{name} is not null" for name in names)))


def _is_possible() -> Column:
    least = ", ".join(f"coalesce({name}, 0L)" for name in _NEVER_NEGATIVE)
    return f.expr(f"least({least}) >= 0 and coalesce(dropped, 1) >= 1")


def _needed() -> dict[str, list[str]]:
    """The columns that a record of a kind must have."""
    needed = {str(kind): list(names) for kind, names in NEEDED.items()}
    for kind, names in IN_FULL.items():
        needed[str(kind)] += [f"delta.{name}" for name in names]
    return needed


def _needed_in_snapshots() -> dict[str, list[str]]:
    return {str(kind): [f"delta.{name}" for name in names] for kind, names in IN_FULL_IN_SNAPSHOTS.items()}


def _is_torn() -> Column:
    """The beginning of a record: the writer was stopped in the middle of it. Names have no braces."""
    opened, closed = (f.length(f.regexp_replace("value", f"[^{brace}]", "")) for brace in ("{", "}"))
    return f.col("value").startswith("{") & (opened > closed)


def _missing() -> Column:
    """The names of needed fields that are null."""
    parts = [_nulls(_ENVELOPE)]
    parts += [f.when(f.col("kind") == kind, _nulls(names)) for kind, names in _needed().items()]
    parts += [
        f.when(f.col("snapshot") & (f.col("kind") == kind), _nulls(names))
        for kind, names in _needed_in_snapshots().items()
    ]
    return f.concat_ws(", ", *(f.nullif(part, f.lit("")) for part in parts))


def _nulls(names: Iterable[str]) -> Column:
    return f.concat_ws(", ", *(f.when(f.col(name).isNull(), f.lit(name)) for name in names))


def _impossible() -> Column:
    negative = [f.when(f.col(name) < 0, f.lit(name)) for name in _NEVER_NEGATIVE]
    return f.concat_ws(", ", *negative, f.when(f.col("dropped") < 1, f.lit("dropped")))


def _detail() -> Column:
    begin = f.concat(f.lit(": "), f.substring("value", 1, 120))
    problem = f.col("problem")
    newer = f"its schema version is newer than {SCHEMA_VERSION}: read it with a newer Kontroller"
    return (
        f.when(problem == "torn", f.concat(f.lit("the writer was stopped in the middle of this record"), begin))
        .when(problem == "unreadable", f.concat(f.lit("no record of a journal can be read here"), begin))
        .when(problem == "newer_schema", f.lit(newer))
        .when(problem == "incomplete", f.concat(f.coalesce("kind", f.lit("a")), f.lit(" record lacks "), _missing()))
        .otherwise(f.concat(f.lit("the record cannot be true: "), _impossible(), f.lit(" is out of range")))
    )
