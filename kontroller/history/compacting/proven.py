"""Redundant entries of snapshots: both the records before them and the entries result in the snapshot's checksum.

A journal repeats its whole state each hour, which soon is most of the data. One such snapshot of each day stays, so
that a history can begin there after older records are forgotten. In the others the first record stands for the entries
(`left_out`), and the last one has their checksum. Epochs with several journals keep everything: snapshots decide which
journal is used, and the decision may change with new records.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from kontroller.history.transforms.continuity.neighbours import EPOCH

_STRETCH: Final = 1 << 12
"""The number of records in a stretch. Records are joined with snapshots by stretches."""
_OF_JOURNAL: Final = (*EPOCH, "journal")
_SNAPSHOT: Final = (*_OF_JOURNAL, "started_seq", "ended_seq")


def find_redundant_snapshots(raw: DataFrame, proofs: DataFrame, told_by_one: DataFrame) -> DataFrame:
    """Return the snapshots whose entries can go: `cluster_id`, `controller_epoch`, `journal`, `started_seq`,
    `ended_seq`, `day`.

    `raw`: the raw events. `proofs`: the checksums of the history. `told_by_one`: the epochs with a single journal."""
    first = f"row_number() over (partition by {', '.join(EPOCH)}, to_date(event_time) order by seq) = 1 as is_first"
    equal = proofs.where("entries > 0 and folded_checksum = checksum and snapshot_checksum = checksum")
    said = equal.selectExpr(*EPOCH, "seq", "entries", "checksum", first).where("not is_first")
    ends = raw.where(f"kind = '{Kind.SNAPSHOT_ENDED}'").select(*_OF_JOURNAL, "seq", "entries", "checksum")
    ends = ends.join(f.broadcast(said), [*EPOCH, "seq", "entries", "checksum"], "left_semi")
    ends = ends.join(f.broadcast(told_by_one), [*EPOCH], "left_semi")
    snapshots = ends.selectExpr(*_OF_JOURNAL, "seq - entries - 1 as started_seq", "seq as ended_seq")
    return _whole(_join_snapshots(raw, snapshots, "inner"))


def find_single_journal_epochs(named: DataFrame) -> DataFrame:
    """Return the epochs that have a single journal. The records have the names of their clusters."""
    return named.groupBy(*EPOCH).agg(f.count_distinct("journal").alias("journals")).where("journals = 1").select(*EPOCH)


def remove_entries(raw: DataFrame, snapshots: DataFrame) -> DataFrame:
    """Return the records without the entries of these snapshots."""
    rows = _join_snapshots(raw, snapshots, "left")
    left_out = "if(seq = started_seq, ended_seq - started_seq - 1, left_out) as left_out"
    names = [name if name != "left_out" else left_out for name in raw.columns]
    return rows.where("started_seq is null or seq in (started_seq, ended_seq)").selectExpr(*names)


def drop_removed_entries(new: DataFrame, kept: DataFrame) -> DataFrame:
    """Return the new records without entries that were removed from `kept`. They come again if a journal is read
    again."""
    begun = kept.where("left_out is not null").selectExpr(
        *_OF_JOURNAL, "seq as started_seq", "seq + left_out as through_seq"
    )
    inside = [f.col(f"new.{name}") == f.col(f"begun.{name}") for name in _OF_JOURNAL]
    is_inside = f.expr("new.snapshot and new.seq > started_seq and new.seq <= through_seq")
    return new.alias("new").join(f.broadcast(begun).alias("begun"), [*inside, is_inside], "left_anti")


def _join_snapshots(raw: DataFrame, snapshots: DataFrame, how: str) -> DataFrame:
    """Join records with the snapshot that they are in."""
    stretches = f"explode(sequence(started_seq div {_STRETCH}, ended_seq div {_STRETCH})) as stretch"
    places = f.broadcast(snapshots.select(*_SNAPSHOT).selectExpr("*", stretches)).alias("of")
    rows = raw.alias("raw")
    same = [f.col(f"raw.{name}") == f.col(f"of.{name}") for name in _OF_JOURNAL]
    is_in = f.expr(f"raw.seq div {_STRETCH} = stretch and raw.seq between started_seq and ended_seq")
    return rows.join(places, [*same, is_in], how).select("raw.*", "started_seq", "ended_seq")


def _whole(rows: DataFrame) -> DataFrame:
    """Return the snapshots with exactly the announced entries, all of one day, so that all of it is in one place."""
    is_entry = f.expr("snapshot and seq > started_seq and seq < ended_seq")
    is_start = f.expr(f"kind = '{Kind.SNAPSHOT_STARTED}' and seq = started_seq and left_out is null")
    day = f.to_date("event_time")
    found = rows.groupBy(*_SNAPSHOT).agg(
        f.count_if(is_entry).alias("entries"),
        f.count_distinct(f.when(is_entry, f.col("seq"))).alias("numbers"),
        f.count_if(is_start).alias("starts"),
        f.count("*").alias("records"),
        f.min(day).alias("day"),
        f.max(day).alias("last_day"),
    )
    is_whole = "entries = ended_seq - started_seq - 1 and numbers = entries and starts = 1 and records = entries + 2"
    return found.where(f"{is_whole} and day = last_day").select(*_SNAPSHOT, "day")
