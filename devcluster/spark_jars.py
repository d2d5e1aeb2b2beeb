"""The jars with which Spark reads from Kafka, fetched once into the cache and compared with their checksums.

They are fetched before anything runs, never by Spark's `--packages` at run time. The image of the history is built from the
same two files.
"""

import hashlib
import shutil
from pathlib import Path

from devcluster import progress
from devcluster.cache import cached
from devcluster.toolchain import BuildError, require, run

HISTORY_FOLDER = Path(__file__).resolve().parents[1] / "images" / "kontroller-history"

_POM = (HISTORY_FOLDER / "pom.xml").read_text()
_CHECKSUMS = (HISTORY_FOLDER / "jars.sha256").read_text()


def kafka_jars() -> str:
    """Paths separated by commas, as `kafka_topic.connector_settings` takes them.

    Raises MissingToolError, or BuildError where a jar cannot be fetched or is not the one that was meant.
    """
    return ",".join(str(path) for path in kafka_jar_files())


def kafka_jar_files() -> list[Path]:
    """The same, one by one."""
    return sorted(cached("spark-kafka", _POM, _CHECKSUMS, build=_fetch).glob("*.jar"))


def _fetch(folder: Path) -> None:
    maven = require("mvn")
    (folder / "pom.xml").write_text(_POM)
    with progress.step("Fetching what Spark needs to read from Kafka"):
        run(
            [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={folder}"],
            what="fetching Spark's jars for Kafka",
            cwd=folder,
        )
    shutil.rmtree(folder / "target", ignore_errors=True)
    check(folder, _CHECKSUMS)


def check(folder: Path, checksums: str) -> None:
    """Compares a folder with lines of `sha256sum`. Raises BuildError where a jar differs, is missing or is too many."""
    expected = {name: digest for digest, name in map(str.split, checksums.splitlines())}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.jar")}
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        raise BuildError(f"not as images/kontroller-history/jars.sha256 says: {', '.join(wrong)}")
