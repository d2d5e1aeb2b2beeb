"""Checks whether this machine can be a node, before anything is started."""

import os
import shutil
import sys

from devcluster.building.toolchain import require
from devcluster.node import cgroups

_PROGRAMS = ("containerd", "ctr", "runc", "iptables", "conntrack", "ip", "unshare", "nsenter", "/usr/lib/cni/bridge")


def find_missing_for_node() -> str | None:
    """Return the reason why this machine cannot be a node, even after `install_for_a_node`; None if it can."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "it needs Linux and root"
    if not cgroups.is_version_1():
        return "it needs cgroups of version 1"
    lacking = [name for name in _PROGRAMS if shutil.which(name) is None]
    if lacking and shutil.which("apt-get") is None:
        return f"it needs {', '.join(lacking)}"
    return None


def install_for_a_node() -> None:
    """Install missing programs, on Debian. Raises MissingToolError and BuildError."""
    for name in _PROGRAMS:
        require(name)
