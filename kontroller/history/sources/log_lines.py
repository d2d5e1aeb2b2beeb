"""Patterns for the lines of Kafka's `state-change.log` and `controller.log`, and the records that follow from them.

For example, `Changed partition T-0 from OfflinePartition to OnlinePartition with state LeaderAndIsr(...)` gives a
record `leadership`. A match may give no record, for example if a list of brokers is empty. The wording is that of Kafka
3.9; older 3.x versions, which name fewer fields, are supported as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kontroller.history.sources.set_back_clocks import set_back_us

TIME: Final = r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] "
SPEAKER: Final = (
    r"^\[[^\]]*\] \w+ \[(?:Controller id=|Topic Deletion Manager )(\d+)(?: epoch=(\d+))?\] (.*) \([\w.$]+\)$"
)

_TOPIC: Final = r"([\w.-]{1,249})"
"""A name that Kafka allows. Patterns with repetition match in one way only, because a long line must not take long."""

_TYPES: Final[Mapping[str, str]] = {
    "kind": "STRING", "topic": "STRING", "topic_id": "STRING", "partition": "INT", "broker": "INT", "unclean": "BOOLEAN",
    "leader": "INT", "isr": "ARRAY<INT>", "leader_epoch": "INT", "leader_recovery_state": "INT",
    "state_controller_epoch": "BIGINT", "partition_epoch": "INT", "replicas": "ARRAY<INT>", "adding": "ARRAY<INT>",
    "removing": "ARRAY<INT>", "broker_epoch": "BIGINT",
}  # fmt: skip
"""The fields of a record, with their types in SQL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A kind of line. `begin` identifies it, and `pattern` matches it as a whole."""

    begin: str
    """A regular expression that identifies a line about the state."""
    pattern: str
    records: tuple[str, ...]
    """SQL: arrays of records. `$1` is the first group of the pattern."""


def _record(kind: str, **fields: str) -> str:
    values = {"kind": f"'{kind}'", "unclean": "false", **fields}
    named = ", ".join(f"'{name}', CAST({values.get(name, 'NULL')} AS {of})" for name, of in _TYPES.items())
    return f"named_struct({named})"


def _one(kind: str, **fields: str) -> str:
    return f"array({_record(kind, **fields)})"


def _numbers(text: str) -> str:
    """SQL: the brokers in `1,2`, `List(1, 2)` or `List(BrokerState(brokerId=1, brokerEpoch=-1), ...)`."""
    ids = f"regexp_extract_all(regexp_replace({text}, r'brokerEpoch=-?[0-9]+', ''), r'([0-9]+)', 1)"
    return f"transform({ids}, n -> CAST(n AS INT))"


def _each(text: str, kind: str) -> str:
    """SQL: a record for each broker that a text names."""
    return f"transform({_numbers(text)}, n -> {_record(kind, broker='n')})"


def _uuid(text: str) -> str:
    """SQL: a topic id in the format of journals. Logs have it in URL-safe Base64."""
    digits = f"lower(hex(unbase64(concat(translate({text}, '-_', '+/'), '=='))))"
    parts = ", ".join(f"substr({digits}, {start}, {length})" for start, length in _UUID_PARTS)
    return f"concat_ws('-', {parts})"


_UUID_PARTS: Final = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
_RECOVERY: Final = "IF({} = 'RECOVERING', 1, 0)"
_STATE: Final = (
    r"\(Leader:(-?\d+),ISR:([\d,]*),(?:LeaderRecoveryState:(\w+),)?LeaderEpoch:(\d+),"
    r"ZkVersion:(\d+),ControllerEpoch:(\d+)\)"
)
_ASSIGNMENT: Final = r"ReplicaAssignment\(replicas=([\d,]*), addingReplicas=([\d,]*), removingReplicas=([\d,]*)\)"


def _state(topic: str, partition: str, first: int) -> str:
    """SQL: a record of a match of `_STATE`, whose first group has this number."""
    leader, isr, recovery, leader_epoch, version, epoch = (f"${first + number}" for number in range(6))
    return _one(
        "leadership", topic=topic, partition=partition, leader=leader, isr=_numbers(isr), leader_epoch=leader_epoch,
        leader_recovery_state=_RECOVERY.format(recovery), state_controller_epoch=epoch, partition_epoch=version,
    )  # fmt: skip


def _assignment(topic: str, partition: str, first: int) -> str:
    """SQL: a record of a match of `_ASSIGNMENT`, whose first group has this number."""
    replicas, adding, removing = (_numbers(f"${first + number}") for number in range(3))
    return _one("assignment", topic=topic, partition=partition, replicas=replicas, adding=adding, removing=removing)


FIELDS: Final = tuple(_TYPES)
WHY: Final = "why"
"""The kind of a record that only states the cause of the following ones."""
CAUSE_RECORD: Final = _one(WHY)

_TOPIC_IDS: Final = r"regexp_extract_all(message, r'TopicIdReplicaAssignment\(([^,]+,(?:Some\([^)]+\)|None))', 1)"
_NAME: Final = "split(t, ',')[0]"
_ID: Final = r"nullif(regexp_extract(t, r',Some\(([^)]+)\)', 1), '')"
_EPOCHS: Final = "regexp_extract_all($1, r'([0-9]+ -> [0-9]+)', 1)"

LINES: Final = (
    _Line(begin="[0-9]+ successfully elected",
          pattern=r"^\d+ successfully elected as the controller\. Epoch incremented to (\d+)",
          records=(_one("controller_elected"),)),
    _Line(begin="Resigned$", pattern="^Resigned$", records=(_one("controller_resigned"),)),
    _Line(begin="Newly added brokers",
          pattern=r"^Newly added brokers: [\d,]*, deleted brokers: ([\d,]*), bounced brokers: ([\d,]*),",
          records=(_each("$1", "broker_removed"), _each("$2", "broker_removed"))),
    _Line(begin="(Initialized|Updated) broker epochs cache", pattern=r"^\w+ broker epochs cache: \w*Map\((.*)\)$",
          records=(f"transform({_EPOCHS}, n -> "
                   + _record("broker", broker="split(n, ' -> ')[0]", broker_epoch="split(n, ' -> ')[1]") + ")",)),
    _Line(begin="New topics:",
          pattern=r"^New topics: \[\w+\([^()]*\)\], deleted topics: \[\w+\(([^()]*)\)\], new partition replica assignment",
          records=(f"transform(filter(split($1, ', ?'), t -> t <> ''), t -> {_record('topic_removed', topic='t')})",
                   f"transform({_TOPIC_IDS}, t -> {_record('topic', topic=_NAME, topic_id=_uuid(_ID))})")),
    _Line(begin="Deletion of topic .* successfully", pattern=rf"^Deletion of topic {_TOPIC} successfully completed$",
          records=(_one("topic_removed", topic="$1"),)),
    _Line(begin="Changed partition .* with assigned replicas",
          pattern=rf"^Changed partition {_TOPIC}-(\d+) (?:state )?from \w+ to NewPartition "
          r"with assigned replicas ([\d,]*)$",
          records=(_one("assignment", topic="$1", partition="$2", replicas=_numbers("$3"), adding="array()",
                        removing="array()"),)),
    _Line(begin="Changed partition .* with state",
          pattern=rf"^Changed partition {_TOPIC}-(\d+) (?:state )?from \w+ to OnlinePartition with state "
          r"LeaderAndIsr\(leader=(-?\d+), leaderEpoch=(\d+), (isr.*?), "
          r"(?:leaderRecoveryState=(\w+), )?(?:partitionEpoch|zkVersion)=(\d+)\)$",
          records=(_one("leadership", topic="$1", partition="$2", leader="$3", isr=_numbers("$5"), leader_epoch="$4",
                        leader_recovery_state=_RECOVERY.format("$6"), unclean="$6 = 'RECOVERING'",
                        state_controller_epoch="controller_epoch", partition_epoch="$7"),)),
    _Line(begin="Partition .* state changed to", pattern=rf"^Partition {_TOPIC}-(\d+) state changed to {_STATE} after",
          records=(_state("$1", "$2", 3),)),
    _Line(begin="Sent LeaderAndIsr request .* with new replica assignment",
          pattern=rf"^Sent LeaderAndIsr request {_STATE} with new replica assignment {_ASSIGNMENT} to leader -?\d+ "
          rf"for partition being reassigned {_TOPIC}-(\d+)$",
          records=(_state("$10", "$11", 1), _assignment("$10", "$11", 7))),
    _Line(begin="Successfully updated assignment",
          pattern=rf"^Successfully updated assignment of partition {_TOPIC}-(\d+) to {_ASSIGNMENT}$",
          records=(_assignment("$1", "$2", 3),)),
)  # fmt: skip
"""All lines about the state."""

CAUSES: Final[Mapping[str, str]] = {
    r"^\d+ successfully elected as the controller": "controller_failover",
    r"^Newly added brokers: .*deleted brokers: \d": "broker_failed",
    r"^Newly added brokers: .*bounced brokers: \d": "broker_restarted",
    r"^Newly added brokers: ": "broker_started",
    r"^New topics: ": "topics_changed",
    r"^New partitions to be added ": "topic_modified",
    r"^Starting topic deletion for topics ": "topic_deletions_requested",
    r"^Shutting down broker ": "controlled_shutdown",
    r"^Starting replica leader election \(\w+\) for partitions \S+ triggered by Zk": "preferred_election_requested",
    r"^Starting replica leader election \(\w+\) for partitions \S+ triggered by Auto": "balance_due",
    r"^Starting replica leader election \(\w+\) for partitions \S+ triggered by Admin": "elect_leaders",
    r"^(Successfully updated assignment|Target replicas) ": "reassignments_requested",
}
"""The causes that lines state for the records that follow them."""


def parse_lines(lines: DataFrame, time_zone: str) -> DataFrame:
    """Parse a controller's lines: its id, `controller_epoch` if the line has it, `event_time`, `cause`, and `records`.

    `set_back_us`: the amount by which clocks are set back after an ambiguous local time, otherwise 0. Lines of other
    writers, and lines that are not about the state, have neither cause nor records. `is_unreadable`: the line is about
    the state but does not match, or it has no time."""
    local = f"try_to_timestamp(regexp_extract(value, {_raw(TIME)}, 1), 'yyyy-MM-dd HH:mm:ss,SSS')"
    said = lines.where("left(value, 1) = '['").selectExpr(
        "*",
        f"to_utc_timestamp({local}, '{time_zone}') AS event_time",
        f"{set_back_us(local, time_zone)} AS set_back_us",
        f"CAST(nullif(regexp_extract(value, {_raw(SPEAKER)}, 1), '') AS INT) AS controller_id",
        f"CAST(nullif(regexp_extract(value, {_raw(SPEAKER)}, 2), '') AS BIGINT) AS said_epoch",
        f"regexp_extract(value, {_raw(SPEAKER)}, 3) AS message",
    )
    elected = f"CAST(nullif(regexp_extract(message, {_raw(LINES[0].pattern)}, 1), '') AS BIGINT)"
    placed = said.selectExpr("* EXCEPT (said_epoch)", f"coalesce(said_epoch, {elected}) AS controller_epoch")
    told = placed.selectExpr("*", f"{_records()} AS records", f"{_cause()} AS cause", f"({_about()}) AS is_about")
    return told.withColumn("is_unreadable", f.expr("event_time IS NULL OR (is_about AND records IS NULL)"))


def _records() -> str:
    return "CASE " + " ".join(_when(line) for line in LINES) + " END"


def _when(line: _Line) -> str:
    pattern = _raw(line.pattern)
    records = line.records[0] if len(line.records) == 1 else f"concat({', '.join(line.records)})"
    for number in range(11, 0, -1):
        records = records.replace(f"${number}", f"regexp_extract(message, {pattern}, {number})")
    return f"WHEN message RLIKE {pattern} THEN {records}"


def _cause() -> str:
    return (
        "CASE " + " ".join(f"WHEN message RLIKE {_raw(text)} THEN '{cause}'" for text, cause in CAUSES.items()) + " END"
    )


def _about() -> str:
    return f"message RLIKE {_raw('^(' + '|'.join(line.begin for line in LINES) + ')')}"


def _raw(pattern: str) -> str:
    """SQL: a regular expression as a literal."""
    return f"r'{pattern}'"
