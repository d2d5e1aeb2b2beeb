"""Unmodified Kafka without ZooKeeper: brokers, and a quorum of controllers, in separate or combined processes."""

import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from kio.schema.metadata.v12 import MetadataRequest

from devcluster.building.java import KRAFT_VERSION
from devcluster.building.kraft import (
    METADATA,
    cluster_id,
    format_folder,
    format_for_only_voter,
    initial_checkpoint,
    node_command,
    write_properties,
)
from devcluster.clients.requests import ConnectionClosed, send_request
from devcluster.clusters.kafka import SMALL
from devcluster.clusters.listeners import ONE_FOR_ALL, ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.ports import accepts
from devcluster.running.processes import ManagedProcess
from devcluster.running.servers import Server, Startable, take_tokens_of
from devcluster.running.tokens import BROKER

CONTROLLER = "CONTROLLER"
"""The listener of controllers."""
_FIRST_CONTROLLER = 101
_ANSWER_S = 2.0
_ids = count(1)

_DEFAULTS: Mapping[str, object] = {
    **SMALL,
    "broker.session.timeout.ms": 9_000,
    "broker.heartbeat.interval.ms": 500,
    # With Kafka's default of 2 s, a busy machine changes the active controller without any failure.
    "controller.quorum.fetch.timeout.ms": 5_000,
}


class KRaftNode(Server):
    """A broker or a controller on its own loopback ports, whose folder outlives `stop`, `kill` and another start.

    `stop` is SIGTERM, which is a controlled shutdown of a broker. A broker is ready when its own metadata lists it as
    live. Entering the context starts it, leaving it kills it.
    """

    tokens = BROKER

    def __init__(
        self,
        folder: RunFolder,
        node_id: int,
        name: str,
        listeners: ListenerNames | None = None,
        *,
        combined: bool = False,
        ports: Mapping[str, int] | None = None,
        version: str = KRAFT_VERSION,
    ) -> None:
        """Configure a node. `listeners`: of a broker; None for a controller. `combined`: a broker that is also a
        controller.

        `ports`: those of the node that it replaces.
        """
        super().__init__()
        self.node_id = node_id
        own = (CONTROLLER,) if combined or listeners is None else ()
        self.ports = ports or {each: self._reserve_port() for each in (*(listeners.names if listeners else ()), *own)}
        self.port = self.ports[listeners.clients if listeners else CONTROLLER]
        self.data_folder = folder.data(name) / "data"
        self.log_directories: tuple[Path, ...] = (self.data_folder,)
        self.properties: dict[str, object] = {
            "node.id": node_id,
            "process.roles": ",".join((*(("broker",) if listeners else ()), *(("controller",) if own else ()))),
            "log.dirs": self.data_folder,
            **_listeners(listeners, self.ports),
        }
        """The properties in its file, which is written at each start."""
        self._answers_anybody = listeners is not None and listeners.protocol(listeners.clients) == "PLAINTEXT"
        self.file = folder.data(name) / "node.properties"
        self.process = ManagedProcess(
            name,
            node_command(self.file, version),
            log_path=folder.log(name),
            ready=self._is_ready,
            stop_deadline_s=60.0,
        )

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def controller_address(self) -> str:
        """The address of a controller for other controllers and brokers."""
        return f"127.0.0.1:{self.ports[CONTROLLER]}"

    def spawn(self) -> None:
        """Start without waiting until it is ready."""
        self.take_tokens()
        self.write_properties()
        self.process.spawn()

    def write_properties(self) -> None:
        """Write its file of properties, for a tool that reads it before the node does."""
        write_properties(self.file, self.properties)

    def start(self) -> None:
        """Start and wait until it is ready. Raises `StartError`."""
        self.spawn()
        self.process.wait_until_ready()

    def _is_ready(self) -> bool:
        return accepts(self.port) and (not self._answers_anybody or self.node_id in self._live_brokers())

    def _live_brokers(self) -> set[int]:
        """Return the brokers that are live in this broker's metadata."""
        nobody = MetadataRequest(topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False)
        try:
            found = send_request(("127.0.0.1", self.port), nobody, timeout_s=_ANSWER_S)
        except ConnectionClosed as error:
            raise ConnectionError(str(error)) from error
        return {int(each.node_id) for each in found.brokers}


class KRaftCluster(Startable):
    """Brokers 1..N and controllers 101..., started in parallel. Clusters of one run folder need different names.

    `release`: the release of the initial features, such as `4.0`; None: that of the running version. `combined`: the
    brokers are also the controllers. The quorum is static, in the properties (`kraft.version` 0). With `dynamic`,
    voters come and go (`kraft.version` 1), and the first controller is the only initial one. `racks` are in the
    brokers' order; `version` is that of all nodes; `log_directories` is the number of those of each broker.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        brokers: int = 3,
        controllers: int = 3,
        name: str = "kraft",
        release: str | None = None,
        combined: bool = False,
        dynamic: bool = False,
        properties: Mapping[str, object] | None = None,
        racks: Sequence[str] | None = None,
        listeners: ListenerNames = ONE_FOR_ALL,
        version: str = KRAFT_VERSION,
        log_directories: int = 1,
    ) -> None:
        self.cluster_id = cluster_id(next(_ids))
        self._release, self.version = release, version
        self._is_dynamic = dynamic
        self.brokers = {
            each: KRaftNode(folder, each, f"{name}-broker-{each}", listeners, combined=combined, version=version)
            for each in range(1, brokers + 1)
        }
        numbers = range(_FIRST_CONTROLLER, _FIRST_CONTROLLER + (0 if combined else controllers))
        apart = {each: KRaftNode(folder, each, f"{name}-controller-{each}", version=version) for each in numbers}
        self.controllers = self.brokers if combined else apart
        quorum = _quorum(
            [node.controller_address for node in self.controllers.values()], None if dynamic else self.controllers
        )
        common = {**_DEFAULTS, **_factors(brokers), **quorum, **(properties or {})}
        for node in self.nodes:
            node.properties |= common
        for broker in self.brokers.values():
            others = (broker.data_folder.with_name(f"data-{each}") for each in range(2, log_directories + 1))
            broker.log_directories += tuple(others)
            broker.properties["log.dirs"] = ",".join(map(str, broker.log_directories))
        for broker, rack in zip(self.brokers.values(), racks or (), strict=False):
            broker.properties["broker.rack"] = rack

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    @property
    def nodes(self) -> tuple[KRaftNode, ...]:
        """All nodes, controllers first, each once."""
        return tuple({**self.controllers, **self.brokers}.values())

    def broker(self, broker_id: int) -> KRaftNode:
        return self.brokers[broker_id]

    def controller(self, node_id: int) -> KRaftNode:
        return self.controllers[node_id]

    def start(self) -> None:
        """Start every node that does not run and wait for all; if one fails, kill those again."""
        self._format()
        starting = [node for node in self.nodes if not node.process.is_running]
        take_tokens_of(starting)
        with ExitStack() as undo:
            for node in starting:
                undo.callback(node.kill)
                node.spawn()
            for node in starting:
                node.process.wait_until_ready()
            undo.pop_all()

    def close(self) -> None:
        """Kill every node and give the ports back."""
        for node in self.nodes:
            node.close()

    def _format(self) -> None:
        for node in self.nodes:
            if (node.data_folder / METADATA).exists():
                continue
            if self._is_dynamic and node is self.nodes[0]:
                node.write_properties()
                format_for_only_voter(node.file, self.cluster_id, self._release, self.version)
                continue
            for directory in node.log_directories:
                format_folder(directory, node.node_id, self.cluster_id)
            if self._release is not None and not self._is_dynamic and node.node_id in self.controllers:
                checkpoint = initial_checkpoint(self._release, self.version)
                shutil.copytree(checkpoint, node.data_folder, dirs_exist_ok=True)


def _listeners(listeners: ListenerNames | None, ports: Mapping[str, int]) -> dict[str, object]:
    """Return the listeners of a node. Brokers reach controllers in plain text, as both files say."""
    controllers = [f"{CONTROLLER}://127.0.0.1:{ports[CONTROLLER]}"] if CONTROLLER in ports else []
    if listeners is None:
        return {"listeners": ",".join(controllers)}
    told, protocols = listeners.properties(ports), "listener.security.protocol.map"
    return {
        **told,
        "listeners": ",".join([str(told["listeners"]), *controllers]),
        protocols: f"{told[protocols]},{CONTROLLER}:PLAINTEXT",
    }


def _factors(brokers: int) -> dict[str, object]:
    """Return the default replication factors of topics."""
    factor = min(3, brokers)
    return {
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": min(2, factor),
    }


def _quorum(addresses: Collection[str], voters: Collection[int] | None) -> dict[str, object]:
    """Return the properties of the quorum; `voters`: their ids in the order of the addresses, None for a dynamic
    quorum.
    """
    named = {"controller.listener.names": CONTROLLER}
    if voters is None:
        return {**named, "controller.quorum.bootstrap.servers": ",".join(addresses)}
    each = ",".join(f"{voter}@{address}" for voter, address in zip(voters, addresses, strict=True))
    return {**named, "controller.quorum.voters": each}
