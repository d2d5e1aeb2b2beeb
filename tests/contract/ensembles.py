"""A ZooKeeper of either kind, with the faults that both kinds can suffer, and recorders of a session's reports."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NoReturn, Protocol

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionDropped

from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.request_size import DEFAULT_JUTE_MAXBUFFER_BYTES
from controller_core.zk.secured.properties import NO_ZK_SECURITY, ZkSecuritySource, make_zk_security_source
from controller_core.zk.session import SessionState, Watch, WatchEvent, ZkSession
from devcluster.clients.sessions import SESSION_TIMEOUT_MS
from devcluster.clusters.secured_zookeeper import SecuredZooKeeper
from devcluster.clusters.zookeeper import ZooKeeper
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession

_DEADLINE_S = 60.0
_POLL_INTERVAL_S = 0.005


class Ensemble(Protocol):
    """A ZooKeeper of either kind, and the faults that both kinds can suffer."""

    async def session(self, jute_maxbuffer_bytes: int = DEFAULT_JUTE_MAXBUFFER_BYTES) -> ZkSession:
        """Return a new connected session, which assumes that the server has this limit; it is closed after the test."""
        ...

    async def expire(self, session: ZkSession) -> None:
        """Expire the session on the server, as if its client had been silent for too long."""
        ...

    async def take_away(self) -> None:
        """Disconnect all sessions."""
        ...

    async def give_back(self) -> None:
        """Allow connections again; the sessions have lived on."""
        ...


class SimulatedEnsemble:
    def __init__(self) -> None:
        self._server = SimulatedZooKeeper()
        self._sessions: list[SimulatedSession] = []

    async def session(self, jute_maxbuffer_bytes: int = DEFAULT_JUTE_MAXBUFFER_BYTES) -> ZkSession:
        session = self._server.session(max_request_bytes=jute_maxbuffer_bytes)
        self._sessions.append(session)
        return session

    async def expire(self, session: ZkSession) -> None:
        assert isinstance(session, SimulatedSession)
        self._server.expire(session)

    async def take_away(self) -> None:
        for session in self._sessions:
            self._server.disconnect(session)

    async def give_back(self) -> None:
        for session in self._sessions:
            self._server.reconnect(session)


class RealEnsemble:
    """One server. With a `SecuredZooKeeper`, sessions use all of its security features."""

    def __init__(self, server: ZooKeeper, chroot: str, cleanup: AsyncExitStack) -> None:
        self._server = server
        self._connect = server.connect + chroot
        self._security: ZkSecuritySource = lambda: NO_ZK_SECURITY
        if isinstance(server, SecuredZooKeeper):
            self._connect = server.secure_connect + chroot
            self._security = make_zk_security_source(server.write_properties())
        self._cleanup = cleanup

    async def session(self, jute_maxbuffer_bytes: int = DEFAULT_JUTE_MAXBUFFER_BYTES) -> ZkSession:
        session = await KazooSession.connect(
            self._connect,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            connect_timeout_ms=SESSION_TIMEOUT_MS,
            jute_maxbuffer_bytes=jute_maxbuffer_bytes,
            security=self._security,
        )
        self._cleanup.push_async_callback(session.close)
        return session

    async def expire(self, session: ZkSession) -> None:
        """Let a second client take the session over with its password and close it; the first cannot take it back."""
        assert isinstance(session, KazooSession)
        client = session._client  # only a test may read a session's password
        connect, client._connection._connect = client._connection._connect, _hold_back
        await asyncio.to_thread(_close_from_elsewhere, self._server.connect, client.client_id)
        client._connection._connect = connect

    async def take_away(self) -> None:
        await asyncio.to_thread(self._server.kill)

    async def give_back(self) -> None:
        await asyncio.to_thread(self._server.start)


def _hold_back(host: str, ip: str, port: int) -> NoReturn:
    raise ConnectionDropped("held back until the session is closed")


def _close_from_elsewhere(connect: str, client_id: tuple[int, bytes]) -> None:
    client = KazooClient(hosts=connect, client_id=client_id, timeout=SESSION_TIMEOUT_MS / 1000)
    client.start(timeout=SESSION_TIMEOUT_MS / 1000)
    client.stop()
    client.close()


class Gateway:
    """A proxy between sessions and a server: it can cut connections, and leave handshakes unanswered."""

    def __init__(self, connect: str) -> None:
        self._host, port = connect.split(":")
        self._port = int(port)
        self._open: list[asyncio.StreamWriter] = []
        self.address = ""
        self.is_silent = False
        self.unanswered = 0

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.append(writer)
        if self.is_silent:
            self.unanswered += bool(await reader.read(1))
            return
        from_server, to_server = await asyncio.open_connection(self._host, self._port)
        self._open.append(to_server)
        await asyncio.gather(self._copy(reader, to_server), self._copy(from_server, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
        except ConnectionError:
            pass  # it was cut
        finally:
            writer.close()

    def cut(self) -> None:
        """End all connections; new ones can be made."""
        for writer in self._open:
            writer.close()
        self._open.clear()


@asynccontextmanager
async def gateway_to(connect: str, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Gateway]:
    """Open a gateway to a server at its own address: `host` and `port`, or any port if that is 0."""
    gateway = Gateway(connect)
    async with await asyncio.start_server(gateway.relay, host, port) as listening:
        gateway.address = f"{host}:{listening.sockets[0].getsockname()[1]}"
        try:
            yield gateway
        finally:
            gateway.cut()


class Events:
    """Records the events of watches, by a name that the test gives each."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, WatchEvent]] = []

    def watch(self, name: str) -> Watch:
        return lambda event: self.seen.append((name, event))


class States:
    """Records the states that a session reports to its listeners."""

    def __init__(self, session: ZkSession) -> None:
        self.seen: list[SessionState] = []
        self.remove = session.add_listener(self.seen.append)


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for the condition; raises `TimeoutError` if it does not become true."""
    async with asyncio.timeout(_DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - the conditions are those of many tests, over what each has recorded
            await asyncio.sleep(_POLL_INTERVAL_S)
