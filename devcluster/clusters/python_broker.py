"""A broker of our own on this machine, beside unmodified ones."""

import sys
from collections.abc import Collection, Mapping
from pathlib import Path

import yaml
from kazoo.exceptions import KazooException

from devcluster.clients.sessions import SESSION_TIMEOUT_MS
from devcluster.clusters.listeners import ONE_FOR_ALL, ListenerNames
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import SessionHolder, open_client
from devcluster.running.places import HERE, Place
from devcluster.running.ports import accepts
from devcluster.running.processes import ManagedProcess
from devcluster.running.scraping import scrape
from devcluster.running.small_disk import SmallDisk


class PythonBroker(SessionHolder):
    """A `kontroller-broker run` on a fixed loopback port for each listener, whose log folder outlives `stop`, `kill`
    and another start.

    `stop` is SIGTERM, which is a controlled shutdown. The broker is ready when it is registered and accepts
    connections. Unlike a stock broker it waits until the registration of an earlier process has expired. Entering the
    context starts it, leaving it kills it. `settings` are those of the command.
    """

    def __init__(
        self,
        folder: RunFolder,
        zookeeper_connect: str,
        broker_id: int,
        *,
        settings: Mapping[str, object] | None = None,
        name: str | None = None,
        may_be_controller: bool = False,
        listeners: ListenerNames = ONE_FOR_ALL,
        disk: SmallDisk | None = None,
        place: Place = HERE,
    ) -> None:
        """Configure the broker. `may_be_controller`: in the same process, with the broker's id plus 1000 and its own
        port.

        `disk`: a disk for this broker only.
        """
        super().__init__()
        self.broker_id = broker_id
        self.controller_id = 1000 + broker_id
        self.name = name or f"python-broker-{broker_id}"
        self.ports = {listener: self._reserve_port() for listener in listeners.names}
        self.port = self.ports[listeners.clients]
        self.metrics_port = self._reserve_port()
        self.log_folder: Path = folder.data(self.name) / "log"
        self._zookeeper_connect = zookeeper_connect
        self._settings: dict[str, object] = {
            "zookeeper": zookeeper_connect,
            "id": broker_id,
            "listen": [f"{listener}://127.0.0.1:{port}" for listener, port in self.ports.items()],
            "inter_broker_listener": listeners.inter_broker,
            "log_directory": [str(self.log_folder)],
            "metrics_port": self.metrics_port,
            "zookeeper_session_timeout_ms": SESSION_TIMEOUT_MS,
            **(settings or {}),
        }
        if may_be_controller:
            address = f"PLAINTEXT://127.0.0.1:{self._reserve_port()}"
            self._settings["may_be_controller"] = f"{self.controller_id}@{address}"
        self._settings_path = folder.data(self.name) / "settings.yaml"
        command = [sys.executable, "-m", "replica_broker", "run", "--settings", str(self._settings_path)]
        self.process = ManagedProcess(
            self.name,
            place.command(command if disk is None else disk.command(command)),
            log_path=folder.log(self.name),
            ready=self._is_registered,
            stop_deadline_s=60.0,
        )

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start and wait until it is registered. Raises `StartError`."""
        self.spawn()
        self.process.wait_until_ready()

    def restart(self) -> None:
        """Do a controlled shutdown and a start."""
        self.stop()
        self.start()

    def spawn(self, settings: Mapping[str, object] | None = None) -> None:
        """Start without waiting, with some settings changed for good."""
        self._settings |= dict(settings or {})
        self._settings_path.write_text(yaml.safe_dump(self._settings))
        self.process.spawn()

    def metric(self, name: str) -> float | None:
        """Return the value of a metric, by its name and labels as scraped; None if it is missing. Raises OSError."""
        return scrape(self.metrics_port, name)

    def log(self) -> str:
        """Return all of its log."""
        return self.process.log_path.read_text(errors="replace")

    def _find_registration(self) -> tuple[str, Collection[int]]:
        return self._zookeeper_connect, [self.broker_id, self.controller_id]

    def _is_registered(self) -> bool:
        """Return True if this process is registered; the registration of an earlier one may still be there."""
        if not accepts(self.port):
            return False
        with open_client(self._zookeeper_connect) as client:
            try:
                stat = client.exists(f"/brokers/ids/{self.broker_id}")
            except KazooException as error:
                raise ConnectionError(f"ZooKeeper at {self._zookeeper_connect} left: {error!r}") from error
        return stat is not None and f'"epoch":{stat.czxid}' in self.log()
