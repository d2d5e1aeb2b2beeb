"""A history that the command keeps in Delta Lake is what Delta's own library reads, which needs nothing of ours."""

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual
from typer.testing import CliRunner, Result

from devcluster.building.spark_jars import delta_jars
from kontroller.command_line import main
from kontroller.history.delta import log
from kontroller.history.kept_history import RAW, KeptHistory
from kontroller.history.schemas import EVENTS, LAYERS, Table
from tests.spark.delta import delta_reader
from tests.spark.histories import history

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def command(spark: SparkSession) -> Any:
    """Runs `kontroller history ingest` on the tests' Spark."""

    def run(kept: Path, journal: Path, *options: str) -> Result:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("kontroller.history.session.session", lambda *_, **__: nullcontext(spark))
            patch.setattr(log, "COMMITS", 1)
            arguments = ["ingest", "--history", str(kept), "--journal", str(journal), *options]
            return CliRunner().invoke(main, ["history", *arguments])

    return run


@pytest.fixture(scope="module")
def kept(spark: SparkSession, command: Any, tmp_path_factory: pytest.TempPathFactory) -> KeptHistory:
    """A history that was taken in in two parts, with a checkpoint between them; only the first command says that it is
    to be in Delta Lake."""
    folder = tmp_path_factory.mktemp("in-delta")
    lines: Sequence[bytes] = history(3, cluster_id="a cluster: 100%", events=40)
    for number, options in enumerate((["--format", "delta", "--keep-days", "events=90"], [])):
        journal = folder / "journals" / str(number)
        journal.mkdir(parents=True)
        part = [*lines[: (number + 1) * len(lines) // 2], b"no record\n"]
        (journal / "1-0.jsonl").write_bytes(b"".join(part))
        ended = command(folder / "history", journal, *options)
        assert ended.exit_code == 0, ended.stderr
    return KeptHistory.open_history(spark, str(folder / "history"))


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("copies")


@pytest.fixture(scope="module")
def seen(kept: KeptHistory, copies: Path) -> dict[str, dict[str, Any]]:
    """Read all tables with Delta's own library; return the results by table."""
    line = [sys.executable, "-m", delta_reader.__name__, kept.location, str(copies), delta_jars()]
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    found: dict[str, dict[str, Any]] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize("table", [*RAW, *LAYERS], ids=lambda table: table.name)
def test_each_table_has_the_rows_that_the_command_reads(
    spark: SparkSession, kept: KeptHistory, copies: Path, table: Table
) -> None:
    store = kept.raw if table in RAW else kept.store
    others = spark.read.schema(table.schema).parquet(str(copies / table.name))
    assertDataFrameEqual(others, store.read(table))


def test_tables_are_divided_by_cluster_and_day_where_they_are(seen: dict[str, dict[str, Any]]) -> None:
    assert seen["raw_events"]["divided by"] == ["of", "day"]
    assert seen["events"]["divided by"] == ["of", "day"]
    assert seen["known_spans"]["divided by"] == ["of"]


def test_a_day_that_came_in_several_times_is_one_file(seen: dict[str, dict[str, Any]], kept: KeptHistory) -> None:
    days = kept.store.read(EVENTS).selectExpr("cluster_id", "to_date(event_time)").distinct()
    assert seen["events"]["files"] == days.count()


def test_versions_say_of_which_generation_they_are_and_can_be_gone_back_to(
    seen: dict[str, dict[str, Any]], kept: KeptHistory
) -> None:
    assert seen["events"]["generations"] == ["generation 1", "generation 2"]
    assert 0 < seen["events"]["first rows"] < kept.store.read(EVENTS).count()


def test_no_other_program_writes_what_generations_do_not_know_of(seen: dict[str, dict[str, Any]]) -> None:
    assert seen["events"]["refused"] == ["DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"] * len(delta_reader.WRITES)


def test_the_command_refuses_to_keep_it_otherwise(kept: KeptHistory, command: Any) -> None:
    journal = Path(kept.location).parent / "journals" / "0"
    ended = command(Path(kept.location), journal, "--format", "parquet")
    assert ended.exit_code == 1
    assert "has the format Delta Lake" in ended.stderr.splitlines()[-1]
