"""Alarms as a stream: events in, `alarms` out, and their output files.

The key is the cluster, so its time, snapshots and default configuration are in the same place as its topics. A cluster
that is too large for one task is divided into shards by topic. Each shard gets the records about the whole cluster, and
sometimes records that only advance time.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from kontroller.history.alarms.processor import OUTPUT, WatchProcessor
from kontroller.history.alarms.records import Rules, Seen
from kontroller.history.schemas import ALARMS
from kontroller.history.transforms.config_intervals import MIN_ISR
from kontroller.history.transforms.continuity.neighbours import is_request

STATE_STORE: Final = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
"""Settings that a session needs before a query with alarms starts: Spark's default state store cannot keep this
state."""

_OF_TOPICS: Final = (
    "leadership",
    "leadership_removed",
    "assignment",
    "assignment_removed",
    "topic_removed",
    "topic_config",
    "topic_config_removed",
)
_OF_CLUSTERS: Final = (
    "snapshot_started",
    "snapshot_ended",
    "gap",
    "controller_elected",
    "recorder_started",
    "broker_config",
    "broker_config_removed",
    "broker_static_config",
    "broker_static_config_removed",
)
_TIME_ALONE: Final = "time"
_MICROSECONDS: Final = 1_000_000


def raise_alarms(
    events: DataFrame,
    *,
    leaderless_after_seconds: float = 30,
    under_min_isr_after_seconds: float = 30,
    min_insync_replicas: int = 1,
    alive_interval_seconds: float = 10,
    silent_after_seconds: float = 30,
    is_live: bool = False,
    shards: int = 1,
) -> DataFrame:
    """Return rows of `alarms` for a stream of `events`.

    An alarm is raised if a partition has had no leader, or fewer in-sync replicas than `min.insync.replicas`, for
    longer than given, and cleared when that is over. `min_insync_replicas` holds if no record states it.
    `alive_interval_seconds` is the setting of the controllers' journals. `is_live`: problems become due while nothing
    is written, and a cluster is `silent` after `silent_after_seconds` without a record. Otherwise only the records
    decide, so the same stream gives the same alarms. `shards`: the number of parts of a cluster's topics. Neither of
    the last two can change for a checkpoint. Raises ValueError for a time below zero or less than one shard.
    """
    if shards < 1:
        raise ValueError(f"a cluster has at least one shard, not {shards}")
    rules = Rules(
        leaderless_after_us=round(leaderless_after_seconds * _MICROSECONDS),
        under_min_isr_after_us=round(under_min_isr_after_seconds * _MICROSECONDS),
        min_isr=min_insync_replicas,
        alive_interval_us=round(alive_interval_seconds * _MICROSECONDS),
        silent_after_us=round(silent_after_seconds * _MICROSECONDS),
    )
    watched = _divide_into_shards(events.where(~is_request()), shards).groupBy("cluster_id", "shard")
    time = "ProcessingTime" if is_live else "None"
    processor = WatchProcessor(rules, is_live=is_live)
    alarms = watched.transformWithState(processor, OUTPUT, outputMode="Append", timeMode=time)
    times = {"began": f.timestamp_micros("began_us"), "at": f.timestamp_micros("at_us")}
    return alarms.withColumns(times).select(*ALARMS.schema.fieldNames())


def write_alarms(
    alarms: DataFrame, location: str, checkpoint: str, *, every_seconds: float | None = 5
) -> StreamingQuery:
    """Start to append alarms to JSON files below `location`. The query runs until it is stopped, and writes each alarm
    once.

    `every_seconds` None: process what is there now, then end. Raises `pyspark.errors.PySparkException` if the query
    cannot start.
    """
    for name, value in STATE_STORE.items():
        alarms.sparkSession.conf.set(name, value)
    writer = alarms.writeStream.format("json").option("path", location).option("checkpointLocation", checkpoint)
    writer = writer.outputMode("append")
    if every_seconds is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{every_seconds} seconds").start()


def _divide_into_shards(events: DataFrame, shards: int) -> DataFrame:
    """Return the fields of `Seen` by cluster and shard.

    A topic's records go to one shard, the cluster's to all, and each record advances time in one more."""
    kind = f.col("kind")
    of_topic = kind.isin(*_OF_TOPICS) & f.col("topic").isNotNull()
    of_cluster = kind.isin(*_OF_CLUSTERS)
    own, other = f.pmod(f.xxhash64("topic"), f.lit(shards)), f.pmod("seq", f.lit(shards))
    everywhere = f.sequence(f.lit(0), f.lit(shards - 1)).cast("array<bigint>")
    is_time = ~of_topic & ~of_cluster
    # Records that only advance time may be the last ones for long, so all shards get them.
    to = f.when(of_topic, f.array_distinct(f.array(own, other))).when(
        of_cluster | (kind == "controller_alive"), everywhere
    )
    seen = events.withColumn("shard", f.explode(to.otherwise(f.array(other))))
    meant = ~is_time & (of_cluster | (f.col("shard") == own))
    return seen.select("cluster_id", "shard", *_fields(meant))


def _fields(meant: Column) -> list[Column]:
    values = {
        "at_us": f.unix_micros("event_time"),
        "kind": f.when(meant, f.col("kind")).otherwise(_TIME_ALONE),
        "in_sync": f.array_size("isr"),
        "min_isr": f.expr(MIN_ISR),
        "assigned": f.array_size("replicas"),
    }
    return [values.get(name, f.col(name)).alias(name) for name in Seen._fields]
