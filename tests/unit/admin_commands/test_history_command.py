"""`kontroller history` says what to change about a wrong command before it starts Spark."""

import sys

import pytest
from typer.testing import CliRunner

from kontroller.command_line import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ingest"], "say what to take in"),
        (["ingest", "--journal", "j", "--memory", "lots"], "--memory lots is not an amount of memory"),
        (["ingest", "--topic", "t"], "--topic and --bootstrap-server go together"),
        (["ingest", "--kafka-logs", "l"], "needs --cluster-id"),
        (["ingest", "--kafka-logs", "l", "--cluster-id", "c", "--logs-time-zone", "Moon"], "Moon is unknown"),
        (["ingest", "--journal", "j", "--format", "iceberg"], "--format iceberg is unknown: give parquet or delta"),
        (["ingest", "--journal", "j", "--keep-days", "events=0"], "--keep-days events=0: give DAYS or TABLE=DAYS"),
        (
            ["ingest", "--journal", "j", "--keep-days", "evts=9"],
            "the tables are raw_events, raw_findings, events",
        ),
        (["ingest", "--journal", "j", "--journal-ca", "nowhere.pem"], "nowhere.pem cannot be read: No such file"),
        (["ingest", "--journal", "j", "--properties", "nowhere"], "nowhere cannot be read as properties: "),
        (["ingest", "--journal", "j", "--journal-key", "k"], "--journal-key needs --journal-certificate"),
        (["ingest", "--journal", "j", "--max-line-bytes", "1"], "'--max-line-bytes'"),
        (["report", "--output", "o", "--days", "3", "--from", "2026-01-01"], "give one"),
        (["report", "--output", "o", "--days", "800000"], "'--days': Input should be less than or equal to 36500"),
        (["report", "--output", "o", "--objective", "100"], "--objective: The objective is 100.0 %: give one from 1"),
        (["report", "--output", "o", "--objective", "nan"], "--objective: The objective is nan %"),
    ],
)
def test_a_wrong_command_says_what_to_change(arguments: list[str], message: str) -> None:
    ended = CliRunner().invoke(main, ["history", *arguments, "--history", "/nowhere"])
    assert (ended.exit_code, message in ended.stderr) == (2, True)


def test_without_spark_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    ended = CliRunner().invoke(main, ["history", "audit", "--history", "/nowhere"])
    assert (ended.exit_code, "pip install '.[pipeline]'" in ended.stderr) == (2, True)
