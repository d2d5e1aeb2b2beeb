"""A history that is kept: whatever order journals come in, how often, and however an ingest ended, it is the same."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from controller_pipeline.kept_history import NEXT_RAW_EVENTS, RAW_EVENTS, KeptHistory, NoHistory
from controller_pipeline.schemas import EVENTS, KNOWN_SPANS, PARTITION_INTERVALS
from controller_pipeline.transforms import lines
from tests.spark.histories import as_lines, random_cluster

SEED = 5


@pytest.fixture(scope="module")
def journal() -> list[bytes]:
    """The lines of a cluster's journal, of several terms."""
    return list(random_cluster(SEED, cluster_id="kept", events=60).lines)


def take_in(kept: KeptHistory, some: Iterable[bytes]) -> None:
    kept.take_in(*lines.read(as_lines(kept.store.spark, list(some))))


def rows_of(kept: KeptHistory) -> list[list[tuple[object, ...]]]:
    """The rows of what depends on everything, in the tables' order."""
    tables = (EVENTS, KNOWN_SPANS, PARTITION_INTERVALS)
    return [
        [tuple(row) for row in kept.store.read(table).drop("source").sort(*table.order).collect()] for table in tables
    ]


@pytest.fixture(scope="module")
def at_once(spark: SparkSession, journal: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> KeptHistory:
    kept = KeptHistory.at(spark, str(tmp_path_factory.mktemp("at-once")))
    take_in(kept, journal)
    kept.fold()
    return kept


def test_late_and_repeated_journals_come_to_the_same(
    spark: SparkSession, journal: list[bytes], at_once: KeptHistory, tmp_path: Path
) -> None:
    kept = KeptHistory.at(spark, str(tmp_path))
    half = len(journal) // 2
    take_in(kept, journal[half - 5 :])
    take_in(kept, journal[: half + 5])
    kept.fold()
    assert rows_of(kept) == rows_of(at_once)


def test_records_from_before_the_cluster_had_an_id_are_its_own_also_when_that_is_known_later(
    spark: SparkSession, journal: list[bytes], at_once: KeptHistory, tmp_path: Path
) -> None:
    kept = KeptHistory.at(spark, str(tmp_path))
    early = [line.replace(b'"cluster_id":"kept"', b'"cluster_id":null') for line in journal[:10]]
    assert early != journal[:10]
    take_in(kept, early)
    take_in(kept, [*early, *journal[10:]])
    kept.fold()
    assert rows_of(kept) == rows_of(at_once)


def test_what_was_interrupted_before_it_was_put_in_place_is_not_lost(
    spark: SparkSession, journal: list[bytes], at_once: KeptHistory, tmp_path: Path
) -> None:
    kept = KeptHistory.at(spark, str(tmp_path))
    half = len(journal) // 2
    events, _ = lines.read(as_lines(spark, journal[:half]))
    kept.store.write(NEXT_RAW_EVENTS, events)
    take_in(kept, journal[half:])
    assert not kept.store.is_whole(NEXT_RAW_EVENTS)
    assert kept.store.read(RAW_EVENTS).count() == at_once.store.read(RAW_EVENTS).count()


def test_what_was_half_written_is_forgotten(
    spark: SparkSession, journal: list[bytes], at_once: KeptHistory, tmp_path: Path
) -> None:
    kept = KeptHistory.at(spark, str(tmp_path))
    kept.store.write(NEXT_RAW_EVENTS, at_once.store.read(RAW_EVENTS))
    Path(kept.store.path(NEXT_RAW_EVENTS), "_SUCCESS").unlink()
    take_in(kept, journal[:1])
    assert kept.store.read(RAW_EVENTS).count() == 1


def test_a_history_that_was_never_begun_says_how_to_begin(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoHistory, match="take a journal in first"):
        KeptHistory.at(spark, str(tmp_path)).layers()
