"""Jars that Maven fetches, each compared with its checksum before anything runs it.

A folder defines them: `pom.xml` names them, and `jars.sha256` has a line of `sha256sum` for each, including the jars
that they depend on. The images are built from the same two files.
"""

import hashlib
import shutil
from pathlib import Path

from devcluster.building.toolchain import BuildError, require, run

INPUTS = ("pom.xml", "jars.sha256")


def inputs(source: Path) -> tuple[str, ...]:
    """Return the texts that determine the result of `fetch`."""
    return tuple((source / name).read_text() for name in INPUTS)


def fetch(source: Path, folder: Path, *, what: str) -> None:
    """Fill `folder` with the jars that `source` names; `what` names them in messages.

    Raises MissingToolError, or BuildError if a jar cannot be fetched or its checksum differs.
    """
    pom, checksums = inputs(source)
    maven = require("mvn")
    folder.mkdir(exist_ok=True)
    (folder / "pom.xml").write_text(pom)
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    run([maven, "-q", "-B", "--strict-checksums", *goal], what=f"fetching {what}", cwd=folder)
    shutil.rmtree(folder / "target", ignore_errors=True)
    (folder / "pom.xml").unlink()
    check(folder, checksums)


def check(folder: Path, checksums: str) -> None:
    """Compare a folder with lines of `sha256sum`. Raises BuildError if a jar differs, is missing or is unexpected."""
    expected = {name: digest for digest, name in map(str.split, checksums.splitlines())}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.jar")}
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        raise BuildError(f"not as the checksums beside their pom.xml say: {', '.join(wrong)}")
