"""All layers of a history in one call: events and findings from lines, and what follows from the events.

Each is lazy: what nobody asks for is not computed. A job that asks for several should keep the events first (`ingest`,
`Store.write`, `derive`), since each layer reads them again.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_pipeline.schemas import FINDINGS, Table
from controller_pipeline.transforms import journals, lines
from controller_pipeline.transforms.broker_intervals import broker_intervals
from controller_pipeline.transforms.config_intervals import config_intervals
from controller_pipeline.transforms.known_spans import known_spans
from controller_pipeline.transforms.partition_intervals import partition_intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The tables of `schemas.LAYERS`, by name."""

    events: DataFrame
    findings: DataFrame
    known_spans: DataFrame
    partition_intervals: DataFrame
    broker_intervals: DataFrame
    config_intervals: DataFrame

    def of(self, table: Table) -> DataFrame:
        found: DataFrame = getattr(self, table.name)
        return found


def build(raw: DataFrame) -> Layers:
    """The layers of the lines (`schemas.LINES`) that sources give, of any number of clusters together.

    Records that come late are added to the lines, and everything is computed again: order and repetition do not matter."""
    events, findings = ingest(raw)
    return derive(events, findings)


def ingest(raw: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Events, each once, and what is wrong with the lines and journals that are left out."""
    events, unreadable = lines.read(raw)
    events, repeated = journals.once(events)
    return events, unreadable.unionByName(repeated)


def derive(events: DataFrame, findings: DataFrame) -> Layers:
    """What follows from events that are there once each; `findings` of theirs are added to what was found before."""
    spans = known_spans(events)
    found = findings.unionByName(journals.numbers(events))
    configs = config_intervals(events, spans)
    return Layers(
        events=events,
        findings=_each_once(found),
        known_spans=spans,
        partition_intervals=partition_intervals(events, spans, configs),
        broker_intervals=broker_intervals(events, spans),
        config_intervals=configs,
    )


def _each_once(findings: DataFrame) -> DataFrame:
    """What is the same in everything that orders the table is counted, not repeated."""
    counted = findings.groupBy(*FINDINGS.order).agg(
        f.min("event_time").alias("event_time"), f.sum("count").alias("count")
    )
    return counted.select(*FINDINGS.schema.fieldNames())
