"""Selects the cases of a level of checks: used by tests/conftest.py.

`--cases FILE` keeps exactly the cases that a list names, such as `tests/level1.txt`; a line that names nothing is an
error, so a renamed test cannot drop out in silence. `--without-quarantined` leaves out the cases of
`tests/quarantine.txt`. `--ran FILE` writes how each case ended and its duration, as JSON lines. `--stop-at` bounds the
run: from then on no case starts.

A line of a list is a file, a folder that ends with `/**`, a test, or a test with its parameters; `*` stands for any text.
"""

import json
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

QUARANTINE: Final = Path("tests/quarantine.txt")
MOST_QUARANTINED: Final = 10
LONGEST_QUARANTINE: Final = timedelta(days=7)
NOT_STARTED: Final = "not started"
"""The outcome of a case that `--stop-at` kept from starting."""


class ListError(Exception):
    """A line of a list that cannot be read; the message names the file and the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A test that failed without a change of what it tests."""

    test: str
    since: date
    reason: str


def read_cases(path: Path) -> list[str]:
    """Return the lines of a list, without comments and blank lines."""
    lines = (line.partition(" # ")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def read_quarantine(path: Path) -> list[Quarantined]:
    """Return the quarantined tests; each line has a test, a date and a reason. Raises ListError."""
    found = []
    for line in read_cases(path):
        fields = re.fullmatch(r"(\S+(?:\[.*\])?)\s+(\d{4}-\d\d-\d\d)\s+(\S.*)", line)
        if fields is None:
            raise ListError(f"{path}: {line!r}: write a test, a date such as 2026-01-31, and the reason")
        found.append(Quarantined(test=fields[1], since=date.fromisoformat(fields[2]), reason=fields[3]))
    return found


def quarantine_problems(quarantined: Sequence[Quarantined], today: date) -> list[str]:
    """Return what is wrong with a quarantine that is too long or too old."""
    problems = [
        f"{each.test} is quarantined since {each.since}: mend it"
        for each in quarantined
        if today - each.since > LONGEST_QUARANTINE
    ]
    if len(quarantined) > MOST_QUARANTINED:
        problems.append(f"{len(quarantined)} tests are quarantined, {MOST_QUARANTINED} are allowed: mend some")
    return problems


def matches(line: str, case: str) -> bool:
    """Return True if a line of a list names the case, a node id relative to the top folder."""
    if line.endswith("/**"):
        return case.startswith(line.removesuffix("**"))
    pattern = re.escape(line).replace(r"\*", ".*")
    return re.fullmatch(rf"{pattern}(?:::.*|\[.*)?", case, re.DOTALL) is not None


def case_of(item: pytest.Item) -> str:
    """Return the node id, without the group that xdist appends to it."""
    group = item.get_closest_marker("xdist_group")
    return item.nodeid.removesuffix(f"@{group.args[0]}") if group is not None and group.args else item.nodeid


def files_of(lines: Iterable[str]) -> list[str]:
    """Return the files and folders that the lines name, in order, each once."""
    return list(dict.fromkeys(line.partition("::")[0].removesuffix("/**") for line in lines))


class Levels:
    """Keeps the cases of a list, and drops the quarantined ones."""

    def __init__(self, lists: Sequence[Path], quarantined: Sequence[Quarantined]) -> None:
        self._lists = lists
        self._quarantined = quarantined

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        cases = {item: case_of(item) for item in items}
        kept = self._find_listed(cases) if self._lists else set(cases)
        kept -= {item for item in kept if any(matches(each.test, cases[item]) for each in self._quarantined)}
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]

    def _find_listed(self, cases: Mapping[pytest.Item, str]) -> set[pytest.Item]:
        """Return the items that the lists name. Raises UsageError if a line names nothing."""
        wanted = {line: path for path in self._lists for line in read_cases(path)}
        named = {line: {item for item, case in cases.items() if matches(line, case)} for line in wanted}
        collected = {case.partition("::")[0] for case in cases.values()}
        missing = [
            f"{path}: {line} names no test"
            for line, path in wanted.items()
            if not named[line] and (line.partition("::")[0] in collected or not Path(files_of([line])[0]).exists())
        ]
        if missing:
            raise pytest.UsageError("\n".join(missing))
        return set().union(*named.values())


class Ran:
    """Writes each case, how it ended and how long it took."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reports: dict[str, list[pytest.TestReport]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports[report.nodeid].append(report)

    def pytest_sessionfinish(self) -> None:
        lines = [json.dumps(_row(case, reports)) for case, reports in self._reports.items()]
        self._path.write_text("".join(f"{line}\n" for line in lines))


class Deadline:
    """Starts no case after a reading of the monotonic clock, which all processes of a machine share."""

    def __init__(self, stop_at_s: float) -> None:
        self._stop_at_s = stop_at_s

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if time.monotonic() >= self._stop_at_s:
            item.user_properties.append((NOT_STARTED, True))
            pytest.skip("the time of the run is over")


class MaySelectNone:
    """Makes a run pass if no case was left to run, for example because all cases of the files are nightly."""

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK


def _row(case: str, reports: Sequence[pytest.TestReport]) -> dict[str, Any]:
    outcomes = [each.outcome for each in reports]
    worst = next((each for each in ("failed", "skipped") if each in outcomes), "passed")
    if any(NOT_STARTED in dict(each.user_properties) for each in reports):
        worst = NOT_STARTED
    is_nightly = any("nightly" in each.keywords for each in reports)
    case = re.sub(r"@/.*", "", case, flags=re.DOTALL)  # the group that xdist appends, which begins with a path
    return {
        "case": case,
        "ended": worst,
        "seconds": round(sum(each.duration for each in reports), 3),
        "nightly": is_nightly,
    }


def add_options(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    parser.addoption("--cases", action="append", type=Path, default=[], help="a list of the cases to run")
    parser.addoption("--without-quarantined", action="store_true", help="leave out what tests/quarantine.txt lists")
    parser.addoption("--may-select-none", action="store_true", help="pass if no case is selected")
    parser.addoption("--stop-at", type=float, help="the reading of time.monotonic() from which on no case starts")
    parser.addoption("--ran", type=Path, help="the file to write cases, outcomes and durations to, as JSON lines")


def register(config: pytest.Config) -> None:
    """Register what the options ask for; with xdist, only the main process writes."""
    quarantined = read_quarantine(config.rootpath / QUARANTINE) if config.getoption("--without-quarantined") else []
    config.pluginmanager.register(Levels(config.getoption("--cases"), quarantined))
    if config.getoption("--may-select-none") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(MaySelectNone())
    stop_at_s = config.getoption("--stop-at")
    if stop_at_s is not None:
        config.pluginmanager.register(Deadline(stop_at_s))
    ran = config.getoption("--ran")
    if ran is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Ran(ran))
