"""Histories as literals: each is a cluster of its own, so that one call of Spark answers for all of a file.

Times are seconds since DAY_1 began.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import count, pairwise
from typing import Any, Final, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from kontroller.history.schemas import BROKER_INTERVALS, EVENTS, KNOWN_SPANS, PARTITION_INTERVALS, Table
from tests.spark.on_duckdb import list_types

Row: TypeAlias = dict[str, Any]
Step: TypeAlias = tuple[float, Row | None]
"""The time at which the step begins, and its changes. None: the state is unknown from then on. PROVEN: so it is, but it is
proven that there is no leader."""

DAY: Final = 86_400
DAY_1: Final = datetime(2026, 1, 1, tzinfo=UTC)
HEALTHY: Final[Row] = {
    "leader": 1,
    "isr": [1, 2, 3],
    "replicas": [1, 2, 3],
    "adding": [],
    "removing": [],
    "leader_epoch": 0,
    "leader_recovery_state": 0,
    "partition_epoch": 0,
    "min_insync_replicas": 2,
    "topic_id": "id",
}
PROVEN: Final[Row] = {"is_known": False, "leader": -1}
OF_THE_RECORD: Final = {
    "cause": "created",
    "correlation_id": None,
    "principal": None,
    "address": None,
    "unclean": False,
    "took_us": None,
}

_seqs = count(1000)


def make_time(seconds: float) -> datetime:
    return DAY_1 + timedelta(seconds=seconds)


def day(number: int) -> date:
    return (DAY_1 + timedelta(days=number - 1)).date()


def partition(*steps: Step, until: float, topic: str = "t", number: int = 0, is_last: bool = True) -> list[Row]:
    """Return the intervals of one partition. A step says what changed. `is_last` False: the partition was deleted at
    the end."""
    state, rows, epoch, seq = dict(HEALTHY), [], 1, None
    for (began, changes), (ended, _) in pairwise([*steps, (until, None)]):
        row = {
            "topic": topic,
            "partition": number,
            "began": make_time(began),
            "ended": make_time(ended),
            "is_known": changes is not None,
        }
        if changes is None or changes is PROVEN:
            row |= changes or {}
            row |= {"topic_id": state["topic_id"], "controller_epoch": epoch, "seq": seq}
        else:
            epoch, seq = changes.get("controller_epoch", epoch), changes.get("seq", next(_seqs))
            state.update({name: value for name, value in changes.items() if name not in OF_THE_RECORD})
            row |= OF_THE_RECORD | state | changes | {"controller_epoch": epoch, "seq": seq}
        rows.append(row)
    rows[-1]["is_last"] = is_last
    return rows


def broker(number: int, rack: str | None, began: float, ended: float, **more: Any) -> Row:
    row = {
        "broker": number,
        "rack": rack,
        "began": make_time(began),
        "ended": make_time(ended),
        "is_known": True,
        "broker_epoch": 1,
    }
    return row | {"controller_epoch": 1, "seq": next(_seqs)} | more


def span(began: float, ended: float, **more: Any) -> Row:
    """Return a span that has all records of its epoch, unless `more` says otherwise."""
    row = {"span": next(_seqs), "controller_epoch": 1, "first_seq": 0, "last_seq": 10**9, "has_time": True}
    return row | {"began": make_time(began), "ended": make_time(ended), "ended_by": "end"} | more


def event(when: float, kind: str, **more: Any) -> Row:
    return {"event_time": make_time(when), "kind": kind, "controller_epoch": 1, "seq": next(_seqs)} | more


def table(spark: SparkSession, schema_of: Table, clusters: Mapping[str, Iterable[Row]]) -> DataFrame:
    """The rows of all clusters in one table."""
    names = schema_of.schema.fieldNames()
    rows = [
        tuple(({"cluster_id": cluster} | row).get(name) for name in names)
        for cluster in clusters
        for row in clusters[cluster]
    ]
    return spark.createDataFrame(rows, schema_of.schema)


class Histories:
    """The histories of clusters, by their names."""

    def __init__(self, spark: SparkSession, clusters: Mapping[str, Sequence[Row]]) -> None:
        """Clusters must have different rows, because rows are told apart by their values."""
        kinds: dict[Table, dict[str, list[Row]]] = {
            kind: defaultdict(list) for kind in (PARTITION_INTERVALS, BROKER_INTERVALS, KNOWN_SPANS, EVENTS)
        }
        for cluster, rows in clusters.items():
            for row in rows:
                kinds[_kind(row)][cluster].append(row)
        self.partitions = table(spark, PARTITION_INTERVALS, kinds[PARTITION_INTERVALS])
        self.brokers = table(spark, BROKER_INTERVALS, kinds[BROKER_INTERVALS])
        self.spans = table(spark, KNOWN_SPANS, kinds[KNOWN_SPANS])
        self.events = table(spark, EVENTS, kinds[EVENTS])


def _kind(row: Row) -> Table:
    if "kind" in row:
        return EVENTS
    if "span" in row:
        return KNOWN_SPANS
    return BROKER_INTERVALS if "broker" in row else PARTITION_INTERVALS


Answers: TypeAlias = Callable[..., list[tuple[Any, ...]]]


def answers(answer: DataFrame, schema_of: Table) -> Answers:
    """Computes it once. `found(cluster, *columns)` are then those columns of the cluster's rows, in the table's order."""
    assert answer.columns == schema_of.schema.fieldNames()
    assert list_types(answer.schema) == list_types(schema_of.schema)
    rows = [row.asDict() for row in answer.orderBy(*schema_of.order).collect()]

    def read_rows(cluster: str, *columns: str) -> list[tuple[Any, ...]]:
        return [tuple(_utc(row[name]) for name in columns) for row in rows if row["cluster_id"] == cluster]

    return read_rows


def _utc(value: Any) -> Any:
    """Spark gives times without a zone, in the zone of this machine."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value
