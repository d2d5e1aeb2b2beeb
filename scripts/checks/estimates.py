"""Expected durations of test files: those of the ledger, and estimates for files that it does not have."""

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from statistics import median
from typing import Final

from scripts.checks.ledger import Ledger, Row

UNKNOWN_S: Final = 120.0
"""The assumed duration of a file if the ledger has no file of its folder or of the folders above."""
WITH_SERVERS: Final = ("tests/real/", "tests/contract/")
"""Folders whose files run without their `nightly` cases when a change is checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """The expected durations of one run of each file."""

    ledger: Ledger
    cases: Mapping[str, int]
    """The number of cases of each test file, as `count_cases` counts them."""

    def find_seconds(self, file: str) -> float:
        """Return the last duration of a file.

        Without one, return the file's cases times the median seconds of a case in its folder, or in the nearest folder
        above that has files with a known duration.
        """
        known = self._find_known(file)
        if known is not None:
            return known
        for folder in PurePosixPath(file).parents:
            if folder.parent == PurePosixPath("."):
                break
            seconds_each = list(self._find_seconds_a_case(f"{folder}/"))
            if seconds_each:
                return median(seconds_each) * self.cases.get(file, 1)
        return UNKNOWN_S

    def _find_known(self, file: str) -> float | None:
        row = self.ledger.rows.get(file)
        return None if row is None or row.passed is None else _find_run_seconds(file, row)

    def _find_seconds_a_case(self, folder: str) -> Iterator[float]:
        for file, cases in self.cases.items():
            known = self._find_known(file) if file.startswith(folder) else None
            if known:
                yield known / cases


def count_cases(source: str) -> int:
    """Return the number of cases that a test file spells out, at least 1.

    Parameters of fixtures and computed lists are not counted. They multiply the cases of all files of a folder alike, so
    the folder's median contains them.
    """
    tree = ast.parse(source)
    return max(1, sum(_count_in(node) for node in tree.body))


def count_all_cases(root: Path, files: frozenset[str]) -> Mapping[str, int]:
    """Return the number of cases of each test file."""
    return {file: count_cases((root / file).read_text()) for file in sorted(files)}


def _find_run_seconds(file: str, row: Row) -> float:
    return row.quick_seconds if file.startswith(WITH_SERVERS) else row.seconds


def _count_in(node: ast.stmt) -> int:
    if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
        inner = sum(_count_in(each) for each in node.body)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
        inner = 1
    else:
        return 0
    return inner * math.prod(_count_parameters(decorator) for decorator in node.decorator_list)


def _count_parameters(decorator: ast.expr) -> int:
    """Return the number of parameters of a `parametrize` whose list is written out; 1 for everything else."""
    match decorator:
        case ast.Call(func=ast.Attribute(attr="parametrize"), args=[_, ast.List(elts=values) | ast.Tuple(elts=values)]):
            return max(1, len(values))
        case ast.Call(
            func=ast.Attribute(attr="parametrize"), args=[_, ast.Call(func=ast.Name(id="range"), args=bounds)]
        ) if bounds and all(isinstance(each, ast.Constant) and isinstance(each.value, int) for each in bounds):
            return max(1, len(range(*(ast.literal_eval(each) for each in bounds))))
        case _:
            return 1
