"""Steps that run inside a root file system, without a container engine.

A step has its own namespaces: its mounts and its processes are gone when it ends, even if this process is interrupted.
It has no network.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from devcluster.building.toolchain import BuildError, require, run

_DEBIAN_SUITE = "bookworm"
_DOCUMENTATION = ("/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/doc/*")
# Without this hook of mmdebstrap, Debian 12 pulls in all of Perl for a conversion that a new system does not need.
_MERGED_USR = "/usr/share/mmdebstrap/hooks/merged-usr"
_DEBIAN_SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
_OF_THIS_MACHINE = ("etc/resolv.conf", "etc/hostname")
# The inputs of the root file system besides the packages.
RECIPE = (_DEBIAN_SUITE, *_DOCUMENTATION, _MERGED_USR, *_OF_THIS_MACHINE)
# The folders below /mnt show this machine's files to a step; they are no part of the root file system.
_ENTER = """\
set -e
root=$1 step=$2
shift 2
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/mnt"
while [ "$1" != -- ]; do
    mkdir "$root/mnt/$1"
    mount --bind -o ro "$2" "$root/mnt/$1"
    shift 2
done
shift
exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 PYTHONHASHSEED=0 "/mnt/$step" "$@"
"""


class NeedsRoot(BuildError):
    """Building without a container engine enters root file systems, which only root may do."""


def require_root() -> None:
    """Raise NeedsRoot, with the alternatives, unless this process is root."""
    if os.geteuid() != 0:
        raise NeedsRoot(
            "building images without a container engine needs root: run it as root,"
            " or build images/*/Containerfile with podman, buildah or docker (see images/README.md)"
        )


def debian(root: Path, packages: list[str], *, documentation: bool) -> None:
    """Make `root` a small Debian with `packages`, from this machine's mirrors if it runs the same release."""
    require_root()
    options = [f"--include={','.join(packages)}", f"--hook-dir={_MERGED_USR}"]
    if not documentation:
        options += [f"--dpkgopt=path-exclude={pattern}" for pattern in _DOCUMENTATION]
        options.append("--dpkgopt=path-include=/usr/share/doc/*/copyright")
    command = [require("mmdebstrap"), "--quiet", "--mode=root", "--variant=minbase", *options]
    _run_alone([*command, _DEBIAN_SUITE, os.fspath(root), *_mirrors()], what="making a Debian root file system")
    for path in _OF_THIS_MACHINE:
        (root / path).unlink(missing_ok=True)


def run_step(root: Path, step: str, *arguments: str, mounts: Mapping[str, Path]) -> None:
    """Run the program `step` (a path below /mnt) inside `root`; `mounts` are the read-only folders that it sees.

    Raises NeedsRoot, or BuildError with the step's last output.
    """
    require_root()
    mounted = [word for name, source in mounts.items() for word in (name, os.fspath(source))]
    enter = ["sh", "-c", _ENTER, "sh", os.fspath(root), step, *mounted, "--", *arguments]
    _run_alone(["unshare", "--net", *enter], what=f"the step {step}")


def _run_alone(command: list[str], *, what: str) -> None:
    namespaces = ["--mount", "--propagation=private", "--mount-proc", "--pid", "--fork", "--kill-child"]
    run([require("unshare"), *namespaces, *command], what=what)


def _mirrors() -> list[str]:
    release = Path("/etc/os-release").read_text()
    if f"VERSION_CODENAME={_DEBIAN_SUITE}" not in release:
        return []
    return [os.fspath(path) for path in _DEBIAN_SOURCES if path.exists() and _DEBIAN_SUITE in path.read_text()]
