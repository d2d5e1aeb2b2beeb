"""Tables are written to be the same bytes each time, and a change is made as a whole or not at all: in both formats."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession

from kontroller.history.delta import log
from kontroller.history.delta.log import DeltaLog
from kontroller.history.generations.errors import ChangedMeanwhile, NotWritten, OtherFormat
from kontroller.history.generations.generation import cluster_of
from kontroller.history.generations.keeping import Format, Keeping
from kontroller.history.schemas import KNOWN_SPANS, LONG, PARTITION_INTERVALS, TEXT, TIME, Table, columns
from kontroller.history.store import Store, divide_by_cluster
from tests.spark.unchangeable import unchangeable

VISITS = Table(
    name="visits", schema=columns(cluster_id=TEXT, who=TEXT, seq=LONG, at=TIME), order=("at", "who"), by_day="at"
)
TABLES = (VISITS, KNOWN_SPANS, PARTITION_INTERVALS)
DAY_MS = 86_400_000
SPAN = ("c", 0, 1, 1000, "controller", 0, 4, 9, None, None, True, "end", None)


class Stop(Exception):
    """The process ends here."""


def visits(spark: SparkSession, *days: int) -> DataFrame:
    rows = [("c", who, 7, datetime(2026, 1, day, 12, tzinfo=UTC)) for day in days for who in ("b", "a")]
    return spark.createDataFrame(rows, VISITS.schema)


def write_days(store: Store, *days: int) -> None:
    with store.begin_change() as change:
        change.write_days(VISITS, visits(store.spark, *days))


def stop_before_the_end(store: Store) -> None:
    with store.begin_change() as change:
        change.write_days(VISITS, visits(store.spark, 1, 2))
        raise Stop


def write_days_and_a_span(store: Store, *days: int) -> None:
    with store.begin_change() as change:
        change.write_days(VISITS, visits(store.spark, *days))
        change.write(KNOWN_SPANS, store.spark.createDataFrame([SPAN], KNOWN_SPANS.schema))


def write_days_late(store: Store, *days: int, after: int) -> None:
    """A change that begins before another one, and ends after it."""
    with store.begin_change() as change:
        write_days(store, after)
        change.write_days(VISITS, visits(store.spark, *days))


def intervals_of_one_partition(spark: SparkSession, count: int) -> DataFrame:
    cluster_id = "if(id < 0, null, 'c')"  # as from a file: Spark does not sort by a constant
    known = {"cluster_id": cluster_id, "topic": "'t'", "partition": "0", "began": "timestamp_micros(id)", "seq": "id"}
    types = {field.name: field.dataType.simpleString() for field in PARTITION_INTERVALS.schema}
    return spark.range(count).selectExpr(
        *(f"cast({known.get(name, 'null')} as {kind}) as {name}" for name, kind in types.items())
    )


def days_in(store: Store) -> list[int]:
    return sorted(row.at.day for row in store.read(VISITS).collect() if row.who == "a")


def digests(store: Store) -> dict[str, str]:
    """Return the digests of each day's data. Spark gives the files new names each time."""
    return {
        path.parent.parent.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for _, part in store.at_present.all_parts()
        for path in Path(store.path(VISITS), part).rglob("*.parquet")
    }


def list_changes(store: Store) -> Sequence[str]:
    """List the files in the folder of the table, by the number of the change that wrote them."""
    return sorted(path.name.partition("-")[0] for path in Path(store.path(VISITS)).glob("[0-9]*-*"))


def files_of(store: Store, table: Table) -> set[str]:
    """The files that the table is, below its folder."""
    folder = Path(store.path(table))
    parts = store.at_present.parts.get(table.name, ())
    return {str(path.relative_to(folder)) for part in parts for path in (folder / part).rglob("*.parquet")}


def files_in_log(store: Store, table: Table) -> set[str]:
    """Return the files of the table in the log of Delta Lake, from its first commit on."""
    files: set[str] = set()
    for commit in sorted(Path(store.path(table), "_delta_log").glob("*.json")):
        for line in map(json.loads, commit.read_text().splitlines()):
            files -= {unquote(line["remove"]["path"])} if "remove" in line else set()
            files |= {unquote(line["add"]["path"])} if "add" in line else set()
    return files


@pytest.fixture(params=Format)
def store(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Store]:
    kept = Store(spark=spark, location=str(tmp_path), tables=TABLES, asked=Keeping(format=request.param))
    yield kept
    for table in TABLES:
        if request.param is Format.DELTA:
            assert files_in_log(kept, table) == files_of(kept, table), "others read what this reads"
        else:
            assert not Path(kept.path(table), "_delta_log").exists()


class TestAChange:
    def test_of_a_day_gives_the_same_bytes_and_leaves_the_others_alone(self, store: Store) -> None:
        write_days(store, 1, 2)
        first = digests(store)
        assert len(first) == 2
        with store.begin_change() as change:
            change.write_days(VISITS, visits(store.spark, 2).repartition(2, "who"))
        assert digests(store) == first
        assert days_in(store) == [1, 2]

    def test_of_a_whole_table_leaves_nothing_of_before(self, store: Store) -> None:
        for rows in ([SPAN, SPAN], [SPAN]):
            with store.begin_change() as change:
                change.write(KNOWN_SPANS, store.spark.createDataFrame(rows, KNOWN_SPANS.schema))
        assert store.read(KNOWN_SPANS).count() == 1

    def test_reads_what_it_has_written_and_others_do_not(self, store: Store) -> None:
        write_days(store, 1)
        with store.begin_change() as change:
            change.write_days(VISITS, visits(store.spark, 2))
            assert change.read(VISITS).count() == 4
            assert days_in(store) == [1]
        assert days_in(store) == [1, 2]

    def test_that_was_stopped_has_changed_nothing_and_leaves_nothing(self, store: Store) -> None:
        write_days(store, 1)
        with pytest.raises(Stop):
            stop_before_the_end(store)
        assert days_in(store) == [1]
        write_days(store, 3)
        write_days(store, 4)
        assert days_in(store) == [1, 3, 4]
        assert list_changes(store) == ["1", "2", "3"]

    def test_that_cannot_be_written_says_why_and_has_changed_nothing(self, store: Store) -> None:
        write_days(store, 1)
        Path(store.path(KNOWN_SPANS)).write_text("a file where a folder should be")
        with pytest.raises(NotWritten, match="the table known_spans cannot be written") as told:
            write_days_and_a_span(store, 2)
        assert told.value.__cause__ is not None
        assert days_in(store) == [1]

    def test_beside_another_one_is_refused_and_the_other_one_holds(self, store: Store) -> None:
        write_days(store, 1)
        with pytest.raises(ChangedMeanwhile, match="run this one again"):
            write_days_late(store, 3, after=2)
        assert days_in(store) == [1, 2]
        write_days(store, 3)
        assert days_in(store) == [1, 2, 3]


class TestALargeTable:
    def test_is_as_many_files_all_about_as_large_whatever_topic_its_rows_are_of(self, store: Store) -> None:
        placed = divide_by_cluster(PARTITION_INTERVALS, intervals_of_one_partition(store.spark, 4000), {"c": 4})
        files = Counter(row.file for row in placed.select("file").collect())
        assert len(files) == 4
        assert all(800 < rows < 1200 for rows in files.values())

    def test_is_the_same_bytes_however_its_rows_come(self, store: Store) -> None:
        rows, found = intervals_of_one_partition(store.spark, 100), []
        for some in (rows, rows.repartition(3, "seq")):
            with store.begin_change() as change:
                change.write_clusters(PARTITION_INTERVALS, some, ["c"], files={"c": 4})
            (part,) = store.at_present.parts[PARTITION_INTERVALS.name]
            files = Path(store.path(PARTITION_INTERVALS), part).glob("*/*.parquet")
            found.append({file.parent.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files})
        assert len(found[0]) == 4
        assert found[0] == found[1]

    def test_of_which_a_day_has_very_many_records_is_several_files_of_that_day(self, store: Store) -> None:
        late = visits(store.spark, 1).selectExpr("cluster_id", "who", "seq + 1048576 as seq", "at")
        with store.begin_change() as change:
            change.write_days(VISITS, visits(store.spark, 1).unionByName(late))
        (day,) = Path(store.path(VISITS)).glob("*/of=c/day=2026-01-01")
        assert sorted(path.name for path in day.iterdir()) == ["range=0", "range=1"]
        assert store.read(VISITS).count() == 4
        write_days(store, 1)
        assert store.read(VISITS).count() == 2


@pytest.mark.parametrize("store", [Format.PARQUET], indirect=True)
class TestWhatIsReplaced:
    def test_is_removed_by_the_next_change(self, store: Store) -> None:
        for _ in range(4):
            write_days(store, 1)
        assert list_changes(store) == ["3", "4"]

    def test_is_said_when_it_cannot_be_removed_and_nothing_is_lost(self, store: Store, tmp_path: Path) -> None:
        write_days(store, 1)
        write_days(store, 1, 2)
        (replaced,) = Path(store.path(VISITS)).glob("1-*/of=c")
        with unchangeable(replaced), pytest.raises(NotWritten, match="day=2026-01-01 cannot be removed"):
            write_days(store, 3)
        assert days_in(store) == [1, 2]
        write_days(store, 3)
        assert days_in(store) == [1, 2, 3]
        assert not replaced.exists()

    def test_stays_for_who_began_to_read_before(self, store: Store) -> None:
        write_days(store, 1)
        with store.open_snapshot() as before:
            for day in (2, 3, 4):
                write_days(store, 1, day)
            assert days_in(before) == [1]
        assert days_in(store) == [1, 2, 3, 4]
        assert "1" in list_changes(store)
        write_days(store, 5)
        assert "1" not in list_changes(store)

    def test_is_told_to_who_reads_where_there_are_no_locks(self, store: Store) -> None:
        write_days(store, 1)
        began = Store(spark=store.spark, location=store.location, generation=store.at_present)
        write_days(store, 1)
        assert days_in(began) == [1]
        write_days(store, 1)
        with pytest.raises(ChangedMeanwhile, match="run it again"):
            began.read(VISITS)


class TestClusters:
    def test_that_are_replaced_leave_the_others_alone_also_where_nothing_is_left_of_them(self, store: Store) -> None:
        whole = intervals_of_one_partition(store.spark, 2).selectExpr("* except (cluster_id)")
        rows = whole.crossJoin(store.spark.createDataFrame([("a",), ("a b%/=",), ("",)], "cluster_id string"))
        with store.begin_change() as change:
            change.write_clusters(PARTITION_INTERVALS, rows, ["a", "a b%/=", ""])
        before = store.at_present.parts[PARTITION_INTERVALS.name]
        assert {*map(cluster_of, before)} == {"a", "a b%/=", ""}
        with store.begin_change() as change:
            written = change.write_clusters(PARTITION_INTERVALS, rows.where("cluster_id = 'a'"), ["a", "a b%/="])
            assert written.count() == 2
        after = store.at_present.parts[PARTITION_INTERVALS.name]
        assert {*map(cluster_of, after)} == {"a", ""}
        assert [cluster_of(part) for part in before if part in after] == [""]
        assert store.read(PARTITION_INTERVALS).count() == 4


class Clock:
    """The moment of the store's commits."""

    def __init__(self) -> None:
        self.now_ms = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that is set, of a store that tidies up after each commit."""
    clock = Clock()
    monkeypatch.setattr(log, "now_ms", clock)
    monkeypatch.setattr(log, "COMMITS", 1)
    return clock


def versions(store: Store) -> list[str]:
    return sorted(path.name.lstrip("0") for path in Path(store.path(VISITS), "_delta_log").glob("[0-9]*"))


@pytest.fixture
def in_delta(spark: SparkSession, tmp_path: Path) -> Store:
    asked = Keeping(format=Format.DELTA, days={"": 7, VISITS.name: 30})
    return Store(spark=spark, location=str(tmp_path), tables=TABLES, asked=asked)


@pytest.mark.parametrize(("store", "files"), [(Format.PARQUET, 2), (Format.DELTA, 1)], indirect=["store"])
def test_a_day_that_is_added_is_as_many_files_as_tasks_wrote_it_and_one_in_delta(store: Store, files: int) -> None:
    with store.begin_change() as change:
        added = change.add_days(VISITS, visits(store.spark, 1).repartition(2, "who"), "to_date(at)")
        change.replace_days(VISITS, added)
    assert len(files_of(store, VISITS)) == files
    assert days_in(store) == [1]


class TestWhatIsReplacedInDelta:
    def test_stays_for_the_days_of_its_table_and_is_removed_then_with_its_log(
        self, in_delta: Store, clock: Clock
    ) -> None:
        write_days_and_a_span(in_delta, 1, 2)
        write_days_and_a_span(in_delta, 1)
        first_span = next(Path(in_delta.path(KNOWN_SPANS)).glob("1-*"))
        clock.now_ms += 30 * DAY_MS
        write_days(in_delta, 3)
        assert len(list(Path(in_delta.path(VISITS)).glob("1-*/of=c/day=*"))) == 2
        assert not first_span.exists()
        clock.now_ms += 1
        write_days(in_delta, 4)
        assert [path.name for path in Path(in_delta.path(VISITS)).glob("1-*/of=c/day=*")] == ["day=2026-01-02"]
        assert versions(in_delta) == ["1.checkpoint.parquet", "1.json", "2.checkpoint.parquet", "2.json", "3.json"]
        assert days_in(in_delta) == [1, 2, 3, 4]

    def test_stays_for_who_began_to_read_before_however_many_days_that_takes(
        self, in_delta: Store, clock: Clock
    ) -> None:
        write_days(in_delta, 1)
        with in_delta.open_snapshot() as before:
            for day in (2, 3, 4):
                write_days(in_delta, 1, day)
                clock.now_ms += 31 * DAY_MS
            assert days_in(before) == [1]
        write_days(in_delta, 5)
        assert "1" not in list_changes(in_delta)

    def test_is_known_to_the_log_also_when_a_command_was_killed_before_it_said_so(
        self, in_delta: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_days(in_delta, 1, 2)
        with monkeypatch.context() as killed:
            killed.setattr(DeltaLog, "_commit", lambda *_: (_ for _ in ()).throw(Stop))
            with pytest.raises(Stop):
                write_days(in_delta, 1, 3)
        assert days_in(in_delta) == [1, 2, 3]
        assert files_in_log(in_delta, VISITS) != files_of(in_delta, VISITS)
        write_days_and_a_span(in_delta, 4)
        assert files_in_log(in_delta, VISITS) == files_of(in_delta, VISITS)
        assert versions(in_delta) == [".json", "1.json", "2.json"]

    def test_is_all_there_for_a_log_that_begins_anew_when_somebody_went_back_to_an_older_generation(
        self, in_delta: Store, tmp_path: Path
    ) -> None:
        for day in (1, 2, 3):
            write_days(in_delta, 1, day)
        (tmp_path / in_delta.at_present.file).unlink()
        assert days_in(in_delta) == [1, 2]
        write_days(in_delta, 4)
        write_days(in_delta, 5)
        assert files_in_log(in_delta, VISITS) == files_of(in_delta, VISITS)
        assert (versions(in_delta), list_changes(in_delta)) == ([".json", "1.json", "2.json"], ["2", "3", "4"])


class TestAStoreThatBecomesOneInDelta:
    def test_has_all_that_it_had(self, spark: SparkSession, in_delta: Store) -> None:
        as_before = Store(spark=spark, location=in_delta.location, tables=TABLES)
        write_days(as_before, 1, 2)
        assert files_in_log(as_before, VISITS) == set()
        write_days(in_delta, 1, 3)
        assert files_in_log(as_before, VISITS) == files_of(as_before, VISITS)

    def test_stays_one(self, spark: SparkSession, in_delta: Store) -> None:
        write_days(in_delta, 1)
        write_days(Store(spark=spark, location=in_delta.location, tables=TABLES), 2)
        assert files_in_log(in_delta, VISITS) == files_of(in_delta, VISITS)
        other = Keeping(format=Format.PARQUET)
        with pytest.raises(OtherFormat, match="omit --format"):
            write_days(Store(spark=spark, location=in_delta.location, asked=other), 3)


def test_a_table_that_was_never_written_is_empty(store: Store) -> None:
    assert not store.has(VISITS)
    assert store.read(VISITS).count() == 0
    write_days(store)
    assert store.has(VISITS)
    assert store.read(VISITS).count() == 0


def test_times_are_kept_as_other_programs_read_them_and_as_days_can_be_skipped_by(store: Store, tmp_path: Path) -> None:
    write_days(store, 1)
    (path,) = tmp_path.rglob("*.parquet")
    kept = pyarrow.parquet.ParquetFile(path)
    assert kept.schema_arrow.field("at").type == pyarrow.timestamp("us", tz="UTC")
    statistics = kept.metadata.row_group(0).column(kept.schema_arrow.names.index("at")).statistics
    assert statistics.min == datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_cluster_without_a_name_keeps_it(store: Store) -> None:
    with store.begin_change() as change:
        change.write_days(VISITS, visits(store.spark, 1).selectExpr("'' as cluster_id", "who", "seq", "at"))
    assert {row.cluster_id for row in store.read(VISITS).collect()} == {""}
