"""The known history of a cluster whose past is in Kafka's text logs alone, which have no snapshots."""

import gzip
import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from kontroller.history import intake
from kontroller.history.answers.options import Options
from kontroller.history.generations.generation import day_of
from kontroller.history.kept_history import KeptHistory
from kontroller.history.schemas import (
    CONFIG_INTERVALS,
    EVENTS,
    FINDINGS,
    INCIDENTS,
    KNOWN_SPANS,
    LAYERS,
    PARTITION_INTERVALS,
)
from kontroller.history.sources import text_logs
from kontroller.history.transforms.continuity.breaks import marks
from kontroller.history.transforms.known_spans import find_known_spans
from kontroller.history.transforms.partition_intervals import partition_intervals

SAMPLE = Path(__file__).parent / "data" / "text_logs"
STRANGE = (
    "[2026-11-21 12:58:47,000] INFO [Controller id=3 epoch=1] Changed partition a-0 from NewPartition to "
    "OnlinePartition with state LeaderAndIsr{in words to come} (state.change.logger)\n"
)
BEGAN = datetime(2026, 11, 21, tzinfo=UTC)
NEW: Mapping[str, object] = {
    "kind": "assignment",
    "cause": "topics_changed",
    "replicas": [1, 2],
    "adding": [],
    "removing": [],
}
LED: Mapping[str, object] = {
    "kind": "leadership",
    "cause": "broker_failed",
    "leader": 1,
    "isr": [1],
    "leader_epoch": 3,
    "partition_epoch": 3,
}
NOBODY: Mapping[str, object] = {**LED, "leader": -1}
ELECTED: Mapping[str, object] = {
    "kind": "controller_elected",
    "cause": "controller_failover",
    "topic": None,
    "partition": None,
}
Told = Mapping[int, Sequence[tuple[int, Mapping[str, object]]]]
"""The records of a history, by controller epoch: seconds, and a record."""

HISTORIES: dict[str, Told] = {
    "created": {1: [(0, ELECTED), (5, NEW), (6, LED), (9, NOBODY)]},
    "mentioned": {1: [(0, ELECTED), (5, LED), (9, NOBODY)]},
    "led by two": {1: [(0, ELECTED), (5, LED)], 2: [(20, ELECTED), (30, NOBODY)]},
    "an epoch is missing": {1: [(0, ELECTED), (5, LED), (7, LED)], 3: [(20, ELECTED), (30, NOBODY)]},
    "an epoch is missing, and then silence": {1: [(0, ELECTED), (5, LED)], 3: [(20, ELECTED)]},
    "two epochs are missing": {1: [(0, ELECTED), (5, LED)], 3: [(20, ELECTED), (25, LED)], 5: [(40, ELECTED)]},
    "silent for hours": {1: [(0, ELECTED), (5, LED), (9005, LED), (9009, NOBODY)]},
    "one stamp ahead": {1: [(0, ELECTED), (5, LED), (36006, NOBODY), (9, LED), (20, LED)]},
}
FOUND = {
    "created": [(5, 6, True, -1), (6, 9, True, 1), (9, 9, True, -1)],
    "mentioned": [(0, 5, False, None), (5, 9, True, 1), (9, 9, True, -1)],
    "led by two": [(0, 5, False, None), (5, 30, True, 1), (30, 30, True, -1)],
    "an epoch is missing": [
        (0, 5, False, None), (5, 7, True, 1), (7, 7, True, 1), (7, 30, False, None), (30, 30, True, -1),
    ],
    "an epoch is missing, and then silence": [(0, 5, False, None), (5, 5, True, 1), (5, 20, False, None)],
    "two epochs are missing": [
        (0, 5, False, None), (5, 5, True, 1), (5, 25, False, None), (25, 25, True, 1), (25, 40, False, None),
    ],
    "silent for hours": [(0, 5, False, None), (5, 9005, True, 1), (9005, 9009, True, 1), (9009, 9009, True, -1)],
    "one stamp ahead": [
        (0, 5, False, None), (5, 5, True, -1), (5, 9, False, None), (9, 20, True, 1), (20, 20, True, 1),
    ],
}  # fmt: skip
"""The history of the one partition: seconds, whether the state is known, and its leader."""


@pytest.fixture(scope="module")
def intervals(spark: SparkSession) -> Sequence[Row]:
    rows = [row for name, told in HISTORIES.items() for row in records(name, told)]
    events = spark.createDataFrame(
        [tuple(row.get(name) for name in EVENTS.schema.names) for row in rows], EVENTS.schema
    )
    nothing = spark.createDataFrame([], CONFIG_INTERVALS.schema)
    spans = spark.createDataFrame(find_known_spans(marks(events)).collect(), KNOWN_SPANS.schema)
    return partition_intervals(events, spans, nothing).orderBy(*PARTITION_INTERVALS.order).collect()


def records(cluster: str, told: Told) -> list[dict[str, object]]:
    common: Mapping[str, object] = {
        "cluster_id": cluster, "origin": "logs", "journal": "/logs", "source": "/logs/state-change.log", "controller_id": 1,
        "inferred": True, "snapshot": False, "correlation_id": None, "unclean": False, "topic": "orders", "partition": 0,
    }  # fmt: skip
    return [
        {**common, "controller_epoch": epoch, "seq": seq, "event_time": BEGAN + timedelta(seconds=at), **record}
        for epoch, numbered in told.items()
        for seq, (at, record) in enumerate(numbered)
    ]


@pytest.mark.parametrize("name", HISTORIES)
def test_a_partition_is_known_from_its_first_mention_on_over_all_epochs_that_the_logs_have(
    intervals: Sequence[Row], name: str
) -> None:
    def seconds(moment: datetime) -> int:
        return round((moment.astimezone(UTC) - BEGAN).total_seconds())

    found = [row for row in intervals if row.cluster_id == name]
    assert [(seconds(row.began), seconds(row.ended), row.is_known, row.leader) for row in found] == FOUND[name]
    assert all(row.inferred for row in found)
    assert [row.is_last for row in found] == [*(False for _ in found[1:]), True]


def take_in(kept: KeptHistory, logs: Path) -> None:
    folders = [str(folder) for folder in sorted(logs.iterdir())]
    taken = intake.take_in_kafka_logs(kept, folders, cluster_id="old", time_zone="Europe/Berlin")
    assert taken == intake.Taken(is_read=True, problems=[])


def begin_of(logs: Path, folder: Path) -> None:
    """Return the same logs at an earlier time: no file is rotated yet, and the files do not end at the same time."""
    (folder / "broker-1").mkdir(parents=True)
    (folder / "broker-3").mkdir()
    rotated = gzip.decompress((logs / "broker-3" / "state-change.log.2026-11-21-13.gz").read_bytes())
    texts = {
        "broker-1/controller.log": (logs / "broker-1" / "controller.log").read_bytes(),
        "broker-3/controller.log": (logs / "broker-3" / "controller.log").read_bytes(),
        "broker-3/state-change.log": rotated,
    }
    for number, (name, text) in enumerate(texts.items(), start=2):
        lines = text.splitlines(keepends=True)
        (folder / name).write_bytes(b"".join(lines[: len(lines) * number // 5]))
    (folder / "broker-3" / "state-change.log.2026-11-21-12").write_text(STRANGE)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return folders of logs. One of them has a line that nobody can read."""
    folder = tmp_path_factory.mktemp("logs") / "logs"
    shutil.copytree(SAMPLE, folder)
    (folder / "broker-3" / "state-change.log.2026-11-21-12").write_text(STRANGE)
    return folder


@pytest.fixture(scope="module")
def grown(spark: SparkSession, logs: Path, tmp_path_factory: pytest.TempPathFactory) -> KeptHistory:
    """A history that logs were taken into when they were shorter, and again when they had grown and rotated."""
    kept = KeptHistory.open_history(spark, str(tmp_path_factory.mktemp("history")))
    whole = logs.rename(logs.with_name("whole"))
    begin_of(whole, logs)
    take_in(kept, logs)
    shutil.rmtree(logs)
    whole.rename(logs)
    take_in(kept, logs)
    kept.fold()
    return kept


def test_logs_that_were_taken_in_before_they_had_grown_are_the_same_history(
    spark: SparkSession, grown: KeptHistory, logs: Path
) -> None:
    told, lines = text_logs.read(text_logs.lines(spark, [str(logs)]), cluster_id="old", time_zone="Europe/Berlin")
    fields = [name for name in EVENTS.schema.fieldNames() if name != "source"]
    at_once = text_logs.number_records(told).sort(*EVENTS.order).select(*fields).collect()
    assert grown.store.read(EVENTS).sort(*EVENTS.order).select(*fields).collect() == at_once
    assert grown.store.read(FINDINGS).collect() == text_logs.count_unreadable(lines).collect()


def test_taking_logs_in_again_changes_no_byte(grown: KeptHistory, logs: Path) -> None:
    def digests() -> dict[str, str]:
        folders = {
            f"{table} {day_of(part)}": Path(grown.store.location, table, part)
            for table, part in grown.store.at_present.all_parts()
        }
        return {
            f"{name} {path.parent.relative_to(folder)}": hashlib.sha256(path.read_bytes()).hexdigest()
            for name, folder in folders.items()
            for path in folder.rglob("*.parquet")
        }

    before = digests()
    assert len(before) >= len(LAYERS)
    take_in(grown, logs)
    grown.fold()
    assert digests() == before


def test_a_report_of_logs_names_the_partitions_that_had_no_leader(
    spark: SparkSession, grown: KeptHistory, tmp_path: Path
) -> None:
    kept = grown
    kept.report(tmp_path / "report", Options(), kept.period(began=None, ended=None, days=None))
    incidents = spark.read.schema(INCIDENTS.schema).parquet(str(tmp_path / "report" / "tables" / "incidents.parquet"))
    leaderless = incidents.where("problem = 'leaderless' and began < ended").collect()
    assert ("unclean_t", 0) in {(row.topic, row.partition) for row in leaderless}
    page = (tmp_path / "report" / "index.html").read_text()
    assert re.search(r"unclean_t, [^<]*: 0.00 % (to [0-9.]+ % )?available", page)
