"""Go, which builds what comes as modules: with as many compilers as the machine has cores and memory for, and nothing left
behind by a build that was interrupted.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from devcluster.building.progress import Step
from devcluster.building.toolchain import require_go, run

_COMPILER_BYTES = 2**30
"""What a compiler may take of memory. A link of the API server takes over a gigabyte."""


def run_go(
    folder: Path, oldest: tuple[int, int], *arguments: str, what: str, env: Mapping[str, str] | None = None
) -> str:
    """Runs a command of Go in a folder and returns what it printed. Raises MissingToolError and BuildError."""
    program, environment = require_go(oldest)
    return run([program, *arguments], what=what, cwd=folder, env={**environment, **(env or {})})


def build_programs(
    step: Step, folder: Path, oldest: tuple[int, int], packages: Sequence[str], options: Sequence[str]
) -> None:
    """`go build` of a module in `folder`, which also holds what it compiles meanwhile: it goes with the folder.

    `step` is told how many packages are compiled already. Raises MissingToolError and BuildError.
    """
    program, environment = require_go(oldest)
    what = f"building {', '.join(packages)}"
    command = [program, "list", "-mod=mod", "-deps", *packages]
    step.detail = "fetching modules"
    needed = set(run(command, what=f"fetching the modules for {what}", cwd=folder, env=environment).split())
    compiled = 0

    def is_progress(line: str) -> bool:
        nonlocal compiled
        if line in needed:
            compiled += 1
            step.detail = f"{compiled} of {len(needed)} packages"
        return line in needed

    objects = folder / "objects"
    objects.mkdir()
    build = [program, "build", "-v", "-p", str(compilers()), *options, *packages]
    run(build, what=what, cwd=folder, env={**environment, "GOTMPDIR": str(objects)}, is_progress=is_progress)
    shutil.rmtree(objects)


def compilers() -> int:
    """How many compilers may run side by side on this machine."""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(len(os.sched_getaffinity(0)), memory_bytes // _COMPILER_BYTES))
