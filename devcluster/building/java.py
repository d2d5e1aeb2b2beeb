"""Kafka's and ZooKeeper's jars, and the command lines that run them with little memory and a quick start.

Everything runs with one release of Kafka, unless a version is given. Brokers may also be of the older releases in
`devcluster/kafkas`; ZooKeeper and tools may not. Newer releases have no ZooKeeper (`building/kraft.py`): one release,
and those in `devcluster/krafts`.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from devcluster.building import class_archives, jars, progress
from devcluster.building.cache import Entry
from devcluster.building.toolchain import require

# The images of Kafka are built from the same definitions.
KAFKA_FOLDER = Path(__file__).resolve().parents[2] / "images" / "kontroller-kafka"

KRAFT_FOLDER = KAFKA_FOLDER.with_name("kontroller-kafka-4")
KAFKAS_FOLDER = Path(__file__).resolve().parents[1] / "kafkas"
OLDER_VERSIONS = tuple(sorted(folder.name for folder in KAFKAS_FOLDER.iterdir()))
"""Versions of Kafka that brokers may also have."""
KRAFTS_FOLDER = Path(__file__).resolve().parents[1] / "krafts"
OTHER_KRAFT_VERSIONS = tuple(sorted(folder.name for folder in KRAFTS_FOLDER.iterdir()))
"""Versions of Kafka without ZooKeeper that nodes may also have."""


def _version_in(pom: str) -> str:
    return pom.partition("<artifactId>kafka_2.13</artifactId><version>")[2].partition("<")[0]


_POM, _CHECKSUMS = jars.inputs(KAFKA_FOLDER)
KAFKA_VERSION = _version_in(_POM)
KRAFT_VERSION = _version_in(jars.inputs(KRAFT_FOLDER)[0])
"""The version of Kafka without ZooKeeper."""
_SERVER_LOGGING = (KAFKA_FOLDER / "server-log4j.properties").read_text()
_TOOL_LOGGING = (KAFKA_FOLDER / "tool-log4j.properties").read_text()
_SERVER_LOGGING_FILE = "server.properties"
_TOOL_LOGGING_FILE = "tool.properties"

# A short life on few cores: the first compiler tier and the serial collector start fastest.
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Djava.awt.headless=true")


def kafka() -> Entry:
    """Return the cache entry of Kafka's and ZooKeeper's jars and their logging configurations."""
    inputs = (_POM, _CHECKSUMS, _SERVER_LOGGING, _TOOL_LOGGING)
    return Entry(name=f"kafka-{KAFKA_VERSION}", inputs=inputs, build=_fetch)


def kafka_home() -> Path:
    """Return the cached folder with `libs/` (105 jars, including ZooKeeper's) and the logging configurations.

    Raises MissingToolError, or BuildError if a jar cannot be fetched or its checksum differs.
    """
    return kafka().folder()


def other_kafka(version: str) -> Entry:
    """Return the cache entry of the jars of an older version, or of Kafka without ZooKeeper, in `libs/`."""
    if version == KRAFT_VERSION:
        source = KRAFT_FOLDER
    else:
        source = (KRAFTS_FOLDER if version in OTHER_KRAFT_VERSIONS else KAFKAS_FOLDER) / version

    def fetch(folder: Path) -> None:
        require("java")
        with progress.step(f"Fetching Kafka {version}"):
            jars.fetch(source, folder / "libs", what=f"the jars of Kafka {version}")

    return Entry(name=f"kafka-{version}", inputs=jars.inputs(source), build=fetch)


def broker_command(*arguments: str, heap_mb: int, version: str = KAFKA_VERSION) -> list[str]:
    """Return the command line of a broker of a version of Kafka."""
    if version == KAFKA_VERSION:
        return server_command("kafka.Kafka", *arguments, heap_mb=heap_mb)
    options = ("-Xms64m", f"-Xmx{heap_mb}m")
    return plain_server_command("kafka.Kafka", *arguments, options=options, version=version)


def plain_server_command(main_class: str, *arguments: str, options: Sequence[str] = (), version: str) -> list[str]:
    """Return the command line of a program with the jars of an older version, or of Kafka without ZooKeeper."""
    libraries = other_kafka(version).folder() / "libs"
    return _plain_command(main_class, arguments, options, _SERVER_LOGGING_FILE, libraries=libraries)


def server_command(main_class: str, *arguments: str, heap_mb: int) -> list[str]:
    """Return the command line of a server that logs to its standard output."""
    return _command(main_class, arguments, ("-Xms64m", f"-Xmx{heap_mb}m"), _SERVER_LOGGING_FILE)


def tool_command(main_class: str, *arguments: str) -> list[str]:
    """Return the command line of a tool that logs warnings to its standard error."""
    return _command(main_class, arguments, ("-Xmx256m",), _TOOL_LOGGING_FILE)


def _command(main_class: str, arguments: tuple[str, ...], options: tuple[str, ...], logging: str) -> list[str]:
    program = class_archives.find_program(main_class)
    return _plain_command(main_class, arguments, (*class_archives.using(_classes(), program), *options), logging)


def _classes() -> Path:
    def build_command(program: class_archives.Program, arguments: Sequence[str], options: Sequence[str]) -> list[str]:
        return _plain_command(program, arguments, options, _TOOL_LOGGING_FILE)

    return class_archives.class_archives(require("java"), (_POM, _CHECKSUMS), build_command).folder()


def _plain_command(
    main_class: str,
    arguments: Sequence[str],
    options: Sequence[str],
    logging: str,
    *,
    libraries: Path | None = None,
) -> list[str]:
    home = kafka_home()
    return [
        require("java"),
        *_QUICK_START,
        *options,
        f"-Dlog4j.configuration=file:{home / logging}",
        "-cp",
        os.fspath((libraries or home / "libs") / "*"),
        main_class,
        *arguments,
    ]


def _fetch(folder: Path) -> None:
    require("java")
    (folder / _SERVER_LOGGING_FILE).write_text(_SERVER_LOGGING)
    (folder / _TOOL_LOGGING_FILE).write_text(_TOOL_LOGGING)
    with progress.step(f"Fetching Kafka {KAFKA_VERSION} and ZooKeeper"):
        jars.fetch(KAFKA_FOLDER, folder / "libs", what="Kafka's jars")
