"""The behaviour of disks, of this machine's and the simulated one alike."""

from dataclasses import dataclass
from pathlib import Path, PurePath

import pytest

from replica_broker.disk.disk import DirectoryInUse, Disk, DiskError, FileMissing
from replica_broker.disk.local_disk import LocalDisk
from simulation.replicas.disk import SimulatedDisk


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A disk, and this test's own folder on it."""

    disk: Disk
    folder: PurePath


@pytest.fixture(params=["local", "simulated"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    disk: Disk = LocalDisk() if request.param == "local" else SimulatedDisk()
    folder = tmp_path / "own" / "folder"
    disk.make_folder(folder)
    return Place(disk=disk, folder=folder)


def test_what_is_appended_is_read_at_once_by_every_handle(place: Place) -> None:
    path = place.folder / "a"
    one, other = place.disk.open(path), place.disk.open(path)
    one.append(b"hello")
    one.append(memoryview(b" world")[1:])
    assert one.size == 10
    assert one.read(0, 100) == b"helloworld"
    assert one.read(5, 3) == b"wor"
    assert place.disk.read_whole(path) == b"helloworld"
    assert place.disk.size(path) == 10
    one.flush()
    other.close()
    again = place.disk.open(path)
    assert (again.size, again.read(9, 1)) == (10, b"d")


def test_what_is_not_there_is_read_as_nothing(place: Place) -> None:
    file = place.disk.open(place.folder / "a")
    file.append(b"abc")
    assert file.read(3, 1) == b""
    assert file.read(1 << 40, 1 << 40) == b""
    assert file.read(0, 0) == b""
    assert file.read(1, 1 << 40) == b"bc"


def test_a_file_is_cut_and_goes_on_there(place: Place) -> None:
    file = place.disk.open(place.folder / "a")
    file.append(b"abcdef")
    file.truncate(2)
    file.truncate(100)
    assert file.size == 2
    file.append(b"X")
    assert place.disk.read_whole(place.folder / "a") == b"abX"


def test_a_closed_file_is_flushed_by_nobody_and_does_nothing_else(place: Place) -> None:
    file = place.disk.open(place.folder / "a")
    file.close()
    file.close()
    file.flush()
    with pytest.raises(DiskError):
        file.append(b"x")


def test_names_are_listed_in_order_files_and_folders_alike(place: Place) -> None:
    place.disk.open(place.folder / "b").append(b"1")
    place.disk.make_folder(place.folder / "c" / "d")
    place.disk.write_whole(place.folder / "a", b"2")
    place.disk.make_folder(place.folder / "c")
    assert place.disk.list(place.folder) == ("a", "b", "c")
    assert place.disk.exists(place.folder / "c" / "d")
    assert not place.disk.exists(place.folder / "c" / "e")
    place.disk.flush_folder(place.folder)


def test_what_is_missing_is_said_to_be(place: Place) -> None:
    with pytest.raises(FileMissing):
        place.disk.read_whole(place.folder / "a")
    with pytest.raises(FileMissing):
        place.disk.size(place.folder / "a")
    with pytest.raises(FileMissing):
        place.disk.list(place.folder / "a")


def test_a_file_in_a_folder_that_is_missing_is_an_error_of_the_disk(place: Place) -> None:
    for use in (place.disk.open, lambda path: place.disk.write_whole(path, b"x")):
        with pytest.raises(DiskError) as raised:
            use(place.folder / "none" / "a")
        assert not isinstance(raised.value, FileMissing)


def test_a_small_file_is_written_whole_and_leaves_nothing_else(place: Place) -> None:
    place.disk.write_whole(place.folder / "a", b"a longer one")
    place.disk.write_whole(place.folder / "a", b"short")
    assert place.disk.read_whole(place.folder / "a") == b"short"
    assert place.disk.list(place.folder) == ("a",)


def test_files_and_folders_are_removed_where_they_are_there(place: Place) -> None:
    place.disk.make_folder(place.folder / "c" / "d")
    place.disk.write_whole(place.folder / "c" / "d" / "a", b"")
    place.disk.write_whole(place.folder / "b", b"")
    for _ in range(2):
        place.disk.remove(place.folder / "b")
        place.disk.remove_folder(place.folder / "c")
    assert place.disk.list(place.folder) == ()


def test_a_folder_gets_another_name_with_all_that_is_in_it_and_files_stay_open(place: Place) -> None:
    place.disk.make_folder(place.folder / "c")
    file = place.disk.open(place.folder / "c" / "a")
    file.append(b"1")
    place.disk.rename(place.folder / "c", place.folder / "d")
    file.append(b"2")
    assert place.disk.list(place.folder) == ("d",)
    assert place.disk.read_whole(place.folder / "d" / "a") == b"12"
    with pytest.raises(DiskError):
        place.disk.rename(place.folder / "c", place.folder / "e")


def test_a_file_takes_the_name_of_another(place: Place) -> None:
    place.disk.write_whole(place.folder / "a", b"1")
    place.disk.write_whole(place.folder / "b", b"2")
    place.disk.rename(place.folder / "a", place.folder / "b")
    assert place.disk.list(place.folder) == ("b",)
    assert place.disk.read_whole(place.folder / "b") == b"1"


def test_a_lock_is_had_by_one_until_it_is_released(place: Place) -> None:
    lock = place.disk.lock(place.folder / ".lock")
    for _ in range(2):
        with pytest.raises(DirectoryInUse):
            place.disk.lock(place.folder / ".lock")
    lock.release()
    lock.release()
    place.disk.lock(place.folder / ".lock").release()


def test_a_lock_is_in_place_while_its_file_is_where_it_was(place: Place) -> None:
    own, other = place.folder / "own", place.folder / "other"
    for folder in (own, other):
        place.disk.make_folder(folder)
    place.disk.write_whole(other / ".lock", b"")
    lock = place.disk.lock(own / ".lock")
    lock.require_in_place()
    place.disk.rename(own, place.folder / "away")
    with pytest.raises(DiskError):
        lock.require_in_place()
    place.disk.rename(other, own)
    with pytest.raises(DiskError):
        lock.require_in_place()
    lock.release()
