"""Builds the files of a release into dist/, and publishes nothing.

    python -m scripts.release [TAG]

The files are the wheels of the two distributions, the chart, the archive for krew, the list of parts of each image, and
SHA256SUMS. The container images are built by their own step (images/README.md). If a tag is given, it must name the version
that pyproject.toml, the chart and the plugin have.
"""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import yaml

from devcluster.filling.programs import HELM
from scripts import krew

ROOT: Final = Path(__file__).resolve().parents[1]
DIST: Final = ROOT / "dist"


def read_versions() -> dict[str, str]:
    """Return the version that each file names, by the file's path."""
    chart = yaml.safe_load((ROOT / "charts/kontroller/Chart.yaml").read_text())
    return {
        "pyproject.toml": tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"],
        "replica_broker/pyproject.toml": tomllib.loads((ROOT / "replica_broker/pyproject.toml").read_text())["project"][
            "version"
        ],
        "charts/kontroller/Chart.yaml": chart["version"],
        "charts/kontroller/Chart.yaml, appVersion": chart["appVersion"],
        "scripts/krew.py": krew.VERSION,
    }


def find_mismatches(tag: str | None) -> list[str]:
    """Return a line for each file whose version is not that of the tag, or of pyproject.toml if there is no tag."""
    versions = read_versions()
    wanted = tag.removeprefix("v") if tag else versions["pyproject.toml"]
    return [f"{file} has version {found}, not {wanted}" for file, found in versions.items() if found != wanted]


def build_all() -> None:
    """Build all files into an empty dist/."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(DIST))
    _run(sys.executable, "-m", "pip", "wheel", *options, ".", "./replica_broker")
    _run(str(HELM.path()), "package", "charts/kontroller", "--destination", str(DIST))
    (DIST / krew.ARCHIVE).write_bytes(krew.archive())
    for parts in sorted((ROOT / "images").glob("*/sbom.cdx.json")):
        shutil.copyfile(parts, DIST / f"{parts.parent.name}.cdx.json")
    (DIST / "SHA256SUMS").write_text("".join(_list_checksums()))


def _list_checksums() -> Iterator[str]:
    for path in sorted(DIST.iterdir()):
        yield f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, cwd=ROOT)  # noqa: S603


def main() -> None:
    """Build a release; exit with an error for each version that does not fit."""
    mismatches = find_mismatches(sys.argv[1] if len(sys.argv) > 1 else None)
    if mismatches:
        sys.exit("\n".join(mismatches))
    build_all()
    sys.stdout.write((DIST / "SHA256SUMS").read_text())


if __name__ == "__main__":
    main()
