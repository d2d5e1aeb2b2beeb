"""The history that the benchmark makes up has the skew that it says."""

from pyspark.sql import SparkSession

from bench.pipeline import PARTITIONS, history, make_lines
from kontroller.history.transforms import lines

EVENTS = 70_000


def test_most_changes_are_of_one_topic_and_half_of_these_of_one_partition(spark: SparkSession) -> None:
    place = ("'/bench/1.jsonl' AS source", "'/bench' AS journal", "CAST(NULL AS BIGINT) AS line")
    written = make_lines(history(spark, EVENTS, is_skewed=True)).selectExpr("value", *place)
    events, findings = lines.judge(lines.check_lines(written).localCheckpoint())
    assert findings.isEmpty()
    changes = events.where("NOT snapshot AND partition IS NOT NULL")
    of_topic, of_partition, total = changes.selectExpr(
        "count_if(topic = 'topic-0')", "count_if(topic = 'topic-0' AND partition = 0)", "count(*)"
    ).collect()[0]
    assert total == EVENTS - 2 - 1000 - 2 * PARTITIONS - 1
    assert abs(of_topic / total - 0.9) < 0.01
    assert abs(of_partition / of_topic - 0.525) < 0.02, "half, and what falls to it among the others"
