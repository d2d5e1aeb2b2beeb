"""Jars that Spark does not include, fetched once into the cache and compared with their checksums.

They are fetched before anything runs, never by Spark's `--packages` at run time.
"""

from pathlib import Path

from devcluster.building import jars, progress
from devcluster.building.cache import build_cached

HISTORY_FOLDER = Path(__file__).resolve().parents[2] / "images" / "kontroller-history"
DELTA_FOLDER = Path(__file__).resolve().parents[1] / "delta"
S3_FOLDER = Path(__file__).resolve().parents[1] / "s3"


def kafka_jars() -> str:
    """Return paths separated by commas, in the format of `kafka_topic.connector_settings`.

    Raises MissingToolError, or BuildError if a jar cannot be fetched or its checksum differs.
    """
    return ",".join(map(str, kafka_jar_files()))


def kafka_jar_files() -> list[Path]:
    """Return the paths of the same jars as a list."""
    return _jar_files(HISTORY_FOLDER, "spark-kafka", "to read from Kafka")


def delta_jars() -> str:
    """Return the paths, separated by commas, of the jars with which Spark keeps tables in Delta Lake. Raises as above."""
    return ",".join(map(str, _jar_files(DELTA_FOLDER, "spark-delta", "to keep tables in Delta Lake")))


def s3_jars() -> str:
    """Return the paths, separated by commas, of the jars with which Spark uses `s3a://` addresses. Raises as above."""
    return ",".join(map(str, _jar_files(S3_FOLDER, "spark-s3", "to keep tables in S3")))


def _jar_files(source: Path, entry: str, purpose: str) -> list[Path]:
    def fetch(folder: Path) -> None:
        with progress.step(f"Fetching what Spark needs {purpose}"):
            jars.fetch(source, folder, what=f"the jars that Spark needs {purpose}")

    return sorted(build_cached(entry, *jars.inputs(source), build=fetch).glob("*.jar"))
