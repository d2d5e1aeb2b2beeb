"""The programs that fill the cache: found on the PATH, or installed with apt if that works without questions."""

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
from devcluster.building.cache import hold_lock
from devcluster.running.priority import share_niceness
from devcluster.running.processes import spawn

_PACKAGES = {
    "java": "default-jdk-headless",
    "mvn": "maven",
    "go": "golang-go",
    "node": "nodejs",
    "npm": "npm",
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
    """A program is missing or too old; the message says what to install."""


class BuildError(Exception):
    """A build step failed; the message ends with its last output."""


def require(tool: str) -> str:
    """Return the path of a program. On Debian as root, a missing program is installed first.

    Otherwise raises MissingToolError, which says what to install.
    """
    if shutil.which(tool) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install(tool)
    found = shutil.which(tool)
    if found is None:
        raise MissingToolError(f"{tool} is not on the PATH: install it (on Debian: apt-get install {_PACKAGES[tool]})")
    return found


def require_go(oldest: tuple[int, int]) -> tuple[str, dict[str, str]]:
    """Return the path of `go`, and the environment that lets an older Go fetch the toolchain that a module needs."""
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
    """Run a build step and return its standard output. Raises BuildError with the end of its output.

    `is_progress` is called with each line of standard error; it returns True for lines that only report progress. On an
    interruption, the step and all its child processes are ended before the interruption is raised.
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
            printed, complaints = _read_output(step, is_progress)
            status = step.wait()
        except BaseException:
            _end(step)
            raise
    if status != 0:
        shown = "\n".join([*printed.splitlines(), *complaints][-_SHOWN_LINES:])
        raise BuildError(f"{what} failed with exit status {status}: {' '.join(command)}\n{shown}")
    return printed


def _read_output(step: "subprocess.Popen[str]", is_progress: Callable[[str], bool]) -> tuple[str, list[str]]:
    """Return all of standard output, and the lines of standard error that are no progress."""
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
    """Send SIGINT, on which compilers and apt tidy up, then SIGKILL, to the step and all its child processes."""
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
    with hold_lock("apt", "Waiting for another run that installs"):
        if shutil.which(tool) is None:
            with progress.step(f"Installing {package}"):
                run(["apt-get", "update", "-q"], what="apt-get update", env=unattended)
                install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", package]
                run(install, what=f"installing {package}", env=unattended)
