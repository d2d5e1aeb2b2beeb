"""The members of a cluster, and a call to it: finds the right server for each request, within the time of the whole
call.

The members are cached, and read again if they prove stale: a server is not the controller, or does not answer. A
request is repeated only if it was certainly not carried out.

A server that hangs looks like a slow one. A request that any server can answer goes to the next one, too, after a
while, and the first answer counts. A read-only request to the controller is given up after a while and sent to the
controller of that moment, each time with more patience, so that even a slow answer arrives in the end.

An operation gets a call as a `ControllerClient`: `target_controller`, `target_controller_or_broker`, `target_broker` or
`target_any`."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final, Protocol, TypeVar

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataResponse
from kio.static.primitive import i32Timedelta
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import (
    AdminError,
    AnswerUnreadable,
    InvalidArgument,
    NotAnsweredError,
    OutcomeUnknown,
    Unreachable,
)
from controller_core.client.properties import ClientProperties
from controller_core.client.transport.request_client import (
    Address,
    ControllerClient,
    RequestClient,
    explain_unlisted_controller,
    is_refused_by_another,
)
from controller_core.model.ids import BrokerId
from controller_core.wire.requests.metadata import make_metadata_request

Response = TypeVar("Response", bound=ResponsePayload)
T = TypeVar("T")
Question = Callable[[int], Awaitable[T]]
"""A question to one server. The argument is its time limit in milliseconds."""
PATIENCE_MS: Final = 5_000
GROWTH_OF_PATIENCE: Final = 2
"""Initial time limit of one server for a request that may be repeated, and the growth of that limit."""
_PAUSE_S: Final = 0.2
_NEAR_THE_END_S: Final = 0.01
_NEXT_SERVER_AFTER_S: Final = 1.0
_TROUBLES_TOLD: Final = 5
_SHARE_OF_SERVER: Final = 0.9
"""Share of the remaining time that a server gets, so that its answer about a timeout still arrives in time."""
_log: Final = logging.getLogger("kontroller.client")
"""Says at level DEBUG why calls try again."""


@dataclass(slots=True, kw_only=True)
class Cluster:
    """A cluster as the client knows it."""

    client: RequestClient
    default_timeout_ms: int
    brokers: dict[BrokerId, Address] = field(default_factory=dict)
    controller: BrokerId | None = None
    cluster_id: str | None = None
    former: tuple[Address, ...] = ()
    """Addresses of brokers before they were forgotten."""
    answered_last: Address | None = None
    """The server to ask first, so that a hanging server costs its time only once."""

    @classmethod
    def create(cls, properties: ClientProperties) -> "Cluster":
        """Return a cluster without a connection. Raises `InvalidArgument`."""
        client = RequestClient(
            properties.bootstrap_servers,
            client_id=properties.client_id,
            timeout_ms=properties.default_api_timeout_ms,
            connect_timeout_ms=properties.socket_connection_setup_timeout_ms,
            security=properties.security_source(),
            negotiates=True,
        )
        return cls(client=client, default_timeout_ms=properties.default_api_timeout_ms)

    def call(self, timeout_ms: int | None = None) -> "Call":
        """Begin a call, with a time limit for all of its requests."""
        allowed_ms = self.default_timeout_ms if timeout_ms is None else timeout_ms
        if allowed_ms <= 0:
            raise InvalidArgument(f"the timeout {allowed_ms} ms is not positive: give at least 1 ms")
        return Call(
            cluster=self, allowed_ms=allowed_ms, deadline_s=asyncio.get_running_loop().time() + allowed_ms / 1000
        )

    def learn(self, metadata: MetadataResponse) -> None:
        """Store the members of the cluster."""
        self.brokers = {BrokerId(each.node_id): Address(each.host, int(each.port)) for each in metadata.brokers}
        self.controller = BrokerId(metadata.controller_id) if metadata.controller_id >= 0 else None
        self.cluster_id = metadata.cluster_id

    @property
    def servers(self) -> tuple[Address, ...]:
        """The servers to try for a request that any server can answer, in order."""
        last = () if self.answered_last is None else (self.answered_last,)
        return tuple(dict.fromkeys((*last, *self.client.bootstrap, *self.brokers.values(), *self.former)))

    @property
    def brokers_beside_the_controller(self) -> list[tuple[BrokerId, Address]]:
        """All known brokers except the controller."""
        return [(broker, address) for broker, address in self.brokers.items() if broker != self.controller]

    def forget(self) -> None:
        """Forget the brokers and the controller, because they may be stale. The old addresses may still be tried."""
        self.former = tuple(self.brokers.values()) or self.former
        self.brokers, self.controller = {}, None


@dataclass(slots=True, kw_only=True)
class Call:
    """One call of a client. Its methods raise `Unreachable`, `NotAdmittedError`, `Unsupported` and
    `InvalidArgument`."""

    cluster: Cluster
    allowed_ms: int
    deadline_s: float
    trouble: str | None = None
    """The last problem. It becomes the reason if the time of the call ends."""

    @property
    def left_ms(self) -> int:
        """The rest of its time. Raises `Unreachable` if that is over."""
        left_ms = round((self.deadline_s - asyncio.get_running_loop().time()) * 1000)
        if left_ms <= 0:
            why = self.trouble or "raise the timeout, or check the cluster"
            raise Unreachable(f"it did not happen within {self.allowed_ms} ms: {why}")
        return left_ms

    @property
    def for_server(self) -> i32Timedelta:
        """The time limit to send to a server with a request now."""
        left_ms = min(self.left_ms, (1 << 31) - 1)
        return i32Timedelta.parse(timedelta(milliseconds=max(1, int(left_ms * _SHARE_OF_SERVER))))

    def note(self, trouble: str) -> None:
        """Store a problem. A problem that is only due to the end of the time does not replace an earlier one, which
        says more."""
        _log.debug("%s", trouble)
        is_over = asyncio.get_running_loop().time() >= self.deadline_s - _NEAR_THE_END_S
        if not is_over or self.trouble is None:
            self.trouble = trouble

    async def pause(self, pause_s: float = _PAUSE_S) -> None:
        """Wait before another attempt."""
        await asyncio.sleep(min(pause_s, self.left_ms / 1000))

    async def metadata(self, *topics: str, of_all: bool = False) -> MetadataResponse:
        """Return the metadata of some topics, all or none, from the first server that answers. Store the members."""
        request = make_metadata_request(None if of_all else topics)
        metadata = await self.ask_any(request, MetadataResponse)
        self.cluster.learn(metadata)
        return metadata

    async def ask_any(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """Return the answer of the first server that answers. Use this only for idempotent requests."""
        return await self.find_first_answer(lambda address: partial(self.ask_at, address, request, response_type))

    async def find_first_answer(self, question: Callable[[Address], Question[T]]) -> T:
        """Return the first answer to a question, which may be sent to several servers at once.

        If all servers raise `Unreachable` or `OutcomeUnknown`, all are asked again while there is time. Any other error
        ends the call, unless another server answers."""
        patience_ms = PATIENCE_MS
        while True:
            answers, troubles = await self._ask_each(question, min(self.left_ms, patience_ms))
            for answer in answers:
                return answer
            for trouble in troubles:
                if not isinstance(trouble, Unreachable | OutcomeUnknown):
                    raise trouble
            self.note("; ".join(map(str, troubles[:_TROUBLES_TOLD])))
            patience_ms *= GROWTH_OF_PATIENCE
            await self.pause()

    async def _ask_each(
        self, question: Callable[[Address], Question[T]], patience_ms: int
    ) -> tuple[tuple[T, ...], list[AdminError]]:
        """Ask each server once, starting the next one if the earlier ones are slow. Return an answer, or all errors."""
        servers = deque(self.cluster.servers)
        asked: dict[asyncio.Future[T], Address] = {}
        troubles: list[AdminError] = []
        try:
            while servers or asked:
                if servers:
                    server = servers.popleft()
                    asked[asyncio.ensure_future(question(server)(patience_ms))] = server
                before_next_s = _NEXT_SERVER_AFTER_S if servers else None
                ended, _ = await asyncio.wait(asked, timeout=before_next_s, return_when=asyncio.FIRST_COMPLETED)
                for one in ended:
                    server = asked.pop(one)
                    try:
                        answer = one.result()
                    except AdminError as error:
                        troubles.append(error)
                    else:
                        self.cluster.answered_last = server
                        return (answer,), troubles
        finally:
            # Slower servers are cancelled, and awaited so that their connections are closed.
            for one in asked:
                one.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        return (), troubles

    async def ask_controller(
        self,
        request: RequestPayload,
        response_type: type[Response],
        *,
        changes_nothing: bool = False,
        patience_ms: int | None = None,
    ) -> Response:
        """Return the answer of the controller, whoever that is at the time.

        A read-only request is repeated if its answer was lost. Otherwise a lost answer raises `OutcomeUnknown`, at the
        latest after `patience_ms`."""
        if patience_ms is None:
            patience_ms = PATIENCE_MS if changes_nothing else self.allowed_ms
        while True:
            address = await self.find_controller_address()
            allowed_ms = min(self.left_ms, patience_ms)
            try:
                response = await self.ask_at(address, request, response_type, allowed_ms)
            except Unreachable as error:
                self.note(str(error))
            except OutcomeUnknown as error:
                self.cluster.forget()
                if not changes_nothing:
                    raise
                self.note(str(error))
                patience_ms *= GROWTH_OF_PATIENCE
            else:
                if is_refused_by_another(response):
                    self.note(f"{address} is not the controller")
                elif changes_nothing and getattr(response, "error_code", None) is ErrorCode.request_timed_out:
                    self.note(f"{address} could not answer in the given time")
                else:
                    return response
            self.cluster.forget()
            await self.pause()

    async def ask_controller_or_broker(
        self, request: RequestPayload, response_type: type[Response], *, changes_nothing: bool = False
    ) -> Response:
        """Return the answer of the controller or of a broker. Use this only for idempotent requests.

        The controller is asked first, because it knows a topic as soon as it is created. A controller that is not a
        broker, and does not relay, closes the connection: on a listener with authentication, or with `--no-relay`.
        Then each broker is asked once, and after a pause the controller again. If a server takes too long to answer a
        request that changes something, raise `OutcomeUnknown`: it may still be done. A request that changes nothing
        goes to the next server instead."""
        patience_ms = PATIENCE_MS if changes_nothing else self.allowed_ms
        while True:
            try:
                return await self.ask_controller(request, response_type, patience_ms=patience_ms)
            except OutcomeUnknown as error:
                self._note_or_raise(error, changes_nothing=changes_nothing)
            await self.metadata()
            for broker, address in self.cluster.brokers_beside_the_controller:
                allowed_ms = min(self.left_ms, patience_ms)
                try:
                    response = await self.ask_at(address, request, response_type, allowed_ms)
                except Unreachable as error:
                    self.note(str(error))
                except OutcomeUnknown as error:
                    self._note_or_raise(error, changes_nothing=changes_nothing)
                else:
                    if not is_refused_by_another(response):
                        return response
                    self.note(f"broker {broker} finds no controller")
            patience_ms *= GROWTH_OF_PATIENCE
            await self.pause()

    def _note_or_raise(self, error: OutcomeUnknown, *, changes_nothing: bool) -> None:
        if not changes_nothing and not isinstance(error, NotAnsweredError):
            raise error
        self.note(str(error))

    def target_any(self) -> ControllerClient:
        """Return a client that sends requests by `ask_any`."""
        return _AnyServer(self)

    def target_controller(self, *, changes_nothing: bool = False) -> ControllerClient:
        """Return a client that sends requests by `ask_controller`."""
        return _OneWay(self.ask_controller, changes_nothing)

    def target_broker(self, broker: BrokerId) -> ControllerClient:
        """Return a client that sends requests by `ask_broker`."""
        return _OneBroker(self, broker)

    def target_controller_or_broker(self, *, changes_nothing: bool = False) -> ControllerClient:
        """Return a client that sends requests by `ask_controller_or_broker`."""
        return _OneWay(self.ask_controller_or_broker, changes_nothing)

    async def ask_broker(self, broker: BrokerId, request: RequestPayload, response_type: type[Response]) -> Response:
        """Return a broker's answer. A broker without a controller has done nothing, so it is asked again. Raises
        `OutcomeUnknown`."""
        while True:
            if broker not in self.cluster.brokers:
                await self.metadata()
            address = self.cluster.brokers.get(broker)
            if address is None:
                raise Unreachable(f"broker {broker} is not registered: start it")
            try:
                response = await self.ask_at(address, request, response_type)
            except (Unreachable, OutcomeUnknown):
                self.cluster.forget()
                raise
            if not is_refused_by_another(response):
                return response
            self.note(f"broker {broker} finds no controller")
            await self.pause()

    async def find_controller_address(self) -> Address:
        """Return the address of the controller. Wait for a controller while the call has time."""
        while True:
            known = self.cluster.brokers.get(self.cluster.controller) if self.cluster.controller is not None else None
            if known is not None:
                return known
            await self.metadata()
            if self.cluster.controller not in self.cluster.brokers:
                known_id = self.cluster.controller
                no_controller = "the cluster has no controller"
                self.note(no_controller if known_id is None else explain_unlisted_controller("the cluster", known_id))
                await self.pause()

    async def ask_at(
        self, address: Address, request: RequestPayload, response_type: type[Response], allowed_ms: int | None = None
    ) -> Response:
        """Ask one server once. Also raises `OutcomeUnknown`."""
        client = self.cluster.client.restrict_to(address).replace_timeout(
            self.left_ms if allowed_ms is None else allowed_ms
        )
        try:
            return await client.ask_one(request, response_type)
        except (OutcomeUnknown, AnswerUnreadable) as error:
            raise type(error)(f"{error}: {error.remedy}") from error


@dataclass(frozen=True, slots=True)
class _AnyServer:
    call: Call

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """See `ControllerClient`."""
        return await self.call.ask_any(request, response_type)


@dataclass(frozen=True, slots=True)
class _OneBroker:
    call: Call
    broker: BrokerId

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """See `ControllerClient`."""
        return await self.call.ask_broker(self.broker, request, response_type)


class _Ask(Protocol):
    async def __call__(
        self, request: RequestPayload, response_type: type[Response], *, changes_nothing: bool
    ) -> Response: ...


@dataclass(frozen=True, slots=True)
class _OneWay:
    """A client that always finds its server in the same way."""

    by: _Ask
    changes_nothing: bool

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """See `ControllerClient`."""
        return await self.by(request, response_type, changes_nothing=self.changes_nothing)
