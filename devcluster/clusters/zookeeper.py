"""One ZooKeeper server, alone or as a member of an ensemble."""

import socket
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from controller_core.security.jaas import NameAndPassword
from controller_core.zk.kazoo.login import log_in
from devcluster.building.java import server_command
from devcluster.clients.sessions import SESSION_TIMEOUT_MS, end_sessions
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.places import HERE, LOOPBACK, Place
from devcluster.running.processes import ManagedProcess
from devcluster.running.servers import Server

_TICK_TIME_MS = 500


class ZooKeeper(Server):
    """A ZooKeeper on a fixed port whose data outlives `stop`, `kill` and `restart`.

    Session timeouts between 2 s and 60 s are granted as requested. Unless `syncs` is set, a write is answered before it
    is on disk: quicker, and lost only if the machine crashes. `further` are additional settings.
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
            writes_to=self.data_folder / "version-2",
        )

    @property
    def connect(self) -> str:
        """The connect string, without a chroot: append `/name` for a separate tree."""
        return f"{self.place.address}:{self.port}"

    def restart(self) -> None:
        """Stop and start it; sessions survive if their clients reconnect in time."""
        self.stop()
        self.start()

    @contextmanager
    def client(self, chroot: str = "") -> Iterator[KazooClient]:
        """Open a kazoo client for reading or preparing znodes."""
        with open_client(self.connect + chroot) as client:
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


class SessionHolder(Server):
    """A server that registers in ZooKeeper with ephemeral znodes."""

    @abstractmethod
    def _find_registration(self) -> tuple[str, Collection[int]]:
        """Return the connect string, and the ids under which the server registers itself as a broker or a controller."""

    def kill(self, *, ends_session: bool = True) -> None:
        """Send SIGKILL. Also end the server's session, unless `ends_session` is False: then it lasts until it expires."""
        was_started = self.process.was_started
        super().kill()
        # A server that was stopped has no session, and its id may be another's by now.
        if ends_session and was_started:
            self.end_session()

    def end_session(self) -> None:
        """End the server's session, whether the server runs or not. If ZooKeeper is out of reach, the session remains."""
        end_sessions_if_reachable(*self._find_registration())


def end_sessions_if_reachable(connect: str, ids: Collection[int]) -> None:
    """End the sessions in which brokers or controllers with these ids are registered, unless ZooKeeper is out of reach."""
    addresses = (each.rpartition(":") for each in connect.partition("/")[0].split(","))
    # ZooKeeper may stop at any moment, because tests stop it.
    with suppress(ConnectionError):
        if ids and any(is_serving(int(port), host) for host, _, port in addresses):
            end_sessions_at(connect, ids)


def end_sessions_at(connect: str, ids: Collection[int]) -> None:
    """End the sessions in which brokers or controllers with these ids are registered.

    Raises ConnectionError if ZooKeeper is out of reach.
    """
    try:
        with open_client(connect) as client:
            end_sessions(client, ids)
    except (KazooException, KazooTimeoutError) as error:
        raise ConnectionError(f"ZooKeeper at {connect} left: {error!r}") from error


def is_serving(port: int, address: str = LOOPBACK) -> bool:
    """Return True if a server answers there. A ZooKeeper listens for a while before it answers."""
    return mode_of(port, address) is not None


def mode_of(port: int, address: str = LOOPBACK) -> str | None:
    """Return the mode of a serving server: `standalone`, `leader` or `follower`; None if it does not serve."""
    try:
        with socket.create_connection((address, port), timeout=1) as connection:
            connection.sendall(b"srvr")
            said = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
    except OSError:
        return None
    return next((line.removeprefix("Mode: ") for line in said.splitlines() if line.startswith("Mode: ")), None)


@contextmanager
def open_client(connect: str, login: NameAndPassword | None = None, **options: Any) -> Iterator[KazooClient]:
    """Open a started kazoo client, closed when the block ends. Raises ConnectionError if ZooKeeper is out of reach.

    `login`: by DIGEST-MD5. `options` are kazoo's own.
    """
    client = KazooClient(hosts=connect, timeout=SESSION_TIMEOUT_MS / 1000, **options)
    if login is not None:
        # kazoo's own login needs a library that is not installed.
        connection = client._connection
        connection.sasl_options = {}
        connection._authenticate_with_sasl = lambda _host, timeout_s: log_in(connection, login, timeout_s)
    try:
        try:
            client.start(timeout=15)
        except KazooTimeoutError as error:
            raise ConnectionError(f"ZooKeeper at {connect} is out of reach: start it first") from error
        yield client
    finally:
        client.stop()
        client.close()
