"""The project and its dependencies as wheels for the images' Python, made with the Python that runs this.

What is downloaded is kept: after a change of the project's sources nothing is asked of the network.
"""

import hashlib
import platform
import sys
import tomllib
from pathlib import Path
from typing import Any, cast

from devcluster import progress
from devcluster.cache import cached
from devcluster.toolchain import run

PROJECT = Path(__file__).resolve().parents[2]
IMAGE_PYTHON = "3.11"

_OLDEST_GLIBC, _IMAGE_GLIBC = 17, 36
_METADATA = ("pyproject.toml", "README.md", "LICENSE")
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


def project_version() -> str:
    """The version of the project, which tags its images."""
    return cast(str, _pyproject()["project"]["version"])


def dependencies(extra: str | None = None) -> list[str]:
    """The project's dependencies, as in pyproject.toml; or those that an extra adds to them."""
    project = _pyproject()["project"]
    return cast(list[str], project["optional-dependencies"][extra] if extra else project["dependencies"])


def image_dependencies() -> list[str]:
    """What the image `kontroller` has besides the project."""
    return [*dependencies(), *dependencies("journal-topic")]


def dependency_wheels() -> Path:
    """The folder with the wheels of the dependencies and all that they need, and pip's."""
    wanted = [*image_dependencies(), "pip"]
    machine = platform.machine()

    def build(folder: Path) -> None:
        with progress.step("Fetching the wheels of Kontroller's dependencies"):
            _download(folder, [*wanted, *_only_for_the_image(machine)])

    return cached("image-dependency-wheels", *wanted, machine, IMAGE_PYTHON, build=build)


def pipeline_wheels() -> Path:
    """The folder with the wheels of what the extra `pipeline` needs. Spark comes as source only, without any of C."""
    wanted = [*dependencies("pipeline"), "pip"]
    machine = platform.machine()

    def build(folder: Path) -> None:
        with progress.step("Fetching the wheels of Spark, 400 MB"):
            spark = [name for name in wanted if name.startswith("pyspark")]
            run([*_PIP, "wheel", "--no-deps", "-w", str(folder), *spark], what="making the wheel of Spark")
            found = ["--find-links", str(folder), *_only_for_the_image(machine)]
            _download(folder, [*dependencies(), *wanted, *found])

    return cached("image-pipeline-wheels", *dependencies(), *wanted, machine, IMAGE_PYTHON, build=build)


def project_wheel() -> Path:
    """The folder with the project's own wheel."""

    def build(folder: Path) -> None:
        offline = ["--no-index", "--find-links", str(_build_wheels())]
        run(
            [*_PIP, "wheel", "--no-deps", *offline, "-w", str(folder), str(PROJECT)], what="building Kontroller's wheel"
        )

    return cached("image-project-wheel", _sources_digest(), build=build)


def _build_wheels() -> Path:
    wanted = cast(list[str], _pyproject()["build-system"]["requires"])

    def build(folder: Path) -> None:
        with progress.step("Fetching the wheels that build Kontroller's"):
            _download(folder, wanted)

    return cached("image-build-wheels", *wanted, sys.version, build=build)


def _download(folder: Path, arguments: list[str]) -> None:
    run([*_PIP, "download", "--only-binary=:all:", "-d", str(folder), *arguments], what="downloading wheels")


def _only_for_the_image(machine: str) -> list[str]:
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(_IMAGE_GLIBC, _OLDEST_GLIBC - 1, -1)]
    platforms.append(f"manylinux2014_{machine}")
    python = ["--implementation", "cp", "--python-version", IMAGE_PYTHON]
    return [*python, *(word for name in platforms for word in ("--platform", name))]


def _sources_digest() -> str:
    """Changes with every file that goes into the wheel."""
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
