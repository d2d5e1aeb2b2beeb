"""The tables of the pipeline: their columns, and the order of rows that makes the files reproducible.

There are three layers: checked events, each once; intervals without a change; answers. Schemas are never inferred.
Times are instants (UTC, microseconds). Intervals are half-open, [began, ended).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

TEXT: Final = StringType()
FLAG: Final = BooleanType()
INT: Final = IntegerType()
LONG: Final = LongType()
REAL: Final = DoubleType()
TIME: Final = TimestampType()
DAY: Final = DateType()
BROKERS: Final = ArrayType(INT, containsNull=False)
CONFIG: Final = MapType(TEXT, TEXT, valueContainsNull=False)


POSITION: Final[Mapping[str, DataType]] = {"controller_epoch": LONG, "seq": LONG}
"""The place of a record in a history."""
PARTITION: Final[Mapping[str, DataType]] = {"cluster_id": TEXT, "topic": TEXT, "partition": INT}
ASKED_BY: Final[Mapping[str, DataType]] = {"principal": TEXT, "address": TEXT}
"""The client whose request caused a change; null if none did, or if it was a broker's own."""
INTERVAL: Final[Mapping[str, DataType]] = {"began": TIME, "ended": TIME, "is_known": FLAG, "is_last": FLAG}
"""An interval. `is_known`: false between two known spans, where the state is null. `is_last`: the history ends in it."""
STATE: Final[Mapping[str, DataType]] = {
    "leader": INT, "isr": BROKERS, "leader_epoch": INT, "leader_recovery_state": INT, "state_controller_epoch": LONG,
    "partition_epoch": INT, "replicas": BROKERS, "adding": BROKERS, "removing": BROKERS,
}  # fmt: skip
"""The state of a partition. The leader -1 means none; also in unknown time, if that is proven."""


def columns(**types: DataType) -> StructType:
    """Return a schema of nullable columns in this order."""
    return StructType([StructField(name, kind) for name, kind in types.items()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: its columns, and the ordering columns, whose values no two rows share."""

    name: str
    schema: StructType
    order: tuple[str, ...]
    by_day: str | None = None
    """The time column whose day partitions the files; None: one set of files."""


LINES: Final = columns(value=TEXT, source=TEXT, journal=TEXT, line=LONG)
"""The output of sources: a line without its end; its file, or topic and partition; the journal of that, such as a
folder, topic or host; its number in the file, from 1, or null."""

EVENTS: Final = Table(
    name="events",
    schema=columns(
        cluster_id=TEXT,  # "" if the journal did not know it yet
        origin=TEXT,  # controller | recorder | logs: the kind of writer, which decides what can be relied on
        journal=TEXT,  # the folder of the segment, the topic, or the host of the log
        source=TEXT,  # the file, or topic and partition
        controller_id=INT,
        **POSITION,
        event_time=TIME,  # by the writer's clock; if that was set within the term, by the machine's uptime
        boot=TEXT,  # names the start of the writer's machine; null if the journal does not say it
        boot_us=LONG,  # the uptime at the event
        set_us=LONG,  # event_time minus the stamp of the record, if the clock was set within the term; else null
        took_us=LONG,  # since the controller noticed the cause; null if not measured
        kind=TEXT,  # docs/journal.md, Kinds
        cause=TEXT,
        correlation_id=TEXT,
        principal=TEXT,  # of the client whose request is the cause; null if none is
        address=TEXT,
        inferred=FLAG,
        snapshot=FLAG,
        unclean=FLAG,
        topic=TEXT,
        topic_id=TEXT,
        partition=INT,
        broker=INT,
        **STATE,  # these and the following: deltas, null where unchanged
        origin_order=BROKERS,
        czxid=LONG,
        broker_epoch=LONG,
        rack=TEXT,
        endpoints=ArrayType(TEXT, containsNull=False),
        supported_features=MapType(TEXT, BROKERS, valueContainsNull=False),
        finalized_features=MapType(TEXT, INT, valueContainsNull=False),
        features_epoch=LONG,
        config=CONFIG,
        partitions=MapType(TEXT, ArrayType(INT, containsNull=False), valueContainsNull=False),  # offline replicas
        reason=TEXT,
        request=TEXT,  # the audit record of a client's request, as JSON
        dropped=LONG,
        entries=LONG,
        checksum=LONG,
        alive_interval_ms=LONG,  # the interval after which its writer says that it is alive
        left_out=LONG,  # at a snapshot's start: the number of following entries that were removed
    ),
    order=("cluster_id", "controller_epoch", "seq"),
    by_day="event_time",
)
"""Every record of every history, checked and once."""

FINDINGS: Final = Table(
    name="findings",
    schema=columns(
        cluster_id=TEXT,
        problem=TEXT,  # a word of docs/pipeline.md, Findings: unreadable, gap, clock_went_back, two_journals, ...
        source=TEXT,
        line=LONG,  # counted from 1 in its file; null if it concerns several lines
        **POSITION,
        event_time=TIME,
        count=LONG,  # the number of records or occurrences
        detail=TEXT,  # for people: the finding, and what to do about it
    ),
    order=("cluster_id", "problem", "source", "line", "controller_epoch", "seq", "detail"),
)
"""Problems of the input. None of them ends a job, and every dropped line is named here."""

KNOWN_SPANS: Final = Table(
    name="known_spans",
    schema=columns(
        cluster_id=TEXT,
        span=LONG,  # counted from 0 in each cluster, in the order of history
        controller_epoch=LONG,
        controller_id=INT,
        origin=TEXT,
        first_seq=LONG,  # of the snapshot that it begins with, or of its first record if it continues a state
        snapshot_seq=LONG,  # of the end of the snapshot that its state begins with, in this span or an earlier one
        last_seq=LONG,
        began=TIME,  # at the end of the snapshot that it begins with, or at its first record
        ended=TIME,  # at its last record
        has_time=FLAG,  # false: its records' clock is not trusted; it has no length
        ended_by=TEXT,  # resigned | silence | gap | clock | unobserved | end
        known_again=TIME,  # the next span begins, or the history ends unknown; null: the history ends with this span
    ),
    order=("cluster_id", "span"),
)
"""The spans in which the state of a cluster is known. Between two spans it is unknown: neither up nor down, unless a
partition provably had no leader.

Spans with the same `snapshot_seq` follow each other without a lost record; only the time between them is unknown."""

PARTITION_INTERVALS: Final = Table(
    name="partition_intervals",
    schema=columns(
        cluster_id=TEXT,
        topic=TEXT,
        topic_id=TEXT,
        partition=INT,
        **INTERVAL,
        **STATE,
        min_insync_replicas=INT,  # of the topic, else its leader, all brokers, its leader's file, 1; at most all replicas
        unclean=FLAG,  # it began with an unclean election
        cause=TEXT,  # of its beginning
        correlation_id=TEXT,
        **ASKED_BY,
        took_us=LONG,
        inferred=FLAG,
        controller_id=INT,
        **POSITION,  # of the record that began it
    ),
    order=("cluster_id", "topic", "partition", "began", "controller_epoch", "seq"),
)
"""The state of each partition over time. A topic that was deleted and created again has intervals of both, with a gap
between."""

BROKER_INTERVALS: Final = Table(
    name="broker_intervals",
    schema=columns(
        cluster_id=TEXT,
        broker=INT,
        broker_epoch=LONG,
        rack=TEXT,
        **INTERVAL,
        cause=TEXT,
        **POSITION,
    ),
    order=("cluster_id", "broker", "began", "controller_epoch", "seq"),
)
"""The intervals in which each broker was registered."""

CONFIG_INTERVALS: Final = Table(
    name="config_intervals",
    schema=columns(
        cluster_id=TEXT,
        scope=TEXT,  # topic | broker | default
        name=TEXT,  # the topic, the broker's id, or ""
        **INTERVAL,
        config=CONFIG,
        **POSITION,
    ),
    order=("cluster_id", "scope", "name", "began", "controller_epoch", "seq"),
)
"""The configuration of topics and brokers over time."""

PROOFS: Final = Table(
    name="proofs",
    schema=columns(
        cluster_id=TEXT,
        **POSITION,  # of the snapshot's last record
        event_time=TIME,
        entries=LONG,  # in the snapshot
        checksum=LONG,  # of the controller's live state
        snapshot_checksum=LONG,  # of the snapshot's entries
        folded_checksum=LONG,  # of the state folded from the history before; null if the snapshot begins a known span
    ),
    order=("cluster_id", "controller_epoch", "seq"),
)
"""All snapshots, with the checksum of the state that the history before them results in."""

AVAILABILITY: Final = Table(
    name="availability_daily",
    schema=columns(
        cluster_id=TEXT,
        namespace=TEXT,
        topic=TEXT,
        day=DAY,
        partitions=LONG,
        partition_seconds=REAL,  # of existence, the unknown included
        leaderless_seconds=REAL,
        under_min_isr_seconds=REAL,  # with a leader
        unknown_seconds=REAL,  # in which it is not even proven that there was no leader
        detection_seconds=REAL,  # at most: led by a lost broker before the controller elected another
        detection_writable_seconds=REAL,  # the share of these in which the ISR was not under min ISR
        availability=REAL,  # proven: 1 - leaderless / known; null if nothing is known
        availability_at_least=REAL,  # if all unknown time was down: 1 - (leaderless + unknown) / partition seconds
        availability_at_most=REAL,  # if all unknown time was up: 1 - leaderless / partition seconds
        write_availability=REAL,  # proven: 1 - (leaderless + under min ISR) / known
        write_availability_at_least=REAL,
        write_availability_at_most=REAL,
        availability_with_detection=REAL,  # at least: 1 - (leaderless + detection) / known
        write_availability_with_detection=REAL,  # at least: 1 - (leaderless + under min ISR + detection) / known
    ),
    order=("cluster_id", "topic", "day"),
)

DOWNTIME_BY_CAUSE: Final = Table(
    name="downtime_by_cause",
    schema=columns(
        cluster_id=TEXT,
        namespace=TEXT,
        topic=TEXT,
        day=DAY,
        cause=TEXT,
        leaderless_seconds=REAL,
        under_min_isr_seconds=REAL,
        partitions=LONG,
    ),
    order=("cluster_id", "topic", "day", "cause"),
)

RACK_AVAILABILITY: Final = Table(
    name="rack_availability_daily",
    schema=columns(
        cluster_id=TEXT,
        rack=TEXT,  # "" for brokers without one
        day=DAY,
        replica_seconds=REAL,  # assigned there
        out_of_sync_seconds=REAL,
        leader_seconds=REAL,
        unknown_seconds=REAL,
    ),
    order=("cluster_id", "rack", "day"),
)

INCIDENTS: Final = Table(
    name="incidents",
    schema=columns(
        **PARTITION,
        problem=TEXT,  # leaderless | under_min_isr
        began=TIME,
        ended=TIME,
        is_last=FLAG,
        cause=TEXT,
        correlation_id=TEXT,
        **ASKED_BY,
        ended_by=TEXT,  # the cause of its end; null: the history, or the known part of it, ended
        **POSITION,  # of the record that began it
    ),
    order=("cluster_id", "topic", "partition", "began", "controller_epoch", "seq"),
)
"""Each uninterrupted time that a partition was without a leader, or under min.insync.replicas."""

FAILOVERS: Final = Table(
    name="failovers",
    schema=columns(
        cluster_id=TEXT,
        broker=INT,  # that was lost
        lost_at=TIME,  # the time at which the controller noticed
        cause=TEXT,
        partitions=LONG,  # that it led
        moved=LONG,  # to a new leader, so far
        last_moved_at=TIME,
        median_seconds=REAL,  # until a partition had a leader again
        p99_seconds=REAL,
        max_seconds=REAL,
        detection_seconds=REAL,  # at most: before lost_at; 0 if it was announced, or led nothing
        max_seconds_with_detection=REAL,  # at most: their sum
        **POSITION,
    ),
    order=("cluster_id", "controller_epoch", "seq", "broker"),
)

ISR_FLAPS: Final = Table(
    name="isr_flaps_daily",
    schema=columns(
        cluster_id=TEXT,
        broker=INT,  # the replica that left and came back
        topic=TEXT,
        partition=INT,
        day=DAY,
        shrinks=LONG,
        expansions=LONG,
        flaps=LONG,  # shrinks that an expansion followed
        out_of_sync_seconds=REAL,
    ),
    order=("cluster_id", "broker", "topic", "partition", "day"),
)

EXPOSURE: Final = Table(
    name="exposure_daily",
    schema=columns(
        cluster_id=TEXT,
        topic=TEXT,
        day=DAY,
        one_replica_seconds=REAL,  # partitions whose ISR has one member: one failure from loss
        one_rack_seconds=REAL,  # whose ISR is within one rack, of partitions assigned to several
        known_seconds=REAL,
        most_partitions=LONG,  # exposed at the same moment
    ),
    order=("cluster_id", "topic", "day"),
)

UNCLEAN_ELECTIONS: Final = Table(
    name="unclean_elections",
    schema=columns(
        **PARTITION,
        elected_at=TIME,
        leader=INT,
        isr_before=BROKERS,
        leader_before=INT,
        recovered_at=TIME,  # null: not yet, or not known
        cause=TEXT,
        correlation_id=TEXT,
        **ASKED_BY,
        **POSITION,
    ),
    order=("cluster_id", "controller_epoch", "seq"),
)

LEADERSHIP: Final = Table(
    name="leadership_daily",
    schema=columns(
        cluster_id=TEXT,
        broker=INT,
        day=DAY,
        leader_seconds=REAL,
        preferred_seconds=REAL,  # of partitions whose preferred replica it is
        led_as_preferred_seconds=REAL,
        replica_seconds=REAL,
        skew=REAL,  # leader_seconds divided by the mean of the brokers registered that day
    ),
    order=("cluster_id", "broker", "day"),
)

REASSIGNMENTS: Final = Table(
    name="reassignments",
    schema=columns(
        **PARTITION,
        began=TIME,
        ended=TIME,  # null: it still runs at the history's end
        origin=BROKERS,
        target=BROKERS,
        outcome=TEXT,  # done | cancelled | replaced | deleted | running | stalled | unknown
        longest_wait_seconds=REAL,  # without any change of the ISR
        **ASKED_BY,
        **POSITION,
    ),
    order=("cluster_id", "topic", "partition", "began", "seq"),
)

CONTROLLERS: Final = Table(
    name="controllers",
    schema=columns(
        cluster_id=TEXT,
        controller_epoch=LONG,
        controller_id=INT,
        began=TIME,
        ended=TIME,
        ended_by=TEXT,  # as in known_spans
        takeover_seconds=REAL,  # from the end of the last known term to the first snapshot of this one
        records=LONG,
        leader_changes=LONG,
    ),
    order=("cluster_id", "controller_epoch"),
)

REQUESTS: Final = Table(
    name="requests",
    schema=columns(
        cluster_id=TEXT,
        event_time=TIME,  # of its end; null: not known, because the clock is not trusted
        principal=TEXT,  # null: a sum of older requests that a report leaves out
        address=TEXT,
        client_id=TEXT,
        api=TEXT,
        resources=ArrayType(TEXT, containsNull=False),  # the first ones: `topic orders`
        resources_total=LONG,
        outcome=TEXT,  # done | admitted | partly_done | refused | failed | unknown
        error=TEXT,
        count=LONG,  # of requests
        **POSITION,
    ),
    order=("cluster_id", "controller_epoch", "seq"),
)
"""The requests of clients to change something, from the controllers' audit records."""

VIOLATIONS: Final = Table(
    name="violations",
    schema=columns(
        cluster_id=TEXT,
        invariant=TEXT,  # a word of docs/audit.md
        topic=TEXT,
        partition=INT,
        broker=INT,
        **POSITION,  # of the record that violates it
        event_time=TIME,
        detail=TEXT,
        evidence=ArrayType(
            columns(controller_epoch=LONG, seq=LONG, event_time=TIME, source=TEXT, kind=TEXT), containsNull=False
        ),
        inferred=FLAG,  # seen by a recorder, not by the controller itself
        **ASKED_BY,
    ),
    order=("cluster_id", "invariant", "controller_epoch", "seq", "topic", "partition", "detail"),
)

ALARMS: Final = Table(
    name="alarms",
    schema=columns(
        cluster_id=TEXT,
        topic=TEXT,  # null if it concerns the whole cluster, as the partition
        partition=INT,
        problem=TEXT,  # leaderless | under_min_isr | silent
        state=TEXT,  # raised | cleared
        began=TIME,
        at=TIME,  # event time of the raise, or of what cleared it
        cause=TEXT,
        **POSITION,
    ),
    order=("cluster_id", "topic", "partition", "problem", "began", "state"),
)

ANSWERS: Final = (
    AVAILABILITY,
    DOWNTIME_BY_CAUSE,
    RACK_AVAILABILITY,
    INCIDENTS,
    FAILOVERS,
    ISR_FLAPS,
    EXPOSURE,
    UNCLEAN_ELECTIONS,
    LEADERSHIP,
    REASSIGNMENTS,
    CONTROLLERS,
    REQUESTS,
)
LAYERS: Final = (EVENTS, FINDINGS, KNOWN_SPANS, PARTITION_INTERVALS, BROKER_INTERVALS, CONFIG_INTERVALS, PROOFS)
