"""Records of the topic are in the history once, however they are cut into batches, how often they come, and what files
contain."""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from kontroller.history.folding.tables import RAW_EVENTS
from kontroller.history.kept_history import KeptHistory
from kontroller.history.pipelines.topic import ingest
from kontroller.history.schemas import EVENTS, FINDINGS, LINES
from tests.spark.histories import history, make_events, make_lines


def test_topic_and_files_go_into_one_history_in_which_nothing_is_lost_and_nothing_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    records = history(7, cluster_id="c", events=60)
    kept = KeptHistory.open_history(spark, str(tmp_path / "history"))
    half = len(records) // 2
    batches = [[*records[: half + 20], b"no record of a journal\n"], records[half : half + 40]]
    ingest_topic(kept, tmp_path, "first", batches)
    kept.take_in_lines(make_lines(spark, records[half + 30 :]))
    kept.fold()
    once = make_events(spark, records)
    told = [name for name in EVENTS.schema.fieldNames() if name not in ("source", "journal")]
    assertDataFrameEqual(kept.store.read(EVENTS).select(told), once.select(told))
    findings = {row.problem: row["count"] for row in kept.store.read(FINDINGS).where("problem <> 'gap'").collect()}
    assert findings == {"unreadable": 1}
    raw = kept.raw.read(RAW_EVENTS).count()
    ingest_topic(kept, tmp_path, "again", batches)
    assert kept.raw.read(RAW_EVENTS).count() == raw


def ingest_topic(kept: KeptHistory, folder: Path, name: str, batches: Sequence[Sequence[bytes]]) -> None:
    """Ingest the batches as the stream of a topic delivers them, from its beginning, as if there were no checkpoint."""
    spark = kept.store.spark
    for number, batch in enumerate(batches):
        make_lines(spark, batch).coalesce(1).write.parquet(str(folder / name / f"{number}"))
    stream = spark.readStream.schema(LINES).option("maxFilesPerTrigger", 1).parquet(str(folder / name / "*"))
    ingest(kept, stream, str(folder / f"{name}-checkpoint"))
