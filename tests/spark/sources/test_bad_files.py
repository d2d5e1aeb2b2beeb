"""A file or line that Spark must not read is named, and everything else is ingested."""

import gzip
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kontroller.history import intake
from kontroller.history.folding.tables import RAW_EVENTS, RAW_FINDINGS
from kontroller.history.kept_history import KeptHistory
from kontroller.history.sources import journal_files, text_logs
from kontroller.history.sources.caps import Caps

MEMBER_BYTES = 64 << 20
LINE = {
    "v": 1, "cluster_id": "c", "controller_id": 1, "controller_epoch": 5, "event_time_us": 1_790_000_000_000_000,
    "cause": "alive", "correlation_id": "5-1", "kind": "controller_alive",
}  # fmt: skip
GIVEN = Caps(file_bytes=4 << 30)
"""Caps that let the whole line through the check of files."""


def write_records(path: Path, *numbers: int) -> None:
    text = "".join(json.dumps(LINE | {"seq": number}) + "\n" for number in numbers)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compressed file of 1.5 MB: a record, a line of 1.5 GB, another record."""
    folder = tmp_path_factory.mktemp("bomb")
    path = folder / "0000000005-000000000000003.jsonl.gz"
    write_records(path, 3)
    part = gzip.compress(b"x" * MEMBER_BYTES)
    write_records(folder / "last.gz", 4)
    with path.open("ab") as file:
        for _ in range(24):
            file.write(part)
        file.write(gzip.compress(b"\n") + (folder / "last.gz").read_bytes())
    return path


def test_a_line_of_more_than_a_gigabyte_never_reaches_the_memory_of_java(spark: SparkSession, bomb: Path) -> None:
    lines = journal_files.lines(spark, [str(bomb)], GIVEN).collect()
    assert [json.loads(line.value)["seq"] for line in lines] == [3, 4]


def test_lines_up_to_the_cap_are_read_and_longer_ones_skipped(spark: SparkSession, tmp_path: Path) -> None:
    lengths = 100, 101, 5, 1000, 99
    text = "\n".join("x" * length for length in lengths)
    for name in ("1-1.jsonl", "state-change.log"):
        (tmp_path / name).write_text(text)
    caps = Caps(line_bytes=100)
    for lines in (journal_files.lines(spark, [str(tmp_path)], caps), text_logs.lines(spark, [str(tmp_path)], caps)):
        assert [len(line.value) for line in lines.collect()] == [100, 5, 99]


def test_an_ingest_leaves_out_what_is_bad_and_names_it(spark: SparkSession, bomb: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal [of] a {controller}"
    journal.mkdir()
    write_records(journal / "0000000005-000000000000000.jsonl", 0, 1)
    write_records(journal / "0000000005-000000000000002.jsonl.gz", 2)
    (journal / bomb.name).symlink_to(bomb)
    (journal / "0000000005-000000000000009.jsonl.gz").write_bytes(gzip.compress(b"{}" * 100)[:-9])
    kept = KeptHistory.open_history(spark, str(tmp_path / "history"))
    taken = intake.take_in_journals(kept, [str(journal), "http://127.0.0.1:1/journal"])
    assert taken.is_read
    assert sorted(row.seq for row in kept.raw.read(RAW_EVENTS).collect()) == [0, 1, 2]
    assert kept.raw.read(RAW_FINDINGS).count() == 0
    served, first, second = taken.problems
    assert served.startswith("http://127.0.0.1:1/journal cannot be read: ")
    assert first.startswith(f"{journal / bomb.name} is left out: it expands to more than --max-file-bytes 1073741824")
    assert second.startswith(
        f"{journal}/0000000005-000000000000009.jsonl.gz is left out: it is damaged or not complete"
    )


def test_a_folder_whose_name_is_a_pattern_is_read_and_no_other(spark: SparkSession, tmp_path: Path) -> None:
    for name, number in (("j[1]", 1), ("j1", 2)):
        (tmp_path / name).mkdir()
        write_records(tmp_path / name / "0000000005-000000000000000.jsonl", number)
    kept = KeptHistory.open_history(spark, str(tmp_path / "history"))
    assert intake.take_in_journals(kept, [str(tmp_path / "j[1]")]).problems == []
    assert [row.seq for row in kept.raw.read(RAW_EVENTS).collect()] == [1]


def test_with_a_larger_cap_the_line_alone_is_left_out(spark: SparkSession, bomb: Path, tmp_path: Path) -> None:
    kept = KeptHistory.open_history(spark, str(tmp_path / "history"))
    taken = intake.take_in_journals(kept, [str(bomb.parent)], intake.Access(caps=GIVEN))
    assert sorted(row.seq for row in kept.raw.read(RAW_EVENTS).collect()) == [3, 4]
    (problem,) = taken.problems
    assert problem.startswith(f"{bomb} has a line of more than --max-line-bytes 16777216, which is left out: ")
