"""The project and its dependencies as wheels for the images' Python, made with the Python that runs this.

Only distributions that the lock files in locks/ name are downloaded, and their hashes must match. The wheels are
cached: after a change of the project's sources nothing is downloaded.
"""

import hashlib
import platform
import re
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from devcluster.building import progress
from devcluster.building.cache import build_cached
from devcluster.building.toolchain import run

PROJECT = Path(__file__).resolve().parents[2]
LOCKS = PROJECT / "locks"
IMAGE_PYTHON = "3.11"

_OLDEST_GLIBC, _IMAGE_GLIBC = 17, 36
_SOURCE_ONLY = ("pure-sasl", "pyspark")
"""Distributions without wheels, which contain no C."""
_METADATA = ("pyproject.toml", "README.md", "LICENSE")
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


def project_version() -> str:
    """Return the version of the project, which tags its images."""
    return cast(str, _pyproject()["project"]["version"])


def dependency_wheels() -> Path:
    """Return the folder with pip's wheel and the wheels of all direct and indirect dependencies."""
    lock = (LOCKS / "image.txt").read_text()

    def build(folder: Path) -> None:
        with progress.step("Fetching the wheels of Kontroller's dependencies"):
            _bring(folder, lock)

    return build_cached("image-dependency-wheels", lock, platform.machine(), IMAGE_PYTHON, build=build)


def pipeline_wheels() -> Path:
    """Return the folder with the wheels of the extra `pipeline`."""
    lock = (LOCKS / "history.txt").read_text()

    def build(folder: Path) -> None:
        with progress.step("Fetching the wheels of Spark, 400 MB"):
            _bring(folder, lock)

    return build_cached("image-pipeline-wheels", lock, platform.machine(), IMAGE_PYTHON, build=build)


def divide_lock(lock: str, names: Sequence[str]) -> tuple[str, str]:
    """Return the entries of some distributions in a lock file, and the file without them."""
    entries = re.split(r"\n(?=\S)", lock.rstrip("\n"))
    named = [entry for entry in entries if entry.startswith(tuple(f"{name}==" for name in names))]
    return "\n".join(named), "\n".join(entry for entry in entries if entry not in named)


def project_wheel() -> Path:
    """Return the folder with the project's own wheel."""

    def build(folder: Path) -> None:
        offline = ["--no-index", "--find-links", str(_build_wheels())]
        run(
            [*_PIP, "wheel", "--no-deps", *offline, "-w", str(folder), str(PROJECT)], what="building Kontroller's wheel"
        )

    return build_cached("image-project-wheel", _sources_digest(), build=build)


def _build_wheels() -> Path:
    lock = (LOCKS / "build.txt").read_text()

    def build(folder: Path) -> None:
        with progress.step("Fetching the wheels that build Kontroller's"):
            _download(folder, lock)

    return build_cached("image-build-wheels", lock, sys.version, build=build)


def _bring(folder: Path, lock: str) -> None:
    """Fetch the wheels of the image's lock; build those of distributions that only publish a source."""
    sources, others = divide_lock(lock, _SOURCE_ONLY)
    if sources:
        _run_pip("wheel", folder, sources, "--no-deps", "--no-build-isolation")
    _download(folder, others, *_only_for_the_image())


def _download(folder: Path, lock: str, *more: str) -> None:
    _run_pip("download", folder, lock, "--no-deps", "--only-binary=:all:", *more)


def _run_pip(command: str, folder: Path, lock: str, *more: str) -> None:
    """Let pip fetch a lock's distributions into `folder`, without dependencies, because a lock is complete."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(lock + "\n")
        file.flush()
        arguments = [
            "--require-hashes",
            "--wheel-dir" if command == "wheel" else "--dest",
            str(folder),
            "-r",
            file.name,
        ]
        run([*_PIP, command, *arguments, *more], what="downloading wheels")


def _only_for_the_image() -> list[str]:
    machine = platform.machine()
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(_IMAGE_GLIBC, _OLDEST_GLIBC - 1, -1)]
    platforms.append(f"manylinux2014_{machine}")
    python = ["--implementation", "cp", "--python-version", IMAGE_PYTHON]
    return [*python, *(word for name in platforms for word in ("--platform", name))]


def _sources_digest() -> str:
    """Return a digest that changes with every file of the wheel."""
    packages = cast(list[str], _pyproject()["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    files = [PROJECT / name for name in _METADATA]
    for package in packages:
        files += [path for path in (PROJECT / package).rglob("*") if path.is_file() and path.suffix != ".pyc"]
    whole = hashlib.sha256()
    for path in sorted(files):
        whole.update(f"{path.relative_to(PROJECT)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return whole.hexdigest()


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((PROJECT / "pyproject.toml").read_text())
