"""The controller's own ports. Brokers report to it here, and its answers to clients look like a broker's.

Each connection is a task of its own (`client_connection`), so a slow or hostile one delays nobody else. Their number
and memory are limited (`ledger`), in total and before a login, and so is the memory of their requests (`budget`). A
controller that resigns closes all connections: brokers stay with the controller they know until it disconnects.
"""

import asyncio
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog

from controller_core.model.access import Need, parse_address
from controller_core.model.authorization.principal import Caller
from controller_core.wire.authentication.secured_listener import SecuredListener
from controller_core.wire.authentication.tls import HandshakeCut, HandshakeFailed, open_tls_stream
from controller_core.wire.connections.small_reads import open_streams
from controller_core.wire.connections.sockets import notice_silence
from controller_core.wire.limits.accepting import AcceptingPort, open_port
from controller_core.wire.limits.budget import ByteBudget
from controller_core.wire.limits.complaints import Complaints
from controller_core.wire.limits.gate import Gate, OpenGate, find_standing
from controller_core.wire.limits.ledger import Ledger, NoRoom, Place
from controller_core.wire.limits.listener_limits import ListenerLimits
from controller_core.wire.listener.audited import Auditor, NoAudit
from controller_core.wire.listener.client_connection import ClientConnection
from controller_core.wire.listener.owned_api import Api, LocalApi, OwnedApi, index_by_key
from controller_core.wire.listener.refusals import Reason, Refusals
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
        refusals: Refusals | None = None,
    ) -> None:
        self._acceptors = [(acceptor, index_by_key(acceptor.apis)) for acceptor in acceptors]
        self._limits = limits or ListenerLimits()
        self._gate = gate or OpenGate()
        self._rules = rules or ListenerRules()
        self._auditor = auditor or NoAudit()
        self._refusals = refusals or Refusals()
        self._ledger = Ledger(self._limits)
        budget = partial(
            ByteBudget,
            most_requests=self._limits.max_requests_in_flight,
            patience_s=self._limits.unread_patience_ms / 1000,
        )
        administrators = budget(self._limits.administrators_bytes)
        self._budgets = {
            Need.BROKER: budget(self._limits.brokers_bytes),
            Need.ADMINISTRATOR: administrators,
            Need.KEEPER_OF_CREDENTIALS: administrators,
            Need.NOBODY: budget(self._limits.strangers_bytes),
        }
        self._complaints = Complaints(log)
        self._silent = SilentBrokers()
        self._ports: list[AcceptingPort] = []
        self._connections: dict[asyncio.Task[None], socket.socket | None] = {}
        """The socket is that of a task that has not started to run."""

    @property
    def port(self) -> int:
        """The first port that is listened on."""
        return self.ports[0]

    @property
    def ports(self) -> list[int]:
        """The ports that are listened on, in the order of the acceptors; none before `start`."""
        return [each.port for each in self._ports]

    async def start(self) -> None:
        """Start to listen on all addresses, or on none if one of them fails."""
        try:
            for acceptor, apis in self._acceptors:
                host = None if acceptor.host == EVERY_ADDRESS else acceptor.host
                self._ports.append(await open_port(host, acceptor.port, partial(self._take, acceptor, apis)))
                for listening in self._ports[-1].sockets:
                    notice_silence(listening)
                log.info("listening", host=acceptor.host, port=self.ports[-1])
        except OSError:
            await self.close()
            raise

    async def close(self) -> None:
        """Stop listening, and close every connection. Idempotent."""
        ports, self._ports = self._ports, []
        for each in ports:
            each.close()
        await self.close_connections()

    async def close_connections(self) -> None:
        """Close every connection at once, even during a request, but go on listening."""
        open_now = list(self._connections)
        for task in open_now:
            task.cancel()
        await asyncio.gather(*open_now, return_exceptions=True)

    def _take(self, acceptor: Acceptor, apis: Mapping[int, Api], accepted: socket.socket, peer: str) -> None:
        caller, secured = Caller(address=parse_address(peer)), acceptor.secured
        address = str(caller.address)
        try:
            place = self._ledger.enter(
                address,
                find_standing(self._gate, caller),
                is_tls=secured is not None and secured.has_tls,
                logs_in=secured is not None,
            )
        except NoRoom as error:
            self._complain(address, "connection refused: too many", str(error))
            self._refusals.count(Reason.LIMIT)
            accepted.close()
            return
        task = asyncio.create_task(self._serve(acceptor, apis, accepted, caller, place))
        place.close = partial(self._displace, task, address)
        self._connections[task] = accepted
        task.add_done_callback(partial(self._on_finished, place))

    def _displace(self, task: asyncio.Task[None], address: str) -> None:
        why = "others wait for a place before their login"
        self._complain(address, "connection closed to make room: it did not log in", why)
        self._refusals.count(Reason.LIMIT)
        task.cancel()

    def _complain(self, address: str, event: str, why: str) -> None:
        self._complaints.warn((address, event, why), event, address=address, why=why)

    async def _serve(
        self, acceptor: Acceptor, apis: Mapping[int, Api], accepted: socket.socket, caller: Caller, place: Place
    ) -> None:
        task = asyncio.current_task()
        assert task is not None, "this runs as a task"
        self._connections[task] = None
        del task
        if acceptor.secured is not None and acceptor.secured.has_tls:
            await self._serve_by_tls(acceptor.secured, acceptor, apis, accepted, caller, place)
            return
        reader, writer = await open_streams(accepted)
        try:
            await self._connection(acceptor, apis, reader, writer, caller, place).serve()
        except asyncio.CancelledError:
            writer.transport.abort()
            raise

    async def _serve_by_tls(
        self,
        secured: SecuredListener,
        acceptor: Acceptor,
        apis: Mapping[int, Api],
        accepted: socket.socket,
        caller: Caller,
        place: Place,
    ) -> None:
        timeout_s = self._limits.tls_handshake_timeout_ms / 1000
        try:
            async with open_tls_stream(accepted, caller, secured, timeout_s=timeout_s) as stream:
                await self._connection(acceptor, apis, stream.reader, stream.writer, stream.caller, place).serve()
        except HandshakeFailed as error:
            self._complain(str(caller.address), "connection closed: no TLS", str(error))
            if not isinstance(error, HandshakeCut):
                self._refusals.count(Reason.TLS)

    def _connection(
        self,
        acceptor: Acceptor,
        apis: Mapping[int, Api],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        caller: Caller,
        place: Place,
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
            refusals=self._refusals,
        )

    def _on_finished(self, place: Place, task: asyncio.Task[None]) -> None:
        place.leave()
        place.close = None
        accepted = self._connections.pop(task)
        if accepted is not None:  # cancelled before it started to run
            accepted.close()
        elif not task.cancelled() and (error := task.exception()) is not None:
            log.error("a connection's task failed", exc_info=error)
