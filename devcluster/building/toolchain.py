"""The programs that fill the cache: found on the PATH, else installed with apt where that can be done without
asking.
"""

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from devcluster.building import progress
from devcluster.building.cache import locked
from devcluster.running.priority import share_niceness
from devcluster.running.processes import spawn

_PACKAGES = {
    "java": "default-jdk-headless",
    "mvn": "maven",
    "go": "golang-go",
    "openssl": "openssl",
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mmdebstrap": "mmdebstrap",
    "faketime": "faketime",
}
_OLDEST_SELF_UPDATING_GO = (1, 21)
_SHOWN_LINES = 20
_INTERRUPT_DEADLINE_S = 10.0


class MissingToolError(Exception):
    """A program is not there or too old; the message says what to install."""


class BuildError(Exception):
    """A build step failed; the message ends with what it printed last."""


def require(tool: str) -> str:
    """The path of a program; on Debian as root it is installed first when missing.

    Raises MissingToolError that says what to install otherwise.
    """
    if shutil.which(tool) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install(tool)
    found = shutil.which(tool)
    if found is None:
        raise MissingToolError(f"{tool} is not on the PATH: install it (on Debian: apt-get install {_PACKAGES[tool]})")
    return found


def require_go(oldest: tuple[int, int]) -> tuple[str, dict[str, str]]:
    """The path of `go` and the environment that lets an older one fetch the toolchain which a module asks for."""
    go = require("go")
    printed = run([go, "env", "GOVERSION"], what="asking Go for its version").strip()
    match = re.match(r"go(\d+)\.(\d+)", printed)
    version = (int(match[1]), int(match[2])) if match else oldest
    if version < _OLDEST_SELF_UPDATING_GO:
        raise MissingToolError(
            f"{go} is {printed}: install Go {oldest[0]}.{oldest[1]} or newer and put it first on the PATH"
        )
    return go, {} if version >= oldest else {"GOTOOLCHAIN": "auto"}


def run(
    command: list[str],
    *,
    what: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    is_progress: Callable[[str], bool] = lambda line: False,
) -> str:
    """Runs a build step, returns its standard output; raises BuildError with the end of what it printed.

    `is_progress` is asked about each line of standard error as it comes, and takes those that only say how far it is.
    When this is interrupted, the step and all that it started are ended before the interruption goes on.
    """
    step = spawn(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with step:
        try:
            share_niceness(step.pid)
            printed, complaints = _printed(step, is_progress)
            status = step.wait()
        except BaseException:
            _end(step)
            raise
    if status != 0:
        shown = "\n".join([*printed.splitlines(), *complaints][-_SHOWN_LINES:])
        raise BuildError(f"{what} failed with exit status {status}: {' '.join(command)}\n{shown}")
    return printed


def _printed(step: "subprocess.Popen[str]", is_progress: Callable[[str], bool]) -> tuple[str, list[str]]:
    """All of standard output, and the lines of standard error that are no progress."""
    assert step.stdout is not None
    complaints: list[str] = []

    def listen() -> None:
        lines = map(str.rstrip, step.stderr or ())
        complaints.extend(line for line in lines if not is_progress(line))

    listener = threading.Thread(target=listen, daemon=True, name="build-step")
    listener.start()
    printed = step.stdout.read()
    listener.join()
    return printed, complaints


def _end(step: "subprocess.Popen[str]") -> None:
    """SIGINT, on which compilers and apt tidy up after themselves, then SIGKILL, to the step and all that it started."""
    try:
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(step.pid, signal.SIGINT)
            step.wait(_INTERRUPT_DEADLINE_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(step.pid, signal.SIGKILL)


def _install(tool: str) -> None:
    package = _PACKAGES[tool]
    unattended = {"DEBIAN_FRONTEND": "noninteractive"}
    with locked("apt", "Waiting for another run that installs"):
        if shutil.which(tool) is None:
            with progress.step(f"Installing {package}"):
                run(["apt-get", "update", "-q"], what="apt-get update", env=unattended)
                install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", package]
                run(install, what=f"installing {package}", env=unattended)
