"""Nodes of KRaft that take a cluster with ZooKeeper over: the only controller of a quorum, and its brokers."""

from typing import Final

from devcluster.building.java import KAFKA_VERSION
from devcluster.clients.tools import run_tool
from devcluster.clusters.kafka import Broker
from devcluster.clusters.kraft import CONTROLLER, KRaftNode
from devcluster.clusters.listeners import ONE_FOR_ALL
from devcluster.clusters.run_folder import RunFolder

CONTROLLER_ID: Final = 3000

_MIGRATES: Final = "zookeeper.metadata.migration.enable"
_ZOOKEEPER: Final = "zookeeper.connect"
_STORAGE_TOOL: Final = "kafka.tools.StorageTool"


class Quorum(KRaftNode):
    """The only controller of a quorum: with `migrate` it takes the state in ZooKeeper over, until `finish`."""

    def __init__(self, folder: RunFolder, name: str) -> None:
        super().__init__(folder, CONTROLLER_ID, name, version=KAFKA_VERSION)
        self.known_to_all: dict[str, object] = {
            "controller.quorum.voters": f"{CONTROLLER_ID}@{self.address}",
            "controller.listener.names": CONTROLLER,
            "listener.security.protocol.map": f"{CONTROLLER}:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }
        """The properties that brokers also need."""
        self.properties |= self.known_to_all

    @property
    def log(self) -> str:
        return self.process.log_path.read_text(errors="replace")

    def migrate(self, zookeeper_connect: str, cluster_id: str) -> None:
        """Start it with an empty log, to wait for the brokers to be migrated."""
        self.properties |= {_MIGRATES: "true", _ZOOKEEPER: zookeeper_connect}
        self.write_properties()
        done = run_tool(_STORAGE_TOOL, "format", "-t", cluster_id, "-c", str(self.file))
        assert done.returncode == 0, done.stdout + done.stderr
        self.start()

    def finish(self) -> None:
        """Start it again without ZooKeeper: from here on there is no way back."""
        self.stop()
        del self.properties[_MIGRATES], self.properties[_ZOOKEEPER]
        self.start()


def migrate(folder: RunFolder, broker: Broker, quorum: Quorum) -> KRaftNode:
    """Return the same broker without ZooKeeper, on the same port and with the same logs; not yet started."""
    name = f"kraft-{broker.name}"
    node = KRaftNode(folder, broker.broker_id, name, ONE_FOR_ALL, ports=broker.ports, version=KAFKA_VERSION)
    node.properties |= {"log.dirs": broker.log_folder, **quorum.known_to_all}
    return node
