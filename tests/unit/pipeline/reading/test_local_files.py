"""Files that Spark must not read are set aside and named, and all others stay."""

import bz2
import gzip
from pathlib import Path

import pytest

from kontroller.history.engine.files import unescape_pattern
from kontroller.history.sources.caps import Caps
from kontroller.history.sources.journal_files import SEGMENT_NAMES
from kontroller.history.sources.local_files import check_files
from kontroller.history.sources.text_logs import FILE_NAMES

CAPS = Caps(line_bytes=100, file_bytes=10_000)
GOOD = b'{"seq":1}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two good segments."""
    (tmp_path / "below").mkdir()
    (tmp_path / "1-1.jsonl").write_bytes(GOOD)
    (tmp_path / "below" / "2-1.jsonl.gz").write_bytes(gzip.compress(GOOD))
    return tmp_path


def check(folder: Path, caps: Caps = CAPS) -> tuple[list[str], list[str]]:
    checked = check_files(str(folder), SEGMENT_NAMES, caps)
    return [str(Path(place).relative_to(folder)) for place in checked.places], checked.problems


def test_a_folder_without_a_bad_file_is_read_as_a_whole(folder: Path) -> None:
    (folder / "other.txt").write_bytes(b"x" * 1000)
    (folder / "_hidden.jsonl.gz").write_bytes(b"not gzip")
    assert check(folder) == (["."], [])


def test_a_folder_whose_name_is_a_pattern_stands_for_itself(tmp_path: Path) -> None:
    folder = tmp_path / "j[1] {a,b} *?"
    folder.mkdir()
    (folder / "1-1.jsonl").write_bytes(GOOD)
    (place,) = check_files(str(folder), SEGMENT_NAMES, CAPS).places
    assert place == rf"{tmp_path}/j\[1\] \{{a,b\}} \*\?"
    assert unescape_pattern(place) == str(folder)


BAD = {
    "bomb": (gzip.compress(b"x\n" * 10_000), "expands to more than --max-file-bytes 10000"),
    "torn": (gzip.compress(GOOD * 100)[:-9], "it is damaged or not complete"),
    "other": (b"no gzip at all", "it is damaged or not complete"),
    "spoiled": (gzip.compress(GOOD)[:12] + b"\xff" * 20, "it is damaged or not complete"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_compressed_file_is_set_aside_and_named(folder: Path, name: str) -> None:
    data, why = BAD[name]
    (folder / f"{name}.jsonl.gz").write_bytes(data)
    places, problems = check(folder)
    assert places == ["1-1.jsonl", "below/2-1.jsonl.gz"]
    (problem,) = problems
    assert problem.startswith(f"{folder}/{name}.jsonl.gz is left out: ")
    assert why in problem


def test_a_file_that_cannot_be_read_is_set_aside_and_named(folder: Path) -> None:
    (folder / "3-1.jsonl").symlink_to(folder / "nowhere")
    places, problems = check(folder)
    assert places == ["1-1.jsonl", "below/2-1.jsonl.gz"]
    assert problems == [f"{folder}/3-1.jsonl is left out: it cannot be read: No such file or directory"]


@pytest.mark.parametrize("place", [0, 1, 99, 150, 1000])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_line_above_the_cap_is_named_with_its_place_and_the_file_is_read(
    folder: Path, place: int, is_packed: bool
) -> None:
    data = b"\n" * place + b"x" * 101 + b"\n" + GOOD
    path = folder / ("3-1.jsonl.gz" if is_packed else "3-1.jsonl")
    path.write_bytes(gzip.compress(data) if is_packed else data)
    places, problems = check(folder)
    assert places == ["."]
    (problem,) = problems
    assert problem.startswith(f"{path} has a line of more than --max-line-bytes 100, which is left out: it begins at ")
    assert f"at byte {place:,} of" in problem


@pytest.mark.parametrize("length", [1, 99, 100])
def test_lines_up_to_the_cap_are_no_problem(folder: Path, length: int) -> None:
    data = b"".join(b"\n" * each + b"x" * length + b"\n" for each in range(40)) + b"x" * length
    (folder / "3-1.jsonl").write_bytes(data)
    assert check(folder) == (["."], [])


def test_an_endless_line_without_an_end_is_found(folder: Path) -> None:
    (folder / "3-1.jsonl").write_bytes(GOOD + b"x" * 5000)
    assert "begins at byte 10 of" in check(folder)[1][0]


def test_a_folder_of_nothing_but_a_bad_file_has_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "1-1.jsonl.gz").write_bytes(b"bad")
    places, problems = check(tmp_path)
    assert places == []
    assert len(problems) == 1


def test_logs_of_brokers_are_checked_also_by_links_and_with_bzip2(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "state-change.log.2026-01-01.bz2").write_bytes(bz2.compress(b"x\n" * 10_000))
    (real / "controller.log").write_bytes(b"a line\n")
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "broker-1").symlink_to(real)
    checked = check_files(str(logs), FILE_NAMES, CAPS)
    assert checked.places == [str(logs / "broker-1" / "controller.log")]
    assert [f"{logs}/broker-1/state-change.log.2026-01-01.bz2 is left out" in each for each in checked.problems] == [
        True
    ]
