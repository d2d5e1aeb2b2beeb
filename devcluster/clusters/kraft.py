"""Unmodified Kafka without ZooKeeper: brokers, and a quorum of controllers in processes of their own."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count

from kio.schema.metadata.v12 import MetadataRequest

from devcluster.building.kraft import (
    CHECKPOINT,
    METADATA,
    cluster_id,
    formatted,
    initial_checkpoint,
    node_command,
    written,
)
from devcluster.clients.requests import ConnectionClosed, send_request
from devcluster.clusters.kafka import SMALL
from devcluster.clusters.listeners import ONE_FOR_ALL, ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.ports import accepts
from devcluster.running.processes import ManagedProcess
from devcluster.running.servers import Server, Startable

CONTROLLER = "CONTROLLER"
"""The listener of controllers."""
_FIRST_CONTROLLER = 101
_ANSWER_S = 2.0
_ids = count(1)

_DEFAULTS: Mapping[str, object] = {
    **SMALL,
    "broker.session.timeout.ms": 3_000,
    "broker.heartbeat.interval.ms": 500,
}


class KRaftNode(Server):
    """A broker or a controller on loopback ports of its own, whose folder outlives `stop`, `kill` and another start.

    `stop` is SIGTERM, which of a broker is a controlled shutdown. A broker is ready when it takes itself for a live one.
    Entering the context starts it, leaving it kills it.
    """

    def __init__(self, folder: RunFolder, node_id: int, name: str, listeners: ListenerNames | None = None) -> None:
        """`listeners`: of a broker; None for a controller."""
        super().__init__()
        self.node_id = node_id
        self.ports = {each: self._reserve_port() for each in (listeners.names if listeners else (CONTROLLER,))}
        self.port = self.ports[listeners.clients if listeners else CONTROLLER]
        self.data_folder = folder.data(name) / "data"
        self.properties: dict[str, object] = {
            "node.id": node_id,
            "process.roles": "broker" if listeners else "controller",
            "log.dirs": self.data_folder,
            **_listeners(listeners, self.ports),
        }
        """What its file says; written at each start."""
        self._answers_anybody = listeners is not None and listeners.protocol(listeners.clients) == "PLAINTEXT"
        self._file = folder.data(name) / "node.properties"
        self.process = ManagedProcess(
            name, node_command(self._file), log_path=folder.log(name), ready=self._is_ready, stop_deadline_s=60.0
        )

    @property
    def address(self) -> str:
        """Where clients reach it."""
        return f"127.0.0.1:{self.port}"

    def spawn(self) -> None:
        """Starts without waiting."""
        written(self._file, self.properties)
        self.process.spawn()

    def start(self) -> None:
        """Starts and waits until it is ready. Raises `StartError`."""
        self.spawn()
        self.process.wait_until_ready()

    def _is_ready(self) -> bool:
        return accepts(self.port) and (not self._answers_anybody or self.node_id in self._live_brokers())

    def _live_brokers(self) -> set[int]:
        """The brokers that this one takes for live ones."""
        nobody = MetadataRequest(topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False)
        try:
            found = send_request(("127.0.0.1", self.port), nobody, timeout_s=_ANSWER_S)
        except ConnectionClosed as error:
            raise ConnectionError(str(error)) from error
        return {int(each.node_id) for each in found.brokers}


class KRaftCluster(Startable):
    """Brokers 1..N and controllers 101..., started side by side. Clusters of one run folder need different names.

    `release`: whose features are finalized at first, such as `4.0`; None: those of the release that runs. The quorum is
    that of the properties (`kraft.version` 0). `racks` gives each broker's rack in order.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        brokers: int = 3,
        controllers: int = 3,
        name: str = "kraft",
        release: str | None = None,
        properties: Mapping[str, object] | None = None,
        racks: Sequence[str] | None = None,
        listeners: ListenerNames = ONE_FOR_ALL,
    ) -> None:
        self.cluster_id = cluster_id(next(_ids))
        self._release = release
        controllers_from = range(_FIRST_CONTROLLER, _FIRST_CONTROLLER + controllers)
        self.controllers = {each: KRaftNode(folder, each, f"{name}-controller-{each}") for each in controllers_from}
        self.brokers = {
            each: KRaftNode(folder, each, f"{name}-broker-{each}", listeners) for each in range(1, brokers + 1)
        }
        common = _common(brokers, self.controllers.values()) | dict(properties or {})
        for node in self.nodes:
            node.properties |= common
        for broker, rack in zip(self.brokers.values(), racks or (), strict=False):
            broker.properties["broker.rack"] = rack

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    @property
    def nodes(self) -> tuple[KRaftNode, ...]:
        """All of them, controllers first."""
        return (*self.controllers.values(), *self.brokers.values())

    def broker(self, broker_id: int) -> KRaftNode:
        return self.brokers[broker_id]

    def controller(self, node_id: int) -> KRaftNode:
        return self.controllers[node_id]

    def start(self) -> None:
        """Starts every node that does not run and waits for all; when one fails, those are killed again."""
        self._format()
        starting = [node for node in self.nodes if not node.process.is_running]
        with ExitStack() as undo:
            for node in starting:
                undo.callback(node.kill)
                node.spawn()
            for node in starting:
                node.process.wait_until_ready()
            undo.pop_all()

    def close(self) -> None:
        """Kills every node and gives the ports back."""
        for node in self.nodes:
            node.close()

    def _format(self) -> None:
        for node in self.nodes:
            if (node.data_folder / METADATA).exists():
                continue
            formatted(node.data_folder, node.node_id, self.cluster_id)
            if self._release is not None and node.node_id in self.controllers:
                shutil.copy(initial_checkpoint(self._release), node.data_folder / CHECKPOINT)


def _listeners(listeners: ListenerNames | None, ports: Mapping[str, int]) -> dict[str, object]:
    """Where a node listens. That brokers reach controllers in plain text is said in the files of both."""
    if listeners is None:
        return {"listeners": f"{CONTROLLER}://127.0.0.1:{ports[CONTROLLER]}"}
    told, protocols = listeners.properties(ports), "listener.security.protocol.map"
    return {**told, protocols: f"{told[protocols]},{CONTROLLER}:PLAINTEXT"}


def _common(brokers: int, controllers: Iterable[KRaftNode]) -> dict[str, object]:
    """What the files of all nodes say."""
    factor = min(3, brokers)
    return {
        **_DEFAULTS,
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": min(2, factor),
        "controller.listener.names": CONTROLLER,
        "controller.quorum.voters": ",".join(f"{node.node_id}@{node.address}" for node in controllers),
    }
