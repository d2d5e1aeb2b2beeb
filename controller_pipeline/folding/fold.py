"""How the layers are made of what was taken in: those of a cluster anew where something of it is new, of no other.

A cluster is folded by itself, and from its first record on, so it makes no difference in what pieces its records came. The
layers are divided by cluster, and their generation says of which parts of the raw tables they are made, and by which
definitions. So what has no new part keeps its tables as they are, and where the definitions are others all is made anew.
An ingest that was killed before it came to this has left new parts, which the next one finds.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_pipeline.folding.tables import JOURNALS, RAW_EVENTS, RAW_FINDINGS, TALLIES
from controller_pipeline.folding.what_is_new import Pair, definitions, folded_again, read_for
from controller_pipeline.generations.generation import Made, Parts, cluster_of, of_clusters
from controller_pipeline.progress import Steps
from controller_pipeline.schemas import (
    CONFIG_INTERVALS,
    EVENTS,
    FINDINGS,
    KNOWN_SPANS,
    LAYERS,
    PARTITION_INTERVALS,
    PROOFS,
    Table,
)
from controller_pipeline.sources import text_logs
from controller_pipeline.store import Change, Store
from controller_pipeline.transforms import journals, layers, lines
from controller_pipeline.transforms.accounts.once import once
from controller_pipeline.transforms.config_intervals import config_intervals
from controller_pipeline.transforms.known_spans import known_spans

ROWS_IN_A_FILE: Final = 1 << 20
"""Of a large table, about: how many files a cluster's rows are follows from how many events it has."""
_LARGE: Final = (FINDINGS, PARTITION_INTERVALS)
"""Layers that grow with the records; of the others there are a few rows for each term, snapshot or configuration."""


def fold(raw: Store, store: Store, steps: Steps) -> None:
    """Makes the layers in `store` be those of all that is in `raw`, which is read as it is now."""
    now = raw.at_present
    made = Made(by=definitions(), number=now.number, parts=now.parts)
    news = made.news(store.at_present.made)
    if news is None or any(news.values()):
        with store.changing(made, is_anew=news is None) as change:
            _folding(raw, change, steps, made.parts if news is None else news).run()


def _folding(raw: Store, change: Change, steps: Steps, news: Parts) -> "_Folding":
    """`news`: the parts of raw tables that no layer is made of yet."""
    new = _pairs(raw.read_parts(RAW_EVENTS, news.get(RAW_EVENTS.name, ())))
    known = _pairs(change.read(JOURNALS))
    change.write(JOURNALS, raw.spark.createDataFrame(sorted(new | known), JOURNALS.schema))
    changed = {cluster_of(part) for parts in news.values() for part in parts}
    clusters = folded_again(changed, new, new | known)
    return _Folding(raw=raw, change=change, steps=steps, clusters=clusters, read=read_for(clusters, new | known))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folding:
    """Makes the layers of some clusters."""

    raw: Store
    change: Change
    steps: Steps
    clusters: frozenset[str]
    read: frozenset[str]
    """Of which clusters raw records are read."""

    def run(self) -> None:
        unreadable = text_logs.counted(self._raw(RAW_FINDINGS, self.clusters))
        events, repeated = once(self._records())
        events = self._kept(EVENTS, events)
        records = _counted(events)
        files = {name: 1 + count // ROWS_IN_A_FILE for name, count in records.items() if count >= ROWS_IN_A_FILE}
        spans = self._kept(KNOWN_SPANS, known_spans(events))
        configs = self._kept(CONFIG_INTERVALS, config_intervals(events, spans))
        derived = layers.derive(events, unreadable.unionByName(repeated), spans, configs)
        kept = {
            table: self._kept(table, derived.of(table), files if table in _LARGE else None)
            for table in LAYERS
            if table not in (EVENTS, KNOWN_SPANS, CONFIG_INTERVALS)
        }
        self._tally(records, kept[PROOFS], _counted(kept[FINDINGS]))

    def _records(self) -> DataFrame:
        """What was taken in of these clusters, with what only all of it says: whose a journal is, and who wrote it."""
        found = _numbered(self._raw(RAW_EVENTS, self.read))
        named = journals.of_their_clusters(found, self.change.read(JOURNALS))
        return lines.of_their_writers(named.where(f.col("cluster_id").isin(*self.clusters)))

    def _raw(self, table: Table, clusters: Collection[str]) -> DataFrame:
        return self.raw.read_parts(table, of_clusters(self.raw.at_present.parts.get(table.name, ()), clusters))

    def _kept(self, table: Table, rows: DataFrame, files: dict[str, int] | None = None) -> DataFrame:
        with self.steps.step(f"Making the table {table.name}"):
            return self.change.write_clusters(table, rows, self.clusters, files)

    def _tally(self, records: Mapping[str, int], proofs: DataFrame, findings: Mapping[str, int]) -> None:
        """Notes what there is of these clusters, beside what was noted of the others."""
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
        others = self.change.read(TALLIES).where(~f.col("cluster_id").isin(*self.clusters))
        self.change.write(TALLIES, others.unionByName(rows))


def _counted(rows: DataFrame) -> dict[str, int]:
    return {row.cluster_id: row["count"] for row in rows.groupBy("cluster_id").count().collect()}


def _pairs(rows: DataFrame) -> set[Pair]:
    return {(row.cluster_id, row.journal) for row in rows.select("cluster_id", "journal").distinct().collect()}


def _numbered(raw: DataFrame) -> DataFrame:
    """What was taken in; what Kafka's logs say is numbered now, as every line of theirs may change that."""
    of_logs = raw.where(f.col("origin") == lines.LOGS)
    if of_logs.isEmpty():
        return raw
    others = raw.where(f.col("origin") != lines.LOGS)
    return others.unionByName(text_logs.numbered(of_logs).localCheckpoint())
