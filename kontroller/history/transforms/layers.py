"""All layers of a history, derived from its events.

Each layer is lazy. Write checked lines (`lines.check_lines`), events (`accounts.once`), marks, known spans and
configurations first and read them again, because the other layers use them repeatedly, and Spark would plan them each
time.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kontroller.history.schemas import FINDINGS, Table
from kontroller.history.transforms.broker_intervals import broker_intervals
from kontroller.history.transforms.continuity.doubts import doubts
from kontroller.history.transforms.continuity.moments import drop_stamps
from kontroller.history.transforms.partition_intervals import partition_intervals
from kontroller.history.transforms.proofs import proofs, snapshot_checksums
from kontroller.history.transforms.unknown_topics import unknown_topics


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The tables of `schemas.LAYERS`, by name."""

    events: DataFrame
    findings: DataFrame
    known_spans: DataFrame
    partition_intervals: DataFrame
    broker_intervals: DataFrame
    config_intervals: DataFrame
    proofs: DataFrame

    def get_table(self, table: Table) -> DataFrame:
        found: DataFrame = getattr(self, table.name)
        return found


def derive(
    events: DataFrame,
    findings: DataFrame,
    marks: DataFrame,
    spans: DataFrame,
    configs: DataFrame,
) -> Layers:
    """Derive the layers from unique events, or from the `changes` among them.

    `findings`: earlier findings, to which new ones are added. `marks`: the breaks (`continuity.breaks`). `spans` and
    `configs`: the known spans and the intervals of configurations. Pass all three as written tables."""
    return Layers(
        events=events,
        findings=all_findings(findings.unionByName(unknown_topics(events, spans)), marks, spans),
        known_spans=spans,
        partition_intervals=partition_intervals(events, spans, configs),
        broker_intervals=broker_intervals(events, spans),
        config_intervals=configs,
        proofs=proofs_in_time(events, spans, snapshot_checksums(events, spans)),
    )


def all_findings(found: DataFrame, marks: DataFrame, spans: DataFrame) -> DataFrame:
    """Return the findings of a history: those that were `found` in its records, and those about its breaks."""
    return _each_once(drop_stamps(found.unionByName(doubts(marks)), spans, "event_time"))


def proofs_in_time(changes: DataFrame, spans: DataFrame, checksums: DataFrame) -> DataFrame:
    """Return `schemas.PROOFS` (`proofs.proofs`), without stamps that are no moments."""
    return drop_stamps(proofs(changes, spans, checksums), spans, "event_time")


def _each_once(findings: DataFrame) -> DataFrame:
    """Merge findings that are equal in all ordering columns by adding their counts."""
    counted = findings.groupBy(*FINDINGS.order).agg(
        f.min("event_time").alias("event_time"), f.sum("count").alias("count")
    )
    return counted.select(*FINDINGS.schema.fieldNames())
