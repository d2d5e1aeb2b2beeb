"""Compaction: days of raw records are rewritten without records that are not needed, or removed.

It is one change of the raw tables; the next fold makes the layers of what is left. Days that stay complete are not
touched. Removed snapshot entries stay removed if their journal is read again. Forgotten records come back in that case,
until they are forgotten again, so journals should keep less than the history does.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kontroller.history.compacting import forgotten, proven
from kontroller.history.folding.tables import JOURNALS, RAW_EVENTS, RAW_FINDINGS
from kontroller.history.schemas import KNOWN_SPANS, PROOFS
from kontroller.history.store import Change, Store
from kontroller.history.transforms import journals


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The number of snapshots that lost their entries, of those entries, and of forgotten records."""

    snapshots: int
    entries: int
    forgotten: int


def compact(raw: Store, layers: Store, forget_days: int | None) -> Compacted:
    """Remove records from `raw` that are not needed. `layers` were made of it.

    `forget_days`: also forget what is older than so many days before the end of the known time of its cluster; None:
    forget nothing."""
    with raw.begin_change() as change:
        # The order matters: the snapshot at which the history will begin is proven by records that are forgotten next.
        snapshots, entries = _leave_out(change, layers)
        gone = _forget(change, layers, forget_days) if forget_days else 0
        return Compacted(snapshots=snapshots, entries=entries, forgotten=gone)


def _leave_out(change: Change, layers: Store) -> tuple[int, int]:
    raw = change.read(RAW_EVENTS)
    told_by_one = proven.find_single_journal_epochs(journals.assign_clusters(raw, layers.read(JOURNALS)))
    found = proven.find_redundant_snapshots(raw, layers.read(PROOFS), told_by_one).localCheckpoint()
    sums = found.selectExpr("count(*)", "coalesce(sum(ended_seq - started_seq - 1), 0)").collect()
    snapshots, entries = sums[0]
    if snapshots:
        days = found.select("cluster_id", "day").distinct()
        change.write_days(RAW_EVENTS, proven.remove_entries(_select_days(raw, days), found))
    return snapshots, entries


def _forget(change: Change, layers: Store, days: int) -> int:
    owned = journals.add_clusters(change.read(RAW_EVENTS), layers.read(JOURNALS))
    named = owned.withColumn("cluster_id", f.col("of_cluster"))
    told_by_one = proven.find_single_journal_epochs(named)
    first = forgotten.find_beginnings(
        named, layers.read(PROOFS), layers.read(KNOWN_SPANS), told_by_one, days
    ).localCheckpoint()
    by_day = forgotten.mark_forgotten(owned, first).groupBy("cluster_id", f.to_date("event_time").alias("day"))
    counts = (
        by_day.agg(f.count_if("is_forgotten").alias("gone"), f.count("*").alias("records")).where("gone > 0").collect()
    )
    emptied = {(row.cluster_id, str(row.day)) for row in counts if row.gone == row.records}
    if counts:
        change.remove_days(RAW_EVENTS, emptied)
        mixed = [(row.cluster_id, row.day) for row in counts if row.gone < row.records]
        if mixed:
            days_of = owned.sparkSession.createDataFrame(mixed, "cluster_id string, day date")
            change.write_days(RAW_EVENTS, _select_kept(_select_days(owned, days_of), first))
        found = change.read(RAW_FINDINGS).withColumn("of_cluster", f.col("cluster_id"))
        clusters = [row.cluster_id for row in first.select("cluster_id").collect()]
        change.write_clusters(
            RAW_FINDINGS, _select_kept(found.where(f.col("cluster_id").isin(*clusters)), first), clusters
        )
    return sum(row.gone for row in counts)


def _select_kept(rows: DataFrame, first: DataFrame) -> DataFrame:
    return forgotten.mark_forgotten(rows, first).where("not is_forgotten")


def _select_days(raw: DataFrame, days: DataFrame) -> DataFrame:
    rows = raw.withColumn("day", f.to_date("event_time"))
    return rows.join(f.broadcast(days), ["cluster_id", "day"], "left_semi").select(*raw.columns)
