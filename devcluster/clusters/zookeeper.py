"""One ZooKeeper server, alone or as a member of an ensemble."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from devcluster.building.java import server_command
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.places import HERE, LOOPBACK, Place
from devcluster.running.processes import ManagedProcess
from devcluster.running.servers import Server

_TICK_TIME_MS = 500


class ZooKeeper(Server):
    """A ZooKeeper on a fixed port whose data outlives `stop`, `kill` and `restart`.

    Session timeouts between 2 s and 60 s are granted as asked. Unless `syncs` is set, a write is answered before the disk
    has it: quicker, and lost only with the machine. `further` are settings beside those that every server has.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        name: str = "zookeeper",
        heap_mb: int = 512,
        syncs: bool = False,
        further: Mapping[str, object] = MappingProxyType({}),
        env: Mapping[str, str] = MappingProxyType({}),
        place: Place = HERE,
    ) -> None:
        super().__init__()
        self.place = place
        self._syncs = syncs
        self._further = further
        self.port = self._reserve_port()
        self.data_folder = folder.data(name)
        settings = self.data_folder / "zoo.cfg"
        settings.write_text(self._settings())
        self.process = ManagedProcess(
            name,
            place.command(
                server_command("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(settings), heap_mb=heap_mb)
            ),
            log_path=folder.log(name),
            ready=self._is_serving,
            env=env,
        )

    @property
    def connect(self) -> str:
        """The connect string, without a chroot: append `/name` for a tree of one's own."""
        return f"{self.place.address}:{self.port}"

    def restart(self) -> None:
        """An orderly stop and a start; sessions survive when their clients reconnect in time."""
        self.stop()
        self.start()

    @contextmanager
    def client(self, chroot: str = "") -> Iterator[KazooClient]:
        """A connected kazoo client for reading or preparing znodes."""
        with connected_client(self.connect + chroot) as client:
            yield client

    def _settings(self) -> str:
        settings: dict[str, object] = {
            "dataDir": self.data_folder,
            "clientPort": self.port,
            "clientPortAddress": self.place.address,
            "tickTime": _TICK_TIME_MS,
            "minSessionTimeout": 2_000,
            "maxSessionTimeout": 60_000,
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            "forceSync": "yes" if self._syncs else "no",
            **self._further,
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())

    def _is_serving(self) -> bool:
        return is_serving(self.port, self.place.address)


def is_serving(port: int, address: str = LOOPBACK) -> bool:
    """Whether a server answers there already: it listens a while before it does. False also where nobody listens."""
    return mode_of(port, address) is not None


def mode_of(port: int, address: str = LOOPBACK) -> str | None:
    """What a server that serves says that it is: `standalone`, `leader` or `follower`."""
    try:
        with socket.create_connection((address, port), timeout=1) as connection:
            connection.sendall(b"srvr")
            said = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
    except OSError:
        return None
    return next((line.removeprefix("Mode: ") for line in said.splitlines() if line.startswith("Mode: ")), None)


@contextmanager
def connected_client(connect: str, **options: Any) -> Iterator[KazooClient]:
    """A started kazoo client, closed when the block ends; raises ConnectionError when ZooKeeper is out of reach.

    `options` are kazoo's own."""
    client = KazooClient(hosts=connect, timeout=10.0, **options)
    try:
        try:
            client.start(timeout=15)
        except KazooTimeoutError as error:
            raise ConnectionError(f"ZooKeeper at {connect} is out of reach: start it first") from error
        yield client
    finally:
        client.stop()
        client.close()
