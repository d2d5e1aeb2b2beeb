"""The health that GitOps tools give an object: Argo CD's Lua, Flux's kstatus and its CEL, run by the libraries that
they use.

`main.go` beside this file evaluates all three for one object; it is built into the cache like the other Go programs.
"""

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.building import progress
from devcluster.building.cache import Entry
from devcluster.building.go import build_programs

_FOLDER = Path(__file__).parent
_SOURCES = ("go.mod", "main.go")
_OLDEST_GO = (1, 24)
_OPTIONS = ("-mod=mod", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w", "-o", "bin/health")


class JudgementError(Exception):
    """A script or an expression does not run; the message is the engine's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The health that each tool reports for an object."""

    kstatus: str
    """Flux without expressions: InProgress, Failed, Current or Terminating."""
    argo: str
    """Argo CD: Healthy, Progressing, Degraded or Suspended."""
    argo_message: str
    flux: str
    """Flux with healthCheckExprs, in the values of kstatus."""


def health() -> Entry:
    """Return the cache entry of the program that runs the engines."""
    sources = [(_FOLDER / name).read_text() for name in _SOURCES]

    def build(folder: Path) -> None:
        for name in _SOURCES:
            shutil.copy(_FOLDER / name, folder)
        with progress.step("Building the health checks of Argo CD and Flux") as step:
            build_programs(step, folder, _OLDEST_GO, ["."], _OPTIONS)

    return Entry(name="health", inputs=(*sources, *_OPTIONS), build=build)


def health_binary() -> Path:
    """Return the path of the program that runs the engines."""
    return health().folder() / "bin" / "health"


def judge(resource: Mapping[str, Any], *, lua: str, expressions: Mapping[str, str]) -> Health:
    """Evaluate an object in all engines: Argo CD with a health script, Flux with an entry of healthCheckExprs.

    Raises JudgementError if a script or an expression does not run.
    """
    asked = json.dumps({"object": resource, "lua": lua, "expressions": expressions})
    done = subprocess.run([str(health_binary())], input=asked, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise JudgementError(done.stderr.strip())
    answer = json.loads(done.stdout)
    return Health(
        kstatus=answer["kstatus"]["status"],
        argo=answer["argo"]["status"],
        argo_message=answer["argo"].get("message", ""),
        flux=answer["flux"]["status"],
    )
