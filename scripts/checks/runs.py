"""Runs of pytest that report each case: its outcome and its duration."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scripts.checks.parts import python
from tests.levels import NOT_STARTED

PROCESSES: Final = 2
SERVERS: Final = (f"--numprocesses={PROCESSES}", "--dist=loadgroup", "--no-loadscope-reorder", "--durations=10")
"""The options of runs with servers: tests that share a cluster run in one process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case that ran."""

    name: str
    """The node id, relative to the top folder."""
    ended: str
    """`passed`, `failed`, `skipped`, or `not started` because the time of the run was over."""
    seconds: float
    is_nightly: bool

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]

    @property
    def has_failed(self) -> bool:
        return self.ended not in ("passed", "skipped", NOT_STARTED)


def pytest_command(*arguments: str, ran: Path) -> list[str]:
    """Return the command line of a run that writes its cases to `ran`."""
    return python("-m", "pytest", "-q", f"--ran={ran}", *arguments)


def read_ran(path: Path) -> list[Case]:
    """Return the cases of a run; none if it ended before its tests."""
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        Case(name=row["case"], ended=row["ended"], seconds=row["seconds"], is_nightly=row["nightly"]) for row in rows
    ]


def digest(cases: Iterable[Case]) -> str:
    """Return twelve digits that two runs share only if they ran the same cases."""
    return hashlib.sha256("\n".join(sorted(case.name for case in cases)).encode()).hexdigest()[:12]


def summary(cases: Sequence[Case]) -> str:
    """Return the number of cases by outcome, and the digest of the list."""
    failed = sum(case.has_failed for case in cases)
    skipped = sum(case.ended == "skipped" for case in cases)
    unstarted = sum(case.ended == NOT_STARTED for case in cases)
    late = f", {unstarted} {NOT_STARTED}" if unstarted else ""
    return f"{len(cases)} cases, {failed} failed, {skipped} skipped{late}; list {digest(cases)}"


def has_unstarted(cases: Iterable[Case]) -> bool:
    """Return True if the time of the run was over before some of the cases."""
    return any(case.ended == NOT_STARTED for case in cases)


def list_unstarted(cases: Iterable[Case]) -> list[str]:
    """Return a line for each file with cases that were not started, with their number."""
    of_file: dict[str, list[bool]] = defaultdict(list)
    for case in cases:
        of_file[case.file].append(case.ended == NOT_STARTED)
    return [f"{file}: {sum(late)} of {len(late)} cases" for file, late in sorted(of_file.items()) if any(late)]
