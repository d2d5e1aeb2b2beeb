"""Sends single requests to the cluster's controller or to any server, like a Kafka client.

Any broker, of Kafka or of Kontroller, knows the controller (Metadata), but possibly not the latest. So after
NOT_CONTROLLER the client looks for the controller again, until its timeout. Each request has its own connection:
requests are rare, and no connection needs to be kept alive.

The type of an error tells what to do. After `Unreachable` nothing was done, and the request may be repeated. After
`OutcomeUnknown` the caller must first look at the cluster. With `negotiates`, each server first reports its versions on
the same connection. A hanging server then mostly fails before it got the request.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, Generic, NamedTuple, Protocol

from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import AdminError, AnswerUnreadable, OutcomeUnknown, Unreachable, Unsupported
from controller_core.client.transport.exchange import Response, connect, decode, encode, exchange
from controller_core.client.transport.negotiation import Ranges, response_type_of
from controller_core.model.metadata import format_address
from controller_core.wire.codecs.frames import DEFAULT_MAX_FRAME_BYTES, limit_answer
from controller_core.wire.codecs.versions import convert
from controller_core.wire.connections.connecting import Connection
from controller_core.wire.connections.security import SecuritySource
from controller_core.wire.requests.api_versions import SERVER_VERSIONS
from controller_core.wire.requests.metadata import NO_TOPICS

CLIENT_ID: Final = "kontroller"
DEFAULT_TIMEOUT_MS: Final = 30_000
DEFAULT_CONNECT_TIMEOUT_MS: Final = 5_000

_PAUSE_S: Final = 0.2
_NO_BOOTSTRAP: Final = "no bootstrap server is known"
_OF_NO_CONTROLLER: Final = frozenset({ErrorCode.not_controller, ErrorCode.stale_controller_epoch})
_ADDRESS: Final = re.compile(r"(?:[\w.-]+://)?(?:\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<host>[\w.-]+)):(?P<port>[0-9]{1,5})")


class Address(NamedTuple):
    """The address of a server."""

    host: str
    port: int

    def __str__(self) -> str:
        return format_address(self.host, self.port)


class ControllerClient(Protocol):
    """The interface for requests to the controller."""

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """Return the answer to a request. Raises `AdminError`."""
        ...


class ClusterClient(ControllerClient, Protocol):
    """The interface for requests to the controller and to brokers."""

    async def ask_any(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """Return the first answer of any server. Each server is asked once, so the request must be safe to repeat.

        Raises `Unreachable` if no server answers, `AnswerUnreadable`, and `InvalidArgument`.
        """
        ...

    def restrict_to(self, address: Address) -> "ClusterClient":
        """Return a client for one server alone."""
        ...


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Parse `host:port[,host:port...]`, with IPv6 addresses in brackets. Raises `ValueError`.

    Like Kafka, ignore empty parts and the protocol of `SSL://host:port`."""
    parts = filter(None, (part.strip() for part in text.split(",")))
    addresses = tuple(map(_parse_address, parts))
    return addresses or (_parse_address(text),)


class RequestClient:
    """A `ClusterClient` over TCP: PLAINTEXT, unless `security` says otherwise.

    `timeout_ms` limits each call as a whole, and should exceed the timeout in the request. `before_sending` is called
    just before a request is sent; if it raises, nothing was sent. `negotiates` is for servers of any version, each of
    which is first asked for its versions. Otherwise servers must support the versions in which the requests are
    written. `limits_answers` is for requests that name all that their answers are about.
    """

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        client_id: str = CLIENT_ID,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        connect_timeout_ms: int = DEFAULT_CONNECT_TIMEOUT_MS,
        before_sending: Callable[[], None] = lambda: None,
        security: SecuritySource | None = None,
        negotiates: bool = False,
        limits_answers: bool = False,
    ) -> None:
        self._bootstrap = tuple(bootstrap)
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._connect_timeout_ms = connect_timeout_ms
        self._before_sending = before_sending
        self._security = security
        self._negotiates = negotiates
        self._limits_answers = limits_answers

    @property
    def bootstrap(self) -> tuple[Address, ...]:
        """The bootstrap servers in the order in which they are asked. The last one that answered comes first."""
        return self._bootstrap

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """See `ControllerClient`."""
        deadline = asyncio.get_running_loop().time() + self._timeout_ms / 1000
        question = self._question(request, response_type)
        while True:
            try:
                return await self._attempt(question, deadline)
            except Unreachable as error:
                if asyncio.get_running_loop().time() + _PAUSE_S >= deadline:
                    raise Unreachable(f"no controller answered in {self._timeout_ms} ms: {error}") from error
            await asyncio.sleep(_PAUSE_S)

    async def ask_any(self, request: RequestPayload, response_type: type[Response]) -> Response:
        deadline = asyncio.get_running_loop().time() + self._timeout_ms / 1000
        question = self._question(request, response_type)
        troubles: list[AdminError] = []
        for server, until in self._each_in_turn(deadline):
            try:
                response = await self._ask_server(server, question, until)
            except (Unreachable, OutcomeUnknown, AnswerUnreadable) as error:
                troubles.append(error)
            else:
                self._ask_first(server)
                return response
        raise _sum_up(troubles)

    async def ask_one(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """Return the answer of the first bootstrap server, which is asked once. Raises `AdminError`."""
        deadline = asyncio.get_running_loop().time() + self._timeout_ms / 1000
        return await self._ask_server(self._bootstrap[0], self._question(request, response_type), deadline)

    def restrict_to(self, address: Address, *others: Address) -> "RequestClient":
        """See `ClusterClient`. The other servers are asked after the first one."""
        return self._like((address, *others), self._timeout_ms)

    def replace_timeout(self, timeout_ms: int) -> "RequestClient":
        """Return the same client with another timeout."""
        return self._like(self._bootstrap, timeout_ms)

    def _like(self, bootstrap: Sequence[Address], timeout_ms: int) -> "RequestClient":
        return RequestClient(
            bootstrap,
            client_id=self._client_id,
            timeout_ms=timeout_ms,
            connect_timeout_ms=self._connect_timeout_ms,
            before_sending=self._before_sending,
            security=self._security,
            negotiates=self._negotiates,
            limits_answers=self._limits_answers,
        )

    def _question(self, request: RequestPayload, response_type: type[Response]) -> "_Question[Response]":
        return _Question(request, response_type, encode(request, self._client_id))

    async def _attempt(self, question: "_Question[Response]", deadline: float) -> Response:
        address = await self._find_controller(deadline)
        response = await self._ask_server(address, question, deadline)
        if is_refused_by_another(response):
            raise Unreachable(f"{address} is not the controller")
        return response

    async def _find_controller(self, deadline: float) -> Address:
        """Return the controller's address from the first bootstrap server that knows it. Raises
        `Unreachable`."""
        question = self._question(NO_TOPICS, MetadataResponse)
        troubles: list[AdminError] = []
        for server, until in self._each_in_turn(deadline):
            try:
                metadata = await self._ask_server(server, question, until)
            except (Unreachable, OutcomeUnknown, AnswerUnreadable) as error:
                troubles.append(error)
                continue
            controller = next((each for each in metadata.brokers if each.node_id == metadata.controller_id), None)
            if controller is not None:
                self._ask_first(server)
                return Address(str(controller.host), int(controller.port))
            known = int(metadata.controller_id)
            troubles.append(
                Unreachable(
                    f"{server} knows no controller" if known < 0 else explain_unlisted_controller(server, known)
                )
            )
        raise _sum_up(troubles)

    def _each_in_turn(self, deadline: float) -> Iterator[tuple[Address, float]]:
        """Yield the bootstrap servers, each with an equal share of the time left, so that a hanging one does not use up
        all."""
        for index, server in enumerate(self._bootstrap):
            now = asyncio.get_running_loop().time()
            yield server, now + (deadline - now) / (len(self._bootstrap) - index)

    def _ask_first(self, server: Address) -> None:
        """Move a server that answered to the front, so that a hanging one costs its time only once."""
        self._bootstrap = (server, *(other for other in self._bootstrap if other != server))

    async def _ask_server(self, server: Address, question: "_Question[Response]", deadline: float) -> Response:
        soon = asyncio.get_running_loop().time() + self._connect_timeout_ms / 1000
        connection = await connect(*server, self._security, min(deadline, soon))
        try:
            request = question.request
            if self._negotiates:
                request = await self._fit(connection, server, request, deadline)
            self._before_sending()
            if request is question.request:
                most_bytes = DEFAULT_MAX_FRAME_BYTES
                if self._limits_answers:
                    most_bytes = limit_answer(int(request.__api_key__), len(question.frame))
                content = await exchange(connection, server, question.frame, deadline, most_bytes)
                return decode(server, content, question.response_type)
            content = await exchange(connection, server, encode(request, self._client_id), deadline)
            return convert(decode(server, content, response_type_of(request)), question.response_type)
        finally:
            connection.writer.close()

    async def _fit(
        self, connection: Connection, server: Address, request: RequestPayload, deadline: float
    ) -> RequestPayload:
        """Return the request in a version that the server supports.

        Raises `Unsupported`, `AnswerUnreadable`, and `Unreachable` if the server does not answer, because the caller's
        request was not sent yet.
        """
        soon = asyncio.get_running_loop().time() + self._connect_timeout_ms / 1000
        frame = encode(SERVER_VERSIONS, self._client_id)
        try:
            content = await exchange(connection, server, frame, min(deadline, soon))
            return Ranges.read(decode(server, content, ApiVersionsResponse)).fit(request)
        except OutcomeUnknown as error:
            raise Unreachable(f"{error}, when asked for its versions") from error
        except Unsupported as error:
            raise Unsupported(f"{server} cannot be asked: {error}") from error


def explain_unlisted_controller(server: object, controller: int) -> str:
    """Explain why a server's answer with the id of a controller does not lead to it."""
    return (
        f"{server} says that {controller} is the controller, and does not list it: it is not alive, or hidden from the "
        "clients of this listener (--hide-from). Then name servers of the brokers' inter-broker listener"
    )


def error_codes(message: Any) -> Iterator[ErrorCode]:
    """Yield every error code in a message."""
    for part in fields(message):
        value = getattr(message, part.name)
        if isinstance(value, ErrorCode):
            yield value
        elif isinstance(value, tuple):
            yield from _error_codes_of_all(value)
        elif is_dataclass(value):
            yield from error_codes(value)


@dataclass(frozen=True, slots=True)
class _Question(Generic[Response]):
    """An encoded request, so that encoding errors appear before anybody is asked."""

    request: RequestPayload
    response_type: type[Response]
    frame: bytes


def _sum_up(troubles: Sequence[AdminError]) -> AdminError:
    """Return the error of servers that were asked in turn. One server of another kind does not decide about all."""
    said = "; ".join(map(str, troubles)) or _NO_BOOTSTRAP
    is_fatal = bool(troubles) and all(isinstance(each, AnswerUnreadable) for each in troubles)
    return AnswerUnreadable(said) if is_fatal else Unreachable(said)


def _error_codes_of_all(parts: Iterable[Any]) -> Iterator[ErrorCode]:
    for part in parts:
        if isinstance(part, ErrorCode):
            yield part
        elif is_dataclass(part):
            yield from error_codes(part)


def is_refused_by_another(response: ResponsePayload) -> bool:
    """Return True if the answering server is not the controller, or found that there is none.

    A Kafka controller that alters configurations without seeing `/controller` writes nothing, and answers with the code
    of ControllerMovedException. Some responses have the code at each part instead, such as Kafka's to ElectLeaders.
    """
    of_the_whole = getattr(response, "error_code", ErrorCode.none)
    if of_the_whole is not ErrorCode.none:
        return of_the_whole in _OF_NO_CONTROLLER
    return not _OF_NO_CONTROLLER.isdisjoint(error_codes(response))


def _parse_address(text: str) -> Address:
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{text!r} is not host:port, such as kafka-0.kafka:9092")
    return Address(match["ipv6"] or match["host"], int(match["port"]))
