"""The link to a real broker: one connection, one request in flight.

A second request waits for the first one's answer. That is Kafka's own rule for control requests: two in flight could be
applied in the wrong order, and an UpdateMetadata must not overtake the LeaderAndIsr before it. The first request opens
the connection, and the next one after a failure opens another. Any interruption of a request (a failure, a timeout, a
cancelled caller) closes the connection, so that a late answer is never taken for that of another request. The broker's
registration of the listener and `controller_core.wire.connections` decide about security.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from kio.schema.api_versions.v0 import ApiVersionsResponse
from kio.static.protocol import RequestPayload

from controller_core.model.ids import BrokerId, LeaderEpoch, TopicPartition
from controller_core.model.metadata import Broker, LogEnd
from controller_core.wire.codecs.answers import decode_control_response
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.encoding import OLDEST, control_request_pieces
from controller_core.wire.codecs.frames import (
    FrameCut,
    FrameError,
    decode_response,
    encode_request,
    read_correlation_id,
    read_frame,
)
from controller_core.wire.codecs.log_ends import decode_log_ends
from controller_core.wire.codecs.static_configs import decode_static_config
from controller_core.wire.connections.broker_properties import NO_FILE, SourceOfListener
from controller_core.wire.connections.connecting import CannotConnect, Connection, open_connection
from controller_core.wire.connections.security import SecuritySource
from controller_core.wire.link import (
    BrokerLink,
    BrokerLinkFactory,
    BrokerUnreachable,
    NotConnected,
    NotSpoken,
    UnreadableAnswer,
)
from controller_core.wire.messages import ControlRequest, ControlResponse, StopReplicaRequest
from controller_core.wire.requests.api_versions import BASIC_SERVER_VERSIONS
from controller_core.wire.requests.configs import make_static_config_request
from controller_core.wire.requests.fetches import make_log_ends_request

DEFAULT_CONNECT_TIMEOUT_MS: Final = 10_000
DEFAULT_REQUEST_TIMEOUT_MS: Final = 30_000
"""Kafka's default of `controller.socket.timeout.ms`."""

_BASE_ANSWER_BYTES: Final = 64 * 1024
"""The limit of an answer, beyond the size of its request. An answer names only what its request names, in fewer bytes,
except for the Fetch of log ends, whose answers have some 20 bytes more for each of up to 1,000 partitions. Answers to
small requests have a few kilobytes."""
_STOP_REPLICA_GROWTH: Final = 32
"""The answer to StopReplica repeats the topic's name, of up to 249 bytes, for each partition, which has 10 bytes in the
request."""
_MAX_CORRELATION_ID = 2**31
_PART_BYTES: Final = 256 * 1024

R = TypeVar("R")


class TcpBrokerLink:
    """A `BrokerLink` over TCP: PLAINTEXT, unless `security` says otherwise."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str,
        connect_timeout_ms: int = DEFAULT_CONNECT_TIMEOUT_MS,
        request_timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS,
        security: SecuritySource | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._client_id = client_id
        self._connect_timeout_ms = connect_timeout_ms
        self._request_timeout_ms = request_timeout_ms
        self._security = security
        self._turn = asyncio.Lock()
        self._correlation_ids = (number % _MAX_CORRELATION_ID for number in itertools.count())
        self._connection: Connection | None = None
        self._newest: Mapping[int, int] = {}
        """The newest version of each API that the connected broker supports."""
        self._until_closed: asyncio.Timeout | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"TcpBrokerLink({self._host}:{self._port})"

    async def send(self, request: ControlRequest) -> ControlResponse:
        """See `BrokerLink.send`. Also raises `Unencodable` if the request has a value that no field can carry."""
        correlation_id = next(self._correlation_ids)
        return await self._ask(
            type(request).__name__,
            lambda: self._encode(request, correlation_id),
            lambda content: _read_response(request, content, correlation_id),
            growth=_STOP_REPLICA_GROWTH if isinstance(request, StopReplicaRequest) else 1,
        )

    async def reach(self) -> None:

        async def ask() -> None:
            if not await self._connects():
                await self._ask_versions()

        await self._run_in_turn(ask)

    async def static_config(self, broker: BrokerId, names: Collection[str]) -> Mapping[str, str]:
        return await self._ask_plainly(make_static_config_request(broker, names), decode_static_config)

    async def log_ends(self, epochs: Mapping[TopicPartition, LeaderEpoch]) -> Mapping[TopicPartition, LogEnd | None]:
        return await self._ask_plainly(make_log_ends_request(epochs), decode_log_ends)

    async def close(self) -> None:
        """See `BrokerLink.close`. Waiting and later requests fail too."""
        self._closed = True
        if self._until_closed is not None:
            self._until_closed.reschedule(asyncio.get_running_loop().time())
        self._disconnect()

    async def _ask_plainly(self, request: RequestPayload, decode: Callable[[bytes], R]) -> R:
        """Ask in the request's own version, which all brokers support that support control requests."""
        correlation_id = next(self._correlation_ids)

        def read(content: bytes) -> R:
            _check_correlation(content, correlation_id)
            return decode(content)

        name = type(request).__name__.removesuffix("Request")
        return await self._ask(name, lambda: [encode_request(request, correlation_id, self._client_id)], read)

    async def _ask(
        self, what: str, frame: Callable[[], Sequence[bytes]], read: Callable[[bytes], R], *, growth: int = 1
    ) -> R:
        async def ask() -> R:
            await self._connects()
            return await self._exchange(what, frame(), read, growth=growth)

        return await self._run_in_turn(ask)

    async def _run_in_turn(self, ask: Callable[[], Awaitable[R]]) -> R:
        async with self._turn:
            if self._closed:
                raise BrokerUnreachable(f"the link to {self._host}:{self._port} is closed")
            try:
                # A timeout without a deadline: `close` sets it to now, which ends a waiting request.
                async with asyncio.timeout(None) as self._until_closed:
                    return await ask()
            except TimeoutError as error:
                raise BrokerUnreachable(f"the link to {self._host}:{self._port} was closed") from error
            finally:
                self._until_closed = None

    async def _exchange(self, what: str, frame: Sequence[bytes], read: Callable[[bytes], R], *, growth: int = 1) -> R:
        """Send a request and read its answer, which may have `growth` times the bytes of the request, and a base."""
        # Decoding takes seconds and 20 times the memory for each 10 MiB, so a broker must not choose the size.
        most_bytes = _BASE_ANSWER_BYTES + growth * sum(map(len, frame))
        answered = False
        try:
            response = read(await self._exchange_frames(frame, most_bytes))
            answered = True
        except (FrameError, Undecodable) as error:
            raise UnreadableAnswer(f"{self._host}:{self._port} answered {what}: {error}") from error
        finally:
            if not answered:
                self._disconnect()
        return response

    async def _connects(self) -> bool:
        """Connect if there is no connection, and ask for the broker's versions, because it may have been upgraded.

        Return False if there was a connection.
        """
        if self._connection is not None and self._connection.is_spent:
            self._disconnect()
        if self._connection is not None:
            return False
        self._connection = await self._connect()
        try:
            await self._ask_versions()
        except NotConnected:
            raise
        except BrokerUnreachable as error:
            raise NotConnected(str(error)) from error
        return True

    async def _ask_versions(self) -> None:
        correlation_id = next(self._correlation_ids)
        asking = [encode_request(BASIC_SERVER_VERSIONS, correlation_id, self._client_id)]
        self._newest = await self._exchange("ApiVersions", asking, partial(_ranges, correlation_id))
        for request, oldest in OLDEST.items():
            newest = self._newest.get(request.__api_key__, -1)
            if newest < oldest:
                self._disconnect()
                raise NotSpoken(
                    f"{self._host}:{self._port} supports {request.__name__} up to version {newest}, and {oldest} is "
                    "needed: run brokers with Kafka 2.8 to 3.9 and ZooKeeper"
                )

    def _encode(self, request: ControlRequest, correlation_id: int) -> Sequence[bytes]:
        """Encode the request in the newest version that both sides support."""
        version = min(self._newest[request.__api_key__], int(request.__version__))
        return control_request_pieces(request, correlation_id, self._client_id, version=version)

    async def _exchange_frames(self, frame: Sequence[bytes], most_bytes: int) -> bytes:
        connection = self._connection
        assert connection is not None, "it was opened before"
        try:
            async with asyncio.timeout(self._request_timeout_ms / 1000):
                for part in _parts(frame):
                    connection.writer.write(part)
                    await connection.writer.drain()
                content = await read_frame(connection.reader, most_bytes)
        except TimeoutError as error:
            raise BrokerUnreachable(
                f"{self._host}:{self._port} did not answer within {self._request_timeout_ms} ms"
            ) from error
        except (OSError, FrameCut) as error:
            raise BrokerUnreachable(f"the connection to {self._host}:{self._port} broke: {error}") from error
        if content is None:
            raise BrokerUnreachable(f"{self._host}:{self._port} closed the connection without an answer")
        return content

    async def _connect(self) -> Connection:
        deadline_s = asyncio.get_running_loop().time() + self._connect_timeout_ms / 1000
        try:
            return await open_connection(self._host, self._port, deadline_s=deadline_s, security=self._security)
        except CannotConnect as error:
            raise NotConnected(str(error)) from error

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.abort()
            self._connection = None


def tcp_link_factory(
    listener_name: str,
    client_id: str,
    *,
    connect_timeout_ms: int = DEFAULT_CONNECT_TIMEOUT_MS,
    request_timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS,
    security: SourceOfListener = NO_FILE.source,
) -> BrokerLinkFactory:
    """Return a factory of links on the listener that the controller uses: `control.plane.listener.name` or the
    inter-broker one.

    `client_id` is the controller's id as text, as in Kafka. A broker without that listener, or with a protocol that
    `security` has no settings for, gets a link that always fails with `BrokerUnreachable` and the reason: one
    misconfigured broker must not stop the controller.
    """

    def link(broker: Broker) -> BrokerLink:
        endpoint = broker.find_endpoint(listener_name)
        if endpoint is None:
            has = ", ".join(endpoint.listener for endpoint in broker.endpoints) or "none"
            return _NoWay(
                f"broker {broker.id} has no listener {listener_name!r} for the controller (it has {has}): "
                f"add it to the broker's `listeners`, or name one that it has first in --listen, "
                f"or in --control-plane-listener"
            )
        return TcpBrokerLink(
            endpoint.host,
            endpoint.port,
            client_id=client_id,
            connect_timeout_ms=connect_timeout_ms,
            request_timeout_ms=request_timeout_ms,
            security=security(listener_name, endpoint.security_protocol),
        )

    return link


def _parts(frame: Sequence[bytes]) -> Iterator[bytes | memoryview]:
    """Yield the parts that are handed to the connection at a time, small enough not to be copied whole into a
    buffer."""
    if sum(map(len, frame)) <= _PART_BYTES:
        yield b"".join(frame)
        return
    for piece in frame:
        if len(piece) <= _PART_BYTES:
            yield piece
        else:
            whole = memoryview(piece)
            for start in range(0, len(piece), _PART_BYTES):
                yield whole[start : start + _PART_BYTES]


@dataclass(frozen=True, slots=True)
class _NoWay:
    """The link to a broker that the controller cannot reach with its configuration."""

    reason: str

    async def send(self, request: ControlRequest) -> ControlResponse:
        raise NotConnected(self.reason)

    async def reach(self) -> None:
        raise BrokerUnreachable(self.reason)

    async def static_config(self, broker: BrokerId, names: Collection[str]) -> Mapping[str, str]:
        raise BrokerUnreachable(self.reason)

    async def log_ends(self, epochs: Mapping[TopicPartition, LeaderEpoch]) -> Mapping[TopicPartition, LogEnd | None]:
        raise BrokerUnreachable(self.reason)

    async def close(self) -> None:
        return


def _read_response(request: ControlRequest, content: bytes, correlation_id: int) -> ControlResponse:
    _check_correlation(content, correlation_id)
    return decode_control_response(request, content)


def _ranges(correlation_id: int, content: bytes) -> Mapping[int, int]:
    """Return the newest version of each API that a broker supports."""
    _check_correlation(content, correlation_id)
    answer = decode_response(ApiVersionsResponse, content)
    return {int(api.api_key): int(api.max_version) for api in answer.api_keys}


def _check_correlation(content: bytes, correlation_id: int) -> None:
    answered = read_correlation_id(content)
    if answered != correlation_id:
        raise Undecodable(f"correlation id {answered} instead of {correlation_id}")
