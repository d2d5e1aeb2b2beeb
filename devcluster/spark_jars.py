"""Jars that Spark does not bring, fetched once into the cache and compared with their checksums.

They are fetched before anything runs, never by Spark's `--packages` at run time. A folder names each in `pom.xml` and
`jars.sha256`; for Kafka it is that of the history's image, which is built from the same two files.
"""

import hashlib
import shutil
from pathlib import Path

from devcluster import progress
from devcluster.cache import cached
from devcluster.toolchain import BuildError, require, run

HISTORY_FOLDER = Path(__file__).resolve().parents[1] / "images" / "kontroller-history"
DELTA_FOLDER = Path(__file__).with_name("delta")


def kafka_jars() -> str:
    """Paths separated by commas, as `kafka_topic.connector_settings` takes them.

    Raises MissingToolError, or BuildError where a jar cannot be fetched or is not the one that was meant.
    """
    return ",".join(map(str, kafka_jar_files()))


def kafka_jar_files() -> list[Path]:
    """The same, one by one."""
    return _jar_files(HISTORY_FOLDER, "spark-kafka", "to read from Kafka")


def delta_jars() -> str:
    """Paths separated by commas of the jars with which Spark keeps tables in Delta Lake. Raises as above."""
    return ",".join(map(str, _jar_files(DELTA_FOLDER, "spark-delta", "to keep tables in Delta Lake")))


def _jar_files(source: Path, entry: str, purpose: str) -> list[Path]:
    pom, checksums = ((source / name).read_text() for name in ("pom.xml", "jars.sha256"))

    def fetch(folder: Path) -> None:
        maven = require("mvn")
        (folder / "pom.xml").write_text(pom)
        with progress.step(f"Fetching what Spark needs {purpose}"):
            run(
                [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={folder}"],
                what=f"fetching the jars that Spark needs {purpose}",
                cwd=folder,
            )
        shutil.rmtree(folder / "target", ignore_errors=True)
        check(folder, checksums)

    return sorted(cached(entry, pom, checksums, build=fetch).glob("*.jar"))


def check(folder: Path, checksums: str) -> None:
    """Compares a folder with lines of `sha256sum`. Raises BuildError where a jar differs, is missing or is too many."""
    expected = {name: digest for digest, name in map(str.split, checksums.splitlines())}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.jar")}
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        raise BuildError(f"not as the checksums beside their pom.xml say: {', '.join(wrong)}")
