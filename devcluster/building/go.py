"""Builds Go modules with as many compilers as the machine has cores and memory for.

An interrupted build leaves nothing behind.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from devcluster.building.progress import Step
from devcluster.building.toolchain import require_go, run

_COMPILER_BYTES = 2**30
"""The memory that one compiler may need. Linking the API server takes over a gigabyte."""


def run_go(
    folder: Path, oldest: tuple[int, int], *arguments: str, what: str, env: Mapping[str, str] | None = None
) -> str:
    """Run a command of Go in a folder and return its output. Raises MissingToolError and BuildError."""
    program, environment = require_go(oldest)
    return run([program, *arguments], what=what, cwd=folder, env={**environment, **(env or {})})


def build_programs(
    step: Step, folder: Path, oldest: tuple[int, int], packages: Sequence[str], options: Sequence[str]
) -> None:
    """Run `go build` on a module in `folder`. Intermediate objects are below `folder`, so they go with it.

    `step` shows the number of compiled packages. Those in Go's own cache are not compiled again. Raises
    MissingToolError and BuildError.
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
            step.detail = f"{compiled} of at most {len(needed)} packages"
        return line in needed

    objects = folder / "objects"
    objects.mkdir()
    build = [program, "build", "-v", "-p", str(compilers()), *options, *packages]
    run(build, what=what, cwd=folder, env={**environment, "GOTMPDIR": str(objects)}, is_progress=is_progress)
    shutil.rmtree(objects)


def compilers() -> int:
    """Return the number of compilers that this machine can run side by side."""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(len(os.sched_getaffinity(0)), memory_bytes // _COMPILER_BYTES))
