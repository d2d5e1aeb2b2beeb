"""The size of the input decides how Spark is set."""

from pathlib import Path

import pytest

from kontroller.history.session import Size, find_size

MB = 1_000_000


@pytest.mark.parametrize(
    ("name", "size_bytes", "size"),
    [
        ("0000000001-00000000000000000000.jsonl", 10 * MB, Size.SMALL),
        ("0000000001-00000000000000000000.jsonl", 10 * MB + 1, Size.MIDDLE),
        ("0000000001-00000000000000000000.jsonl", 100 * MB + 1, Size.LARGE),
        ("0000000001-00000000000000000000.jsonl.gz", MB + 1, Size.MIDDLE),
        ("part-00000.snappy.parquet", 11 * MB, Size.LARGE),
    ],
)
def test_files_count_with_their_unpacked_size(tmp_path: Path, name: str, size_bytes: int, size: Size) -> None:
    folder = tmp_path / "below"
    folder.mkdir()
    with (folder / name).open("wb") as file:
        file.truncate(size_bytes)
    assert find_size([str(tmp_path)]) is size


def test_the_files_of_all_places_count(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        with (tmp_path / name / "segment.jsonl").open("wb") as file:
            file.truncate(6 * MB)
    places = [str(tmp_path / "one"), str(tmp_path / "other")]
    assert [find_size(places[:1]), find_size(places)] == [Size.SMALL, Size.MIDDLE]


def test_a_place_that_is_not_there_yet_is_small(tmp_path: Path) -> None:
    assert find_size([str(tmp_path / "new" / "raw")]) is Size.SMALL


def test_a_remote_place_may_be_large() -> None:
    assert find_size(["s3a://bucket/history/raw"]) is Size.LARGE
