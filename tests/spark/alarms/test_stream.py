"""All scenes at once through Spark, each of them a cluster: batch by batch, and with a restart in the middle."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from devcluster.running.processes import wait_until
from kontroller.history.alarms.stream import raise_alarms, write_alarms
from kontroller.history.schemas import ALARMS, EVENTS
from tests.spark.alarms.scenes import SCENES, START_US, Fields, Said, alive, lead

MOST_BATCHES = max(len(scene.batches) for scene in SCENES.values())


def write_batch(folder: Path, number: int) -> None:
    """Write the batch of that number of every scene that has one, as one file, younger than the earlier ones."""
    lines = []
    for name, scene in SCENES.items():
        for fields in scene.batches[number] if number < len(scene.batches) else ():
            at = datetime.fromtimestamp(fields["event_time_us"] / 1e6, UTC).isoformat()
            lines.append(json.dumps({"cluster_id": name, "event_time": at, **fields}))
    path = folder / f"{number}.json"
    path.write_text("\n".join(lines))
    os.utime(path, (number + 1, number + 1))


def watch_what_is_there(spark: SparkSession, folder: Path) -> None:
    events = spark.readStream.schema(EVENTS.schema).option("maxFilesPerTrigger", 1).json(str(folder / "events"))
    alarms = raise_alarms(
        events,
        leaderless_after_seconds=30,
        under_min_isr_after_seconds=20,
        alive_interval_seconds=20,
        silent_after_seconds=60,
        shards=2,
    )
    query = write_alarms(alarms, str(folder / "alarms"), str(folder / "checkpoint"), every_seconds=None)
    query.awaitTermination()


def alarms_written(spark: SparkSession, folder: Path) -> list[tuple[str, Said]]:
    rows = spark.read.schema(ALARMS.schema).json(str(folder / "alarms")).collect()
    start = START_US / 1e6
    return [
        (
            row.cluster_id,
            Said(
                row.topic,
                row.partition,
                row.problem,
                row.state,
                row.began.astimezone(UTC).timestamp() - start,
                row["at"].astimezone(UTC).timestamp() - start,
                row.controller_epoch,
                row.seq,
            ),
        )
        for row in rows
    ]


def test_every_alarm_is_written_once_though_the_query_is_restarted_in_the_middle(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "events").mkdir()
    for number in range(MOST_BATCHES):
        write_batch(tmp_path / "events", number)
        if number == MOST_BATCHES // 2:
            watch_what_is_there(spark, tmp_path)
    watch_what_is_there(spark, tmp_path)
    expected = [(name, alarm) for name, scene in SCENES.items() for alarm in scene.alarms]
    assert sorted(alarms_written(spark, tmp_path)) == sorted(expected)


def test_a_live_stream_tells_of_what_stands_while_nothing_is_written(spark: SparkSession, tmp_path: Path) -> None:
    def write(number: int, *records: Fields) -> None:
        lines = [json.dumps({"cluster_id": "live", "event_time": "2026-01-01T00:00:00Z", **it}) for it in records]
        (tmp_path / f"{number}.new").write_text("\n".join(lines))
        (tmp_path / f"{number}.new").rename(tmp_path / "events" / f"{number}.json")

    def read_alarms() -> set[tuple[str, str]]:
        rows = spark.read.schema(ALARMS.schema).json(str(tmp_path / "alarms")).collect()
        return {(row.problem, row.state) for row in rows}

    (tmp_path / "events").mkdir()
    (tmp_path / "alarms").mkdir()
    write(0, lead(0, 0, -1, [1]))
    events = spark.readStream.schema(EVENTS.schema).json(str(tmp_path / "events"))
    alarms = raise_alarms(
        events, leaderless_after_seconds=2, alive_interval_seconds=1, silent_after_seconds=3, is_live=True, shards=2
    )
    query = write_alarms(alarms, str(tmp_path / "alarms"), str(tmp_path / "checkpoint"), every_seconds=0.5)
    try:
        wait_until(
            lambda: {("leaderless", "raised"), ("silent", "raised")} <= read_alarms(), "all is raised", silence_s=120
        )
        write(1, lead(1, 1, 1, [1]), alive(2, 2))
        wait_until(
            lambda: {("leaderless", "cleared"), ("silent", "cleared")} <= read_alarms(), "all is over", silence_s=120
        )
    finally:
        query.stop()
    rows = spark.read.schema(ALARMS.schema).json(str(tmp_path / "alarms")).collect()
    assert len([row for row in rows if (row.problem, row.state) == ("leaderless", "raised")]) == 1
    assert {(row.topic, row.partition) for row in rows if row.problem == "silent"} == {(None, None)}


def test_a_time_below_zero_or_no_shard_at_all_is_refused(spark: SparkSession) -> None:
    events = spark.createDataFrame([], EVENTS.schema)
    with pytest.raises(ValueError, match="give 0 for an alarm at every problem"):
        raise_alarms(events, leaderless_after_seconds=-1)
    with pytest.raises(ValueError, match="at least one shard, not 0"):
        raise_alarms(events, shards=0)
