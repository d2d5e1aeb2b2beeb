"""Mutation testing: small changes of the code, one at a time, each of which the unit tests should notice.

mutmut makes the mutants and runs the tests that reach each one (`[tool.mutmut]` in pyproject.toml says of which modules
and by which tests). It works on a copy in the cache, so the working tree stays as it is, and the next run finds again
what this one measured. All mutants take hours, so a run is of some modules, and of a sample of their mutants that a seed
draws. What lived is printed as a difference; docs/mutants.md explains those that may. Run by `make mutants`.
"""

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

import typer

from devcluster.building.cache import cache_folder, digest

_PROJECT = Path(__file__).resolve().parents[1]
_MUTMUT = (sys.executable, "-m", "mutmut")
# A run of few mutants makes them all, and finds out which test reaches which.
_FEW = "controller_core.zk.fenced.*__mutmut_1"
_DEAD = {"killed", "timeout", "segfault", "caught by type check"}


def copy_of_the_project() -> Path:
    """The folder with the files that git knows or would take; what mutmut left there before stays."""
    folder = cache_folder() / f"mutants-{digest(str(_PROJECT))}"
    listed = _output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], _PROJECT).split("\0")
    for name in filter(None, listed):
        source, target = _PROJECT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.exists() and not (target.exists() and target.read_bytes() == source.read_bytes()):
            shutil.copy(source, target)
    return folder


def statuses(folder: Path) -> dict[str, str]:
    """What is known of each mutant: `killed`, `survived`, `no tests`, `timeout`, `not checked`."""
    lines = _output([*_MUTMUT, "results", "--all", "true"], folder).splitlines()
    return {name.strip(): status for name, _, status in (line.partition(": ") for line in lines) if status}


def run(folder: Path, names: list[str], processes: int) -> None:
    """Has mutmut try the mutants; it says itself how far it is."""
    # The mutants are found before the working tree, which is installed; Python would not look into a folder that was not
    # there when it started. The examples of property tests are the same for every mutant.
    mutants = folder / "mutants"
    mutants.mkdir(exist_ok=True)
    environment = {**os.environ, "CI": "1", "PYTHONPATH": f"{mutants}{os.pathsep}{mutants / 'operator'}"}
    command = [*_MUTMUT, "run", "--max-children", str(processes), *names]
    subprocess.run(command, cwd=folder, env=environment, check=True)  # noqa: S603


def module_of(name: str) -> str:
    """`controller_core.zk.fenced` of `controller_core.zk.fenced.x_paths__mutmut_3`."""
    return name.rpartition(".")[0]


def report(folder: Path, names: list[str]) -> None:
    """Prints how the mutants of each module ended, and what those changed that lived."""
    ended = {name: status for name, status in statuses(folder).items() if name in set(names)}
    by_module = Counter((module_of(name), status) for name, status in ended.items())
    for (module, status), count in sorted(by_module.items()):
        print(f"{module:60} {status:12} {count}")  # noqa: T201
    for name, status in ended.items():
        if status not in _DEAD:
            print(_output([*_MUTMUT, "show", name], folder))  # noqa: T201
    dead = sum(status in _DEAD for status in ended.values())
    print(f"{len(ended)} mutants, {dead} dead, {len(ended) - dead} alive")  # noqa: T201


def main(
    module: Annotated[
        list[str] | None, typer.Option(help="As `zk.fenced` or `model`; none: all that are mutated.")
    ] = None,
    sample: Annotated[int, typer.Option(min=0, help="How many mutants, drawn at random; 0: all.")] = 0,
    seed: Annotated[int, typer.Option(help="Draws the sample.")] = 0,
    processes: Annotated[int, typer.Option(min=1, help="How many at a time.")] = os.cpu_count() or 1,
) -> None:
    """Try mutants, and say which of them the tests let live."""
    folder = copy_of_the_project()
    run(folder, [_FEW], processes)
    patterns = [f"controller_core.{name}.*" for name in module or ["*"]]
    names = [name for name in statuses(folder) if any(fnmatch(name, pattern) for pattern in patterns)]
    if 0 < sample < len(names):
        names = sorted(random.Random(seed).sample(sorted(names), sample))  # noqa: S311
    run(folder, names, processes)
    report(folder, names)


def _output(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout  # noqa: S603


if __name__ == "__main__":
    typer.run(main)
