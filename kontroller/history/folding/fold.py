"""Makes the layers of the raw records. Only clusters with new records are folded again.

Clusters are folded independently, so the order of intake does not matter. The generation of the layers names the raw
parts and the definitions that they are made of. Clusters without new parts keep their tables, and new definitions fold
everything again. The next fold finds what a killed ingest has left.

If a cluster has only got later records, its events, changes, marks and snapshot checksums are made again from a
midnight on, its *tail* (`folding.tails`). The rest is derived from them. It reads earlier events only since the last
snapshot.
"""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f

from kontroller.history.folding import tails
from kontroller.history.folding.choice import Choice, choose, list_raw_tails
from kontroller.history.folding.definitions import (
    OF_BROKERS,
    OF_CHANGES,
    OF_CHECKSUMS,
    OF_CONFIGS,
    OF_COUNTS,
    OF_EVENTS,
    OF_MARKS,
    OF_PARTITIONS,
    OF_PROOFS,
    OF_UNKNOWN_TOPICS,
    Definition,
)
from kontroller.history.folding.embedded import compute, write
from kontroller.history.folding.tables import CHANGES, JOURNALS, MARKS, RAW_EVENTS, RAW_FINDINGS, TALLIES
from kontroller.history.folding.what_is_new import NAMELESS, definitions, find_nameless_journals, read_for
from kontroller.history.generations.generation import Made, Part, is_from, select_clusters
from kontroller.history.progress import Steps
from kontroller.history.schemas import (
    BROKER_INTERVALS,
    CONFIG_INTERVALS,
    EVENTS,
    FINDINGS,
    KNOWN_SPANS,
    PARTITION_INTERVALS,
    PROOFS,
    Table,
)
from kontroller.history.sources import text_logs
from kontroller.history.store import Change, Store
from kontroller.history.transforms import journals, layers, lines
from kontroller.history.transforms.accounts.once import count_records, deduplicate
from kontroller.history.transforms.continuity import breaks
from kontroller.history.transforms.continuity.set_clocks import correct_stamps
from kontroller.history.transforms.known_spans import find_known_spans

ROWS_IN_A_FILE: Final = 1 << 20
"""The approximate rows of a file of a large table. The number of a cluster's files follows from the number of its
events."""
TABLES_AT_ONCE: Final = 2
"""While Spark plans one table, it computes another one."""


def fold(raw: Store, store: Store, steps: Steps) -> None:
    """Bring the layers in `store` up to date with `raw`, which is read as it is now."""
    now = raw.at_present
    made = Made(by=definitions(), number=now.number, parts=now.parts)
    news = made.news(store.at_present.made)
    if news is None or any(news.values()):
        with store.begin_change(made, is_anew=news is None) as change:
            choice = choose(raw, change, made.parts if news is None else news)
            pairs = [(*pair, is_recorded) for pair, is_recorded in sorted(choice.writers.items())]
            change.write(JOURNALS, raw.spark.createDataFrame(pairs, JOURNALS.schema))
            if choice.clusters:
                _Folding(raw=raw, change=change, steps=steps, choice=choice).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folding:
    """Folds some clusters."""

    raw: Store
    change: Change
    steps: Steps
    choice: Choice

    def run(self) -> None:
        counts: dict[str, int] = {}
        marks, findings = [], []
        if self.choice.tails:
            of_tails, found = self._fold_tails()
            marks.append(of_tails)
            findings.append(found)
        if self.choice.whole:
            of_whole, found_in_whole, counts = self._fold_whole()
            marks.append(of_whole)
            findings += found_in_whole
        written = self._write(MARKS, reduce(DataFrame.unionByName, marks))
        spans = self._write(KNOWN_SPANS, find_known_spans(written))
        checksums = self._checksums()
        self._write_changes()
        records = counts | self._count_tails()
        files = {name: 1 + count // ROWS_IN_A_FILE for name, count in records.items() if count >= ROWS_IN_A_FILE}
        with self.steps.step(f"Making the table {CONFIG_INTERVALS.name}"):
            self._replace(CONFIG_INTERVALS, self._make(CONFIG_INTERVALS, OF_CONFIGS))
        findings.append(text_logs.count_unreadable(self._raw(RAW_FINDINGS, self.choice.clusters)))
        findings.append(compute(self.change.store, OF_UNKNOWN_TOPICS, self._list_kept(OF_UNKNOWN_TOPICS)))
        found = layers.all_findings(reduce(DataFrame.unionByName, findings), written, spans)
        derived: dict[Table, Callable[[], tuple[Part, ...]]] = {
            FINDINGS: lambda: self.change.add_clusters(FINDINGS, found, files),
            PARTITION_INTERVALS: lambda: self._make(PARTITION_INTERVALS, OF_PARTITIONS, files),
            BROKER_INTERVALS: lambda: self._make(BROKER_INTERVALS, OF_BROKERS),
            PROOFS: lambda: self._make(PROOFS, OF_PROOFS, snapshot_checksums=checksums),
        }
        kept = self._write_derived(derived)
        self._tally(records, kept[PROOFS], _count_by_cluster(kept[FINDINGS]))

    def _write_derived(self, derived: Mapping[Table, Callable[[], tuple[Part, ...]]]) -> dict[Table, DataFrame]:
        """Write the layers that no other layer is made of."""
        names = ", ".join(table.name for table in derived)
        with self.steps.step(f"Making the tables {names}"), ThreadPoolExecutor(TABLES_AT_ONCE) as pool:
            parts = pool.map(lambda make: make(), derived.values())
            return {table: self._replace(table, of) for table, of in zip(derived, parts, strict=True)}

    def _make(
        self, table: Table, definition: Definition, files: Mapping[str, int] | None = None, **few: DataFrame
    ) -> tuple[Part, ...]:
        """Write a table that follows from the kept tables of all clusters that are folded. `few`: tables that are not
        kept."""
        return write(self.change, table, definition, self.change.store, self._list_kept(definition, few), files, **few)

    def _replace(self, table: Table, parts: tuple[Part, ...]) -> DataFrame:
        return self.change.replace_clusters(table, self.choice.clusters, parts)

    def _list_kept(self, definition: Definition, few: Collection[str] = ()) -> dict[Table, tuple[Part, ...]]:
        """Return the kept parts of all clusters that are folded, of the tables that a definition reads."""
        return {table: self._parts(table, self.choice.clusters) for table in definition.reads if table.name not in few}

    def _fold_tails(self) -> tuple[DataFrame, DataFrame]:
        """Write the events of tails. Return all marks of their clusters, and the findings about records that were left
        out."""
        of, days = self.choice.tails, self.choice.days
        with self.steps.step(f"Making the table {EVENTS.name} from the last known midnight on"):
            events = self.change.replace_days_from(EVENTS, days, self._make_events(list_raw_tails(self.raw, days)))
        new = breaks.marks(tails.add_interval(events, of))
        marks = tails.merge_marks(self._read(MARKS, days), new, of)
        return marks, self._read(FINDINGS, days).where(f.col("problem").isin(*tails.LEFT_OUT))

    def _fold_whole(self) -> tuple[DataFrame, list[DataFrame], dict[str, int]]:
        """Write the events of the clusters that are folded from their first record on. Return their marks, their
        findings, and the number of their events."""
        clusters = self.choice.whole
        nameless = find_nameless_journals(self.choice.writers.keys())
        mixed = {cluster for cluster, journal in self.choice.writers if journal in nameless}
        parts = self._raw_parts(RAW_EVENTS, clusters - mixed)
        counted = compute(self.raw, OF_COUNTS, {RAW_EVENTS: parts}).collect()
        plain = {row.cluster_id: row.records for row in counted if row.is_once and not row.is_of_logs}
        counts: dict[str, int] = {}
        findings: list[DataFrame] = []
        with self.steps.step(f"Making the table {EVENTS.name}"):
            if others := clusters - plain.keys():
                counts, findings = self._choose_accounts(others, [row for row in counted if row.cluster_id in others])
            if plain:
                parts = self._make_events(self._raw_parts(RAW_EVENTS, plain))
                self.change.replace_clusters(EVENTS, plain, parts)
        marks = compute(self.change.store, OF_MARKS, {EVENTS: self._parts(EVENTS, clusters)})
        return marks, findings, counts | plain

    def _make_events(self, raw: tuple[Part, ...]) -> tuple[Part, ...]:
        """Write the events of raw parts, each record of which is used as it is."""
        return write(self.change, EVENTS, OF_EVENTS, self.raw, {RAW_EVENTS: raw}, journals=self.change.read(JOURNALS))

    def _choose_accounts(self, clusters: frozenset[str], counted: list[Row]) -> tuple[dict[str, int], list[DataFrame]]:
        """Write the events of clusters with several accounts of an epoch, records that name no cluster, or logs. Return
        the number of the events of each cluster, and the findings about records that were left out.

        `counted`: the result of `count_records` for the clusters without records that name none."""
        records, told = self._records(clusters, counted)
        several = frozenset(name for name, row in told.items() if not row.is_once)
        counts = {name: row.records for name, row in told.items()}
        findings = []
        if several:
            of_several = correct_stamps(records.where(f.col("cluster_id").isin(*several)), _compute)
            events, left_out = deduplicate(of_several, _compute)
            kept = _count_by_cluster(self.change.write_clusters(EVENTS, events, several))
            # Equal counts mean that no record was left out, which saves another pass over the records.
            fewer = [name for name in several if counts[name] != kept.get(name)]
            if fewer:
                findings.append(left_out.where(f.col("cluster_id").isin(*fewer)))
            counts |= {name: kept.get(name, 0) for name in several}
        if once := clusters - several:
            self.change.write_clusters(EVENTS, records.where(f.col("cluster_id").isin(*once)), once)
        return counts, findings

    def _records(self, clusters: frozenset[str], counted: list[Row]) -> tuple[DataFrame, dict[str, Row]]:
        """Return the raw records of these clusters, with the cluster and the kind of writer of each journal, and what
        `count_records` says of them.

        All three need all records of a journal."""
        read = read_for(clusters, self.choice.writers.keys())
        found = self._raw(RAW_EVENTS, read)
        if read == clusters and NAMELESS not in read and not any(row.is_of_logs for row in counted):
            return lines.add_origins(found, self.change.read(JOURNALS)), {row.cluster_id: row for row in counted}
        named = journals.assign_clusters(_number_log_records(found), self.change.read(JOURNALS))
        records = lines.add_origins(named.where(f.col("cluster_id").isin(*clusters)))
        return records, {row.cluster_id: row for row in count_records(records).collect()}

    def _write_changes(self) -> None:
        """Write the changes of tails and of whole clusters."""
        days, whole = self.choice.days, self.choice.whole
        with self.steps.step(f"Making the table {CHANGES.name}"):
            if days:
                self.change.replace_days_from(CHANGES, days, self._make_changes(days))
            if whole:
                self.change.replace_clusters(CHANGES, whole, self._make_changes(dict.fromkeys(whole, "")))

    def _make_changes(self, days: Mapping[str, str]) -> tuple[Part, ...]:
        return write(self.change, CHANGES, OF_CHANGES, self.change.store, self._list_kept_from(days))

    def _checksums(self) -> DataFrame:
        """Return the checksums of all snapshots. Those of snapshots before a tail are kept."""
        of = self.choice.tails
        days = dict.fromkeys(self.choice.whole, "") | {tail.cluster_id: tail.checked_day for tail in of}
        new = compute(self.change.store, OF_CHECKSUMS, self._list_kept_from(days))
        known = self._read(PROOFS, self.choice.days).select(*new.columns)
        return tails.select_others(new, of).unionByName(tails.select_earlier(known, of)) if of else new

    def _read_from(self, table: Table, days: Mapping[str, str]) -> DataFrame:
        """Return the kept rows of each of these clusters from its day on."""
        return self.change.read_parts(table, self._parts_from(table, days))

    def _parts_from(self, table: Table, days: Mapping[str, str]) -> tuple[Part, ...]:
        return tuple(part for part in self.change.parts_of(table) if is_from(part, days))

    def _list_kept_from(self, days: Mapping[str, str]) -> dict[Table, tuple[Part, ...]]:
        """Return the kept parts with the events of each of these clusters from its day on, and with its known spans."""
        return {EVENTS: self._parts_from(EVENTS, days), KNOWN_SPANS: self._parts(KNOWN_SPANS, days)}

    def _count_tails(self) -> dict[str, int]:
        """Return the number of records of each cluster with a tail."""
        if not self.choice.tails:
            return {}
        told = _count_by_cluster(self._read_from(EVENTS, self.choice.days))
        return {tail.cluster_id: tail.records_before + told.get(tail.cluster_id, 0) for tail in self.choice.tails}

    def _raw(self, table: Table, clusters: Collection[str]) -> DataFrame:
        return self.raw.read_parts(table, self._raw_parts(table, clusters))

    def _raw_parts(self, table: Table, clusters: Collection[str]) -> tuple[Part, ...]:
        return select_clusters(self.raw.at_present.parts.get(table.name, ()), clusters)

    def _read(self, table: Table, clusters: Collection[str]) -> DataFrame:
        """Return the kept rows of these clusters."""
        return self.change.read_parts(table, self._parts(table, clusters))

    def _parts(self, table: Table, clusters: Collection[str]) -> tuple[Part, ...]:
        return select_clusters(self.change.parts_of(table), clusters)

    def _write(self, table: Table, rows: DataFrame) -> DataFrame:
        """Write the rows of all clusters that are folded."""
        with self.steps.step(f"Making the table {table.name}"):
            return self.change.write_clusters(table, rows, self.choice.clusters)

    def _tally(self, records: Mapping[str, int], proofs: DataFrame, findings: Mapping[str, int]) -> None:
        """Write the counts of these clusters beside the counts of the others."""
        is_proven = f.count_if(f.col("folded_checksum") == f.col("checksum"))
        held = proofs.groupBy("cluster_id").agg(
            f.count("folded_checksum").alias("checksums"), is_proven.alias("proven")
        )
        proven = {row.cluster_id: (row.checksums, row.proven) for row in held.collect()}
        new = [
            (name, records.get(name, 0), *proven.get(name, (0, 0)), findings.get(name, 0))
            for name in sorted(records.keys() | findings.keys())
        ]
        rows = self.raw.spark.createDataFrame(new, TALLIES.schema)
        others = self.change.read(TALLIES).where(~f.col("cluster_id").isin(*self.choice.clusters))
        self.change.write(TALLIES, others.unionByName(rows))


def _compute(rows: DataFrame) -> DataFrame:
    """Compute and keep a few rows, so that the plans of what is made of them are short."""
    return rows.localCheckpoint()


def _count_by_cluster(rows: DataFrame) -> dict[str, int]:
    return {row.cluster_id: row["count"] for row in rows.groupBy("cluster_id").count().collect()}


def _number_log_records(raw: DataFrame) -> DataFrame:
    """Return the raw records, with numbers for those from Kafka's logs, because every new line of a log may change
    them."""
    of_logs = raw.where(f.col("origin") == lines.LOGS)
    if of_logs.first() is None:
        return raw
    others = raw.where(f.col("origin") != lines.LOGS)
    return others.unionByName(text_logs.number_records(of_logs).localCheckpoint())
