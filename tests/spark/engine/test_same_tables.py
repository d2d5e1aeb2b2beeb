"""`kontroller history` without Java makes the tables and the report that Spark makes."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from kontroller.history.answers.options import Options
from kontroller.history.folding.tables import CHANGES, JOURNALS, MARKS, RAW_EVENTS, RAW_FINDINGS, TALLIES
from kontroller.history.intake import take_in_journals
from kontroller.history.kept_history import KeptHistory
from kontroller.history.schemas import LAYERS, Table
from kontroller.history.store import Store
from tests.spark.histories import history

_NAMELESS_SHARE: Final = {"four": 0.3, "five": 0.7}
"""The share of a new cluster's records that were written before the first broker wrote its id."""
_DAMAGED: Final = [b'{"v": 1, "kind": "topic"}\n', b'{"v": 1, "cluster_id": "one", "seq": "x"}\n', b"what?\n"]


def remove_ids(cluster: str, share: float) -> list[bytes]:
    """Return the journal of a cluster without the cluster's id in the first records."""
    lines = history(4, cluster_id=cluster, events=150)
    written, empty = f'"cluster_id":"{cluster}"'.encode(), b'"cluster_id":null'
    count = round(share * len(lines))
    assert all(written in line for line in lines)
    return [*(line.replace(written, empty) for line in lines[:count]), *lines[count:]]


JOURNALS_OF: Final = {
    "one": history(1, cluster_id="one", events=400),
    "two": history(2, cluster_id="two", events=150, is_recorded=True),
    "three": [*history(3, cluster_id="three/3", events=150), *_DAMAGED],
    **{name: remove_ids(name, share) for name, share in _NAMELESS_SHARE.items()},
}


def write_journals(folder: Path, share: float) -> None:
    """Write the first lines of each journal."""
    for name, lines in JOURNALS_OF.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        segment = folder / name / "0000000001-00000000000000000000.jsonl"
        segment.write_bytes(b"".join(lines[: round(share * len(lines))]))


def run_without_java(*arguments: str) -> None:
    environment = os.environ | {"JAVA_HOME": "/nonexistent", "PATH": "/nonexistent"}
    command = [sys.executable, "-m", "kontroller", "history", *arguments]
    subprocess.run(command, env=environment, check=True, capture_output=True)


@pytest.fixture(scope="module")
def folders(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The histories of Spark and of DuckDB, of journals that grew between two intakes, with a report in each."""
    journals, of_spark, of_duckdb = (tmp_path_factory.mktemp(name) for name in ("journals", "spark", "duckdb"))
    for share in (0.6, 1):
        write_journals(journals, share)
        kept = KeptHistory.open_history(spark, str(of_spark))
        take_in_journals(kept, [str(journals)])
        kept.fold()
        run_without_java("ingest", "--history", str(of_duckdb), "--journal", str(journals))
    with KeptHistory.open_history(spark, str(of_spark)).open_snapshot() as now:
        now.report(of_spark / "report", Options(), now.period(None, None, None))
    run_without_java("report", "--history", str(of_duckdb), "--output", str(of_duckdb / "report"))
    return of_spark, of_duckdb


def read_rows(spark: SparkSession, folder: Path, table: Table) -> Sequence[str]:
    rows = Store(spark=spark, location=str(folder)).read(table).collect()
    return sorted(json.dumps(row.asDict(recursive=True), sort_keys=True, default=str) for row in rows)


@pytest.mark.parametrize("table", [RAW_EVENTS, RAW_FINDINGS], ids=lambda table: table.name)
def test_raw_tables_are_equal(spark: SparkSession, folders: tuple[Path, Path], table: Table) -> None:
    of_spark, of_duckdb = (read_rows(spark, folder / "raw", table) for folder in folders)
    assert of_spark == of_duckdb
    assert of_spark


@pytest.mark.parametrize("table", [*LAYERS, MARKS, CHANGES, JOURNALS, TALLIES], ids=lambda table: table.name)
def test_layers_are_equal(spark: SparkSession, folders: tuple[Path, Path], table: Table) -> None:
    of_spark, of_duckdb = (read_rows(spark, folder / "layers", table) for folder in folders)
    assert of_spark == of_duckdb
    assert of_spark


def test_reports_are_equal(folders: tuple[Path, Path]) -> None:
    of_spark, of_duckdb = (folder / "report" for folder in folders)
    names = sorted(str(file.relative_to(of_spark)) for file in of_spark.rglob("*") if file.suffix in (".html", ".json"))
    assert len(names) > 10
    for name in names:
        assert (of_spark / name).read_text() == (of_duckdb / name).read_text(), name
