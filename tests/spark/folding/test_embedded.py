"""DuckDB computes the same rows as Spark from the same definitions, on all histories that the other tests have."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kontroller.history.engine.database import make_arrow_schema
from kontroller.history.folding import embedded
from kontroller.history.folding.definitions import (
    DEFINITIONS,
    OF_CHECKSUMS,
    OF_EVENTS,
    OF_PARTITIONS,
    SNAPSHOT_CHECKSUMS,
    Definition,
)
from kontroller.history.folding.embedded import compute, write
from kontroller.history.folding.tables import CHANGES, JOURNALS, RAW_EVENTS
from kontroller.history.generations.errors import ChangedMeanwhile, NotWritten
from kontroller.history.generations.generation import Part, day_of, select_clusters
from kontroller.history.kept_history import KeptHistory
from kontroller.history.schemas import EVENTS, KNOWN_SPANS, PARTITION_INTERVALS, Table
from kontroller.history.store import Change, Store
from tests.spark.clocks import drawn, test_competing, test_scenarios, test_set_clocks
from tests.spark.clocks.journals import lines
from tests.spark.folding.arrivals import rounds
from tests.spark.folding.test_folding import logs_in
from tests.spark.histories import make_lines, random_cluster
from tests.spark.test_min_isr import CONFIGURED, make_tables

COMPETING = 20
DRAWN = 40
RANDOM = 40
LAST_US = (1 << 63) - 1
LAST = "last moment"
BY_NAME = {definition.name: definition for definition in DEFINITIONS}
RUN_BYTES = 1 << 20
"""The size of a run, with which there are several runs, of several clusters each."""


def journals() -> Iterator[list[bytes]]:
    for name, case in test_scenarios.CASES.items():
        yield lines(case.journal.records, name)
    for name, (journal, _) in (test_set_clocks.CASES | test_set_clocks.WITHOUT_UPTIME).items():
        yield lines(journal.records, f"set {name}")
    for name, term in [*test_competing.TERMS.items()][:COMPETING]:
        yield from (lines(records, name) for records in term.journals)
    for number, records in enumerate(drawn.examples(drawn.journals(), DRAWN)):
        yield lines(records, f"drawn journal {number}")
    for seed in range(RANDOM):
        yield random_cluster(seed, cluster_id=f"random {seed}", events=30, is_recorded=seed % 7 == 0).lines
    nameless = random_cluster(RANDOM, cluster_id="unknown topics", events=30).lines
    yield [line.replace(b'"kind":"topic"', b'"kind":"of a newer writer"') for line in nameless]
    *others, last = random_cluster(RANDOM, cluster_id=LAST, events=5).lines
    yield [*others, re.sub(rb'"event_time_us":\d+', b'"event_time_us":%d' % LAST_US, last)]


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> KeptHistory:
    kept = KeptHistory.open_history(spark, str(tmp_path_factory.mktemp("kept")))
    kept.take_in_lines(make_lines(spark, *journals()))
    for arrival in rounds():
        kept.take_in_lines(arrival.lines(spark))
    for broker in (1, 3):
        logs_in(kept, broker)
    kept.fold()
    return kept


def assert_equal(store: Store, definition: Definition, **few: DataFrame) -> None:
    """Compare all rows of a definition by DuckDB with those by Spark."""
    parts = {table: store.at_present.parts[table.name] for table in definition.reads if table.name not in few}
    rows = {table.name: store.read_parts(table, of) for table, of in parts.items()} | few
    of_spark = write_out(definition.make(*(rows[table.name] for table in definition.reads)), definition)
    assert write_out(compute(store, definition, parts, **few), definition) == of_spark
    assert len(of_spark) > 0


def write_out(rows: DataFrame, definition: Definition) -> Counter[str]:
    # Python has no times after the year 9999.
    texts = rows.select(f.to_json(f.struct(*definition.schema.names)).alias("text"))
    return Counter(row.text for row in texts.collect())


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.name)
def test_both_engines_compute_the_same_rows(
    kept: KeptHistory, definition: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "RUN_BYTES", RUN_BYTES)
    store = kept.raw if RAW_EVENTS in definition.reads else kept.store
    few = {}
    if JOURNALS in definition.reads:
        few[JOURNALS.name] = kept.store.read(JOURNALS)
    if SNAPSHOT_CHECKSUMS in definition.reads:
        few[SNAPSHOT_CHECKSUMS.name] = OF_CHECKSUMS.make(store.read(EVENTS), store.read(KNOWN_SPANS)).localCheckpoint()
    assert_equal(store, definition, **few)


@pytest.mark.parametrize("table", [EVENTS, CHANGES, PARTITION_INTERVALS], ids=lambda table: table.name)
def test_duckdb_writes_the_same_rows_into_the_same_folders_as_spark_and_in_the_same_order(
    kept: KeptHistory, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "RUN_BYTES", RUN_BYTES)
    definition, source = (OF_EVENTS, kept.raw) if table is EVENTS else (BY_NAME[table.name], kept.store)
    few = {JOURNALS.name: kept.store.read(JOURNALS)} if JOURNALS in definition.reads else {}
    parts = {of: source.at_present.parts[of.name] for of in definition.reads if of.name not in few}
    if table is EVENTS:  # others have records of one number, whose order is open
        parts[RAW_EVENTS] = select_clusters(parts[RAW_EVENTS], [*(f"random {seed}" for seed in range(RANDOM)), LAST])
    store = Store(spark=kept.raw.spark, location=str(tmp_path))
    with store.begin_change() as change:
        by_duckdb = read_files(change, table, write(change, table, definition, source, parts, None, **few))
        monkeypatch.setattr(embedded, "LARGEST_BYTES", 0)
        by_spark = read_files(change, table, write(change, table, definition, source, parts, None, **few))
    assert len(by_spark) > RANDOM
    assert by_duckdb.keys() == by_spark.keys()
    assert [folder for folder, rows in by_duckdb.items() if not rows.equals(by_spark[folder])] == []


def read_files(change: Change, table: Table, parts: tuple[Part, ...]) -> dict[str, pa.Table]:
    """Return the rows of the file in each folder, by the part and the folder."""
    found = {}
    for part in parts:
        for file in sorted(Path(change.store.path(table), part).rglob("*.parquet")):
            rows = pyarrow.parquet.ParquetFile(file).read()
            folder = f"{day_of(part)}/{file.parent.name}"
            assert folder not in found
            found[folder] = rows.cast(make_arrow_schema(table.schema))
    return found


@pytest.fixture(scope="module")
def small(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store with what partition intervals are made of, in clusters with all kinds of configurations."""
    store = Store(spark=spark, location=str(tmp_path_factory.mktemp("small")))
    with store.begin_change() as change:
        for table, rows in zip(OF_PARTITIONS.reads, make_tables(spark), strict=True):
            change.write_clusters(table, rows, CONFIGURED)
    return store


def parts_of(store: Store) -> dict[Table, tuple[Part, ...]]:
    return {table: store.at_present.parts[table.name] for table in OF_PARTITIONS.reads}


def test_both_engines_agree_on_min_insync_replicas(small: Store) -> None:
    assert_equal(small, OF_PARTITIONS)


@pytest.mark.parametrize(("name", "value"), [("LARGEST_BYTES", 0), ("_GLOB", frozenset("/"))])
def test_spark_folds_very_large_clusters_and_folders_with_the_names_of_patterns(
    small: Store, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    by_duckdb = write_out(compute(small, OF_PARTITIONS, parts_of(small)), OF_PARTITIONS)
    monkeypatch.setattr(embedded, name, value)
    monkeypatch.setattr(embedded, "read_sql", dict)
    assert write_out(compute(small, OF_PARTITIONS, parts_of(small)), OF_PARTITIONS) == by_duckdb


def test_a_large_cluster_is_several_files_with_the_same_rows(small: Store) -> None:
    with small.begin_change() as change:
        one = change.read_parts(PARTITION_INTERVALS, write_intervals(change))
        several = write_intervals(change, dict.fromkeys(CONFIGURED, 4))
        found = [folder.rpartition("/") for folder in read_files(change, PARTITION_INTERVALS, several)]
        assert {file for _, _, file in found} == {f"file={number}" for number in range(4)}
        assert write_out(change.read_parts(PARTITION_INTERVALS, several), OF_PARTITIONS) == write_out(
            one, OF_PARTITIONS
        )


def write_intervals(change: Change, files: dict[str, int] | None = None) -> tuple[Part, ...]:
    return write(change, PARTITION_INTERVALS, OF_PARTITIONS, change.store, parts_of(change.store), files)


def test_a_table_that_cannot_be_written_to_its_end_changes_nothing(
    small: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = small.at_present
    monkeypatch.setattr(Change, "name_write", lambda change: f"{change.before.number + 1}-begun")
    begun = Path(small.path(PARTITION_INTERVALS), f"{before.number + 1}-begun")
    begun.mkdir(parents=True)
    (begun / f"of={max(CONFIGURED)}").write_text("a file where a folder should be")
    with pytest.raises(NotWritten, match="the table partition_intervals cannot be written") as told:  # noqa: SIM117
        with small.begin_change() as change:
            change.replace_clusters(PARTITION_INTERVALS, CONFIGURED, write_intervals(change))
    assert "No stored data is lost" in str(told.value)
    assert [*begun.glob(f"of={min(CONFIGURED)}/*/*.parquet")]
    assert small.at_present == before
    for _ in range(2):
        with small.begin_change():
            assert small.at_present.parts == before.parts
    assert not begun.exists(), "later changes remove what was begun"


def test_a_table_of_no_cluster_is_empty(small: Store) -> None:
    assert compute(small, OF_PARTITIONS, dict.fromkeys(OF_PARTITIONS.reads, ())).isEmpty()


def test_a_part_that_another_command_has_removed_is_no_empty_part(small: Store) -> None:
    gone = {table: (*parts, Part("1-gone/of=gone")) for table, parts in parts_of(small).items()}
    with pytest.raises(ChangedMeanwhile):
        compute(small, OF_PARTITIONS, gone)
