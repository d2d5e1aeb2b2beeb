"""One request to whoever is the cluster's controller, or to any server, as a client of Kafka sends it, and its answer.

Any broker knows the controller (Metadata), Kafka's own as well as ours, which brokers list among themselves. What a broker
knows may be out of date, so a NOT_CONTROLLER is no answer: the controller is looked for again, until the time is over.
Every request has a connection of its own: requests to the controller are rare, and nothing is left to be kept alive.

Errors carry their policy in their type. What was certainly not done may be asked again at once (`ControllerUnreachable`);
where a request was sent and no answer came (`AnswerLost`) the asker must look at the cluster first.

Who speaks to servers of any version has each say what it speaks before it is asked, on the same connection (`negotiates`).
A server that hangs then mostly shows it before anything was asked of it that may have been done.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataRequest, MetadataResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.wire.client.negotiation import ASK_FOR_RANGES, NoCommonVersion, Ranges, response_type_of
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import (
    DEFAULT_MAX_FRAME_BYTES,
    FrameError,
    FrameTooLarge,
    decode_response,
    encode_request,
    read_correlation_id,
    read_frame,
)
from controller_core.wire.codecs.versions import converted
from controller_core.wire.connections import connecting
from controller_core.wire.connections.security import SecuritySource

CLIENT_ID: Final = "kontroller"
DEFAULT_TIMEOUT_MS: Final = 30_000
DEFAULT_CONNECT_TIMEOUT_MS: Final = 5_000

_CORRELATION_ID: Final = 1
_PAUSE_S: Final = 0.2
_NO_BOOTSTRAP: Final = "no bootstrap server is known"
_OF_NO_CONTROLLER: Final = frozenset({ErrorCode.not_controller, ErrorCode.stale_controller_epoch})
_ADDRESS: Final = re.compile(r"(?:\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<host>[\w.-]+)):(?P<port>[0-9]{1,5})")

Response = TypeVar("Response", bound=ResponsePayload)


class RequestError(Exception):
    """There is no answer to a request."""


class ControllerUnreachable(RequestError):
    """No server answers, none of them knows a controller, or it does not answer. Nothing was done. Retriable."""


class AnswerLost(RequestError):
    """The request was sent, and the answer did not come. Whether it was done is unknown: look, then ask again."""


class ConnectionEnded(AnswerLost):
    """The server ended the connection instead of answering: it may be about to end, or not answer such requests."""


class AnswerUnreadable(RequestError):
    """What came is no answer to the request: the other side does not speak this version of Kafka's protocol. Fatal."""


class VersionUnsupported(RequestError):
    """The server speaks no version that can carry the request. Nothing was sent. Fatal: another server may know it."""


class NotAdmitted(RequestError):
    """The other side is not whom it should be, or does not take this client for whom it says it is. Fatal."""


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ControllerClient(Protocol):
    """The seam for who asks the controller."""

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """The answer to a request. Raises `RequestError`, and `Unencodable` for a request that cannot be written."""
        ...


class ClusterClient(ControllerClient, Protocol):
    """The seam for who asks brokers, too."""

    async def ask_any(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """What the first server says that answers. Each is asked once, so only ask what may be asked twice.

        Raises `ControllerUnreachable` where none answers, `AnswerUnreadable`, and `Unencodable`."""
        ...

    def at(self, address: Address) -> "ClusterClient":
        """The same for one server alone."""
        ...


def parse_addresses(text: str) -> tuple[Address, ...]:
    """The addresses in `host:port[,host:port...]`; IPv6 in brackets. Raises `ValueError` for anything else."""
    return tuple(_parse_address(part.strip()) for part in text.split(","))


class RequestClient:
    """A `ClusterClient` over TCP; PLAINTEXT, unless `security` says otherwise.

    `timeout_ms` is for everything that one call does, and should be more than the request itself says.
    `before_sending` is called in the moment before something is sent, and what it raises is raised: nothing was sent.
    `negotiates`: for servers of any version, each of which is asked first what it speaks. Else all are taken to speak the
    versions in which requests are written."""

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
    ) -> None:
        self._bootstrap = tuple(bootstrap)
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._connect_timeout_ms = connect_timeout_ms
        self._before_sending = before_sending
        self._security = security
        self._negotiates = negotiates

    @property
    def bootstrap(self) -> tuple[Address, ...]:
        """Who is asked first, the one that answered last before the others."""
        return self._bootstrap

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """See `ControllerClient`."""
        deadline = asyncio.get_running_loop().time() + self._timeout_ms / 1000
        question = self._question(request, response_type)
        while True:
            try:
                return await self._attempt(question, deadline)
            except ControllerUnreachable as error:
                if asyncio.get_running_loop().time() + _PAUSE_S >= deadline:
                    raise ControllerUnreachable(f"no controller answered in {self._timeout_ms} ms: {error}") from error
            await asyncio.sleep(_PAUSE_S)

    async def ask_any(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """See `ClusterClient`."""
        deadline = asyncio.get_running_loop().time() + self._timeout_ms / 1000
        question = self._question(request, response_type)
        troubles = []
        for server, until in self._each_in_turn(deadline):
            try:
                response = await self._ask_server(server, question, until)
            except (ControllerUnreachable, AnswerLost) as error:
                troubles.append(str(error))
            else:
                self._ask_first(server)
                return response
        raise ControllerUnreachable("; ".join(troubles) or _NO_BOOTSTRAP)

    async def ask_one(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """What the first bootstrap server says, which is asked once. Raises `RequestError`, and `Unencodable`."""
        deadline = asyncio.get_running_loop().time() + self._timeout_ms / 1000
        return await self._ask_server(self._bootstrap[0], self._question(request, response_type), deadline)

    def at(self, address: Address, *others: Address) -> "RequestClient":
        """See `ClusterClient`. The others are asked after the first one."""
        return self._like((address, *others), self._timeout_ms)

    def within(self, timeout_ms: int) -> "RequestClient":
        """The same with another time for everything that one call does."""
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
        )

    def _question(self, request: RequestPayload, response_type: type[Response]) -> "_Question[Response]":
        return _Question(request, response_type, encode_request(request, _CORRELATION_ID, self._client_id))

    async def _attempt(self, question: "_Question[Response]", deadline: float) -> Response:
        address = await self._find_controller(deadline)
        response = await self._ask_server(address, question, deadline)
        if is_refused_by_another(response):
            raise ControllerUnreachable(f"{address} is not the controller")
        return response

    async def _find_controller(self, deadline: float) -> Address:
        """The controller's address, from the first bootstrap server that knows it. Raises `ControllerUnreachable`."""
        request = MetadataRequest(topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False)
        question = self._question(request, MetadataResponse)
        troubles = []
        for server, until in self._each_in_turn(deadline):
            try:
                metadata = await self._ask_server(server, question, until)
            except (ControllerUnreachable, AnswerLost) as error:
                troubles.append(str(error))
                continue
            controller = next((each for each in metadata.brokers if each.node_id == metadata.controller_id), None)
            if controller is not None:
                self._ask_first(server)
                return Address(str(controller.host), int(controller.port))
            troubles.append(f"{server} knows no controller")
        raise ControllerUnreachable("; ".join(troubles) or _NO_BOOTSTRAP)

    def _each_in_turn(self, deadline: float) -> Iterator[tuple[Address, float]]:
        """The bootstrap servers, each with an equal share of the time left: one that hangs leaves the others theirs."""
        for index, server in enumerate(self._bootstrap):
            now = asyncio.get_running_loop().time()
            yield server, now + (deadline - now) / (len(self._bootstrap) - index)

    def _ask_first(self, server: Address) -> None:
        """Has the next question begin with a server that answered, so that one that hangs costs its time once."""
        self._bootstrap = (server, *(other for other in self._bootstrap if other != server))

    async def _ask_server(self, server: Address, question: "_Question[Response]", deadline: float) -> Response:
        async with self._connected(server, deadline) as connection:
            request = question.request
            if self._negotiates:
                request = await self._fitted(connection, request)
            self._before_sending()
            if request is question.request:
                return await _exchange(connection, question.frame, question.response_type)
            frame = encode_request(request, _CORRELATION_ID, self._client_id)
            answer = await _exchange(connection, frame, response_type_of(request))
            return converted(answer, question.response_type)

    async def _fitted(self, connection: "_Connection", request: RequestPayload) -> RequestPayload:
        """The request in a version that the server speaks. Raises `VersionUnsupported`, `AnswerUnreadable`, and
        `ControllerUnreachable` where it does not say: nothing that somebody asked for was sent yet."""
        soon = asyncio.get_running_loop().time() + self._connect_timeout_ms / 1000
        patient = replace(connection, deadline=min(connection.deadline, soon))
        try:
            frame = encode_request(ASK_FOR_RANGES, _CORRELATION_ID, self._client_id)
            return Ranges.read(await _exchange(patient, frame, ApiVersionsResponse)).fitted(request)
        except AnswerLost as error:
            if isinstance(error.__cause__, FrameTooLarge):
                raise AnswerUnreadable(f"{connection.address} answers what is no Kafka: {error.__cause__}") from error
            raise ControllerUnreachable(f"{error}, asked which versions it speaks") from error
        except NoCommonVersion as error:
            raise VersionUnsupported(f"{connection.address} cannot be asked: {error}") from error

    @asynccontextmanager
    async def _connected(self, address: Address, deadline: float) -> AsyncIterator["_Connection"]:
        """A connection for one exchange. Raises `ControllerUnreachable`, `NotAdmitted` and `AnswerUnreadable`."""
        soon = asyncio.get_running_loop().time() + self._connect_timeout_ms / 1000
        with as_request_errors():
            opened = await connecting.open_connection(
                address.host, address.port, deadline_s=min(deadline, soon), security=self._security
            )
        try:
            yield _Connection(address, opened.reader, opened.writer, deadline)
        finally:
            opened.writer.close()


@contextmanager
def as_request_errors() -> Iterator[None]:
    """Why no connection came about, as `RequestError`."""
    try:
        yield
    except connecting.OutOfReach as error:
        raise ControllerUnreachable(str(error)) from error
    except connecting.NotAdmitted as error:
        raise NotAdmitted(str(error)) from error
    except connecting.NoSuchProtocol as error:
        raise AnswerUnreadable(str(error)) from error


def error_codes(message: Any) -> Iterator[ErrorCode]:
    """Every error code that stands anywhere in a message."""
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
    """A request as it is written, which is known to be possible before anybody is asked."""

    request: RequestPayload
    response_type: type[Response]
    frame: bytes


@dataclass(frozen=True, slots=True)
class _Connection:
    address: Address
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    deadline: float


async def _exchange(connection: _Connection, frame: bytes, response_type: type[Response]) -> Response:
    """Sends a request and reads its answer. Raises `AnswerLost` and `AnswerUnreadable`."""
    try:
        async with asyncio.timeout_at(connection.deadline):
            connection.writer.write(frame)
            await connection.writer.drain()
            content = await read_frame(connection.reader, DEFAULT_MAX_FRAME_BYTES)
    except ConnectionError as error:
        raise ConnectionEnded(f"{connection.address} ended the connection and did not answer: {error}") from error
    except (OSError, FrameError, TimeoutError) as error:
        raise AnswerLost(f"{connection.address} did not answer: {str(error) or type(error).__name__}") from error
    if content is None:
        raise ConnectionEnded(f"{connection.address} closed the connection and did not answer")
    try:
        if read_correlation_id(content) != _CORRELATION_ID:
            raise AnswerUnreadable(f"{connection.address} answered another request")
        return decode_response(response_type, content)
    except (FrameError, Undecodable) as error:
        raise AnswerUnreadable(f"{connection.address} answered what is no {response_type.__name__}: {error}") from error


def _error_codes_of_all(parts: Iterable[Any]) -> Iterator[ErrorCode]:
    for part in parts:
        if isinstance(part, ErrorCode):
            yield part
        elif is_dataclass(part):
            yield from error_codes(part)


def is_refused_by_another(response: ResponsePayload) -> bool:
    """Whether the answer is that of a server that is not the controller, or has found that there is none: one of Kafka's
    that changes configurations and sees no `/controller` writes nothing, and says what ControllerMovedException has for a
    code. Some responses say it of every part instead, as Kafka's to ElectLeaders, though they could say it of the whole."""
    of_the_whole = getattr(response, "error_code", ErrorCode.none)
    if of_the_whole is not ErrorCode.none:
        return of_the_whole in _OF_NO_CONTROLLER
    return not _OF_NO_CONTROLLER.isdisjoint(error_codes(response))


def _parse_address(text: str) -> Address:
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{text!r} is not host:port, such as kafka-0.kafka:9092")
    return Address(match["ipv6"] or match["host"], int(match["port"]))
