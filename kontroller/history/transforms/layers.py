"""All layers of a history: what follows from its events.

Each is lazy: what nobody asks for is not computed. Checked lines (`lines.checked`), events (`accounts.once`), their marks,
known spans and configurations are to be written first and read again, since the other layers begin with them: Spark would
plan all that they are made of anew wherever they are used.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kontroller.history.schemas import FINDINGS, Table
from kontroller.history.transforms.broker_intervals import broker_intervals
from kontroller.history.transforms.continuity.doubts import doubts
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

    def of(self, table: Table) -> DataFrame:
        found: DataFrame = getattr(self, table.name)
        return found


def derive(
    events: DataFrame,
    findings: DataFrame,
    marks: DataFrame,
    spans: DataFrame,
    configs: DataFrame,
    checksums: DataFrame | None = None,
) -> Layers:
    """What follows from events that are there once each, or from the `changes` among them; `findings` of theirs are added
    to those from before.

    `marks`: where they break (`continuity.breaks`). `spans` and `configs`: their known spans and the intervals of their
    configurations. All three as they were written before. `checksums`: those of snapshots; None: of these events."""
    found = findings.unionByName(doubts(marks)).unionByName(unknown_topics(events, spans))
    return Layers(
        events=events,
        findings=_each_once(found),
        known_spans=spans,
        partition_intervals=partition_intervals(events, spans, configs),
        broker_intervals=broker_intervals(events, spans),
        config_intervals=configs,
        proofs=proofs(events, spans, snapshot_checksums(events, spans) if checksums is None else checksums),
    )


def _each_once(findings: DataFrame) -> DataFrame:
    """What is the same in everything that orders the table is counted, not repeated."""
    counted = findings.groupBy(*FINDINGS.order).agg(
        f.min("event_time").alias("event_time"), f.sum("count").alias("count")
    )
    return counted.select(*FINDINGS.schema.fieldNames())
