"""Spark's result equals that of the pure fold and the live state, for any order of arrival."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.testing import assertDataFrameEqual

from controller_core.model.ids import TopicPartition
from kontroller.history.schemas import (
    BROKER_INTERVALS,
    CONFIG_INTERVALS,
    EVENTS,
    KNOWN_SPANS,
    LAYERS,
    PARTITION_INTERVALS,
    PROOFS,
)
from kontroller.history.sources import journal_files
from kontroller.history.store import Store
from kontroller.history.transforms.partition_intervals import partition_intervals
from tests.spark.histories import RandomCluster, fold_lines, keep_lines, make_lines, random_cluster, rows

CLUSTERS = 300


@pytest.fixture(scope="module")
def clusters() -> dict[str, RandomCluster]:
    """Return random clusters. Every seventh one has only a recorder."""
    return {
        f"c{seed}": random_cluster(seed, cluster_id=f"c{seed}", events=15, is_recorded=seed % 7 == 0)
        for seed in range(CLUSTERS)
    }


@pytest.fixture(scope="module")
def store(spark: SparkSession, clusters: dict[str, RandomCluster], tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return the layers of all clusters, from files."""
    journals, tables = tmp_path_factory.mktemp("journals"), tmp_path_factory.mktemp("tables")
    for name, cluster in clusters.items():
        folder = journals / name
        folder.mkdir()
        (folder / "0000000001-000000000000000.jsonl").write_bytes(b"".join(cluster.lines))
    return keep_lines(spark, journal_files.lines(spark, [str(journals)]), tables)


def test_every_history_comes_to_the_checksum_of_the_live_state(
    store: Store, clusters: dict[str, RandomCluster]
) -> None:
    proofs = rows(store, PROOFS).orderBy(*PROOFS.order).collect()
    assert all(proof.snapshot_checksum == proof.checksum for proof in proofs)
    assert all(proof.folded_checksum in (None, proof.checksum) for proof in proofs)
    proven = Counter(proof.cluster_id for proof in proofs if proof.folded_checksum is not None)
    last = {proof.cluster_id: proof.folded_checksum for proof in proofs}
    assert last.keys() == clusters.keys()
    for name, cluster in clusters.items():
        pure = fold_lines(cluster.lines)
        assert pure.image is not None
        assert proven[name] == pure.proven
        assert last[name] == pure.image.checksum() == cluster.checksum


def test_what_lasts_at_the_end_of_a_history_is_what_was_alive(store: Store, clusters: dict[str, RandomCluster]) -> None:
    last = rows(store, PARTITION_INTERVALS).where("is_last").collect()
    found = {
        (row.cluster_id, row.topic, row.partition): (row.leader, row.isr, row.replicas, row.partition_epoch)
        for row in last
    }
    assert len(found) == len(last)
    assert found == {
        (name, partition.topic, partition.partition): live_state(cluster, partition)
        for name, cluster in clusters.items()
        for partition in cluster.state.all_partitions()
    }
    brokers = {
        (row.cluster_id, row.broker, row.broker_epoch)
        for row in rows(store, BROKER_INTERVALS).where("is_last").collect()
    }
    assert brokers == {
        (n, b, live.epoch) for n, cluster in clusters.items() for b, live in cluster.state.brokers.items()
    }
    configs = rows(store, CONFIG_INTERVALS).where("is_last").collect()
    assert {(row.cluster_id, row.name): row.config for row in configs if row.scope == "topic"} == {
        (name, topic): config
        for name, cluster in clusters.items()
        for topic, config in cluster.state.topic_configs.items()
    }


def live_state(
    cluster: RandomCluster, partition: TopicPartition
) -> tuple[int, Sequence[int], Sequence[int], int | None]:
    replicas = list(cluster.state.assignment(partition).replicas)
    state = cluster.state.states.get(partition)
    if state is None:
        return -1, [], replicas, None
    return state.leader_and_isr.leader, list(state.leader_and_isr.isr), replicas, state.partition_epoch


def test_intervals_do_not_overlap_and_the_known_ones_are_within_known_spans(store: Store) -> None:
    intervals = rows(store, PARTITION_INTERVALS)
    key = Window.partitionBy("cluster_id", "topic", "partition").orderBy("began", "ended", "controller_epoch", "seq")
    assert intervals.where("ended < began").count() == 0
    assert intervals.withColumn("before", f.lag("ended").over(key)).where("before > began").count() == 0
    spans = rows(store, KNOWN_SPANS).select("cluster_id", f.col("began").alias("from"), f.col("ended").alias("to"))
    known = intervals.where("is_known").join(spans, "cluster_id", "left")
    within = (f.col("began") >= f.col("from")) & (f.col("ended") <= f.col("to"))
    outside = known.groupBy("cluster_id", "topic", "partition", "began", "controller_epoch", "seq").agg(
        f.max(within).alias("is_within")
    )
    assert outside.where("not is_within").count() == 0
    assert intervals.select(*PARTITION_INTERVALS.order).distinct().count() == intervals.count()


def test_partitions_are_as_long_without_a_leader_as_in_a_plain_replay(
    store: Store, clusters: dict[str, RandomCluster]
) -> None:
    leaderless = rows(store, PARTITION_INTERVALS).where("leader = -1")
    total = (
        leaderless.groupBy("cluster_id")
        .agg(f.sum(f.unix_micros("ended") - f.unix_micros("began")).alias("total"))
        .collect()
    )
    found = {row.cluster_id: row.total for row in total if row.total}
    assert found == {name: us for name, cluster in clusters.items() if (us := leaderless_us(cluster.lines))}
    assert leaderless.where("not is_known").count() > 10, "or no unknown time is looked at"


def leaderless_us(lines: list[bytes]) -> int:
    """A second opinion: the partitions without a leader, counted from record to record while the state is known, and over
    the unknown time before a snapshot with the same version of their state."""
    leaders: dict[tuple[str, int], int] = {}
    versions: dict[tuple[str, int], tuple[str, int]] = {}
    lost: dict[tuple[str, int], tuple[str, int]] = {}
    total, is_known, epoch, before_us, lost_us = 0, False, -1, 0, 0
    for line in map(json.loads, lines):
        if line["controller_epoch"] != epoch or line["kind"] in ("gap", "recorder_started"):
            if is_known:
                lost = {key: versions[key] for key in versions if leaders.get(key) == -1 and versions[key][0]}
                lost_us = before_us
            epoch, is_known = line["controller_epoch"], False
        if is_known:
            total += sum(leader == -1 for leader in leaders.values()) * (line["event_time_us"] - before_us)
        before_us = line["event_time_us"]
        key = (line.get("topic"), line.get("partition"))
        match line["kind"]:
            case "snapshot_started" if not is_known:
                leaders.clear()
                versions.clear()
            case "snapshot_ended":
                if not is_known:
                    same = sum(versions.get(key) == version for key, version in lost.items())
                    total += same * (line["event_time_us"] - lost_us)
                is_known = True
            case "assignment":
                leaders.setdefault(key, -1)
            case "leadership":
                leaders[key] = line["delta"].get("leader", leaders.get(key, -1))
                versions[key] = line["topic_id"], line["delta"].get("partition_epoch", versions.get(key, ("", -1))[1])
            case "leadership_removed":
                leaders.pop(key)
                versions.pop(key)
            case "topic_removed":
                leaders = {key: leader for key, leader in leaders.items() if key[0] != line["topic"]}
                versions = {key: version for key, version in versions.items() if key[0] != line["topic"]}
    return total


def test_a_history_that_comes_late_twice_and_in_disorder_gives_the_same_tables(
    spark: SparkSession, clusters: dict[str, RandomCluster], tmp_path: Path
) -> None:
    some = [clusters[f"c{seed}"].lines for seed in range(1, 7)]
    mixed = [[*lines, *lines[::3]] for lines in some]
    for lines in mixed:
        random.Random(1).shuffle(lines)
    straight = keep_lines(spark, make_lines(spark, *some), tmp_path / "straight")
    disorder = keep_lines(spark, make_lines(spark, *mixed), tmp_path / "disorder")
    for table in LAYERS:
        assertDataFrameEqual(rows(disorder, table), rows(straight, table))


def test_the_fold_runs_without_python_and_puts_nothing_in_one_place(store: Store) -> None:
    events, spans, configs = (rows(store, table) for table in (EVENTS, KNOWN_SPANS, CONFIG_INTERVALS))
    plan = explain_plan(partition_intervals(events, spans, configs))
    assert "Window" in plan, "or this looks at nothing"
    assert "SinglePartition" not in plan
    assert "CartesianProduct" not in plan
    assert "BroadcastNestedLoopJoin" not in plan
    assert "Python" not in plan
    assert "Arrow" not in plan


def explain_plan(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())
