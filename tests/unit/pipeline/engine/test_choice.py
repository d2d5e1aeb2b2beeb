"""DuckDB computes small histories on this machine, and all of them if there is no Java."""

from pathlib import Path

import pytest

from kontroller.history.engine import choice
from kontroller.history.engine.choice import Engine, NotHere, choose


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a Java."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    return home


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A history of 100 bytes, where more is large."""
    monkeypatch.setattr(choice, "LARGEST_BYTES", 100)
    folder = tmp_path / "history"
    folder.mkdir()
    (folder / "table.parquet").write_bytes(bytes(100))
    return folder


@pytest.mark.usefixtures("java")
def test_a_small_history_needs_no_spark(history: Path) -> None:
    assert choose(Engine.AUTO, str(history)) is Engine.DUCKDB


@pytest.mark.usefixtures("java")
def test_a_large_history_or_journal_is_for_spark(history: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    (journal / "segment.jsonl").write_bytes(bytes(1000))
    assert choose(Engine.AUTO, str(history), [str(journal)]) is Engine.SPARK
    (history / "more.parquet").write_bytes(bytes(1))
    assert choose(Engine.AUTO, str(history)) is Engine.SPARK
    assert choose(Engine.DUCKDB, str(history)) is Engine.DUCKDB


@pytest.mark.usefixtures("java")
def test_a_served_journal_is_for_spark_because_its_size_is_unknown(history: Path) -> None:
    served = ["http://host:9404/journal"]
    assert choose(Engine.AUTO, str(history), served) is Engine.SPARK
    assert choose(Engine.DUCKDB, str(history), served) is Engine.DUCKDB


def test_without_java_there_is_only_duckdb(java: Path, history: Path) -> None:
    (history / "more.parquet").write_bytes(bytes(1))
    (java / "bin" / "java").unlink()
    assert choose(Engine.AUTO, str(history)) is Engine.DUCKDB


@pytest.mark.usefixtures("java")
def test_remote_places_are_for_spark(history: Path) -> None:
    assert choose(Engine.AUTO, "s3a://bucket/history") is Engine.SPARK
    assert choose(Engine.AUTO, str(history), ["hdfs://host/journal"]) is Engine.SPARK
    assert choose(Engine.AUTO, f"file://{history}") is Engine.DUCKDB
    with pytest.raises(NotHere, match="s3a://bucket/history"):
        choose(Engine.DUCKDB, "s3a://bucket/history")


@pytest.mark.usefixtures("java")
def test_spark_can_be_asked_for(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose(Engine.SPARK, str(history)) is Engine.SPARK
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert choose(Engine.AUTO, str(history)) is Engine.SPARK
