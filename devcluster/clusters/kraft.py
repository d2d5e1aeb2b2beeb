"""Unmodified Kafka without ZooKeeper: brokers, and a quorum of controllers, in processes of their own or the brokers'."""

import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from itertools import count

from kio.schema.metadata.v12 import MetadataRequest

from devcluster.building.java import KRAFT_VERSION
from devcluster.building.kraft import (
    METADATA,
    cluster_id,
    formatted,
    formatted_to_vote_alone,
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
}


class KRaftNode(Server):
    """A broker or a controller on loopback ports of its own, whose folder outlives `stop`, `kill` and another start.

    `stop` is SIGTERM, which of a broker is a controlled shutdown. A broker is ready when it takes itself for a live one.
    Entering the context starts it, leaving it kills it.
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
        """`listeners`: of a broker; None for a controller. `combined`: a broker that is a controller, too.
        `ports`: those of somebody in whose place it comes."""
        super().__init__()
        self.node_id = node_id
        own = (CONTROLLER,) if combined or listeners is None else ()
        self.ports = ports or {each: self._reserve_port() for each in (*(listeners.names if listeners else ()), *own)}
        self.port = self.ports[listeners.clients if listeners else CONTROLLER]
        self.data_folder = folder.data(name) / "data"
        self.properties: dict[str, object] = {
            "node.id": node_id,
            "process.roles": ",".join((*(("broker",) if listeners else ()), *(("controller",) if own else ()))),
            "log.dirs": self.data_folder,
            **_listeners(listeners, self.ports),
        }
        """What its file says; written at each start."""
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
        """Where clients reach it."""
        return f"127.0.0.1:{self.port}"

    @property
    def controller_address(self) -> str:
        """Where a controller is reached by the others, and by brokers."""
        return f"127.0.0.1:{self.ports[CONTROLLER]}"

    def spawn(self) -> None:
        """Starts without waiting for it to be ready."""
        self.take_tokens()
        self.write_properties()
        self.process.spawn()

    def write_properties(self) -> None:
        """Into its file, for a tool that reads it before the node does."""
        written(self.file, self.properties)

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

    `release`: whose features are finalized at first, such as `4.0`; None: those of the release that runs. `combined`: the
    brokers are the controllers, too, and there are no others. The quorum is that of the properties (`kraft.version` 0), or
    with `dynamic` one whose voters come and go (`kraft.version` 1): the first controller at first, and nobody else.
    `racks` gives each broker's rack in order; `version` is that of all nodes.
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
    ) -> None:
        self.cluster_id = cluster_id(next(_ids))
        self._release, self.version = release, version
        self._is_dynamic = dynamic
        self.brokers = {
            each: KRaftNode(folder, each, f"{name}-broker-{each}", listeners, combined=combined, version=version)
            for each in range(1, brokers + 1)
        }
        others = range(_FIRST_CONTROLLER, _FIRST_CONTROLLER + (0 if combined else controllers))
        apart = {each: KRaftNode(folder, each, f"{name}-controller-{each}", version=version) for each in others}
        self.controllers = self.brokers if combined else apart
        quorum = _quorum(
            [node.controller_address for node in self.controllers.values()], None if dynamic else self.controllers
        )
        common = {**_DEFAULTS, **_factors(brokers), **quorum, **(properties or {})}
        for node in self.nodes:
            node.properties |= common
        for broker, rack in zip(self.brokers.values(), racks or (), strict=False):
            broker.properties["broker.rack"] = rack

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    @property
    def nodes(self) -> tuple[KRaftNode, ...]:
        """All of them, controllers first, each once."""
        return tuple({**self.controllers, **self.brokers}.values())

    def broker(self, broker_id: int) -> KRaftNode:
        return self.brokers[broker_id]

    def controller(self, node_id: int) -> KRaftNode:
        return self.controllers[node_id]

    def start(self) -> None:
        """Starts every node that does not run and waits for all; when one fails, those are killed again."""
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
        """Kills every node and gives the ports back."""
        for node in self.nodes:
            node.close()

    def _format(self) -> None:
        for node in self.nodes:
            if (node.data_folder / METADATA).exists():
                continue
            if self._is_dynamic and node is self.nodes[0]:
                node.write_properties()
                formatted_to_vote_alone(node.file, self.cluster_id, self._release, self.version)
                continue
            formatted(node.data_folder, node.node_id, self.cluster_id)
            if self._release is not None and not self._is_dynamic and node.node_id in self.controllers:
                checkpoint = initial_checkpoint(self._release, self.version)
                shutil.copytree(checkpoint, node.data_folder, dirs_exist_ok=True)


def _listeners(listeners: ListenerNames | None, ports: Mapping[str, int]) -> dict[str, object]:
    """Where a node listens. That brokers reach controllers in plain text is said in the files of both."""
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
    """How many replicas the topics have of which nobody says it."""
    factor = min(3, brokers)
    return {
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": min(2, factor),
    }


def _quorum(addresses: Collection[str], voters: Collection[int] | None) -> dict[str, object]:
    """Who the controllers are; `voters`: their ids in the same order, None where their log says who votes."""
    named = {"controller.listener.names": CONTROLLER}
    if voters is None:
        return {**named, "controller.quorum.bootstrap.servers": ",".join(addresses)}
    each = ",".join(f"{voter}@{address}" for voter, address in zip(voters, addresses, strict=True))
    return {**named, "controller.quorum.voters": each}
