"""Kafka's and ZooKeeper's jars, and the command lines that run them with little memory and a quick start."""

import os
import shutil
from pathlib import Path

from devcluster import progress
from devcluster.cache import cached
from devcluster.toolchain import require, run

KAFKA_VERSION = "3.9.1"

_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>dev.kontroller</groupId>
  <artifactId>devcluster</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-reload4j</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
"""

_SERVER_LOGGING = """\
log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=[%d] %p %m (%c)%n
"""

_TOOL_LOGGING = """\
log4j.rootLogger=WARN, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=[%d] %p %m (%c)%n
"""

# A short life on few cores: the first compiler tier and the serial collector start fastest.
_QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Djava.awt.headless=true")


def kafka_home() -> Path:
    """The cached folder with `libs/` (105 jars, ZooKeeper's among them) and the logging configurations.

    Raises MissingToolError or BuildError when it has to be filled and cannot.
    """
    return cached(f"kafka-{KAFKA_VERSION}", _POM, _SERVER_LOGGING, _TOOL_LOGGING, build=_fetch)


def server_command(main_class: str, *arguments: str, heap_mb: int) -> list[str]:
    """The command line of a server that logs to its standard output."""
    return _command(main_class, arguments, ("-Xms64m", f"-Xmx{heap_mb}m"), "server.properties")


def tool_command(main_class: str, *arguments: str) -> list[str]:
    """The command line of a tool that logs warnings to its standard error."""
    return _command(main_class, arguments, ("-Xmx256m",), "tool.properties")


def _command(main_class: str, arguments: tuple[str, ...], options: tuple[str, ...], logging: str) -> list[str]:
    home = kafka_home()
    return [
        require("java"),
        *_QUICK_START,
        *options,
        f"-Dlog4j.configuration=file:{home / logging}",
        "-cp",
        os.fspath(home / "libs" / "*"),
        main_class,
        *arguments,
    ]


def _fetch(folder: Path) -> None:
    require("java")
    maven = require("mvn")
    (folder / "pom.xml").write_text(_POM)
    (folder / "server.properties").write_text(_SERVER_LOGGING)
    (folder / "tool.properties").write_text(_TOOL_LOGGING)
    with progress.step(f"Fetching Kafka {KAFKA_VERSION} and ZooKeeper"):
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder / 'libs'}"]
        run([maven, "-q", "-B", *goal], what="fetching Kafka's jars", cwd=folder)
    shutil.rmtree(folder / "target", ignore_errors=True)
