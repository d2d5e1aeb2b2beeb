"""What runs of a large matrix: by each commit a part, by `make full` and without a commit everything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampling import PARTS, commit_of, dealt, part_of

PROJECT = Path(__file__).parents[2]
CASES = """
import pytest

@pytest.mark.parametrize("number", range(7))
@pytest.mark.matrix
def test_large(number): ...

@pytest.fixture(params=[pytest.param("theirs", marks=pytest.mark.matrix("theirs")), "ours"])
def cluster(request): ...

@pytest.mark.matrix("long", "story")
class TestStory:
    def test_begins(self): ...
    def test_ends(self): ...

@pytest.mark.matrix("long", "poem")
def test_poem(): ...

@pytest.mark.matrix("long", "song")
def test_song(): ...

@pytest.mark.parametrize("number", range(9))
@pytest.mark.matrix("huge", parts=1 << 32)
def test_huge(number): ...

def test_one(cluster): ...
def test_another(cluster): ...
def test_alone(): ...
"""
HUGE = f"test_huge[{int('3' * 12, 16) % (1 << 32) % 9}]"
SAMPLED = """
from tests.sampling import Sample

def pytest_configure(config):
    config.addinivalue_line("markers", "matrix")
    config.pluginmanager.register(Sample({commit!r}))
"""


def git(folder: Path, *command: str) -> str:
    person = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    line = ["git", "-C", str(folder), *command]
    ended = subprocess.run(line, env=os.environ | person | alone, capture_output=True, text=True, check=True)
    return ended.stdout.strip()


def collected(folder: Path, commit: str | None) -> tuple[set[str], str]:
    """The names of the cases that would run, and all that pytest prints."""
    (folder / "test_cases.py").write_text(CASES)
    (folder / "conftest.py").write_text(SAMPLED.format(commit=commit))
    line = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(folder),
        ".",
    ]
    paths = {
        "PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # to load them takes longer than all else
    }
    printed = subprocess.run(
        line, cwd=folder, env=os.environ | paths, capture_output=True, text=True, check=True
    ).stdout
    return {text.partition("::")[2] for text in printed.splitlines() if text.startswith("test_cases.py::")}, printed


@pytest.mark.parametrize("count", range(12))
def test_all_parts_together_are_all_cases_and_none_is_empty(count: int) -> None:
    cases = list(range(count))
    parts = [dealt(cases, part) for part in range(PARTS)]
    assert {case for part in parts for case in part} == set(cases)
    assert all(parts) or not cases
    if count >= PARTS:
        assert sum(len(part) for part in parts) == count


def test_commits_choose_all_parts_about_as_often() -> None:
    chosen = [part_of(f"{number * 7919:040x}") for number in range(999)]
    assert all(chosen.count(part) > 999 / PARTS * 0.9 for part in range(PARTS))


def test_a_commit_runs_its_part_of_each_matrix_and_all_that_is_in_none(tmp_path: Path) -> None:
    names, printed = collected(tmp_path, "3" * 12)
    large = {f"test_large[{number}]" for number in (0, 3, 6)}
    story = {"TestStory::test_begins", "TestStory::test_ends"}
    assert names == {*large, *story, HUGE, "test_one[theirs]", "test_one[ours]", "test_another[ours]", "test_alone"}
    assert (
        f"part 1 of {PARTS}, as commit 333333333333 chooses; 15 cases are left out, which `make full` runs" in printed
    )


def test_over_some_commits_everything_runs(tmp_path: Path) -> None:
    whole, _ = collected(tmp_path, None)
    assert len(whole) == 25
    assert set().union(*(collected(tmp_path, f"{number}")[0] for number in range(9))) == whole


def test_where_there_is_no_commit_everything_runs(tmp_path: Path) -> None:
    assert commit_of(tmp_path) is None
    assert "large matrices run whole" in collected(tmp_path, None)[1]


def test_the_commit_is_that_of_the_checkout_and_not_of_one_around_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert commit_of(tmp_path) is None, "nothing is committed yet"
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    assert commit_of(tmp_path) == git(tmp_path, "rev-parse", "HEAD")
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    assert commit_of(unpacked) is None


def test_without_git_everything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_of(tmp_path) is None


@pytest.mark.parametrize(("command", "is_sampled"), [("real", True), ("spark", True), ("full", False)])
def test_make_runs_a_sample_but_for_make_full(command: str, is_sampled: bool) -> None:
    line = ["make", "--dry-run", "--always-make", command]
    printed = subprocess.run(line, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    runs = [text for text in printed.splitlines() if "-m real" in text or '"spark and not real"' in text]
    assert runs
    assert all(("--sample" in text) is is_sampled for text in runs)
