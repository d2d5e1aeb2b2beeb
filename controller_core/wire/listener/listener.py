"""The controller's own ports. Brokers report to it here, and its answers to clients look like a broker's.

Each connection is a task of its own (`client_connection`), so a slow or hostile one delays nobody else. Their number is
limited (`admission`), in total and before a login, and so is the memory of their requests (`budget`). A controller that
resigns closes all connections: brokers stay with the controller they know until it disconnects.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog

from controller_core.model.access import Address, Need, parse_address
from controller_core.model.authorization.principal import Caller
from controller_core.wire.authentication.secured_listener import SecuredListener
from controller_core.wire.authentication.tls import HandshakeFailed, hold, open_tls_stream
from controller_core.wire.connections.sockets import notice_silence
from controller_core.wire.limits.admission import Admission, Place
from controller_core.wire.limits.budget import ByteBudget
from controller_core.wire.limits.complaints import Complaints
from controller_core.wire.limits.gate import Gate, OpenGate
from controller_core.wire.limits.listener_limits import ListenerLimits
from controller_core.wire.listener.audited import Auditor, NoAudit
from controller_core.wire.listener.client_connection import ClientConnection
from controller_core.wire.listener.owned_api import Api, LocalApi, OwnedApi, index_by_key
from controller_core.wire.listener.rules import ListenerRules
from controller_core.wire.listener.upstream import RelayTarget, RelayTargets, SilentBrokers

__all__ = [
    "Acceptor",
    "Api",
    "Listener",
    "ListenerLimits",
    "ListenerRules",
    "LocalApi",
    "OwnedApi",
    "RelayTarget",
    "RelayTargets",
]

log = structlog.get_logger()

READ_AHEAD_BYTES: Final = 16 * 1024
"""Bytes that are read from a connection in advance."""
BACKLOG: Final = 128
"""Connections that may wait to be accepted, and are accepted at once."""
EVERY_ADDRESS: Final = "::"
"""IPv4 and IPv6, like Kafka's brokers. asyncio alone would use only IPv6."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptor:
    """An address to listen on, and the APIs for its clients. Port 0 takes a free one."""

    host: str
    port: int
    apis: Iterable[Api]
    relay_targets: RelayTargets | None
    """None if nothing is relayed."""
    secured: SecuredListener | None = None
    """None for PLAINTEXT."""
    why_not_passed_on: str | None = None
    """The reason to close a connection instead of relaying. None uses the listener's rules."""


class Listener:
    """Listens on one or several addresses. The limits of connections apply to all of them together.

    Raises `ValueError` if two APIs at an address are the same. `start` raises the `OSError` of a port in use.
    """

    def __init__(
        self,
        acceptors: Iterable[Acceptor],
        *,
        limits: ListenerLimits | None = None,
        gate: Gate | None = None,
        rules: ListenerRules | None = None,
        auditor: Auditor | None = None,
    ) -> None:
        self._acceptors = [(acceptor, index_by_key(acceptor.apis)) for acceptor in acceptors]
        self._limits = limits or ListenerLimits()
        self._gate = gate or OpenGate()
        self._rules = rules or ListenerRules()
        self._auditor = auditor or NoAudit()
        self._admission = Admission(
            most=self._limits.max_connections, most_of_an_address=self._limits.max_connections_per_address
        )
        self._unauthenticated = Admission(
            most=self._limits.max_unauthenticated_connections,
            most_of_an_address=self._limits.max_unauthenticated_connections_per_address,
        )
        budget = partial(ByteBudget, most_requests=self._limits.max_requests_in_flight)
        administrators = budget(self._limits.administrators_bytes)
        self._budgets = {
            Need.BROKER: budget(self._limits.brokers_bytes),
            Need.ADMINISTRATOR: administrators,
            Need.KEEPER_OF_CREDENTIALS: administrators,
            Need.NOBODY: budget(self._limits.strangers_bytes),
        }
        self._complaints = Complaints(log)
        self._silent = SilentBrokers()
        self._servers: list[asyncio.Server] = []
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def port(self) -> int:
        """The first port that is listened on."""
        return self.ports[0]

    @property
    def ports(self) -> list[int]:
        """The ports that are listened on, in the order of the acceptors; none before `start`."""
        return [server.sockets[0].getsockname()[1] for server in self._servers]

    async def start(self) -> None:
        """Start to listen on all addresses, or on none if one of them fails."""
        try:
            for acceptor, apis in self._acceptors:
                accept = partial(self._accept, acceptor, apis)
                host = None if acceptor.host == EVERY_ADDRESS else acceptor.host
                self._servers.append(
                    await asyncio.start_server(accept, host, acceptor.port, limit=READ_AHEAD_BYTES, backlog=BACKLOG)
                )
                for listening in self._servers[-1].sockets:
                    notice_silence(listening)
                log.info("listening", host=acceptor.host, port=self.ports[-1])
        except OSError:
            await self.close()
            raise

    async def close(self) -> None:
        """Stop listening, and close every connection. Idempotent."""
        servers, self._servers = self._servers, []
        for server in servers:
            server.close()
        await self.close_connections()
        for server in servers:
            await server.wait_closed()

    async def close_connections(self) -> None:
        """Close every connection at once, even during a request, but go on listening."""
        open_now = list(self._connections)
        for task in open_now:
            task.cancel()
        await asyncio.gather(*open_now, return_exceptions=True)

    def _accept(
        self,
        acceptor: Acceptor,
        apis: Mapping[int, Api],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        caller = Caller(address=_peer_address(writer))
        address = str(caller.address)
        is_broker = self._gate.is_broker(caller)
        why_not = self._admission.admit(address, is_broker=is_broker)
        if why_not is not None:
            self._refuse(writer, address, "connection refused: too many", why_not)
            return
        place: Place | None = None
        if acceptor.secured is not None:
            why_not = self._unauthenticated.admit(address, is_broker=is_broker)
            if why_not is not None:
                self._admission.leave(address)
                self._refuse(writer, address, "connection refused: too many before a login", why_not)
                return
            place = Place(self._unauthenticated, address)
        if acceptor.secured is not None and acceptor.secured.has_tls:
            hold(writer)
            serving = self._serve_by_tls(acceptor.secured, acceptor, apis, writer, caller, place)
        else:
            serving = self._connection(acceptor, apis, reader, writer, caller, place).serve()
        task = asyncio.create_task(serving)
        task.add_done_callback(lambda _: self._admission.leave(address))
        if place is not None:
            task.add_done_callback(lambda _: place.give_back())
        self._connections[task] = writer
        task.add_done_callback(self._on_finished)

    def _refuse(self, writer: asyncio.StreamWriter, address: str, event: str, why: str) -> None:
        self._complaints.warn((address, event, why), event, address=address, why=why)
        writer.transport.abort()

    async def _serve_by_tls(
        self,
        secured: SecuredListener,
        acceptor: Acceptor,
        apis: Mapping[int, Api],
        writer: asyncio.StreamWriter,
        caller: Caller,
        place: Place | None,
    ) -> None:
        timeout_s = self._limits.tls_handshake_timeout_ms / 1000
        try:
            async with open_tls_stream(
                writer, caller, secured, timeout_s=timeout_s, read_ahead_bytes=READ_AHEAD_BYTES
            ) as stream:
                await self._connection(acceptor, apis, stream.reader, stream.writer, stream.caller, place).serve()
        except HandshakeFailed as error:
            why, address = str(error), str(caller.address)
            self._complaints.warn((address, why), "connection closed: no TLS", address=address, why=why)

    def _connection(
        self,
        acceptor: Acceptor,
        apis: Mapping[int, Api],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        caller: Caller,
        place: Place | None,
    ) -> ClientConnection:
        why_not_passed_on = acceptor.why_not_passed_on or self._rules.why_not_passed_on
        return ClientConnection(
            reader,
            writer,
            caller=caller,
            place=place,
            secured=acceptor.secured,
            apis=apis,
            relay_targets=acceptor.relay_targets,
            limits=self._limits,
            gate=self._gate,
            budgets=self._budgets,
            rules=replace(self._rules, why_not_passed_on=why_not_passed_on),
            silent=self._silent,
            complaints=self._complaints,
            auditor=self._auditor,
        )

    def _on_finished(self, task: asyncio.Task[None]) -> None:
        writer = self._connections.pop(task)
        if task.cancelled():  # perhaps before it started to run
            writer.transport.abort()
        elif (error := task.exception()) is not None:
            log.error("a connection's task failed", exc_info=error)


def _peer_address(writer: asyncio.StreamWriter) -> Address | None:
    """Return the address of the other end, or None if it is no longer known."""
    address = writer.get_extra_info("peername")
    return parse_address(address[0]) if address else None
