"""The cache finds what was built once. An interrupted or failed build leaves nothing behind."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devcluster.building.cache import build_cached, cache_folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KONTROLLER_CACHE", str(tmp_path))
    return tmp_path


class Builder:
    """Writes a file into the folder it is given and counts how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        (folder / "result").write_text(f"build {self.calls}")


def test_a_second_call_finds_what_the_first_one_built() -> None:
    builder = Builder()
    first = build_cached("tool-1.0", "input", build=builder)
    assert build_cached("tool-1.0", "input", build=builder) == first
    assert builder.calls == 1
    assert (first / "result").read_text() == "build 1"


def test_a_changed_input_is_built_anew() -> None:
    builder = Builder()
    first = build_cached("tool-1.0", "input", build=builder)
    second = build_cached("tool-1.0", "another input", build=builder)
    assert first != second
    assert builder.calls == 2


def test_a_failed_build_leaves_no_entry_and_the_next_call_builds_again() -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise ConnectionError("the network is gone")

    with pytest.raises(ConnectionError):
        build_cached("tool-1.0", "input", build=fail)
    assert not any(cache_folder().rglob("half"))
    entry = build_cached("tool-1.0", "input", build=Builder())
    assert [path.name for path in entry.iterdir()] == ["result"]


def test_what_a_killed_build_left_is_removed_by_the_next_one(own_cache: Path) -> None:
    leftover = own_cache / "building" / "tool-1.0-killed"
    leftover.mkdir(parents=True)
    build_cached("tool-1.0", "input", build=Builder())
    assert not leftover.exists()


def test_of_two_that_need_the_same_entry_at_once_one_builds_and_the_other_waits() -> None:
    builder = Builder()
    building = threading.Event()
    may_end = threading.Event()

    def build_slowly(folder: Path) -> None:
        building.set()
        assert may_end.wait(10)
        builder(folder)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(build_cached, "tool-1.0", "input", build=build_slowly)
        assert building.wait(10)
        second = pool.submit(build_cached, "tool-1.0", "input", build=builder)
        may_end.set()
        assert first.result(10) == second.result(10)
    assert builder.calls == 1
