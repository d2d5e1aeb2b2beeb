"""Class data sharing archives for Kafka and ZooKeeper, so that servers and tools start with half of the processor time.

Most of these processes live for a minute, so their start matters. Java writes an archive of the used classes when a
process ends, and reads it only with the same jars and the same Java; otherwise it starts without. Each archive is made
once on a machine, by a ZooKeeper, a broker and a tool that are run for it. If that fails, everything starts without
archives.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from devcluster.building import progress
from devcluster.building.cache import Entry
from devcluster.running.ports import accepts, release_port, reserve_port
from devcluster.running.processes import ConditionTimeoutError, spawn, wait_until

_DEADLINE_S: Final = 60.0


class Program(StrEnum):
    """The programs that have a class archive of their own."""

    ZOOKEEPER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    BROKER = "kafka.Kafka"
    TOOL = "org.apache.kafka.tools.TopicCommand"


Command = Callable[[Program, Sequence[str], Sequence[str]], list[str]]
"""Builds the command line of a program from its arguments and from options of Java."""


def find_program(main_class: str) -> Program:
    """Return the program whose archive a main class uses. Each main class that is no server uses the tool's."""
    return Program(main_class) if main_class in (Program.ZOOKEEPER, Program.BROKER) else Program.TOOL


def class_archives(java: str, jars: Sequence[str], command: Command) -> Entry:
    """Return the cache entry of the archives for a `java` and for the inputs that determine the jars."""
    installed = Path(java).resolve()
    inputs = (*jars, os.fspath(installed), str(installed.stat().st_mtime_ns))

    def build(folder: Path) -> None:
        with progress.step("Having Java remember Kafka's classes"):
            try:
                _record(folder, command)
            except (ConditionTimeoutError, OSError, subprocess.SubprocessError) as error:
                progress.say(f"without them it starts more slowly: {error}")

    return Entry(name="kafka-classes", inputs=inputs, build=build)


def using(folder: Path, program: Program) -> tuple[str, ...]:
    """Return Java's options to use a program's archive, or none if there is no archive."""
    archive = folder / f"{program.name.lower()}.jsa"
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off") if archive.exists() else ()


def _record(folder: Path, command: Command) -> None:
    """Run each program once, and make Java write its archive into the folder when it ends."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        ports = [reserve_port(), reserve_port()]
        for port in ports:
            running.callback(release_port, port)
        data, (zookeeper, broker) = Path(name), ports

        def start(program: Program, *arguments: str) -> subprocess.Popen[Any]:
            archive = f"-XX:ArchiveClassesAtExit={folder / program.name.lower()}.jsa"
            line = command(program, arguments, (archive, "-Xlog:cds*=off"))
            return running.enter_context(
                _end_afterwards(spawn(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            )

        settings = {"dataDir": data / "zookeeper", "clientPort": zookeeper, "admin.enableServer": "false"}
        _wait_for(zookeeper, start(Program.ZOOKEEPER, _write_settings(data / "zoo.cfg", settings)))
        listens_at = f"127.0.0.1:{broker}"
        settings = {
            "zookeeper.connect": f"127.0.0.1:{zookeeper}",
            "listeners": f"PLAINTEXT://{listens_at}",
            "log.dirs": data / "log",
            "log.cleaner.dedupe.buffer.size": 2_097_152,
        }
        _wait_for(broker, start(Program.BROKER, _write_settings(data / "server.properties", settings)))
        create = ("--create", "--topic", "remembered", "--partitions", "1", "--replication-factor", "1")
        start(Program.TOOL, "--bootstrap-server", listens_at, *create).wait(_DEADLINE_S)


def _wait_for(port: int, process: subprocess.Popen[Any]) -> None:
    def listens() -> bool:
        if process.poll() is not None:
            raise subprocess.SubprocessError(f"{process.args!r} ended at once: {process.returncode}")
        return accepts(port)

    wait_until(listens, f"port {port} is served")


@contextmanager
def _end_afterwards(process: subprocess.Popen[Any]) -> Iterator[subprocess.Popen[Any]]:
    """Terminate a process gracefully when the block ends, because Java writes the archive then."""
    try:
        yield process
        process.terminate()
        process.wait(_DEADLINE_S)
    finally:
        process.kill()
        process.wait()


def _write_settings(path: Path, settings: dict[str, object]) -> str:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return os.fspath(path)
