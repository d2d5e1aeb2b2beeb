"""The declared pipeline and the batch make the same tables from the same journals."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from kontroller.history import schemas
from kontroller.history.answers.all import answer_all
from kontroller.history.sources import journal_files
from kontroller.history.transforms import layers
from kontroller.history.transforms.config_intervals import config_intervals
from kontroller.history.transforms.continuity.breaks import marks
from kontroller.history.transforms.known_spans import find_known_spans
from tests.spark.histories import ingest_lines
from tests.spark.pipelines.declared import leave_out_what_follows_events, spark_pipelines

COMPARED = (schemas.PARTITION_INTERVALS, schemas.BROKER_INTERVALS)
"""The layers that all answers are made of."""


def test_the_declared_pipeline_comes_to_what_the_batch_comes_to(spark: SparkSession, project: Path) -> None:
    printed = spark_pipelines("run", project)
    assert any("COMPLETED" in line for line in printed)

    def read_table(table: schemas.Table) -> DataFrame:
        return spark.read.schema(table.schema).parquet(str(project / "spark-warehouse" / table.name))

    events, findings = ingest_lines(journal_files.lines(spark, [str(project / "journals")]))
    events = events.localCheckpoint()
    spans = find_known_spans(marks(events)).localCheckpoint()
    built = layers.derive(events, findings, marks(events), spans, config_intervals(events, spans).localCheckpoint())
    for table in COMPARED:
        assertDataFrameEqual(read_table(table), built.get_table(table))
    answers = answer_all({table: read_table(table) for table in (schemas.EVENTS, schemas.KNOWN_SPANS, *COMPARED)})
    for table in (schemas.AVAILABILITY, schemas.FAILOVERS):
        assertDataFrameEqual(read_table(table), answers[table])


def test_a_dry_run_finds_what_the_definitions_lack(project: Path) -> None:
    leave_out_what_follows_events(project)
    definitions = project / "definitions.py"
    definitions.write_text(definitions.read_text().replace('_dataset("records")', '_dataset("nowhere")'))
    with pytest.raises(AssertionError, match="nowhere"):
        spark_pipelines("dry-run", project)
