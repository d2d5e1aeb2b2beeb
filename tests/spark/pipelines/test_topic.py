"""What comes from the topic is in the store once, however it is cut and however often it comes."""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from controller_pipeline.pipelines.topic import merge
from controller_pipeline.schemas import EVENTS, FINDINGS
from controller_pipeline.store import Store
from controller_pipeline.transforms import layers
from tests.spark.histories import as_lines, history


def test_batches_that_come_again_or_overlap_leave_each_record_once(spark: SparkSession, tmp_path: Path) -> None:
    records = history(7, cluster_id="c", events=60)
    store = Store(spark=spark, location=str(tmp_path))
    half = len(records) // 2
    merge(store, as_lines(spark, [*records[: half + 20], b"no record of a journal\n"]))
    merge(store, as_lines(spark, [*records[half:], *records[half : half + 5]]))
    merge(store, as_lines(spark, [*records[half:], b"no record of a journal\n"]))
    events, _ = layers.ingest(as_lines(spark, records))
    assertDataFrameEqual(store.read(EVENTS), events)
    assert [row.problem for row in store.read(FINDINGS).collect()] == ["unreadable"]
