"""Level 3: everything, longest not run first, sharded and within a time budget.

A step is a folder of tests, a test file with Spark, or a rehearsal such as `make demo`. The files of a folder share its
clusters. The ledger is written after each step.
"""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from scripts.checks.ledger import Ledger, Row
from scripts.checks.parts import Part, run_parts
from scripts.checks.runs import SERVERS, Case, has_unstarted, pytest_command, read_ran

REHEARSALS: Final = (
    "make demo",
    "make demo KRAFT=1",
    "make demo-history",
    "make soak MINUTES=3 SEED=2024",
    "make fuzz",
)
_ALONE: Final = "tests/spark/"
_IN_ORDER: Final = "tests/e2e"
"""The group whose files share a release. Each file needs what those before it have made."""
_TIMEOUT_S: Final = 3600
"""The limit of one test: property tests have ten times as many examples at night."""
QUARANTINE_RUNS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command, and the names of its rows in the ledger."""

    names: tuple[str, ...]
    command: tuple[str, ...]
    ran: Path | None = None
    """The file for its cases; None for a rehearsal, which has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One of several machines that share the work, such as `2/7`."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Return the shard that a text such as `2/7` names. Raises ValueError."""
        found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
        if found is None or int(found[1]) > int(found[2]):
            raise ValueError(f"{text!r} is not a shard: write its number and the number of shards, such as 2/7")
        return cls(number=int(found[1]), of=int(found[2]))

    def share(self, names: Sequence[str]) -> list[str]:
        """Return this shard's part of all names. Each name is in exactly one shard."""
        return [name for index, name in enumerate(sorted(names)) if index % self.of == self.number - 1]


def group_of(file: str) -> str:
    """Return the name of the group that runs together with a test file: the file alone, or its folder."""
    if file.startswith(f"{_IN_ORDER}/"):
        return _IN_ORDER if file.count("/") == 2 else file
    return file if file.startswith(_ALONE) else str(Path(file).parent)


def groups(files: Iterable[str]) -> Mapping[str, list[str]]:
    """Return the files of each group, by the group's name."""
    grouped: dict[str, list[str]] = defaultdict(list)
    for file in sorted(files):
        grouped[group_of(file)].append(file)
    return grouped


def order_groups(grouped: Mapping[str, Sequence[str]], longest_not_run: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the groups, and the files of each, those first that were not run for the longest time. Files that need
    each other keep the order of their names."""
    age = {name: number for number, name in enumerate(longest_not_run)}
    oldest = {group: min(age[name] for name in files or [group]) for group, files in grouped.items()}
    return [
        (group, sorted(grouped[group], key=None if group == _IN_ORDER else age.__getitem__))
        for group in sorted(grouped, key=oldest.__getitem__)
    ]


def step_of(group: str, files: Sequence[str], *, seed: int, logs: Path, stop_at_s: float) -> Step:
    """Return the step that runs the files of a group in their order. Files without servers run on all cores.

    `stop_at_s`: reading of `time.monotonic()` from which on no case starts."""
    if not files:
        return Step(names=(group,), command=tuple(shlex.split(group)))
    ran = logs / f"{group.replace('/', '-')}.jsonl"
    processes: tuple[str, ...] = ()
    if group.startswith("tests/real"):
        processes = SERVERS
    elif not group.startswith((_ALONE, "tests/e2e", "tests/contract")):
        processes = ("--numprocesses=logical", "--dist=worksteal")
    limits = (f"--timeout={_TIMEOUT_S}", f"--stop-at={stop_at_s}", "--continue-on-collection-errors")
    options = (*limits, f"--hypothesis-seed={seed}", *processes)
    return Step(names=tuple(files), command=tuple(pytest_command(*options, *files, ran=ran)), ran=ran)


def run_step(step: Step, ledger: Ledger, commit: str, logs: Path) -> tuple[Ledger, list[str]]:
    """Run a step. Return the ledger with its rows, and the failed cases or rehearsals."""
    began = datetime.now(UTC)
    name = step.names[0] if len(step.names) == 1 else str(Path(step.names[0]).parent)
    if step.ran is not None:
        step.ran.unlink(missing_ok=True)
    part = Part(name=name.replace("/", "-").replace(" ", "-"), command=step.command)
    (ended,) = run_parts([part], logs)
    cases = read_ran(step.ran) if step.ran is not None else []
    failed = [case.name for case in cases if case.has_failed]
    if not ended.has_passed:
        # A file without a case did not load. If all are there and none has failed, the run itself has.
        there = {case.file for case in cases}
        failed += [name for name in step.names if name not in there] or ([] if failed else list(step.names))
    return record_step(ledger, step, cases, failed, Row(ran=began, commit=commit, seconds=ended.seconds)), failed


def record_step(ledger: Ledger, step: Step, cases: Sequence[Case], failed: Sequence[str], row: Row) -> Ledger:
    """Return the ledger with the rows of a step. A name with failures keeps the data of its last pass, and one with
    cases that were not started its row."""
    for name in step.names:
        if any(case == name or case.startswith(f"{name}::") for case in failed):
            before = ledger.rows.get(name, row)
            ledger = ledger.replace_row(name, replace(before, ran=row.ran))
            continue
        of_name = [case for case in cases if case.file == name]
        if has_unstarted(of_name):
            continue
        seconds = sum(case.seconds for case in of_name) if step.ran is not None else row.seconds
        quick = sum(case.seconds for case in of_name if not case.is_nightly)
        ledger = ledger.replace_row(name, replace(row, passed=row.ran, seconds=seconds, quick_seconds=quick))
    return ledger
