"""The tables that the pipeline makes from lines of journals. All clusters go through one run."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kontroller.history.answers.options import Options
from kontroller.history.answers.outages.availability import availability
from kontroller.history.answers.outages.detection import find_dead_leaderships
from kontroller.history.schemas import CONFIG_INTERVALS, PARTITION_INTERVALS
from kontroller.history.transforms.continuity.breaks import marks
from kontroller.history.transforms.continuity.doubts import doubts
from kontroller.history.transforms.known_spans import find_known_spans
from kontroller.history.transforms.partition_intervals import partition_intervals
from tests.spark.clocks.journals import lines
from tests.spark.clocks.oracle import Record, Timeline, tidy
from tests.spark.histories import make_events


@dataclass(slots=True)
class Folded:
    """The results, by cluster."""

    timelines: dict[str, dict[int, Timeline]] = field(default_factory=lambda: defaultdict(dict))
    findings: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    days: Counter[str] = field(default_factory=Counter)
    unknown_seconds: dict[str, float] = field(default_factory=dict)
    leaderless_seconds: dict[str, float] = field(default_factory=dict)


def fold_journals(spark: SparkSession, journals: Mapping[str, Sequence[Sequence[Record]]]) -> Folded:
    """Fold the journals of each cluster. Each journal is in a folder of its own."""
    folders = [lines(records, name) for name, of_cluster in journals.items() for records in of_cluster]
    events = make_events(spark, *folders).localCheckpoint()
    intervals = _intervals(spark, events)
    found = Folded()
    for (name, partition), states in _states(intervals).items():
        found.timelines[name][partition] = tidy(iter(states))
    for finding in doubts(marks(events)).collect():
        found.findings[finding.cluster_id][finding.problem] += finding["count"]
    dead = find_dead_leaderships(intervals, find_known_spans(marks(events)).localCheckpoint(), events, Options())
    by_cluster = availability(intervals, dead, Options()).groupBy("cluster_id")
    names = ("unknown_seconds", "leaderless_seconds")
    for row in by_cluster.agg(f.count("*").alias("days"), *(f.sum(name).alias(name) for name in names)).collect():
        found.days[row.cluster_id] = row.days
        found.unknown_seconds[row.cluster_id] = row.unknown_seconds
        found.leaderless_seconds[row.cluster_id] = row.leaderless_seconds
    return found


def _intervals(spark: SparkSession, events: DataFrame) -> DataFrame:
    configs = spark.createDataFrame([], CONFIG_INTERVALS.schema)
    return partition_intervals(events, find_known_spans(marks(events)).localCheckpoint(), configs).localCheckpoint()


def _states(intervals: DataFrame) -> Mapping[tuple[str, int], Timeline]:
    states: dict[tuple[str, int], Timeline] = defaultdict(list)
    times = (f.unix_micros(name).alias(f"{name}_us") for name in ("began", "ended"))
    for row in intervals.select("*", *times).orderBy(*PARTITION_INTERVALS.order).collect():
        states[row.cluster_id, row.partition].append((row.began_us, row.ended_us, row.leader))
    return states
