"""The instructions of the Containerfiles reach the images that are built without an engine."""

import re
import tomllib
from pathlib import Path

import pytest

from devcluster.images.containerfile import ImageSettings, UnknownInstruction, packages, settings

PROJECT = Path(__file__).resolve().parents[3]
IMAGES = PROJECT / "images"
KONTROLLER = IMAGES / "kontroller" / "Containerfile"
KAFKA = IMAGES / "kontroller-kafka" / "Containerfile"
KAFKA_4 = IMAGES / "kontroller-kafka-4" / "Containerfile"
HISTORY = IMAGES / "kontroller-history" / "Containerfile"
ALL = (KONTROLLER, KAFKA, KAFKA_4, HISTORY)


def test_the_images_of_servers_run_as_a_user_without_privileges() -> None:
    kontroller = settings(KONTROLLER)
    assert kontroller.user == "65532:65532"
    assert settings(KAFKA, kontroller).user == "65532:65532"


def test_both_images_of_kafka_are_told_the_same() -> None:
    kontroller = settings(KONTROLLER)
    kafka, kafka_4 = (settings(each, kontroller).make_config() for each in (KAFKA, KAFKA_4))
    assert {**kafka, "Labels": None} == {**kafka_4, "Labels": None}
    assert packages(KAFKA) == packages(KAFKA_4)


def test_both_images_of_kafka_have_the_same_tools() -> None:
    kafka, kafka_4 = (
        {line.split()[0] for line in each.with_name("commands").read_text().splitlines() if line[:1] != "#"}
        for each in (KAFKA, KAFKA_4)
    )
    assert kafka - kafka_4 == {"zookeeper-server-start", "zookeeper-shell"}
    assert kafka_4 - kafka == {"kafka-storage", "kafka-metadata-quorum"}


def test_the_image_of_kafka_has_the_commands_of_both_on_its_path_and_no_entrypoint() -> None:
    kontroller = settings(KONTROLLER)
    kafka = settings(KAFKA, kontroller)
    assert kontroller.entrypoint == ["kontroller"]
    assert kafka.entrypoint == []
    path = kafka.environment["PATH"].split(":")
    assert path[:3] == ["/opt/kafka/bin", "/opt/java/bin", "/opt/kontroller/bin"]
    assert path[3:] == kontroller.environment["PATH"].split(":")[1:]


def test_only_the_first_install_of_packages_is_what_the_image_stands_on() -> None:
    assert packages(KONTROLLER) == ["python3"]
    assert packages(KAFKA) == ["openjdk-17-jdk-headless"]


def test_settings_become_an_image_configuration() -> None:
    image = ImageSettings(user="1:2", environment={"A": "b"}, entrypoint=["run"], labels={"l": "m"})
    assert image.make_config() == {"User": "1:2", "Env": ["A=b"], "Entrypoint": ["run"], "Labels": {"l": "m"}}


def test_an_instruction_that_would_be_lost_is_refused(tmp_path: Path) -> None:
    containerfile = tmp_path / "Containerfile"
    containerfile.write_text("FROM base\nVOLUME /data\n")
    with pytest.raises(UnknownInstruction, match="VOLUME"):
        settings(containerfile)


def test_a_containerfile_without_packages_is_refused(tmp_path: Path) -> None:
    containerfile = tmp_path / "Containerfile"
    containerfile.write_text("FROM base\n")
    with pytest.raises(UnknownInstruction, match=r"install-packages\.sh"):
        packages(containerfile)


@pytest.mark.parametrize("step", sorted((IMAGES / "steps").iterdir()), ids=lambda step: step.name)
def test_every_step_is_run_by_a_containerfile_as_a_program(step: Path) -> None:
    assert f"/mnt/steps/{step.name}" in KONTROLLER.read_text() + KAFKA.read_text() + HISTORY.read_text()
    assert step.stat().st_mode & 0o111 == 0o111


def test_the_image_of_the_history_runs_it_as_a_user_without_privileges() -> None:
    history = settings(HISTORY, settings(KONTROLLER))
    assert history.user == "65532:65532"
    assert history.entrypoint == ["/opt/spark/entrypoint.sh"]
    assert history.environment["SPARK_HOME"] == "/opt/spark"
    assert history.environment["PATH"].split(":")[:2] == ["/opt/java/bin", "/opt/kontroller/bin"]


def test_all_images_stand_on_one_debian_that_its_digest_names() -> None:
    bases = {re.search(r"^ARG BASE_IMAGE=(\S+)$", file.read_text(), re.MULTILINE) for file in ALL}
    (base,) = {found[1] for found in bases if found}
    assert re.fullmatch(r"debian:bookworm-\d{8}-slim@sha256:[0-9a-f]{64}", base)


@pytest.mark.parametrize("containerfile", ALL, ids=lambda file: file.parent.name)
def test_a_stage_begins_with_that_debian_or_another_stage_or_our_own_image(containerfile: Path) -> None:
    text = containerfile.read_text()
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE))
    begins = set(re.findall(r"^FROM (\S+)", text, re.MULTILINE))
    assert begins <= stages | {"${BASE_IMAGE}", "${KONTROLLER_IMAGE}"}


@pytest.mark.parametrize("containerfile", ALL, ids=lambda file: file.parent.name)
def test_nothing_is_fetched_but_by_the_steps_that_compare_hashes(containerfile: Path) -> None:
    assert re.findall(r"(?<![-\w])(?:pip|mvn|curl|wget|apt-get) ", containerfile.read_text()) == []


def test_an_engine_is_sent_every_package_of_the_wheel() -> None:
    wheel = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    sent = {line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {package.split("/")[0] for package in wheel["packages"]} <= sent
