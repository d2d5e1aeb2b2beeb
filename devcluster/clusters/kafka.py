"""Unmodified Kafka brokers in ZooKeeper mode."""

import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from kazoo.exceptions import KazooException

from devcluster.building.java import KAFKA_VERSION, broker_command
from devcluster.clients.sessions import SESSION_TIMEOUT_MS
from devcluster.clusters.ensemble import ZooKeeperEnsemble
from devcluster.clusters.listeners import ONE_FOR_ALL, ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import (
    SessionHolder,
    ZooKeeper,
    end_sessions_at,
    end_sessions_if_reachable,
    open_client,
)
from devcluster.running.places import HERE, Place
from devcluster.running.ports import accepts
from devcluster.running.processes import ManagedProcess
from devcluster.running.servers import Startable, take_tokens_of
from devcluster.running.tokens import BROKER

SMALL: Mapping[str, object] = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",  # elections only on request
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 8,
    "transaction.state.log.num.partitions": 4,
    "log.index.size.max.bytes": 131_072,
    "log.cleaner.dedupe.buffer.size": 2_097_152,
    "log.cleaner.io.buffer.size": 65_536,
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 2,
}
"""The defaults of every small broker, with ZooKeeper or without."""

_DEFAULTS: Mapping[str, object] = {
    **SMALL,
    "zookeeper.connection.timeout.ms": 30_000,
    "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
    "broker.id.generation.enable": "false",
    "num.replica.fetchers": 1,
    "num.recovery.threads.per.data.dir": 1,
}


class Broker(SessionHolder):
    """A broker on fixed ports, one for each listener, whose log folder outlives `stop`, `kill` and `restart`.

    `stop` is SIGTERM, which is a controlled shutdown: the broker first asks the controller to move its leaders.
    `properties` override the defaults. Entering the context starts the broker, leaving it kills it.
    """

    tokens = BROKER

    def __init__(
        self,
        folder: RunFolder,
        zookeeper_connect: str,
        broker_id: int,
        *,
        properties: Mapping[str, object] | None = None,
        rack: str | None = None,
        name: str | None = None,
        listeners: ListenerNames = ONE_FOR_ALL,
        env: Mapping[str, str] | None = None,
        version: str = KAFKA_VERSION,
        place: Place = HERE,
    ) -> None:
        super().__init__()
        self.place = place
        self.broker_id = broker_id
        self.name = name or f"broker-{broker_id}"
        self.ports = {listener: self._reserve_port() for listener in listeners.names}
        self.port = self.ports[listeners.clients]
        self._listeners = listeners
        self.log_folder = folder.data(self.name) / "log"
        self._zookeeper_connect = zookeeper_connect
        self._settings = self._defaults(rack) | dict(properties or {})
        self._settings_path = folder.data(self.name) / "server.properties"
        self._log_path = folder.log(self.name)
        self._env = env
        self.process = self._make_process(version)

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"{self.place.address}:{self.port}"

    def start(self) -> None:
        """Start and wait until registered and accepting connections; needs no controller.

        Raises StartError, or ConnectionError if ZooKeeper is out of reach.
        """
        self.spawn()
        self.wait_until_ready()

    def spawn(self) -> None:
        """Start without waiting. First ends the session of a killed predecessor, if it still lasts.

        A broker whose id is registered by another session gives up, as in production.
        """
        if not self.process.is_running:
            self.take_tokens()
            end_sessions_at(self._zookeeper_connect, [self.broker_id])
            settings = "".join(f"{key}={value}\n" for key, value in self._settings.items())
            self._settings_path.write_text(settings)
            self.process.spawn()

    def wait_until_ready(self) -> None:
        self.process.wait_until_ready()

    def restart(self, properties: Mapping[str, object] | None = None) -> None:
        """Do a controlled shutdown and a start, with some properties changed."""
        self.stop()
        self._settings |= dict(properties or {})
        self.start()

    def upgrade(self, version: str, properties: Mapping[str, object] | None = None) -> None:
        """Do a controlled shutdown, and a start as another version of Kafka, with some properties changed."""
        self.stop()
        self._settings |= dict(properties or {})
        self.process = self._make_process(version)
        self.start()

    def relocate(self, place: Place) -> None:
        """Move the broker to another place at its next start."""
        self.place = place
        self._settings |= self._listeners.properties(self.ports, place)

    def _make_process(self, version: str) -> ManagedProcess:
        return ManagedProcess(
            self.name,
            self.place.command(broker_command(str(self._settings_path), heap_mb=256, version=version)),
            log_path=self._log_path,
            ready=self._is_registered,
            env=self._env,
            stop_deadline_s=60.0,
        )

    def _defaults(self, rack: str | None) -> dict[str, object]:
        return {
            **_DEFAULTS,
            "broker.id": self.broker_id,
            **self._listeners.properties(self.ports, self.place),
            "log.dirs": self.log_folder,
            "zookeeper.connect": self._zookeeper_connect,
            **({"broker.rack": rack} if rack is not None else {}),
        }

    def _find_registration(self) -> tuple[str, Collection[int]]:
        return self._zookeeper_connect, [self.broker_id]

    def _is_registered(self) -> bool:
        return accepts(self.port, self.place.address) and self._has_registration()

    def _has_registration(self) -> bool:
        with open_client(self._zookeeper_connect) as client:
            try:
                return client.exists(f"/brokers/ids/{self.broker_id}") is not None
            except KazooException as error:
                raise ConnectionError(f"ZooKeeper at {self._zookeeper_connect} left: {error!r}") from error


class KafkaCluster(Startable):
    """Brokers 1..N on one ZooKeeper, started in parallel. More can join later with `add_broker`.

    `chroot` (such as `/one`) keeps several clusters apart on one ZooKeeper. `racks` and `places` are in the brokers'
    order. Clusters of one run folder need different names: `name`, or else the chroot, is the prefix of their brokers'
    names.
    """

    def __init__(
        self,
        folder: RunFolder,
        zookeeper: ZooKeeper | ZooKeeperEnsemble,
        *,
        brokers: int = 3,
        properties: Mapping[str, object] | None = None,
        racks: Sequence[str] | None = None,
        chroot: str = "",
        name: str | None = None,
        listeners: ListenerNames = ONE_FOR_ALL,
        env: Mapping[str, str] | None = None,
        version: str = KAFKA_VERSION,
        places: Sequence[Place] | None = None,
    ) -> None:
        self._folder = folder
        self._env = env
        self._version = version
        self._name = name or chroot.strip("/").replace("/", "-")
        self._zookeeper = zookeeper
        self._chroot = chroot
        self._listeners = listeners
        self.zookeeper_connect = zookeeper.connect + chroot
        replication_factor = min(3, brokers)
        self._properties: dict[str, object] = {
            "default.replication.factor": replication_factor,
            "offsets.topic.replication.factor": replication_factor,
            "transaction.state.log.replication.factor": replication_factor,
            "transaction.state.log.min.isr": min(2, replication_factor),
            **(properties or {}),
        }
        self.brokers: dict[int, Broker] = {}
        for index in range(brokers):
            place = places[index] if places else HERE
            self.add_broker(index + 1, rack=racks[index] if racks else None, place=place)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def broker(self, broker_id: int) -> Broker:
        return self.brokers[broker_id]

    def add_broker(
        self,
        broker_id: int,
        *,
        properties: Mapping[str, object] | None = None,
        rack: str | None = None,
        version: str | None = None,
        place: Place = HERE,
    ) -> Broker:
        """Add a broker to this cluster without starting it; it ends with the cluster."""
        self.brokers[broker_id] = Broker(
            self._folder,
            self.zookeeper_connect,
            broker_id,
            properties={**self._properties, **(properties or {})},
            rack=rack,
            name=f"{self._name}-broker-{broker_id}" if self._name else None,
            listeners=self._listeners,
            env=self._env,
            version=version or self._version,
            place=place,
        )
        return self.brokers[broker_id]

    def start(self) -> None:
        """Start every broker that does not run and wait for all; if one fails, kill those again."""
        starting = [broker for broker in self.brokers.values() if not broker.process.is_running]
        take_tokens_of(starting)
        if self._chroot:
            with self._zookeeper.client() as client:
                client.ensure_path(self._chroot)
        with ExitStack() as undo:
            for broker in starting:
                undo.callback(broker.kill)
                broker.spawn()
            for broker in starting:
                broker.wait_until_ready()
            undo.pop_all()

    def close(self) -> None:
        """Kill every broker and give the ports back."""
        started = [broker.broker_id for broker in self.brokers.values() if broker.process.was_started]
        for broker in self.brokers.values():
            broker.kill(ends_session=False)
            broker.close()
        # End the sessions last, so that no broker is left to react to the end of another's session.
        end_sessions_if_reachable(self.zookeeper_connect, started)


def lose_directory(directory: Path) -> None:
    """Replace a running broker's log directory by a file, so that nothing can be written there.

    The directory is moved away first, because the broker may write while its files are removed.
    """
    lost = directory.rename(directory.with_name(f"{directory.name}-lost"))
    directory.touch()
    shutil.rmtree(lost)
