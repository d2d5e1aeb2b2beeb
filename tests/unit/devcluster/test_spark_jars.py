"""What Spark is given to run is what was meant: each jar has its checksum, and there is none besides."""

import hashlib
import re
from pathlib import Path

import pytest

from controller_pipeline.sources.kafka_topic import CONNECTOR
from devcluster.spark_jars import DELTA_FOLDER, HISTORY_FOLDER, check
from devcluster.toolchain import BuildError

PIPELINE = Path(__file__).parents[3] / "controller_pipeline" / "pipelines" / "history"
DELTA_SETTINGS = PIPELINE / "delta" / "spark-defaults.conf"


def test_jars_that_are_as_the_checksums_say_are_taken(tmp_path: Path) -> None:
    (tmp_path / "one.jar").write_bytes(b"one")
    check(tmp_path, f"{hashlib.sha256(b'one').hexdigest()}  one.jar\n")


@pytest.mark.parametrize("content", [b"another", None])
def test_a_jar_that_differs_or_is_missing_or_too_many_is_named(tmp_path: Path, content: bytes | None) -> None:
    (tmp_path / "besides.jar").write_bytes(b"")
    if content is not None:
        (tmp_path / "one.jar").write_bytes(content)
    with pytest.raises(BuildError, match=r"besides\.jar, one\.jar"):
        check(tmp_path, f"{hashlib.sha256(b'one').hexdigest()}  one.jar\n")


def test_what_spark_fetches_by_itself_is_the_connector_that_the_image_has() -> None:
    _, name, version = CONNECTOR.split(":")
    assert f" {name}-{version}.jar\n" in (HISTORY_FOLDER / "jars.sha256").read_text()


def test_the_pipeline_in_delta_asks_spark_for_the_jar_that_was_tried() -> None:
    (package,) = re.findall(r"^spark\.jars\.packages\s+(\S+)$", DELTA_SETTINGS.read_text(), re.MULTILINE)
    _, name, version = package.split(":")
    assert f" {name}-{version}.jar\n" in (DELTA_FOLDER / "jars.sha256").read_text()


@pytest.mark.parametrize("folder", [HISTORY_FOLDER, DELTA_FOLDER])
def test_every_jar_that_is_fetched_has_a_checksum(folder: Path) -> None:
    pom = (folder / "pom.xml").read_text()
    named = {part.partition("<")[0] for part in pom.split("<artifactId>")[2:] if not part.startswith("*")}
    checked = {line.split()[1].rsplit("-", 1)[0] for line in (folder / "jars.sha256").read_text().splitlines()}
    assert checked == named
