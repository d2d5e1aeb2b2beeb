"""Nodes of KRaft that take over what a cluster with ZooKeeper has: the one controller of a quorum, and its brokers."""

from collections.abc import Mapping
from typing import Final

from devcluster.building.java import broker_command
from devcluster.clients.tools import run_tool
from devcluster.clusters.kafka import Broker
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.ports import accepts
from devcluster.running.processes import ManagedProcess
from devcluster.running.servers import Server

CONTROLLER_ID: Final = 3000

_LISTENER: Final = "CONTROLLER"
_STORAGE_TOOL: Final = "kafka.tools.StorageTool"


class KRaftNode(Server):
    """A process of Kafka that is part of a quorum or has its metadata from one. Ready when it accepts connections: a broker
    does so when it is registered and has caught up. `port`: where, if it is not to have one of its own."""

    def __init__(self, folder: RunFolder, name: str, *, port: int | None = None) -> None:
        super().__init__()
        self.port = self._reserve_port() if port is None else port
        self.settings_path = folder.data(name) / "server.properties"
        self.process = ManagedProcess(
            name,
            broker_command(str(self.settings_path), heap_mb=256),
            log_path=folder.log(name),
            ready=lambda: accepts(self.port),
            stop_deadline_s=60.0,
        )

    @property
    def log(self) -> str:
        return self.process.log_path.read_text(errors="replace")

    def configure(self, properties: Mapping[str, object]) -> None:
        """What it is started with the next time."""
        self.settings_path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


class Quorum(KRaftNode):
    """The only controller of a quorum: with `migrate` it takes over what is in ZooKeeper, until `finish`."""

    def __init__(self, folder: RunFolder, name: str) -> None:
        super().__init__(folder, name)
        self.known_to_all: dict[str, object] = {
            "controller.quorum.voters": f"{CONTROLLER_ID}@127.0.0.1:{self.port}",
            "controller.listener.names": _LISTENER,
            "listener.security.protocol.map": f"{_LISTENER}:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        }
        """What brokers have to know of it, too."""
        self._settings = {
            "process.roles": "controller",
            "node.id": CONTROLLER_ID,
            "listeners": f"{_LISTENER}://127.0.0.1:{self.port}",
            "log.dirs": folder.data(name) / "log",
            **self.known_to_all,
        }

    def migrate(self, zookeeper_connect: str, cluster_id: str) -> None:
        """Starts it with an empty log, to wait for the brokers that are to be migrated."""
        migration = {"zookeeper.metadata.migration.enable": "true", "zookeeper.connect": zookeeper_connect}
        self.configure(self._settings | migration)
        done = run_tool(_STORAGE_TOOL, "format", "-t", cluster_id, "-c", str(self.settings_path))
        assert done.returncode == 0, done.stdout + done.stderr
        self.start()

    def finish(self) -> None:
        """Starts it again as one that knows nothing of ZooKeeper: from here on there is no way back."""
        self.stop()
        self.configure(self._settings)
        self.start()


def migrated(folder: RunFolder, broker: Broker, quorum: Quorum) -> KRaftNode:
    """The same broker without ZooKeeper, on the same port and with the same logs; not yet started."""
    node = KRaftNode(folder, f"kraft-{broker.name}", port=broker.port)
    node.configure(
        {
            "process.roles": "broker",
            "node.id": broker.broker_id,
            "listeners": f"PLAINTEXT://{broker.address}",
            "log.dirs": broker.log_folder,
            **quorum.known_to_all,
        }
    )
    return node
