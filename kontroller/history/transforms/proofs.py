"""Compares the history with the controller's own state: for each snapshot, the checksum of all records before it.

Each entry of the state (a broker, a partition's leadership, ...) contributes the CRC-32 of its text from its record
until the record that changes it. So it is enough to sum the changes between two snapshots of a known span, and then
along the span. Nothing is collected in one place, and no state is built.
"""

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_core.journal.changes import REMOVED, Kind
from controller_core.journal.records import FIELDS, IN_DELTAS
from kontroller.history.schemas import PROOFS, columns
from kontroller.history.transforms.continuity.neighbours import EPOCH
from kontroller.history.transforms.known_spans import states
from kontroller.history.transforms.lines import LOGS

CHECKSUMS: Final = columns(**{name: PROOFS.schema[name].dataType for name in (*EPOCH, "seq", "snapshot_checksum")})
_STRETCH: Final = 1 << 12
"""The number of records in a stretch. Records are assigned to snapshots by stretches."""
_SPAN: Final = ("cluster_id", "span")
_ENTRY: Final = ("entry", "topic", "partition", "broker")
_DELTAS: Final = {kind: FIELDS[kind] for kind in IN_DELTAS}
"""Entries that are recorded as deltas. All others are recorded in full."""


def _join_values(values: str) -> str:
    return f"array_join(transform({values}, x -> string(x)), ',')"


def _join_map(entries: str, value: str) -> str:
    """SQL: a map as text, sorted by name."""
    named = f"concat(k, '=', {value.replace('VALUE', f'{entries}[k]')})"
    return f"array_join(transform(array_sort(map_keys({entries})), k -> {named}), ',')"


def _join_partitions(partitions: str) -> str:
    """SQL: partitions by topic as text, sorted by topic and number."""
    of_topic = f"transform(array_sort({partitions}[t]), p -> concat(t, '-', string(p)))"
    return f"array_join(flatten(transform(array_sort(map_keys({partitions})), t -> {of_topic})), ',')"


_TEXTS: Final = {
    Kind.LEADERSHIP: (
        "topic", "partition", "leader", _join_values("isr"), "leader_epoch", "leader_recovery_state",
        "state_controller_epoch", "partition_epoch",
    ),
    Kind.ASSIGNMENT: (
        "topic", "partition", _join_values("replicas"), _join_values("adding"), _join_values("removing"),
        _join_values("origin_order"),
    ),
    Kind.TOPIC: ("topic", "topic_id", "czxid"),
    Kind.BROKER: (
        "broker", "broker_epoch", "rack", _join_values("endpoints"),
        _join_map("supported_features", "string(VALUE[0]) || '-' || string(VALUE[1])"),
    ),
    Kind.FEATURES: ("features_epoch", _join_map("finalized_features", "string(VALUE)")),
    Kind.TOPIC_CONFIG: ("topic", _join_map("config", "VALUE")),
    Kind.BROKER_CONFIG: ("broker", _join_map("config", "VALUE")),
    Kind.OFFLINE_REPLICAS: ("broker", _join_partitions("partitions")),
}  # fmt: skip
"""The text of each kind of entry for its checksum: docs/journal.md, "What a history comes to"."""


def proofs(changes: DataFrame, spans: DataFrame, checksums: DataFrame) -> DataFrame:
    """Return `schemas.PROOFS`: a row for each snapshot in a known span, including its first one.

    `changes`: of the history (`transforms.changes`), or all events. `checksums`: the `snapshot_checksums` of all
    events."""
    rows = _select_known(changes, spans)
    snapshots = _snapshots(rows)
    changed = _changes(_entries(rows).where("not snapshot or seq <= snapshot_seq"), rows)
    table = snapshots.join(checksums, [*EPOCH, "seq"], "left")
    table = table.join(_sums(changed, snapshots, "changed"), [*_SPAN, "number"], "left")
    so_far = f"sum(changed) over (partition by {', '.join(_SPAN)} order by number)"
    return table.selectExpr(
        *EPOCH,
        "seq",
        "event_time",
        "entries",
        "checksum",
        "snapshot_checksum",
        f"if(number = 0, null, coalesce({so_far}, 0)) as folded_checksum",
    )


def snapshot_checksums(events: DataFrame, spans: DataFrame) -> DataFrame:
    """Return the sum of each snapshot's entries as `snapshot_checksum`, by the place of its end (`EPOCH`, `seq`)."""
    rows = _select_known(events, spans)
    snapshots = _snapshots(rows)
    own = _entries(rows).where("snapshot").selectExpr(*_SPAN, "seq as at", f"{_crc()} as value")
    table = snapshots.join(_sums(own, snapshots, "own"), [*_SPAN, "number"], "left")
    checksum = "if(was_proven, checksum, coalesce(own, 0)) as snapshot_checksum"
    return table.selectExpr(*EPOCH, "seq", checksum)


def _select_known(events: DataFrame, spans: DataFrame) -> DataFrame:
    """Return the records of each known state."""
    spans = states(spans.where(f"origin <> '{LOGS}'"))  # logs have no checksums
    around = f.broadcast(spans.select(*EPOCH, "span", "first_seq", "snapshot_seq", "last_seq"))
    return events.join(around, [*EPOCH]).where("seq between first_seq and last_seq")


def _entries(rows: DataFrame) -> DataFrame:
    entries = rows.where(f"kind in ({_quote(_TEXTS)}, {_quote(REMOVED.values())})")
    return entries.withColumn("entry", f.expr("replace(kind, '_removed', '')"))


def _snapshots(rows: DataFrame) -> DataFrame:
    """Return the end of each snapshot, its number in its span, and the end of the one before.

    `was_proven`: its entries were removed, because they had its checksum."""
    over = f"over (partition by {', '.join(_SPAN)} order by seq)"
    ends = rows.where(f"kind in ('{Kind.SNAPSHOT_STARTED}', '{Kind.SNAPSHOT_ENDED}')")
    ends = ends.selectExpr("*", f"coalesce(lag(left_out) {over} > 0, false) as was_proven")
    return ends.where(f"kind = '{Kind.SNAPSHOT_ENDED}'").selectExpr(
        *EPOCH,
        "span",
        "seq",
        "event_time",
        "entries",
        "checksum",
        "was_proven",
        f"row_number() {over} - 1 as number",
        f"coalesce(lag(seq) {over}, first_seq) as seq_before",
    )


def _changes(entries: DataFrame, rows: DataFrame) -> DataFrame:
    """Return an entry's checksum added at its beginning, and subtracted at its end, by another record or with its
    topic."""
    over = f"over (partition by {', '.join((*_SPAN, *_ENTRY))} order by seq)"
    deltas = {name for names in _DELTAS.values() for name in names}
    others = f"* except ({', '.join(sorted(deltas))})"
    whole = [f"last({name}, true) {over} as {name}" for name in sorted(deltas)]
    recorded = entries.selectExpr(others, *whole, f"lead(seq) {over} as next_seq").where(
        "not endswith(kind, '_removed')"
    )
    deleted = rows.where(f"kind = '{Kind.TOPIC_REMOVED}'").selectExpr(
        *_SPAN, "topic", "seq as deleted_seq", f"'{Kind.ASSIGNMENT}' as entry"
    )
    ends = deleted.groupBy(*_SPAN, "topic", "entry").agg(f.sort_array(f.collect_list("deleted_seq")).alias("ends"))
    recorded = recorded.join(f.broadcast(ends), [*_SPAN, "topic", "entry"], "left")
    end = "coalesce(get(filter(ends, e -> e > seq and (next_seq is null or e < next_seq)), 0), next_seq) as end_seq"
    recorded = recorded.selectExpr(*_SPAN, "seq", end, f"{_crc()} as crc")
    return recorded.selectExpr(
        *_SPAN, "inline(array(struct(seq as at, crc as value), struct(end_seq as at, -crc as value)))"
    )


def _sums(values: DataFrame, snapshots: DataFrame, name: str) -> DataFrame:
    """Return the sum of the values between two snapshots, for the later one."""
    stretches = f"explode(sequence((seq_before + 1) div {_STRETCH}, seq div {_STRETCH})) as stretch"
    stretches_of = snapshots.selectExpr(*_SPAN, "number", "seq_before as low", "seq as high", stretches)
    values = values.selectExpr("*", f"at div {_STRETCH} as stretch")
    found = values.join(f.broadcast(stretches_of), [*_SPAN, "stretch"]).where("at > low and at <= high")
    return found.groupBy(*_SPAN, "number").agg(f.sum("value").alias(name))


def _crc() -> str:
    cases = " ".join(f"when '{kind}' then {_text(kind, parts)}" for kind, parts in _TEXTS.items())
    return f"crc32(case entry {cases} end)"


def _text(kind: Kind, parts: Iterable[str]) -> str:
    return f"concat_ws('|', '{kind}', {', '.join(_or_empty(part) for part in parts)})"


def _or_empty(value: str) -> str:
    return f"coalesce(string({value}), '')"


def _quote(kinds: Iterable[Kind]) -> str:
    return ", ".join(f"'{kind}'" for kind in kinds)
