"""Kafka without ZooKeeper: its jars, the command lines of its nodes, and the initial state of a quorum of controllers.

A node of Kafka 4 is formatted before it starts. A broker only needs a file that names the cluster and the node. A
controller also needs a checkpoint of the initial finalized features, which is the same for every cluster that begins at
one release: Kafka's tool writes it once on a machine, and it is copied from then on.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from devcluster.building import progress
from devcluster.building.cache import Entry
from devcluster.building.java import KRAFT_FOLDER, KRAFT_VERSION, broker_command, other_kafka, plain_server_command
from devcluster.building.toolchain import require
from devcluster.running.ports import accepts, release_port, reserve_port
from devcluster.running.processes import ConditionTimeoutError, spawn, wait_until

METADATA: Final = "meta.properties"
_ARCHIVE: Final = "node.jsa"
_DEADLINE_S: Final = 90.0
_HEAP: Final = ("-Xms64m", "-Xmx256m")


def kafka() -> Entry:
    """Return the cache entry of the jars, in `libs/`."""
    return other_kafka(KRAFT_VERSION)


def node_command(properties_file: Path, version: str = KRAFT_VERSION) -> list[str]:
    """Return the command line of a broker or a controller that uses the class archive, if there is one.

    `version`: another version that supports a quorum.
    """
    if version != KRAFT_VERSION:
        return broker_command(os.fspath(properties_file), heap_mb=256, version=version)
    archive = _classes().folder() / _ARCHIVE
    options = (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off") if archive.exists() else ()
    return _command("kafka.Kafka", str(properties_file), options=options)


def initial_checkpoint(release: str, version: str = KRAFT_VERSION) -> Path:
    """Return a folder with the initial checkpoint of controllers whose features are those of a release, such as `4.0`.

    It is a file, or since Kafka 4.3 a snapshot in a folder of its own. `version`: of the controllers; it must know that
    release.
    """

    def write(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as name:
            data = Path(name) / "data"
            file = write_properties(Path(name) / "node.properties", _alone(data, port=1))
            arguments = ("format", "-t", cluster_id(0), "-c", file)
            command = _command("kafka.tools.StorageTool", *arguments, version=version)
            subprocess.run(
                [*command, "--release-version", release], check=True, capture_output=True, timeout=_DEADLINE_S
            )
            (data / METADATA).unlink()
            shutil.copytree(data, folder, dirs_exist_ok=True)

    return Entry(name=f"kraft-{release}", inputs=(version, release), build=write).folder()


def format_folder(folder: Path, node_id: int, cluster: str) -> None:
    """Format an empty folder for a node of a cluster."""
    folder.mkdir(parents=True, exist_ok=True)
    write_properties(folder / METADATA, {"version": 1, "cluster.id": cluster, "node.id": node_id})


def format_for_only_voter(
    file: str | Path, cluster: str, release: str | None = None, version: str = KRAFT_VERSION
) -> None:
    """Format the folder in a controller's file for a quorum that keeps its voters in its log (KIP-853). The node is the
    only voter.

    `release`: as in `initial_checkpoint`; None: that of `version`. Raises `subprocess.SubprocessError`.
    """
    arguments = ("format", "--standalone", "-t", cluster, "-c", os.fspath(file))
    command = _command("kafka.tools.StorageTool", *arguments, version=version)
    of_release = () if release is None else ("--release-version", release)
    subprocess.run([*command, *of_release], check=True, capture_output=True, timeout=_DEADLINE_S)


def cluster_id(number: int) -> str:
    """Return the id of a cluster in Kafka's format, 22 characters."""
    return f"kontroller{number:012d}"


def write_properties(path: Path, settings: Mapping[str, object]) -> str:
    """Write a file of properties, and return its name."""
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return os.fspath(path)


def _command(
    main_class: str, *arguments: str, options: tuple[str, ...] = (), version: str = KRAFT_VERSION
) -> list[str]:
    return plain_server_command(main_class, *arguments, options=(*options, *_HEAP), version=version)


def _classes() -> Entry:
    """Return the cache entry of a node's class archive, which is like those of other programs (`class_archives`)."""
    installed = Path(require("java")).resolve()
    checksums = (KRAFT_FOLDER / "jars.sha256").read_text()
    inputs = (checksums, os.fspath(installed), str(installed.stat().st_mtime_ns))
    return Entry(name="kraft-classes", inputs=inputs, build=_record)


def _record(folder: Path) -> None:
    kafka().folder()
    with progress.step(f"Having Java remember the classes of Kafka {KRAFT_VERSION}"):
        try:
            _run_once(folder / _ARCHIVE)
        except (ConditionTimeoutError, OSError, subprocess.SubprocessError) as error:
            progress.say(f"without them it starts more slowly: {error}")


def _run_once(archive: Path) -> None:
    """Run a cluster of one node, which writes the archive when it ends gracefully."""
    ports = reserve_port(), reserve_port()
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        format_folder(data, 1, cluster_id(0))
        file = write_properties(Path(name) / "node.properties", _alone(data, *ports))
        options = (f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:cds*=off")
        command = _command("kafka.Kafka", file, options=options)
        process = spawn(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: process.poll() is not None or accepts(ports[1]), "it is served")
            process.terminate()
            process.wait(_DEADLINE_S)
        finally:
            process.kill()
            process.wait()
            for port in ports:
                release_port(port)


def _alone(data: Path, port: int, clients_port: int = 0) -> dict[str, object]:
    """Return the settings of a node that is a broker and the only controller."""
    return {
        "process.roles": "broker,controller" if clients_port else "controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://127.0.0.1:{port}"
        + (f",PLAINTEXT://127.0.0.1:{clients_port}" if clients_port else ""),
        "log.dirs": data,
        "log.cleaner.dedupe.buffer.size": 2_097_152,
    }
