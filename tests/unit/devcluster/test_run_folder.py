"""Data goes, the logs of failed runs stay, and what a killed run left is removed by the next one."""

from pathlib import Path

import pytest

from devcluster.clusters.run_folder import run_folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KONTROLLER_CACHE", str(tmp_path))
    monkeypatch.delenv("KEEP", raising=False)
    return tmp_path


def test_nothing_is_left_of_a_run_that_went_well() -> None:
    with run_folder("run") as folder:
        folder.data("server")
        folder.log("server").touch()
    assert not folder.path.exists()


def test_a_failed_run_leaves_its_logs_and_no_data() -> None:
    written: list[Path] = []

    def fail() -> None:
        with run_folder("run") as folder:
            written.extend((folder.data("server"), folder.log("server")))
            folder.log("server").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [path.exists() for path in written] == [False, True]


def test_a_run_that_the_user_ended_is_no_failed_one() -> None:
    paths: list[Path] = []

    def interrupt() -> None:
        with run_folder("run") as folder:
            paths.append(folder.path)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert not paths[0].exists()


def test_keep_keeps_everything_for_later_runs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEP", "1")
    with run_folder("run") as folder:
        data = folder.data("server")
    monkeypatch.delenv("KEEP")
    with run_folder("next"):
        assert data.exists()


def test_the_data_of_a_run_that_was_killed_is_removed_by_the_next_one(own_cache: Path) -> None:
    killed = own_cache / "run" / "killed"
    (killed / "data").mkdir(parents=True)
    (killed / "alive").touch()
    with run_folder("next"):
        assert not (killed / "data").exists()


def test_the_data_of_a_run_that_still_goes_on_is_left_alone() -> None:
    with run_folder("one") as folder:
        data = folder.data("server")
        with run_folder("another"):
            assert data.exists()
