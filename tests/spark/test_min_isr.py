"""The effective `min.insync.replicas`: the topic's value, else its leader's, else all brokers'. It may change at any
time, and is never more than the number of replicas."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from kontroller.history.schemas import CONFIG_INTERVALS, EVENTS, KNOWN_SPANS, Table
from kontroller.history.transforms.partition_intervals import partition_intervals

BEGAN = datetime(2026, 11, 21, tzinfo=UTC)
ENDED = 100
Said = tuple[str, str, int, int, str]
"""Scope, name, from and to (seconds), and `min.insync.replicas`."""

NO_NUMBERS = ("2.0", "2e0", "0x2", "1_0", "2\n")
CONFIGURED: Mapping[str, Sequence[Said]] = {
    "nobody said it": [],
    "all brokers": [("default", "", 0, ENDED, "2")],
    "the topic": [("default", "", 0, ENDED, "2"), ("topic", "orders", 0, ENDED, "3")],
    **{f"no number, {text!r}": [("topic", "orders", 0, ENDED, text)] for text in NO_NUMBERS},
    "another topic": [("topic", "others", 0, ENDED, "3")],
    "the topic for a while": [("default", "", 0, ENDED, "2"), ("topic", "orders", 10, 20, "3")],
    "all brokers, from some time on": [("default", "", 30, ENDED, "2")],
    "one leader": [("default", "", 0, ENDED, "2"), ("broker", "1", 0, ENDED, "3")],
    "one leader, for a while": [("broker", "1", 10, 20, "3"), ("broker", "3", 0, ENDED, "5")],
    "the topic before its leader": [("broker", "1", 0, ENDED, "3"), ("topic", "orders", 0, ENDED, "2")],
    "the topic for a while, before its leader": [("topic", "orders", 10, 20, "2"), ("broker", "1", 0, ENDED, "3")],
    "the leaders' files": [],
    "the leaders' files, for a while": [("topic", "orders", 10, 20, "1"), ("default", "", 30, 40, "2")],
    "a file that changed with a restart": [],
    "one replica": [("default", "", 0, ENDED, "2")],
    "a second replica that is being added": [("topic", "orders", 0, ENDED, "3")],
}
Answer = tuple[int, int, int, int, str]
"""Broker, its epoch, when it registered, when it answered, and the value in its file."""
FILES: Mapping[str, Sequence[Answer]] = {
    "the leaders' files": [(1, 7, 0, 5, "3"), (2, 8, 0, 60, "4")],
    "the leaders' files, for a while": [(1, 7, 0, 5, "3"), (2, 8, 0, 60, "4")],
    "a file that changed with a restart": [(2, 8, 0, 5, "3"), (2, 9, 60, 70, "2"), (2, 11, 80, 81, "5")],
    "all brokers": [(1, 7, 0, 5, "3")],
}
REPLICAS = {"one replica": [1], "a second replica that is being added": [1, 2]}
"""Assigned replicas, also during a reassignment. Nobody recorded those of the other partitions."""
WANTED = {
    **{f"no number, {text!r}": [(0, 50, 1), (50, ENDED, 1)] for text in NO_NUMBERS},
    "nobody said it": [(0, 50, 1), (50, ENDED, 1)],
    "all brokers": [(0, 50, 2), (50, ENDED, 2)],
    "the topic": [(0, 50, 3), (50, ENDED, 3)],
    "another topic": [(0, 50, 1), (50, ENDED, 1)],
    "the topic for a while": [(0, 10, 2), (10, 20, 3), (20, 50, 2), (50, ENDED, 2)],
    "all brokers, from some time on": [(0, 30, 1), (30, 50, 2), (50, ENDED, 2)],
    "one leader": [(0, 50, 3), (50, ENDED, 2)],
    "one leader, for a while": [(0, 10, 1), (10, 20, 3), (20, 50, 1), (50, ENDED, 1)],
    "the topic before its leader": [(0, 50, 2), (50, ENDED, 2)],
    "the topic for a while, before its leader": [(0, 10, 3), (10, 20, 2), (20, 50, 3), (50, ENDED, 1)],
    "the leaders' files": [(0, 50, 3), (50, ENDED, 4)],
    "the leaders' files, for a while": [
        (0, 10, 3),
        (10, 20, 1),
        (20, 30, 3),
        (30, 40, 2),
        (40, 50, 3),
        (50, ENDED, 4),
    ],
    "a file that changed with a restart": [(0, 50, 1), (50, 60, 3), (60, 80, 2), (80, ENDED, 5)],
    "one replica": [(0, 50, 1), (50, ENDED, 1)],
    "a second replica that is being added": [(0, 50, 2), (50, ENDED, 2)],
}
"""The topic orders has one partition, which 1 leads for 50 seconds, and then 2."""


@pytest.fixture(scope="module")
def intervals(spark: SparkSession) -> Sequence[Row]:
    return partition_intervals(*make_tables(spark)).orderBy("cluster_id", "began").collect()


def make_tables(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Return the events, the known spans and the configurations of all cases."""
    common = {"controller_epoch": 1, "origin": "controller", "snapshot": False, "unclean": False, "inferred": False}
    led = {**common, "kind": "leadership", "topic": "orders", "partition": 0, "isr": [1, 2]}
    events = [
        {**led, "cluster_id": name, "seq": seq, "event_time": add_seconds(seconds), "leader": leader, "cause": "led"}
        | {"replicas": REPLICAS.get(name)}
        for name in CONFIGURED
        for seq, seconds, leader in ((1, 0, 1), (2, 50, 2))
    ]
    events += [
        {**common, "cluster_id": name, "broker": number, "broker_epoch": epoch, "kind": kind, "seq": 10 + seconds}
        | {"event_time": add_seconds(seconds), "config": {"min.insync.replicas": value} if "static" in kind else None}
        for name, answers in FILES.items()
        for number, epoch, registered, answered, value in answers
        for kind, seconds in (("broker", registered), ("broker_static_config", answered))
    ]
    spans = [
        {**common, "cluster_id": name, "span": 0, "first_seq": 0, "snapshot_seq": 0, "last_seq": 999}
        | {"began": add_seconds(0), "ended": add_seconds(ENDED)}
        for name in CONFIGURED
    ]
    configs = [
        {"cluster_id": cluster, "scope": scope, "name": name, "began": add_seconds(began), "ended": add_seconds(ended)}
        | {"is_known": True, "is_last": ended == ENDED, "config": {"min.insync.replicas": value}}
        for cluster, said in CONFIGURED.items()
        for scope, name, began, ended, value in said
    ]
    return table(spark, EVENTS, events), table(spark, KNOWN_SPANS, spans), table(spark, CONFIG_INTERVALS, configs)


def add_seconds(seconds: int) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def table(spark: SparkSession, of: Table, rows: Sequence[Mapping[str, object]]) -> DataFrame:
    return spark.createDataFrame([tuple(row.get(name) for name in of.schema.names) for row in rows], of.schema)


@pytest.mark.parametrize("name", CONFIGURED)
def test_min_insync_replicas_are_those_of_the_topic_else_the_leader_else_all_brokers(
    intervals: Sequence[Row], name: str
) -> None:
    def seconds(moment: datetime) -> int:
        return round((moment.astimezone(UTC) - BEGAN).total_seconds())

    found = [row for row in intervals if row.cluster_id == name]
    assert [(seconds(row.began), seconds(row.ended), row.min_insync_replicas) for row in found] == WANTED[name]
    changed = [row.cause for row in found if seconds(row.began) not in (0, 50)]
    assert changed == ["configs_changed"] * len(changed)
