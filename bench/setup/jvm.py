"""The Java processes of a measurement: with Kafka's own jars, and with the JVM settings of production.

`devcluster` tunes its servers for a short life on few cores. Here a controller is measured, so its JVM gets the options
of Kafka's scripts, and ZooKeeper a full compiler and a concurrent collector.
"""

from pathlib import Path
from typing import Final

from devcluster.building.cache import build_cached
from devcluster.building.java import kafka_home
from devcluster.building.toolchain import require, run
from devcluster.clusters.kafka import Broker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.processes import ManagedProcess

_QUIET: Final = "tool.properties"
_AS_KAFKA_LOGS: Final = "server.properties"
"""Kafka's default configuration, which logs every change of a partition's state at INFO."""

_FLEET_SOURCES: Final = Path(__file__).parents[1] / "fleet"

KAFKA_HEAP_MB: Final = 1024

_KAFKA_OPTIONS: Final = (
    "-server",
    f"-Xms{KAFKA_HEAP_MB}m",
    f"-Xmx{KAFKA_HEAP_MB}m",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
)
"""The options of a broker in `kafka-run-class.sh` and `kafka-server-start.sh` of 3.9.1."""

# Snapshots during a measurement would hit one controller and not the other.
_ZOOKEEPER_OPTIONS: Final = ("-XX:+UseG1GC", "-Dzookeeper.snapCount=100000000")


IN_EARNEST: Final = {"_JAVA_OPTIONS": "-XX:TieredStopAtLevel=4 -XX:-UseSerialGC -XX:+UseG1GC"}
"""The environment in which Java overrides the options that `devcluster` gives servers for a short life."""


def java_command(
    main_class: str, *arguments: str, options: tuple[str, ...], classes: Path | None = None, logging: str = _QUIET
) -> list[str]:
    """Return the command line of a Java process with the jars of Kafka."""
    home = kafka_home()
    path = f"{home / 'libs'}/*" if classes is None else f"{classes}:{home / 'libs'}/*"
    logging_option = f"-Dlog4j.configuration=file:{home / logging}"
    return [require("java"), *options, "-Djava.awt.headless=true", logging_option, "-cp", path, main_class, *arguments]


def fleet_classes() -> Path:
    """Return the folder with the compiled fleet. Raises `MissingToolError` or `BuildError`."""
    sources = sorted(_FLEET_SOURCES.glob("*.java"))

    def build(folder: Path) -> None:
        command = [require("javac"), "-cp", f"{kafka_home() / 'libs'}/*", "-d", str(folder), *map(str, sources)]
        run(command, what="compiling the fleet")

    return build_cached("bench-fleet", *(source.read_text() for source in sources), build=build)


class BenchZooKeeper(ZooKeeper):
    """A ZooKeeper with the full compiler, G1, a heap of its own size, and no snapshots."""

    def __init__(self, folder: RunFolder, *, heap_mb: int, name: str = "zookeeper", syncs: bool = False) -> None:
        super().__init__(folder, name=name, syncs=syncs)
        options = (f"-Xms{heap_mb // 2}m", f"-Xmx{heap_mb}m", *_ZOOKEEPER_OPTIONS)
        settings = str(self.data_folder / "zoo.cfg")
        main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self.process = ManagedProcess(
            name,
            java_command(main_class, settings, options=options),
            log_path=folder.log(name),
            ready=self._is_serving,
        )


class BenchBroker(Broker):
    """A broker as Kafka's scripts start it, which may become the controller and hosts no partition."""

    def __init__(self, folder: RunFolder, zookeeper_connect: str, broker_id: int) -> None:
        super().__init__(folder, zookeeper_connect, broker_id, properties={"auto.leader.rebalance.enable": "false"})
        self.process = ManagedProcess(
            self.name,
            java_command("kafka.Kafka", str(self._settings_path), options=_KAFKA_OPTIONS, logging=_AS_KAFKA_LOGS),
            log_path=folder.log(self.name),
            ready=self._is_registered,
            stop_deadline_s=60.0,
        )
