"""Large matrices as a sample: of what takes minutes each commit runs a part, and some commits together all.

A test with many cases is marked `matrix`; `matrix("name")` makes one matrix of the cases of all tests with that name, and
`matrix("name", "together")` takes those of a second name as one case: tests that share what takes the time. A matrix's
cases are dealt out as they stand into `PARTS` parts. With `--sample` one part runs, which the commit's hash
chooses: the same part whenever that commit is checked, and over a week of commits every part. Where even that is too much,
`parts=N` says into how many they are dealt; with `ONE_EACH` a commit runs one case. Without `--sample`, as in
`make full`, all cases run; so they do where there is no commit, as in an unpacked archive.
"""

import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import pytest

PARTS: Final = 3
ONE_EACH: Final = 1 << 32
"""More parts than any matrix has cases: as many parts as cases, then."""
Case = TypeVar("Case")


def commit_of(folder: Path) -> str | None:
    """The hash of the commit that `folder` is at; None where it is not the top of a checkout, or git is missing."""
    command = ["git", "-C", str(folder), "rev-parse", "--show-toplevel", "HEAD"]
    try:
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return None
    top, commit = printed
    return commit if Path(top) == folder.resolve() else None


def part_of(commit: str, parts: int = PARTS) -> int:
    """Which of so many parts, counted from 0, a commit runs."""
    return int(commit, 16) % parts


def dealt(cases: Sequence[Case], part: int, parts: int = PARTS) -> list[Case]:
    """A part of a matrix's cases: never empty, and all parts together are all cases."""
    parts = min(parts, len(cases))
    return [case for number, case in enumerate(cases) if number % parts == part % parts]


def deal_by_file(item: pytest.Item, matrix: str, parts: int) -> None:
    """Makes the test's file a case of a matrix that is dealt out into so many parts, unless the test is of one already."""
    if item.get_closest_marker("matrix") is None:
        item.add_marker(pytest.mark.matrix(matrix, str(item.path), parts=parts))


class Sample:
    """Leaves out what another commit runs, and says so. A plugin of pytest."""

    def __init__(self, commit: str | None) -> None:
        self.commit = commit
        self.left_out: list[pytest.Item] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if self.commit is None:
            return
        chosen = {
            item
            for matrix in _matrices(items).values()
            for case in dealt(list(matrix.cases.values()), part_of(self.commit, matrix.parts), matrix.parts)
            for item in case
        }
        others = {item for item in items if item.get_closest_marker("matrix") and item not in chosen}
        self.left_out = [item for item in items if item in others]
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=self.left_out)

    def pytest_report_collectionfinish(self) -> str:
        if self.commit is None:
            return "sample: no commit is checked out here that could choose one, so large matrices run whole"
        chosen = f"part {part_of(self.commit) + 1} of {PARTS}, as commit {self.commit[:12]} chooses"
        return f"sample: of large matrices {chosen}; {len(self.left_out)} cases are left out, which `make full` runs"


@dataclass(slots=True)
class _Matrix:
    """Its cases by their names, in the order in which they would run."""

    parts: int = PARTS
    cases: dict[str, list[pytest.Item]] = field(default_factory=lambda: defaultdict(list))


def _matrices(items: Sequence[pytest.Item]) -> Mapping[str, _Matrix]:
    matrices: dict[str, _Matrix] = defaultdict(_Matrix)
    for item in items:
        if marker := item.get_closest_marker("matrix"):
            matrix = marker.args[0] if marker.args else item.nodeid.partition("[")[0]
            case = marker.args[1] if len(marker.args) > 1 else item.nodeid
            matrices[matrix].cases[case].append(item)
            matrices[matrix].parts = marker.kwargs.get("parts", PARTS)
    return matrices
