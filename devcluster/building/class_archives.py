"""What Java makes of Kafka's and ZooKeeper's classes when it reads them, kept: servers and tools, most of which live for a
minute, then start with half of the processor time.

Java writes such an archive when a process ends, of the classes that it has used, and reads it again only with the same jars
and the same Java; else it goes on without. So each is made once on a machine: by a ZooKeeper, a broker and a tool that
are run for it. A machine on which that fails starts everything as if there were none.
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
    """What has an archive of its own."""

    ZOOKEEPER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    BROKER = "kafka.Kafka"
    TOOL = "org.apache.kafka.tools.TopicCommand"


Command = Callable[[Program, Sequence[str], Sequence[str]], list[str]]
"""The command line of a program, of its arguments and of options of Java."""


def of(main_class: str) -> Program:
    """Whose archive a main class takes: what is no server is a tool."""
    return Program(main_class) if main_class in (Program.ZOOKEEPER, Program.BROKER) else Program.TOOL


def class_archives(java: str, jars: Sequence[str], command: Command) -> Entry:
    """The cache entry of the archives for a `java` and for what determines the jars."""
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
    """Options of Java by which a program takes its archive, where there is one."""
    archive = folder / f"{program.name.lower()}.jsa"
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off") if archive.exists() else ()


def _record(folder: Path, command: Command) -> None:
    """Runs each program once, and has it write its archive into the folder when it ends."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        ports = [reserve_port(), reserve_port()]
        for port in ports:
            running.callback(release_port, port)
        data, (zookeeper, broker) = Path(name), ports

        def start(program: Program, *arguments: str) -> subprocess.Popen[Any]:
            archive = f"-XX:ArchiveClassesAtExit={folder / program.name.lower()}.jsa"
            line = command(program, arguments, (archive, "-Xlog:cds*=off"))
            return running.enter_context(_ended(spawn(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)))

        settings = {"dataDir": data / "zookeeper", "clientPort": zookeeper, "admin.enableServer": "false"}
        _wait_for(zookeeper, start(Program.ZOOKEEPER, _written(data / "zoo.cfg", settings)))
        listens_at = f"127.0.0.1:{broker}"
        settings = {
            "zookeeper.connect": f"127.0.0.1:{zookeeper}",
            "listeners": f"PLAINTEXT://{listens_at}",
            "log.dirs": data / "log",
            "log.cleaner.dedupe.buffer.size": 2_097_152,
        }
        _wait_for(broker, start(Program.BROKER, _written(data / "server.properties", settings)))
        create = ("--create", "--topic", "remembered", "--partitions", "1", "--replication-factor", "1")
        start(Program.TOOL, "--bootstrap-server", listens_at, *create).wait(_DEADLINE_S)


def _wait_for(port: int, process: subprocess.Popen[Any]) -> None:
    def listens() -> bool:
        if process.poll() is not None:
            raise subprocess.SubprocessError(f"{process.args!r} ended at once: {process.returncode}")
        return accepts(port)

    wait_until(listens, f"port {port} is served")


@contextmanager
def _ended(process: subprocess.Popen[Any]) -> Iterator[subprocess.Popen[Any]]:
    """A process that is ended in good order with the block, as it writes its archive then."""
    try:
        yield process
        process.terminate()
        process.wait(_DEADLINE_S)
    finally:
        process.kill()
        process.wait()


def _written(path: Path, settings: dict[str, object]) -> str:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return os.fspath(path)
