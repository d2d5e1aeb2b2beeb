"""The programs that fill the cache: found on the PATH, else installed with apt where that can be done without
asking.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from devcluster import progress

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
}
_OLDEST_SELF_UPDATING_GO = (1, 21)


class MissingToolError(Exception):
    """A program is not there or too old; the message says what to install."""


class BuildError(Exception):
    """A build step failed; the message ends with what it printed last."""


def require(tool: str) -> str:
    """The path of a program; on Debian as root it is installed first when missing.

    Raises MissingToolError that says what to install otherwise.
    """
    if shutil.which(tool) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install(_PACKAGES[tool])
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


def run(command: list[str], *, what: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Runs a build step, returns its standard output; raises BuildError with the end of what it printed."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        printed = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise BuildError(f"{what} failed with exit status {done.returncode}: {' '.join(command)}\n{printed}")
    return done.stdout


def _install(package: str) -> None:
    with progress.step(f"Installing {package}"):
        unattended = {"DEBIAN_FRONTEND": "noninteractive"}
        run(["apt-get", "update", "-q"], what="apt-get update", env=unattended)
        run(
            ["apt-get", "install", "-q", "-y", "--no-install-recommends", package],
            what=f"installing {package}",
            env=unattended,
        )
