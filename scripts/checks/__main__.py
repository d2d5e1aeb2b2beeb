"""`python -m scripts.checks`: the commands behind `make test`, `.ci/run`, `make nightly` and `make flaky`."""

import fcntl
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from devcluster.building.cache import cache_folder
from devcluster.filling.parts import API_SERVER
from devcluster.filling.parts import Part as Cached
from devcluster.running.processes import exit_on_sigterm
from scripts.checks import commits, flaky, nightly, prose
from scripts.checks.estimates import Estimates, count_all_cases
from scripts.checks.ledger import Ledger, read_ledger, write_ledger
from scripts.checks.mapping import LEVEL_1, REPETITIONS, Mapped, Project, Selection, select
from scripts.checks.parts import Ended, Part, python, run_parts, say, table
from scripts.checks.runs import PROCESSES, SERVERS, list_unstarted, pytest_command, read_ran, summary
from tests.levels import QUARANTINE, files_of, read_cases, read_quarantine

application = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)

_COMPUTES: Final = 10
"""The niceness of parts that compute. Servers and the tests that wait for them have priority."""
_MAPPED_MINUTES: Final = 12
_BROAD_MINUTES: Final = 25
_BROAD_FILES: Final = 150
"""A change of more files than this, such as a rename, gets the larger budget."""
_THE_RUN: Final = "the run itself"
"""The name for a failure of a run in which no case failed."""
_WITHOUT_SERVERS: Final = ("tests/unit", "tests/contract")
_SERVED: Final = (*API_SERVER, Cached.KAFKA, Cached.KRAFT)
"""Servers that level 1 needs in the cache; the slowest build comes first."""
_SPARK: Final = (f"--numprocesses={PROCESSES}", "--dist=loadfile", "--no-loadscope-reorder", "--durations=10")
_WORKERS: Final = max(2, len(os.sched_getaffinity(0)) * 3 // 2)
"""Tests without servers wait for a third of their time, so three processes keep two cores busy."""
_COMPUTED: Final = (f"--numprocesses={_WORKERS}", "--dist=worksteal", "--durations=10")


_PARTS: Final = {
    "operator": ("tests/real/operator", "tests/real/chart"),
    "spark": ("tests/spark",),
    "servers": ("tests/real", "tests/contract"),
}
"""The parts of level 1 with servers, and their folders; the first that has a file runs it. Each is one process, so it
starts one API server, or one Kafka cluster for all conformance tests. Its tokens fit beside those of the other two.
"""


@application.command()
def test() -> None:
    """Run level 1: the same cases at every commit."""
    logs = _logs("test")
    runs: dict[str, tuple[str, ...]] = {
        "unit": (
            *_COMPUTED,
            "--without-quarantined",
            "-m",
            "not real and not spark and not nightly",
            *_WITHOUT_SERVERS,
        )
    }
    for name, files in assign_to_parts(files_of(read_cases(LEVEL_1))).items():
        mark = "spark" if name == "spark" else "real"
        runs[name] = (f"--cases={LEVEL_1}", "--without-quarantined", "--durations=10", "-m", mark, *files)
    ran = {name: logs / f"{name}.jsonl" for name in runs}
    parts = [Part(name="lint", command=("make", "lint"), niceness=_COMPUTES)]
    for name, arguments in runs.items():
        niceness = _COMPUTES if name in ("unit", "spark") else 0
        parts.append(Part(name=name, command=pytest_command(*arguments, ran=ran[name]), niceness=niceness))
    fill = Part(name="cache", command=python("-m", "devcluster", "build", "--politely", *_SERVED))
    ended = run_parts([fill, *parts], logs)
    for name, path in ran.items():
        say(f"{name}: {summary(read_ran(path))}")
    _finish(ended)


def assign_to_parts(files: Sequence[str]) -> dict[str, list[str]]:
    """Return the files and folders of each part of level 1 with servers. Raises BadParameter if no part has one."""
    found: dict[str, list[str]] = {name: [] for name in _PARTS}
    for file in files:
        part = next((name for name, folders in _PARTS.items() if file.startswith(folders)), None)
        if part is None:
            raise typer.BadParameter(f"{LEVEL_1}: no part of `make test` runs {file}; its folders are in {__file__}")
        found[part].append(file)
    return found


@application.command(name="mapped")
def run_mapped(
    base: Annotated[str, typer.Option(help="Commit to compare with. Default: the last one that passed.")] = "",
    list_only: Annotated[bool, typer.Option("--list", help="Print the files and run nothing.")] = False,
) -> None:
    """Run the test files that cover the change since a commit, those that it touches three times.

    The budget bounds the time: when it is over, no further case starts, and the files with such cases are listed.
    """
    ledger = read_ledger()
    base = commits.find_base(ledger.green, base)
    changed = commits.list_changed_paths(base)
    budget_minutes = _BROAD_MINUTES if len(changed) > _BROAD_FILES else _MAPPED_MINUTES
    project = Project(commits.project_folder())
    estimates = Estimates(ledger=ledger, cases=count_all_cases(commits.project_folder(), project.test_files))
    selection = select(project.find_covering(changed), estimates, budget_minutes * 60 * PROCESSES)
    say(f"{len(changed)} files changed since {base[:12]}; budget {budget_minutes} minutes")
    _explain(selection, estimates)
    if not list_only:
        _finish(_run_mapped(selection.chosen, budget_minutes))


@application.command(name="nightly")
def run_nightly(
    time_budget_minutes: Annotated[
        int, typer.Option("--minutes", min=1, help="Minutes after which no case begins.")
    ] = 60,
    shard: Annotated[str, typer.Option(help="Share of this machine, such as 2/7.")] = "1/1",
    seed: Annotated[int, typer.Option(help="Seed of property tests. Default: random.")] = 0,
) -> None:
    """Run everything, longest not run first, and update the ledger."""
    stop_at_s = time.monotonic() + time_budget_minutes * 60
    os.environ["KONTROLLER_HYPOTHESIS"] = "nightly"
    seed = seed or random.SystemRandom().randrange(1, 2**32)
    try:
        mine = nightly.Shard.parse(shard)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    say(f"Shard {shard}; property tests have the seed {seed}")
    logs, commit = _logs("nightly"), commits.head()
    failed: list[str] = []
    _run_quarantined()
    for group, files in _order_groups(read_ledger(), mine):
        if time.monotonic() >= stop_at_s:
            say("The time budget is used up; the next run continues here.")
            break
        step = nightly.step_of(group, files, seed=seed, logs=logs, stop_at_s=stop_at_s)
        ledger, failures = nightly.run_step(step, read_ledger(), commit, logs)
        write_ledger(ledger)
        failed += failures
    say("\n".join(["", *(f"FAILED {name}" for name in failed), f"{len(failed)} failed; seed {seed}"]))
    raise typer.Exit(1 if failed else 0)


@application.command()
def release() -> None:
    """Check that every row of the ledger has passed within the last seven days."""
    names = _all_names()
    stale = read_ledger().stale(names, datetime.now(UTC))
    say("\n".join([*stale, f"{len(stale)} of {len(names)} rows have not passed within seven days"]))
    raise typer.Exit(1 if stale else 0)


@application.command(name="flaky")
def run_flaky(
    files: Annotated[
        list[str] | None, typer.Argument(help="Tests to run. Default: all of level 1 with servers.")
    ] = None,
    runs: Annotated[int, typer.Option("--runs", "-n", min=1, help="Number of runs of each way.")] = 20,
    hogs: Annotated[int, typer.Option(min=0, help="Number of busy loops beside the second way.")] = 2,
    time_budget_minutes: Annotated[
        int, typer.Option("--minutes", min=1, help="Minutes after which no run begins.")
    ] = 24 * 60,
) -> None:
    """Run tests repeatedly: alone, beside busy loops, and in slow motion. Print failures with their 95 % bound.

    Runs of level 1 are counted in docs/flaky.json, and the next call continues there.
    """
    began = time.monotonic()
    logs = _logs("flaky")
    ways = (
        flaky.Way(name="alone"),
        flaky.Way(name=f"beside {hogs} busy loops", busy_loops=hogs),
        flaky.Way(name="in slow motion", delays_writes=True),
    )
    if files:
        options: tuple[str, ...] = ()
        path = logs / "flaky.json"
        record = flaky.read_record(dict.fromkeys(files, ""), path)
    else:
        options, path = ("-m", "real", f"--cases={LEVEL_1}"), flaky.RECORD
        listed = _list_below(files_of(read_cases(LEVEL_1)), "tests/real", "tests/contract")
        record = flaky.read_record(flaky.digest_files(listed), path)
    while time.monotonic() - began < time_budget_minutes * 60:
        chosen = flaky.choose_next(record, ways, runs)
        if chosen is None:
            break
        way, lacking = chosen
        number = max(flaky.find_tried(record[file], way).runs for file in lacking) + 1
        with ExitStack() as stack:
            stack.enter_context(flaky.busy_loops(way.busy_loops))
            stack.enter_context(_environment({"KONTROLLER_SLOW_MOTION": str(number)} if way.delays_writes else {}))
            failures = _failures(f"{way.name} {number}", [*SERVERS, *options, *lacking], logs)
        if _THE_RUN in failures:
            say("The run failed without a failed case, so it does not count.")
            raise typer.Exit(1)
        record = flaky.count_run(record, way, lacking, failures)
        flaky.write_record(record, path)
    say(f"\n{flaky.report_record(record, ways)}")


@application.command(name="prose")
def check_prose(
    listed: Annotated[bool, typer.Option("--list", help="Print all instances; write the counts if none rose.")] = False,
) -> None:
    """Count habits that make prose hard to read; fail if a count is above scripts/checks/prose.json."""
    root = commits.project_folder()
    paths = [path for path in commits.list_tracked_paths("*.py") if (root / path).exists()]
    findings, most = prose.read_all(root, paths), prose.read_baseline(root)
    for habit in prose.Habit:
        count, total = findings.counts[habit], findings.totals[habit]
        say(f"{count} of {total} ({count / total:.1%}) {habit}; at most {most[habit]}")
    risen = {habit for habit in prose.Habit if findings.counts[habit] > most[habit]}
    changed = set(paths if listed else commits.list_changed_paths(commits.last_change(prose.BASELINE)))
    for place in findings.places:
        if listed or (place.habit in risen and place.path in changed):
            say(str(place))
    if risen:
        say("Write these modules as CONTRIBUTING.md says, or improve as many other places.")
        raise typer.Exit(1)
    if listed:
        prose.write_baseline(root, findings.counts)


@application.command(name="types")
def check_types() -> None:
    """Run mypy with its results in the cache folder: a new checkout checks only what differs from the last one."""
    results = cache_folder() / "mypy"
    with results.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # runs in other checkouts use the same results
        ended = subprocess.run(python("-m", "mypy", f"--cache-dir={results}"), check=False)  # noqa: S603
    raise typer.Exit(ended.returncode)


@application.command(name="passed")
def record_passed() -> None:
    """Note that `.ci/run` has passed for the commit that is checked out."""
    commits.record_passed(commits.head())


def _explain(selection: Selection, estimates: Estimates) -> None:
    for each in selection.chosen:
        times = f", {each.repetitions} times" if each.repetitions > 1 else ""
        say(f"  {each.file}: {each.reason}{times}; {each.cost_s(estimates):.0f} s")
    if selection.left_out:
        say(f"  {len(selection.left_out)} more do not fit into the budget; `make nightly` runs them:")
    for each in selection.left_out:
        say(f"    {each.file}: {each.reason}; {each.cost_s(estimates):.0f} s")


def _run_mapped(chosen: Sequence[Mapped], budget_minutes: int) -> list[Ended]:
    stop_at_s = time.monotonic() + budget_minutes * 60
    logs, ended, unstarted = _logs("mapped"), [], list[str]()
    servers = [each.file for each in chosen if each.needs_servers]
    spark = [each.file for each in chosen if each.file.startswith("tests/spark/")]
    others = [each.file for each in chosen if each.file not in {*servers, *spark}]
    again = [each.file for each in chosen if each.repetitions > 1]
    runs = [
        ("mapped-servers", ("-m", "not nightly", *SERVERS), servers),
        *((f"mapped-servers-{time}", ("-m", "not nightly", *SERVERS), again) for time in range(2, REPETITIONS + 1)),
        ("mapped-spark", _SPARK, spark),
        ("mapped-others", _COMPUTED, others),
    ]
    bounded = ("--without-quarantined", "--may-select-none", f"--stop-at={stop_at_s}")
    for name, options, files in runs:
        if files and time.monotonic() >= stop_at_s:
            unstarted += (f"{name}: {file}" for file in files)
        elif files:
            ran = logs / f"{name}.jsonl"
            command = pytest_command(*options, *bounded, *files, ran=ran)
            ended += run_parts([Part(name=name, command=command)], logs)
            say(f"{name}: {summary(read_ran(ran))}")
            unstarted += (f"{name}: {line}" for line in list_unstarted(read_ran(ran)))
    if unstarted:
        say(f"The budget of {budget_minutes} minutes is used up. `make nightly` runs what was not started:")
        say("\n".join(f"  {line}" for line in unstarted))
    return ended


def _run_quarantined() -> None:
    """Run each quarantined test 20 times and print how often it failed."""
    quarantined = [each.test for each in read_quarantine(QUARANTINE)]
    for test in quarantined:
        failures: Counter[str] = Counter()
        for number in range(1, nightly.QUARANTINE_RUNS + 1):
            failures += _failures(f"quarantined {number}", [test], _logs("quarantined"))
        say(flaky.report(failures, nightly.QUARANTINE_RUNS, f"quarantined {test}"))


def _failures(name: str, arguments: Sequence[str], logs: Path) -> Counter[str]:
    """Run tests once. Return the failed ones, or the run itself if it failed otherwise."""
    ran = logs / "ran.jsonl"
    ran.unlink(missing_ok=True)
    (ended,) = run_parts([Part(name=name.replace(" ", "-"), command=pytest_command(*arguments, ran=ran))], logs)
    failed = Counter(case.name for case in read_ran(ran) if case.has_failed)
    return failed if ended.has_passed or failed else Counter([_THE_RUN])


def _all_names() -> list[str]:
    return [*sorted(Project(commits.project_folder()).test_files), *nightly.REHEARSALS]


def _order_groups(ledger: Ledger, shard: nightly.Shard) -> list[tuple[str, list[str]]]:
    """Return the groups of this shard and the files of each, those first that were not run for the longest time."""
    grouped = dict(nightly.groups(Project(commits.project_folder()).test_files))
    grouped.update((rehearsal, []) for rehearsal in nightly.REHEARSALS)
    mine = {name: grouped[name] for name in shard.share(list(grouped))}
    return nightly.order_groups(mine, ledger.longest_not_run(_all_names()))


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for processes that start in the block."""
    os.environ.update(settings)
    try:
        yield
    finally:
        for name in settings:
            del os.environ[name]


def _list_below(files: Sequence[str], *folders: str) -> list[str]:
    return [file for file in files if file.startswith(folders)]


def _logs(name: str) -> Path:
    """Create a folder for the output of the parts. It is kept for later reading."""
    return Path(tempfile.mkdtemp(prefix=f"kontroller-{name}-"))


def _finish(ended: Sequence[Ended]) -> None:
    """Print the outcome and duration of each part, and exit with a status."""
    say(f"\n{table(ended)}")
    if not all(each.has_passed for each in ended):
        raise typer.Exit(1)


if __name__ == "__main__":
    try:
        with exit_on_sigterm():
            application()
    except commits.NoBaseError as error:
        sys.exit(str(error))
