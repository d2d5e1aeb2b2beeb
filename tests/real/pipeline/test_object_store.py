"""Two writers of one history in S3, at once, slow or killed: one publishes, the other is refused, and nothing is lost."""

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pytest
from pyspark.sql import SparkSession

from devcluster.building.spark_jars import s3_jars
from devcluster.running.processes import wait_until
from devcluster.stand_ins.object_store import BUCKET, Held, ObjectStore, run_object_store
from kontroller.history.folding.tables import RAW_EVENTS
from kontroller.history.generations.errors import ChangedMeanwhile, NotWritten
from kontroller.history.generations.folders import open_folders
from kontroller.history.generations.generation import file_of
from kontroller.history.generations.keeping import Format, Keeping
from kontroller.history.kept_history import KeptHistory
from kontroller.history.schemas import LONG, TEXT, TIME, Table, columns
from kontroller.history.store import Store
from tests.spark.histories import history, make_lines

VISITS = Table(name="visits", schema=columns(cluster_id=TEXT, seq=LONG, at=TIME), order=("at",), by_day="at")
DEADLINE_S = 600
pytestmark = [pytest.mark.real, pytest.mark.timeout(3000)]


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with run_object_store(tmp_path_factory.mktemp("objects")) as running:
        yield running


@pytest.fixture(scope="module")
def spark(spark_with_connectors: SparkSession, objects: ObjectStore) -> SparkSession:
    for name, value in objects.settings().items():
        spark_with_connectors.sparkContext._jsc.hadoopConfiguration().set(name, value)
    return spark_with_connectors


@pytest.fixture(params=Format)
def store(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Store]:
    location = f"s3a://{BUCKET}/{secrets.token_hex(4)}"
    kept = Store(spark=spark, location=location, tables=[VISITS], asked=Keeping(format=request.param))
    yield kept
    if request.param is Format.DELTA:
        assert days_in_log(kept) == days_in(kept), "others read what this reads"


def write_day(store: Store, day: int) -> None:
    rows = store.spark.createDataFrame([("c", 7, datetime(2026, 1, day, 12, tzinfo=UTC))], VISITS.schema)
    with store.begin_change() as change:
        change.write_days(VISITS, rows)


def days_in(store: Store) -> list[int]:
    return sorted(row.at.day for row in store.read(VISITS).collect())


def days_in_log(store: Store) -> list[int]:
    """Return the days in the log of Delta Lake, which begins with version 0 and lacks no version."""
    folders, log = open_folders(store.spark, store.location), f"{VISITS.name}/_delta_log"
    names = sorted(name for name in folders.names(log) if name.endswith(".json"))
    assert names == [f"{version:020}.json" for version in range(len(names))]
    files: set[str] = set()
    for name in names:
        for line in map(json.loads, folders.read(f"{log}/{name}").splitlines()):
            files -= {unquote(line["remove"]["path"])} if "remove" in line else set()
            files |= {unquote(line["add"]["path"])} if "add" in line else set()
    return sorted(int(file.partition("day=2026-01-")[2][:2]) for file in files)


def wait_for(held: Held) -> None:
    assert held.has_come.wait(DEADLINE_S)


@contextmanager
def slow_write(objects: ObjectStore, store: Store, day: int, name: str) -> Iterator[tuple[Future[None], Held]]:
    """Write a day in a thread, and run the block while the request for the object of this name has not arrived."""
    held = objects.hold(name)
    with ThreadPoolExecutor(1) as thread:
        written = thread.submit(write_day, store, day)
        try:
            wait_for(held)
            yield written, held
        finally:
            held.let_through()


class TestTheSecondOfTwoWriters:
    def test_is_refused_and_its_next_try_loses_nothing(self, objects: ObjectStore, store: Store) -> None:
        with slow_write(objects, store, 1, file_of(1)) as (slow, _):
            write_day(store, 2)
        with pytest.raises(ChangedMeanwhile, match="run this one again"):
            slow.result()
        assert days_in(store) == [2]
        write_day(store, 1)
        assert days_in(store) == [1, 2]

    def test_is_refused_also_when_the_number_of_its_generation_is_free_again(
        self, objects: ObjectStore, store: Store
    ) -> None:
        write_day(store, 1)
        with slow_write(objects, store, 2, file_of(2)) as (slow, _):
            for day in (3, 4, 5):
                write_day(store, day)
            assert not any(key.endswith(file_of(2)) for key in objects.list_keys(store.location.split("/")[-1]))
        with pytest.raises(ChangedMeanwhile, match="run this one again"):
            slow.result()
        assert days_in(store) == [1, 3, 4, 5]
        write_day(store, 2)
        assert days_in(store) == [1, 2, 3, 4, 5]

    @pytest.mark.parametrize("store", [Format.DELTA], indirect=True)
    def test_writes_the_commits_of_a_slow_one_whose_own_come_too_late(self, objects: ObjectStore, store: Store) -> None:
        write_day(store, 1)
        with slow_write(objects, store, 2, "_delta_log/00000000000000000001.json") as (slow, _):
            assert days_in(store) == [1, 2]
            write_day(store, 3)
        slow.result()
        assert days_in(store) == [1, 2, 3]


def test_a_generation_whose_answer_is_lost_is_published_once(objects: ObjectStore, store: Store) -> None:
    objects.lose_answer(file_of(1))
    write_day(store, 1)
    assert days_in(store) == [1]


def test_a_store_without_conditional_writes_is_refused_with_the_setting_to_change(spark: SparkSession) -> None:
    setting = "fs.s3a.create.conditional.enabled"
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    configuration.set(setting, "false")
    configuration.set("fs.s3a.impl.disable.cache", "true")
    try:
        with pytest.raises(NotWritten, match=setting):
            write_day(Store(spark=spark, location=f"s3a://{BUCKET}/refused"), 1)
    finally:
        configuration.unset(setting)
        configuration.unset("fs.s3a.impl.disable.cache")


def start_ingest(folder: Path, objects: ObjectStore, location: str, records: list[bytes]) -> subprocess.Popen[bytes]:
    """Start the command for a journal, and a history in S3."""
    (folder / "journal").mkdir()
    (folder / "journal" / "0000000001-000000000000000.jsonl").write_bytes(b"".join(records))
    settings = [f"spark.hadoop.{name} {value}" for name, value in objects.settings().items()]
    (folder / "spark-defaults.conf").write_text("\n".join([f"spark.jars {s3_jars()}", *settings]) + "\n")
    what = ["--history", location, "--journal", str(folder / "journal"), "--cores", "1", "--memory", "1g"]
    command = [sys.executable, "-m", "kontroller", "history", "ingest", *what]
    env = {**os.environ, "SPARK_CONF_DIR": str(folder)}
    with (folder / "ingest.log").open("wb") as log:
        return subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)


def test_an_ingest_that_is_killed_before_it_publishes_stops_nobody_and_loses_nothing(
    objects: ObjectStore, spark: SparkSession, tmp_path: Path
) -> None:
    kept = KeptHistory.open_history(spark, f"s3a://{BUCKET}/killed")
    records = {name: history(7, cluster_id=name, events=20) for name in ("a", "b")}
    held = objects.hold(f"killed/raw/{file_of(1)}")
    killed = start_ingest(tmp_path, objects, kept.location, records["a"])
    try:
        wait_until(lambda: held.has_come.is_set() or killed.poll() is not None, "it publishes", silence_s=DEADLINE_S)
        assert held.has_come.is_set(), (tmp_path / "ingest.log").read_text()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
        held.drop()
    left = objects.list_keys(f"killed/raw/{RAW_EVENTS.name}/")
    assert left
    assert not kept.raw.has(RAW_EVENTS)
    kept.take_in_lines(make_lines(spark, records["b"]))
    assert count_records(kept.raw) == {"b": len(records["b"])}
    kept.take_in_lines(make_lines(spark, records["a"]))
    assert not set(left) & set(objects.list_keys(f"killed/raw/{RAW_EVENTS.name}/")), "what it left is removed"
    assert count_records(kept.raw) == {name: len(lines) for name, lines in records.items()}


def count_records(raw: Store) -> dict[str, int]:
    return {row.cluster_id: row["count"] for row in raw.read(RAW_EVENTS).groupBy("cluster_id").count().collect()}
