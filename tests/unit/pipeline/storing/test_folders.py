"""Folders on this machine are used without Spark."""

import os
from pathlib import Path
from typing import Any, cast

import pytest

from kontroller.history.generations.errors import NotWritten
from kontroller.history.generations.folders import Folders, open_folders


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return open_folders(cast("Any", None), str(tmp_path))


def test_a_file_is_created_once(folders: Folders, tmp_path: Path) -> None:
    assert folders.create("generations/1.json", "first")
    assert not folders.create("generations/1.json", "second")
    assert folders.read("generations/1.json") == "first"
    assert folders.names("generations") == ["1.json"]
    assert os.listdir(tmp_path) == ["generations"]


def test_a_file_is_created_once_where_files_cannot_be_linked(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    assert folders.create("1.json", b"first")
    assert not folders.create("1.json", b"second")
    assert (folders.names(""), folders.read_bytes("1.json")) == (["1.json"], b"first")


def test_only_files_of_data_are_listed(folders: Folders, tmp_path: Path) -> None:
    part = tmp_path / "events" / "1-x" / "of=a" / "day=2026-01-01"
    part.mkdir(parents=True)
    for name in ("part-0.parquet", ".part-0.parquet.crc", "_SUCCESS"):
        (part / name).write_bytes(b"12345")
    (file,) = folders.files("events", "1-x/of=a")
    assert (file.name, file.size_bytes) == ("1-x/of=a/day=2026-01-01/part-0.parquet", 5)
    assert folders.days("events/1-x") == ["of=a/day=2026-01-01"]
    assert folders.files("events", "2-y") == []


def test_missing_things_are_no_error_except_to_read(folders: Folders) -> None:
    assert folders.names("events") == []
    assert not folders.exists("1.json")
    folders.remove("1.json")
    with pytest.raises(NotWritten, match=r"1\.json cannot be read"):
        folders.read("1.json")


def test_a_folder_is_removed_with_everything_in_it(folders: Folders) -> None:
    folders.create("events/1-x/of=a/file", "x")
    folders.remove("events/1-x")
    assert folders.names("events") == []
