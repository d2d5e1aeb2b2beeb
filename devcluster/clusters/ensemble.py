"""Several ZooKeeper servers in one ensemble, for tests in which one stops and the others continue."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kazoo.client import KazooClient

from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_zookeeper import SecuredZooKeeper
from devcluster.clusters.zookeeper import ZooKeeper, mode_of, open_client
from devcluster.running.ports import release_port, reserve_port
from devcluster.running.servers import Startable

_HEAP_MB = 128
_TICKS = 40
"""The time in half seconds in which a server must follow its leader: 20 s, for a busy machine."""


class ZooKeeperEnsemble(Startable):
    """An odd number of servers; a majority must run.

    After `sync_ticks` half seconds of silence, followers leave their leader, and it drops them.
    """

    servers: Sequence[ZooKeeper]

    def __init__(
        self, folder: RunFolder, *, name: str = "ensemble", servers: int = 3, sync_ticks: int = _TICKS
    ) -> None:
        self._peer_ports = [(reserve_port(), reserve_port()) for _ in range(servers)]
        peers = {
            f"server.{number}": f"127.0.0.1:{following}:{electing}"
            for number, (following, electing) in enumerate(self._peer_ports, start=1)
        }
        settings = {"initLimit": _TICKS, "syncLimit": sync_ticks, **peers}
        self.servers = self._make_servers(folder, [f"{name}-{number}" for number in range(1, servers + 1)], settings)
        for number, server in enumerate(self.servers, start=1):
            (server.data_folder / "myid").write_text(str(number))

    @property
    def connect(self) -> str:
        """The connect string of all servers, without a chroot."""
        return ",".join(server.connect for server in self.servers)

    def _make_servers(
        self, folder: RunFolder, names: Sequence[str], settings: Mapping[str, object]
    ) -> Sequence[ZooKeeper]:
        return [ZooKeeper(folder, name=name, heap_mb=_HEAP_MB, further=settings) for name in names]

    def leader(self) -> ZooKeeper | None:
        """Return the server that leads the others, or None."""
        return next((server for server in self.servers if mode_of(server.port) == "leader"), None)

    @contextmanager
    def client(self, chroot: str = "") -> Iterator[KazooClient]:
        """Open a kazoo client of whichever server answers."""
        with open_client(self.connect + chroot) as client:
            yield client

    def start(self) -> None:
        """Start all servers in parallel and wait until each serves. Raises `StartError`."""
        for server in self.servers:
            server.process.spawn()
        for server in self.servers:
            server.process.wait_until_ready()

    def restart_in_turn(self) -> Iterator[ZooKeeper]:
        """Restart one server after the other; yields each when it serves again."""
        for server in self.servers:
            server.restart()
            yield server

    def close(self) -> None:
        """Kill the servers and give their ports back."""
        for server in self.servers:
            server.close()
        for ports in self._peer_ports:
            for port in ports:
                release_port(port)


class SecuredEnsemble(ZooKeeperEnsemble):
    """Servers that use TLS with each other and at their secure ports, which need a client certificate.

    Both ports know one user. The first server has the settings for clients.
    """

    servers: Sequence[SecuredZooKeeper]

    @property
    def first(self) -> SecuredZooKeeper:
        return self.servers[0]

    @property
    def secure_connect(self) -> str:
        """The connect string of all servers' secure ports, without a chroot."""
        return ",".join(server.secure_connect for server in self.servers)

    def _make_servers(
        self, folder: RunFolder, names: Sequence[str], settings: Mapping[str, object]
    ) -> Sequence[SecuredZooKeeper]:
        secured = {**settings, "sslQuorum": "true"}
        first = SecuredZooKeeper(folder, name=names[0], heap_mb=_HEAP_MB, further=secured)
        others = [
            SecuredZooKeeper(folder, name=name, heap_mb=_HEAP_MB, further=secured, like=first) for name in names[1:]
        ]
        return [first, *others]
