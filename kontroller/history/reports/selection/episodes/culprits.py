"""The brokers whose absence from the ISR made the incidents of an episode, and whether they were registered then.

A partition without a leader waits for the members of its ISR, or for any replica if that is empty. A partition under
min ISR lacks the replicas that are not in its ISR. A broker that is registered but not in sync is slow, hangs, or is
cut off from the leaders.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kontroller.history import schemas
from kontroller.history.reports.selection.tables import Tables

State = Literal["gone", "there", "unknown"]
PARTITION: Final = ("cluster_id", "topic", "partition")
MOST: Final = 5_000
"""The brokers of all kinds of incidents that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """A broker that was missing in `incidents` incidents of a kind."""

    broker: int
    state: State
    incidents: int
    began_us: int
    ended_us: int
    """The end of the last of these incidents."""


Kind = tuple[object, ...]
Culprits = Mapping[Kind, Sequence[Culprit]]


def find_culprits(tables: Tables, incidents: DataFrame, kind: Sequence[str]) -> Culprits:
    """Return the culprits by the values of `kind`, the most frequent ones first.

    `incidents`: rows of INCIDENTS with `began_us`, `ended_us` and `kind`."""
    record = (*PARTITION, "controller_epoch", "seq")
    states = tables[schemas.PARTITION_INTERVALS].where("is_known").select(*record, "replicas", "isr")
    waited_for = f.when(f.size("isr") > 0, f.col("isr")).otherwise(f.col("replicas"))
    out_of_sync = f.array_except("replicas", "isr")
    missing = f.explode(f.when(f.col("problem") == "leaderless", waited_for).otherwise(out_of_sync)).alias("broker")
    rows = incidents.join(states, list(record)).select(*PARTITION, *_others(kind), "began_us", "ended_us", missing)
    known = _select_registrations(tables)
    at_once = (f.col("from_us") <= f.col("began_us")) & (f.col("began_us") < f.col("until_us"))
    same = (rows.cluster_id == known.of) & (rows.broker == known.registered) & at_once
    each = rows.join(known, same, "left").groupBy(*PARTITION, *_others(kind), "broker", "began_us").agg(
        f.max("ended_us").alias("ended_us"), f.bool_or("is_there").alias("is_there")
    )  # fmt: skip
    state = (
        f.when(f.count_if(f.col("is_there")) > 0, "there").when(f.count("is_there") > 0, "unknown").otherwise("gone")
    )
    sums = each.groupBy(*kind, "broker").agg(
        f.count("*").alias("incidents"),
        f.min("began_us").alias("began_us"),
        f.max("ended_us").alias("ended_us"),
        state.alias("state"),
    )
    found: dict[Kind, list[Culprit]] = defaultdict(list)
    for row in sums.orderBy(f.col("incidents").desc(), "broker", *kind).limit(MOST).collect():
        found[tuple(row[name] for name in kind)].append(
            Culprit(
                broker=row["broker"],
                state=row["state"],
                incidents=row["incidents"],
                began_us=row["began_us"],
                ended_us=row["ended_us"],
            )
        )
    return found


def _others(kind: Sequence[str]) -> list[str]:
    return [name for name in kind if name not in PARTITION]


def _select_registrations(tables: Tables) -> DataFrame:
    """Return the times in which a broker was registered, or in which it is unknown if it was (`is_there` is false)."""
    rows = tables.clip(schemas.BROKER_INTERVALS)
    return rows.select(
        f.col("cluster_id").alias("of"),
        f.col("broker").alias("registered"),
        f.col("began_us").alias("from_us"),
        f.col("ended_us").alias("until_us"),
        f.col("is_known").alias("is_there"),
    )
