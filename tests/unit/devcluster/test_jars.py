"""Only the intended jars run: each has its checksum, and there are no others."""

import hashlib
from pathlib import Path

import pytest

from devcluster.building.jars import check
from devcluster.building.java import (
    KAFKA_FOLDER,
    KAFKA_VERSION,
    KAFKAS_FOLDER,
    KRAFT_FOLDER,
    KRAFT_VERSION,
    KRAFTS_FOLDER,
    OLDER_VERSIONS,
    OTHER_KRAFT_VERSIONS,
)
from devcluster.building.spark_jars import DELTA_FOLDER, HISTORY_FOLDER, S3_FOLDER
from devcluster.building.toolchain import BuildError


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


@pytest.mark.parametrize("folder", [HISTORY_FOLDER, DELTA_FOLDER, S3_FOLDER])
def test_every_jar_that_is_fetched_has_a_checksum(folder: Path) -> None:
    pom = (folder / "pom.xml").read_text()
    named = {part.partition("<")[0] for part in pom.split("<artifactId>")[2:] if not part.startswith("*")}
    checked = {line.split()[1].rsplit("-", 1)[0] for line in (folder / "jars.sha256").read_text().splitlines()}
    assert checked == named


@pytest.mark.parametrize(
    ("folder", "version"),
    [(KAFKA_FOLDER, KAFKA_VERSION), *((KAFKAS_FOLDER / version, version) for version in OLDER_VERSIONS)],
)
def test_kafka_s_own_jars_are_of_the_version_that_is_said(folder: Path, version: str) -> None:
    checked = {line.split()[1] for line in (folder / "jars.sha256").read_text().splitlines()}
    wanted = {f"{name}-{version}.jar" for name in ("kafka_2.13", "kafka-clients", "kafka-tools")}
    assert wanted <= checked


@pytest.mark.parametrize(
    ("folder", "version"),
    [(KRAFT_FOLDER, KRAFT_VERSION), *((KRAFTS_FOLDER / version, version) for version in OTHER_KRAFT_VERSIONS)],
)
def test_the_jars_without_zookeeper_are_of_the_version_that_is_said(folder: Path, version: str) -> None:
    checked = {line.split()[1] for line in (folder / "jars.sha256").read_text().splitlines()}
    assert {f"{name}-{version}.jar" for name in ("kafka_2.13", "kafka-clients", "kafka-raft")} <= checked
    assert not any("zookeeper" in name for name in checked)
