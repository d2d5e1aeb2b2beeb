"""Clients in other languages that do what tools do with the nodes of a cluster: count them, ask each, place replicas on
them.

The programs beside this file have the same commands and the same output: `main.go` with sarama and franz-go, `nodes.js`
with kafkajs, `Nodes.java` with Kafka's own client. They are built into the cache. Their libraries are pinned in `go.mod`
and `package-lock.json`.
"""

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from devcluster.building import progress
from devcluster.building.cache import Entry
from devcluster.building.go import build_programs
from devcluster.building.java import kafka_home
from devcluster.building.toolchain import require, run

_FOLDER = Path(__file__).parent
_OLDEST_GO = (1, 24)
_GO_SOURCES = ("go.mod", "main.go", "sarama.go", "franz.go")
_GO_OPTIONS = ("-mod=mod", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w", "-o", "bin/nodes")
_NODE_SOURCES = ("package.json", "package-lock.json", "nodes.js")


class Library(StrEnum):
    """A client library."""

    JAVA = "java"
    KAFKAJS = "kafkajs"
    SARAMA = "sarama"
    FRANZ_GO = "franz"


class ClientError(Exception):
    """A program could not list the nodes; the message is its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A question to a node, or to the cluster."""

    node: int
    """-1 for the cluster."""
    what: str
    error: str
    """Empty if it was answered without an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a command."""

    nodes: Sequence[int]
    """The nodes in the client's metadata, in ascending order."""
    steps: Sequence[Step]

    def errors(self, node: int) -> dict[str, str]:
        """Return the error of each question to a node, empty if there was none."""
        return {step.what: step.error for step in self.steps if step.node == node}


def use(library: Library, command: str, address: str, *arguments: str) -> Report:
    """Run a command of a library's program at a bootstrap server.

    `walk` asks every node. `create TOPIC` creates a topic with one replica for each node, at most three. In Go there are
    also `count`, which only lists the nodes, and `spread TOPIC`, which places replicas on every node.

    Raises ClientError, MissingToolError and BuildError.
    """
    done = subprocess.run(
        [*_find_program(library), command, address, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ClientError(done.stderr.strip())
    said = json.loads(done.stdout)
    return Report(nodes=said["nodes"], steps=[Step(**step) for step in said["steps"]])


def _find_program(library: Library) -> list[str]:
    match library:
        case Library.JAVA:
            return [require("java"), "-cp", f"{_java().folder()}:{kafka_home() / 'libs'}/*", "Nodes"]
        case Library.KAFKAJS:
            return [require("node"), str(_node().folder() / "nodes.js")]
        case Library.SARAMA | Library.FRANZ_GO:
            return [str(_go().folder() / "bin" / "nodes"), library]


def _go() -> Entry:
    def build(folder: Path) -> None:
        _copy(_GO_SOURCES, folder)
        with progress.step("Building clients in Go") as step:
            build_programs(step, folder, _OLDEST_GO, ["."], _GO_OPTIONS)

    return Entry(name="nodes-go", inputs=(*_read(_GO_SOURCES), *_GO_OPTIONS), build=build)


def _node() -> Entry:
    def build(folder: Path) -> None:
        _copy(_NODE_SOURCES, folder)
        command = [require("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        with progress.step("Fetching kafkajs"):
            run(command, what="fetching kafkajs", cwd=folder)

    return Entry(name="nodes-node", inputs=_read(_NODE_SOURCES), build=build)


def _java() -> Entry:
    def build(folder: Path) -> None:
        source = str(_FOLDER / "Nodes.java")
        run(
            [require("javac"), "-cp", f"{kafka_home() / 'libs'}/*", "-d", str(folder), source],
            what="compiling the Java client",
        )

    return Entry(name="nodes-java", inputs=_read(("Nodes.java",)), build=build)


def _copy(sources: Sequence[str], folder: Path) -> None:
    for name in sources:
        shutil.copy(_FOLDER / name, folder)


def _read(sources: Sequence[str]) -> tuple[str, ...]:
    return tuple((_FOLDER / name).read_text() for name in sources)
