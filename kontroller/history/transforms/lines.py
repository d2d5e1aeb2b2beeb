"""From lines to events: each line is a valid event, or a finding with the reason why not.

`check_lines` judges each line alone, so it works on streams. `judge` adds what only the whole journal shows, its
cluster and its writer: a controller may write before its cluster has an id, and inferred records reveal a recorder.
"""

from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from controller_core.journal.changes import Kind
from controller_core.journal.records import FIELDS, IN_DELTAS, NEEDED, SCHEMA_VERSION
from kontroller.history.schemas import EVENTS, FINDINGS, LONG, TEXT, columns

CONTROLLER: Final = "controller"
RECORDER: Final = "recorder"
LOGS: Final = "logs"

_COLUMNS: Final = EVENTS.schema.fieldNames()
_DELTA: Final = StructType(EVENTS.schema.fields[_COLUMNS.index("leader") : _COLUMNS.index("reason")])
"""The fields of a delta. Each is a column of an event."""
_OF_EVENTS: Final = {"cluster_id", "origin", "journal", "source", "event_time", "set_us", "left_out"}
"""Columns of an event that a record does not have, or has in another form."""
_RECORD: Final = columns(
    v=LONG,
    cluster_id=TEXT,
    event_time_us=LONG,
    **{each.name: each.dataType for each in EVENTS.schema if each.name not in {*_OF_EVENTS, *_DELTA.names}},
    delta=_DELTA,
    corrupt=TEXT,
)
_ENVELOPE: Final = (
    "v", "controller_id", "controller_epoch", "seq", "event_time_us", "kind", "cause", "correlation_id",
)  # fmt: skip

_NEVER_NEGATIVE: Final = (
    "controller_id", "controller_epoch", "seq", "event_time_us", "took_us", "partition", "broker", "entries", "checksum",
    "alive_interval_ms",
)  # fmt: skip
_MOST_ID_BYTES: Final = 200
"""A cluster's records are in a folder with its escaped id in the name, which file systems limit to 255 bytes."""
_SHOWN_ID_LETTERS: Final = 30


def judge(checked: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return events, possibly repeated, and findings: `torn`, `unreadable`, `newer_schema`, `incomplete`, `impossible`.

    `checked` is read several times, also for the facts about whole journals, so pass a written table."""
    found = checked.join(f.broadcast(_facts(checked)), "journal", "left")
    known = f.when(f.col("cluster_id") == "", f.coalesce("journal_cluster_id", f.lit(""))).otherwise(
        f.col("cluster_id")
    )
    is_recorded = f.array_contains("recorded", known) | f.array_contains("recorded", f.col("cluster_id"))
    origin = f.when(is_recorded, f.lit(RECORDER)).otherwise(f.col("origin"))
    found = found.withColumns({"origin": origin, "cluster_id": known})
    events = found.where("bad_line is null").select(*_COLUMNS)
    return events, _findings(found.where("bad_line is not null"))


def add_origins(events: DataFrame, journals: DataFrame | None = None) -> DataFrame:
    """Return the events with the origin that their whole journal shows, even if it was ingested in parts.

    A recorder's journal has inferred records, and others.

    `journals`: the `cluster_id`, `journal` and `is_recorded` of known journals; None: those of the events."""
    if journals is None:
        recorded = events.where(is_recorders()).select("journal", "cluster_id", f.lit(True).alias("is_recorded"))
        recorded = recorded.distinct()
    else:
        recorded = journals.where("is_recorded")
    rows = events.join(f.broadcast(recorded), ["journal", "cluster_id"], "left")
    return rows.withColumn("origin", f.expr(f"if(is_recorded, '{RECORDER}', origin)")).select(*_COLUMNS)


def is_recorders() -> Column:
    """Return True if an event shows that a recorder wrote its journal."""
    return (f.col("inferred") | (f.col("kind") == Kind.RECORDER_STARTED.value)) & (f.col("origin") != LOGS)


def check_lines(lines: DataFrame) -> DataFrame:
    """Return a row for each line: the columns of an event, `line`, and for an invalid line its text as `bad_line`.

    `judge` finds the problem of an invalid line. Here that would be most of the work for every valid line, because
    Java does not compile a generated program of that length."""
    rows = _parse(lines, "value", "source", "journal", "line")
    rows = rows.select("*", f.explode(f.array(f.when(~_is_good(), f.col("value")))).alias("bad_line"))
    rows = rows.select("*", f.inline(f.array("delta")))
    return rows.select(
        "journal",
        "source",
        "line",
        _shorten_id().alias("cluster_id"),
        f.when(f.col("inferred"), f.lit(RECORDER)).otherwise(f.lit(CONTROLLER)).alias("origin"),
        f.timestamp_micros("event_time_us").alias("event_time"),
        *(f.coalesce(f.col(name), f.lit(False)).alias(name) for name in _FLAGS),
        *(name for name in _RECORD.fieldNames() if name not in _OWN),
        *_DELTA.fieldNames(),
        f.lit(None).cast(LONG).alias("set_us"),
        f.lit(None).cast(LONG).alias("left_out"),
        "bad_line",
    )


def _parse(rows: DataFrame, value: str, *names: str) -> DataFrame:
    """Return the columns of these names, and those of the records that are parsed from the lines `value`.

    Generators (`inline`, `explode`) keep Spark from moving filters below the parsing. Otherwise it would repeat the
    parsing for each field of a condition, and try all combinations of the fields' aliases. Spark also compiles each
    generator to a method of its own, small enough for Java's compiler."""
    record = f.from_json(value, _RECORD, {"columnNameOfCorruptRecord": "corrupt"})
    return rows.select(value, *names, f.inline(f.array(record)))


_FLAGS: Final = ("inferred", "snapshot", "unclean")
_OWN: Final = ("v", "cluster_id", "event_time_us", "delta", "corrupt", *_FLAGS)
"""Columns of a record that an event does not have, or has in another form."""


def _facts(checked: DataFrame) -> DataFrame:
    """Return for each journal its cluster, if it is a single one, and the clusters that a recorder watched."""
    rows = checked.where("kind is not null")
    is_recorded = f.col("inferred") | (f.col("kind") == Kind.RECORDER_STARTED.value)
    by_cluster = rows.groupBy("journal", "cluster_id").agg(f.max(is_recorded).alias("is_recorded"))
    known = f.nullif("cluster_id", f.lit(""))
    only = f.when(f.min(known) == f.max(known), f.max(known))
    watched = f.collect_set(f.when(f.col("is_recorded"), f.col("cluster_id")))
    return by_cluster.groupBy("journal").agg(only.alias("journal_cluster_id"), watched.alias("recorded"))


def _findings(bad: DataFrame) -> DataFrame:
    """Return the FINDINGS of invalid lines, in the columns of `check_lines`."""
    own = bad.select("source", "line", f.col("cluster_id").alias("known_cluster_id"), f.col("bad_line").alias("value"))
    rows = _parse(own, "value", "source", "line", "known_cluster_id")
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
    """Return True if a line is an event; never null."""
    is_read = f.col("corrupt").isNull() & (f.coalesce("v", f.lit(SCHEMA_VERSION)) <= SCHEMA_VERSION)
    return is_read & _is_complete() & _is_possible()


def _is_complete() -> Column:
    """Return True if no column is null that the kind needs; never null. The most frequent kinds are tested first."""
    in_snapshots = _list_needed_in_snapshots()
    kinds = sorted(_list_needed().items(), key=lambda needed: needed[0] not in in_snapshots)
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
    return f.expr(f"least({least}) >= 0 and coalesce(dropped, 1) >= 1 and not {_HAS_LONG_ID}")


_ESCAPED_ID: Final = "regexp_replace(cluster_id, '[^A-Za-z0-9_.-]', '%00%')"
"""At least as long as the escaped id, in which a character has up to four bytes."""
_HAS_LONG_ID: Final = (
    # Escaping would cost time for each record, and most ids are short.
    f"coalesce(octet_length(cluster_id) > {_MOST_ID_BYTES // 4} and octet_length({_ESCAPED_ID}) > {_MOST_ID_BYTES}, false)"
)


def _shorten_id() -> Column:
    """Return the id of the cluster. The beginning of an id that is too long names the cluster of the finding."""
    shortened = f"concat(left(cluster_id, {_SHOWN_ID_LETTERS}), '...')"
    return f.expr(f"coalesce(if({_HAS_LONG_ID}, {shortened}, cluster_id), '')")


def _list_needed() -> dict[str, list[str]]:
    """Return the columns that a record of each kind must have."""
    needed = {str(kind): list(names) for kind, names in NEEDED.items()}
    for kind in FIELDS.keys() - set(IN_DELTAS):
        needed[kind] += _list_fields(kind)
    return needed


def _list_needed_in_snapshots() -> dict[str, list[str]]:
    return {str(kind): _list_fields(kind) for kind in IN_DELTAS}


def _list_fields(kind: str) -> list[str]:
    return [f"delta.{name}" for name in FIELDS[kind]]


def _is_torn() -> Column:
    """Return True for the beginning of a record, whose writer was stopped in the middle. Names have no braces."""
    opened, closed = (f.length(f.regexp_replace("value", f"[^{brace}]", "")) for brace in ("{", "}"))
    return f.col("value").startswith("{") & (opened > closed)


def _name_missing() -> Column:
    """Return the names of needed fields that are null."""
    parts = [_nulls(_ENVELOPE)]
    parts += [f.when(f.col("kind") == kind, _nulls(names)) for kind, names in _list_needed().items()]
    parts += [
        f.when(f.col("snapshot") & (f.col("kind") == kind), _nulls(names))
        for kind, names in _list_needed_in_snapshots().items()
    ]
    return f.concat_ws(", ", *(f.nullif(part, f.lit("")) for part in parts))


def _nulls(names: Iterable[str]) -> Column:
    return f.concat_ws(", ", *(f.when(f.col(name).isNull(), f.lit(name)) for name in names))


def _impossible() -> Column:
    negative = [f.when(f.col(name) < 0, f.lit(name)) for name in _NEVER_NEGATIVE]
    long_id = f.when(f.expr(_HAS_LONG_ID), f.lit("cluster_id"))
    return f.concat_ws(", ", *negative, f.when(f.col("dropped") < 1, f.lit("dropped")), long_id)


def _detail() -> Column:
    begin = f.concat(f.lit(": "), f.substring("value", 1, 120))
    problem = f.col("problem")
    newer = f"its schema version is newer than {SCHEMA_VERSION}: read it with a newer Kontroller"
    return (
        f.when(problem == "torn", f.concat(f.lit("the writer was stopped in the middle of this record"), begin))
        .when(problem == "unreadable", f.concat(f.lit("this line is not a record of a journal"), begin))
        .when(problem == "newer_schema", f.lit(newer))
        .when(
            problem == "incomplete", f.concat(f.coalesce("kind", f.lit("a")), f.lit(" record lacks "), _name_missing())
        )
        .otherwise(f.concat(f.lit("the record is impossible: "), _impossible(), f.lit(" is out of range")))
    )
