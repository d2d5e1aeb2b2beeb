"""Errors of this machine's file system are raised by their meaning. The rest is in `tests/contract/replica_broker`."""

import os
from pathlib import Path

import pytest

from replica_broker.disk.disk import DiskError, DiskFull
from replica_broker.disk.guarded_disk import DirectoryOffline, GuardedDisk
from replica_broker.disk.local_disk import LocalDisk


def test_a_full_disk_is_said_to_be_full() -> None:
    file = LocalDisk().open("/dev/full")
    with pytest.raises(DiskFull, match="full"):
        file.append(b"x")


def test_other_errors_say_what_could_not_be_done(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    disk = LocalDisk()
    with pytest.raises(DiskError, match=r"cannot open .*file/a: Not a directory"):
        disk.open(tmp_path / "file" / "a")
    with pytest.raises(DiskError, match="cannot make the folder"):
        disk.make_folder(tmp_path / "file" / "a")


def test_the_folder_of_a_file_may_be_renamed_during_a_flush_once_the_file_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    file = LocalDisk().open(folder / "a")

    def delete_meanwhile(_: int) -> None:
        file.close()
        folder.rename(tmp_path / "renamed")

    monkeypatch.setattr(os, "fsync", delete_meanwhile)
    file.flush()
    assert not folder.exists()


def test_the_name_of_an_open_file_cannot_be_flushed_without_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    file = LocalDisk().open(folder / "a")
    folder.rename(tmp_path / "renamed")
    with pytest.raises(DiskError, match="cannot flush"):
        file.flush()


def test_a_disk_that_failed_is_not_used_again(tmp_path: Path) -> None:
    told: list[DiskError] = []
    disk = GuardedDisk(LocalDisk(), told.append)
    disk.write_whole(tmp_path / "a", b"x")
    file = disk.open(tmp_path / "a")
    with pytest.raises(DiskError):
        disk.open(tmp_path / "a" / "b")
    for use in (lambda: disk.read_whole(tmp_path / "a"), lambda: file.append(b"y"), file.flush):
        with pytest.raises(DirectoryOffline):
            use()
    assert told == [disk.failure]
    assert (tmp_path / "a").read_bytes() == b"x"
