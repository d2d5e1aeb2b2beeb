"""The choice of the clusters to fold, of those that need only a tail, and the writers of their journals."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame

from kontroller.history.folding import tails
from kontroller.history.folding.definitions import OF_WRITERS
from kontroller.history.folding.embedded import compute
from kontroller.history.folding.tables import JOURNALS, MARKS, RAW_EVENTS, TALLIES
from kontroller.history.folding.tails import Tail
from kontroller.history.folding.what_is_new import Pair, find_clusters_to_fold, find_nameless_journals
from kontroller.history.generations.generation import Part, Parts, cluster_of, date_of, is_from, select_clusters
from kontroller.history.schemas import EVENTS, FINDINGS, KNOWN_SPANS, Table
from kontroller.history.store import Change, Store

_NOTHING_NEW: Final = "9999-12-31"
Writers = Mapping[Pair, bool]
"""True for a cluster and journal if a record shows that a recorder wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The clusters to fold, as a whole or as a tail."""

    clusters: frozenset[str]
    tails: tuple[Tail, ...]
    writers: Writers

    @property
    def whole(self) -> frozenset[str]:
        return self.clusters - {tail.cluster_id for tail in self.tails}

    @property
    def days(self) -> dict[str, str]:
        """The first day to read and write of each cluster with a tail."""
        return {tail.cluster_id: tail.day for tail in self.tails}


def choose(raw: Store, before: Change, news: Parts) -> Choice:
    """Choose the clusters to fold. `news`: the raw parts that no layer is made of yet. `before`: the layers so far."""
    new = _collect_writers(compute(raw, OF_WRITERS, {RAW_EVENTS: news.get(RAW_EVENTS.name, ())}))
    known = _collect_writers(before.read(JOURNALS))
    writers = {pair: known.get(pair, False) or new.get(pair, False) for pair in known | new}
    changed = {cluster_of(part) for parts in news.values() for part in parts}
    clusters = find_clusters_to_fold(changed, new.keys(), writers.keys())
    nameless = find_nameless_journals(writers.keys())
    others = {cluster for cluster, journal in writers if journal in nameless}
    others |= {cluster for (cluster, journal), is_recorded in known.items() if writers[cluster, journal] != is_recorded}
    of = _Tails(raw=raw, before=before, writers=writers)
    found = of.find(clusters - others, news.get(RAW_EVENTS.name, ()))
    return Choice(clusters=clusters, tails=found, writers=writers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tails:
    """The search for valid tails (`folding.tails`)."""

    raw: Store
    before: Change
    writers: Writers

    def find(self, clusters: AbstractSet[str], news: Collection[Part]) -> tuple[Tail, ...]:
        spans = tails.propose_spans(self._read_kept(KNOWN_SPANS, clusters), _first_days(clusters, news))
        if not spans:
            return ()
        days = {cluster: span.day for cluster, span in spans.items()}
        raw = self.raw.read_parts(RAW_EVENTS, list_raw_tails(self.raw, days))
        kept = self._events(days)
        terms = tails.terms(raw)
        began = tails.begins(kept)
        counts = {row.cluster_id: row.records for row in self.before.read(TALLIES).collect()}
        of = {
            cluster: Tail(
                cluster_id=cluster,
                day=days[cluster],
                controller_epoch=first.controller_epoch,
                seq=first.seq,
                records_before=counts[cluster] - began[cluster].records,
            )
            for cluster, (first, *_) in terms.items()
            if tails.is_once(terms[cluster])
            and cluster in began
            and tails.begins_as_before(spans[cluster], tuple(began[cluster]["first"]), first)
        }
        if not of:
            return ()
        marks = tails.read_earlier_marks(self._read_kept(MARKS, of.keys()), of.values())
        left_out = tails.find_left_out(self._read_kept(FINDINGS, of.keys()), of.values())
        left_out |= tails.find_set_clocks(raw, kept)
        return tuple(
            replace(tail, alive_interval_ms=marks[cluster].interval_ms, checked_day=marks[cluster].checked_day)
            for cluster, tail in sorted(of.items())
            if cluster not in left_out
            and tails.changes_nothing_before(
                spans[cluster], marks[cluster], terms[cluster], self._list_recorder_journals(cluster)
            )
        )

    def _list_recorder_journals(self, cluster: str) -> set[str]:
        return {journal for (of, journal), is_recorded in self.writers.items() if of == cluster and is_recorded}

    def _read_kept(self, table: Table, clusters: Collection[str]) -> DataFrame:
        return self.before.read_parts(table, select_clusters(self.before.parts_of(table), clusters))

    def _events(self, days: Mapping[str, str]) -> DataFrame:
        parts = self.before.parts_of(EVENTS)
        return self.before.read_parts(EVENTS, tuple(part for part in parts if is_from(part, days)))


def _collect_writers(found: DataFrame) -> dict[Pair, bool]:
    return {(row.cluster_id, row.journal): row.is_recorded for row in found.collect()}


def _first_days(clusters: Collection[str], news: Collection[Part]) -> dict[str, str]:
    """Return the first day of the new parts of each cluster."""
    days = dict.fromkeys(clusters, _NOTHING_NEW)
    for part in news:
        if (cluster := cluster_of(part)) in days:
            days[cluster] = min(days[cluster], date_of(part) or _NOTHING_NEW)
    return days


def list_raw_tails(raw: Store, days: Mapping[str, str]) -> tuple[Part, ...]:
    """Return the parts with the raw records of each of these clusters from its day on."""
    return tuple(part for part in raw.at_present.parts.get(RAW_EVENTS.name, ()) if is_from(part, days))
