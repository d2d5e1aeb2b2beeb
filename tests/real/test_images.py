"""The images run as their user in a read-only root file system, with all commands that the chart's pods use."""

import hashlib
import json
import os
import zipfile
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from devcluster.building.java import KAFKA_FOLDER, KAFKA_VERSION, kafka_home
from devcluster.clients.tools import TOPICS, run_tool
from devcluster.clusters.zookeeper import ZooKeeper, is_serving
from devcluster.images import Image as Name
from devcluster.images import ImageArchive, image_archive
from devcluster.running.ports import accepts, reserve_port
from devcluster.running.processes import wait_until
from tests.real.container import Image

pytestmark = [
    pytest.mark.real,
    # A first build makes all layers.
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="building images without an engine needs root"),
]

COMMANDS = dict(line.split()[:2] for line in (KAFKA_FOLDER / "commands").read_text().splitlines() if line[:1] != "#")


@pytest.fixture(scope="module")
def archives() -> tuple[ImageArchive, ...]:
    return image_archive(Name.KONTROLLER), image_archive(Name.KAFKA)


@pytest.fixture(scope="module")
def kontroller(archives: tuple[ImageArchive, ...], tmp_path_factory: pytest.TempPathFactory) -> Image:
    return Image(archives[0], tmp_path_factory.mktemp("kontroller"))


@pytest.fixture(scope="module")
def kafka(archives: tuple[ImageArchive, ...], tmp_path_factory: pytest.TempPathFactory) -> Image:
    return Image(archives[1], tmp_path_factory.mktemp("kontroller-kafka"))


@pytest.fixture(params=["kontroller", "kafka"])
def image(request: pytest.FixtureRequest) -> Image:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Image)
    return found


def test_the_controller_can_write_its_journal_to_a_topic(kontroller: Image) -> None:
    ended = kontroller.run(
        "python3", "-c", "from controller_core.journal.topic import TopicSink; print(TopicSink('t', 'b:1'))"
    )
    assert (ended.returncode, ended.stdout) == (0, "topic t\n"), ended.stderr


def test_a_second_build_is_the_first(archives: tuple[ImageArchive, ...]) -> None:
    assert (image_archive(Name.KONTROLLER), image_archive(Name.KAFKA)) == archives


def test_the_layers_are_those_that_the_configuration_names(image: Image) -> None:
    assert image.layer_digests == image.diff_ids


def test_the_image_of_kafka_stands_on_that_of_kontroller(kontroller: Image, kafka: Image) -> None:
    assert kafka.diff_ids[: len(kontroller.diff_ids)] == kontroller.diff_ids


def test_a_container_runs_as_a_user_without_privileges(image: Image) -> None:
    assert image.run("id", "-u").stdout.strip() == "65532"
    assert image.run("touch", "/opt/file").returncode != 0
    assert image.run("touch", "/tmp/file").returncode == 0


def test_no_program_gives_its_user_other_privileges(image: Image) -> None:
    assert [path for path in image.root.rglob("*") if path.is_file() and path.lstat().st_mode & 0o6000] == []


def test_only_temporary_folders_may_be_written_by_everyone(image: Image) -> None:
    paths = (path for path in image.root.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o002)
    assert {str(path.relative_to(image.root)) for path in paths} <= {"tmp", "var/tmp", "run/lock", "var/lock"}


def test_nothing_of_this_machine_is_in_an_image(image: Image) -> None:
    assert not (image.root / "etc/hostname").exists()
    assert not (image.root / "etc/resolv.conf").exists()
    assert list((image.root / "var/lib/apt/lists").glob("*_Packages*")) == []


def test_kontroller_starts_from_compiled_modules(image: Image) -> None:
    started = image.run("python3", "-v", "-m", "kontroller", "--help")
    assert started.returncode == 0
    assert "Usage:" in started.stdout
    loaded = [line for line in started.stderr.splitlines() if line.startswith("# code object from ")]
    assert len(loaded) > 100
    assert [line for line in loaded if line.rstrip("'").endswith(".py")] == []


def test_the_command_is_on_the_path(image: Image) -> None:
    assert "Usage: kontroller" in image.run("kontroller", "--help").stdout


def test_what_is_installed_is_what_the_list_of_parts_says(kontroller: Image) -> None:
    listed = json.loads((kontroller.root / "usr/share/sbom/kontroller.cdx.json").read_text())["components"]
    print_all = "from importlib.metadata import distributions as d; print(*(x.name + '=' + x.version for x in d()))"
    parts = (part.split("=") for part in kontroller.run("python3", "-c", print_all).stdout.split())
    installed = {(canonicalize_name(name), version) for name, version in parts if name != "kafka-kontroller"}
    assert installed == {(part["name"], part["version"]) for part in listed}


def test_the_list_of_parts_has_every_jar(kafka: Image) -> None:
    listed = json.loads((kafka.root / "usr/share/sbom/kontroller-kafka.cdx.json").read_text())["components"]
    jars = {hashlib.sha256(path.read_bytes()).hexdigest() for path in (kafka.root / "opt/kafka/libs").iterdir()}
    assert {digest["content"] for part in listed for digest in part["hashes"]} == jars


def test_every_script_runs_a_class_that_is_there(kafka: Image) -> None:
    jars = [path for path in (kafka.root / "opt/kafka/libs").iterdir() if path.name.startswith(("kafka", "zookeeper"))]
    classes = {name for jar in jars for name in zipfile.ZipFile(jar).namelist()}
    assert {name for name in COMMANDS.values() if name.replace(".", "/") + ".class" not in classes} == set()
    scripts = {path.name for path in (kafka.root / "opt/kafka/bin").iterdir()}
    assert scripts == {f"{name}.sh" for name in COMMANDS} | {"kafka-run-class.sh"}


def test_the_jars_are_those_of_the_development_cluster(kafka: Image) -> None:
    home = {path.name: path.stat().st_size for path in (kafka_home() / "libs").iterdir()}
    assert {path.name: path.stat().st_size for path in (kafka.root / "opt/kafka/libs").iterdir()} == home


def test_a_tool_says_its_version_and_has_standard_output_for_itself(kafka: Image) -> None:
    assert kafka.run("kafka-topics.sh", "--version").stdout.split()[0] == KAFKA_VERSION


def test_options_for_java_come_from_the_environment(kafka: Image) -> None:
    options = ("KAFKA_OPTS=-Done=1 -Dother=2", "KAFKA_HEAP_OPTS=-Xmx99m")
    shown = kafka.run("env", *options, "kafka-run-class.sh", "-XshowSettings:all", "-version").stderr
    assert "one = 1" in shown
    assert "other = 2" in shown
    assert "Max. Heap Size: 99.00M" in shown


def test_a_server_gets_half_of_the_memory_unless_told_otherwise(kafka: Image) -> None:
    script = "exec kafka-run-class.sh kafka.Kafka"
    options = "JAVA_TOOL_OPTIONS=-XX:+PrintFlagsFinal"
    printed = kafka.run("env", options, "sh", "-c", script).stdout
    flags = {line.split()[1]: line.split()[3] for line in printed.splitlines() if len(line.split()) > 3}
    assert float(flags["MaxRAMPercentage"]) == 50
    assert flags["UseG1GC"] == "true"
    assert flags["UsePerfData"] == "false"


def test_kafka_runs_in_a_container_and_ends_with_sigterm(
    kafka: Image, zookeeper: ZooKeeper, zookeeper_chroot: str, tmp_path: Path
) -> None:
    port, log = reserve_port(), tmp_path / "kafka.log"
    settings = f"""\
broker.id=1
listeners=PLAINTEXT://127.0.0.1:{port}
zookeeper.connect={zookeeper.connect}{zookeeper_chroot}
log.dirs=/tmp/data
"""
    script = 'printf "%s" "$1" >/tmp/server.properties && exec kafka-server-start.sh /tmp/server.properties'
    with kafka.start("sh", "-c", script, "sh", settings, log=log) as container:
        wait_until(lambda: accepts(port) or not container.is_running, "Kafka listens", silence_s=120)
        address = f"127.0.0.1:{port}"
        created = kafka.run("kafka-topics.sh", "--bootstrap-server", address, "--create", "--topic", "made")
        assert created.returncode == 0, log.read_text()
        assert run_tool(TOPICS, "--bootstrap-server", address, "--list").stdout.split() == ["made"]
        listed = kafka.run("zookeeper-shell.sh", zookeeper.connect + zookeeper_chroot, "ls", "/brokers/ids")
        assert "[1]" in listed.stdout
        assert container.terminate() == 143
    assert "shut down completed" in log.read_text()


def test_a_container_ends_with_the_block_that_it_was_started_for(kafka: Image, tmp_path: Path) -> None:
    with kafka.start("sleep", "1000", log=tmp_path / "sleep.log") as container:
        wait_until(lambda: _command(container.first_process) == "sleep", "it sleeps")
        first = container.first_process
    assert _command(first) is None


def _command(process: int | None) -> str | None:
    """Return the name of a process's program; None if there is no such process."""
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except FileNotFoundError:
        return None


def test_zookeeper_runs_in_a_container_and_ends_with_sigterm(kafka: Image, tmp_path: Path) -> None:
    port, log = reserve_port(), tmp_path / "zookeeper.log"
    settings = f"dataDir=/tmp/data\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
    script = 'printf "%s" "$1" >/tmp/zoo.cfg && exec zookeeper-server-start.sh /tmp/zoo.cfg'
    with kafka.start("sh", "-c", script, "sh", settings, log=log) as container:
        wait_until(lambda: is_serving(port) or not container.is_running, "ZooKeeper serves", silence_s=120)
        assert "[zookeeper]" in kafka.run("zookeeper-shell.sh", f"127.0.0.1:{port}", "ls", "/").stdout
        assert container.terminate() == 143
    assert log.read_text().count("INFO") > 10
