"""Mutation testing: small changes of the code, one at a time, that the unit tests should notice. Run by `make mutants`.

mutmut creates the mutants and runs the tests that reach each one (`[tool.mutmut]` in pyproject.toml has the modules and
the tests). It works on a copy in the cache, so the working tree does not change, and the next run reuses the results.
All mutants take hours, so a run takes some modules, and a sample of their mutants by a seed. Surviving mutants are
printed as diffs; docs/mutants.md explains the accepted ones.
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
# A run of few mutants creates all of them, and finds the tests that reach each.
_FEW = "controller_core.zk.fenced.*__mutmut_1"
_DEAD = {"killed", "timeout", "segfault", "caught by type check"}


def copy_of_the_project() -> Path:
    """Copy all files that git tracks or would add. Return the folder, in which mutmut's earlier results stay."""
    folder = cache_folder() / f"mutants-{digest(str(_PROJECT))}"
    listed = _output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], _PROJECT).split("\0")
    for name in filter(None, listed):
        source, target = _PROJECT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.exists() and not (target.exists() and target.read_bytes() == source.read_bytes()):
            shutil.copy(source, target)
    return folder


def statuses(folder: Path) -> dict[str, str]:
    """Return the status of each mutant: `killed`, `survived`, `no tests`, `timeout`, `not checked`."""
    lines = _output([*_MUTMUT, "results", "--all", "true"], folder).splitlines()
    return {name.strip(): status for name, _, status in (line.partition(": ") for line in lines) if status}


def run(folder: Path, names: list[str], processes: int) -> None:
    """Let mutmut run the mutants. It prints its own progress."""
    # The mutants must be found before the installed working tree. Python ignores a folder that did not exist at its
    # start. The examples of property tests are the same for every mutant.
    mutants = folder / "mutants"
    mutants.mkdir(exist_ok=True)
    environment = {**os.environ, "CI": "1", "PYTHONPATH": f"{mutants}{os.pathsep}{mutants / 'operator'}"}
    command = [*_MUTMUT, "run", "--max-children", str(processes), *names]
    subprocess.run(command, cwd=folder, env=environment, check=True)  # noqa: S603


def module_of(name: str) -> str:
    """Return the module of a mutant: `controller_core.zk.fenced` of `controller_core.zk.fenced.x_paths__mutmut_3`."""
    return name.rpartition(".")[0]


def report(folder: Path, names: list[str]) -> None:
    """Print the number of mutants by module and status, and the diffs of the survivors."""
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
        list[str] | None, typer.Option(help="Module such as `zk.fenced` or `model`. Default: all mutated modules.")
    ] = None,
    sample: Annotated[int, typer.Option(min=0, help="Number of mutants, chosen at random. 0: all.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
    processes: Annotated[int, typer.Option(min=1, help="Number of parallel processes.")] = os.cpu_count() or 1,
) -> None:
    """Run mutants and report which ones the tests do not notice."""
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
