"""The connection to a real leader, with one request in flight.

It is opened by the first request, and again by the first one after a failure. Any interruption of a request closes it,
so that a late response is never taken for that of another request.
"""

import asyncio
import itertools
from collections.abc import Mapping
from typing import Final, TypeVar

from kio.schema.list_offsets.v9 import ListOffsetsResponse
from kio.schema.offset_for_leader_epoch.v4 import OffsetForLeaderEpochResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.model.ids import BrokerId, LeaderEpoch, TopicPartition
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import (
    FrameCut,
    FrameError,
    decode_response,
    encode_request,
    read_correlation_id,
    read_frame,
)
from controller_core.wire.connections.connecting import CannotConnect, Connection, open_connection
from controller_core.wire.connections.security import SecuritySource
from controller_core.wire.messages import ErrorCode
from replica_broker.replicas.following import fetch_messages, leader_messages
from replica_broker.replicas.requests import EpochEnd, Fetch, Fetched
from replica_broker.replicas.seams import (
    LeaderAnswerUnreadable,
    LeaderEndpoint,
    LeaderLink,
    LeaderLinks,
    LeaderUnreachable,
)

DEFAULT_CONNECT_TIMEOUT_MS: Final = 10_000
DEFAULT_REQUEST_TIMEOUT_MS: Final = 30_000
"""Kafka's default of `replica.socket.timeout.ms`."""

_MAX_CORRELATION_ID: Final = 2**31

Response = TypeVar("Response", bound=ResponsePayload)


class TcpLeaderLink:
    """A `LeaderLink` over TCP. PLAINTEXT, unless `security` has settings."""

    def __init__(
        self,
        leader: LeaderEndpoint,
        *,
        client_id: str,
        connect_timeout_ms: int = DEFAULT_CONNECT_TIMEOUT_MS,
        request_timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS,
        security: SecuritySource | None = None,
    ) -> None:
        self._leader = leader
        self._client_id = client_id
        self._connect_timeout_ms = connect_timeout_ms
        self._request_timeout_ms = request_timeout_ms
        self._security = security
        self._turn = asyncio.Lock()
        self._correlation_ids = (number % _MAX_CORRELATION_ID for number in itertools.count())
        self._connection: Connection | None = None
        self._closed = False

    async def fetch(self, asked: Fetch) -> Mapping[TopicPartition, Fetched]:
        """Fetch from the leader. See `LeaderLink.fetch`."""
        request = fetch_messages.fetch_request(asked)
        response = await self._ask(request, fetch_messages.response_type(request))
        return fetch_messages.parse_response(asked, response)

    async def ends_of_epochs(
        self, asked: Mapping[TopicPartition, tuple[LeaderEpoch, LeaderEpoch]], replica_id: BrokerId
    ) -> Mapping[TopicPartition, EpochEnd | ErrorCode]:
        """Ask for the ends of epochs. See `LeaderLink.ends_of_epochs`."""
        request = leader_messages.ends_request(asked, replica_id)
        return leader_messages.ends(await self._ask(request, OffsetForLeaderEpochResponse))

    async def list_offsets(
        self, asked: Mapping[TopicPartition, tuple[LeaderEpoch, int]], replica_id: BrokerId
    ) -> Mapping[TopicPartition, int | ErrorCode]:
        """Ask for offsets. See `LeaderLink.list_offsets`."""
        request = leader_messages.offsets_request(asked, replica_id)
        return leader_messages.offsets(await self._ask(request, ListOffsetsResponse))

    async def close(self) -> None:
        """Close the connection. See `LeaderLink.close`. Later requests fail, too."""
        self._closed = True
        self._disconnect()

    async def _ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        async with self._turn:
            answered = False
            try:
                response = await self._exchange(request, response_type)
                answered = True
            finally:
                if not answered:
                    self._disconnect()
            return response

    async def _exchange(self, request: RequestPayload, response_type: type[Response]) -> Response:
        correlation_id = next(self._correlation_ids)
        frame = encode_request(request, correlation_id, self._client_id)
        connection = await self._connect()
        try:
            async with asyncio.timeout(self._request_timeout_ms / 1000):
                connection.writer.write(frame)
                await connection.writer.drain()
                content = await read_frame(connection.reader)
            if content is None:
                raise LeaderUnreachable(f"{self._named} closed the connection without an answer")
            if read_correlation_id(content) != correlation_id:
                raise LeaderAnswerUnreadable(f"{self._named} answered another request")
            return decode_response(response_type, content)
        except TimeoutError as error:
            raise LeaderUnreachable(f"{self._named} did not answer within {self._request_timeout_ms} ms") from error
        except (OSError, FrameCut) as error:
            raise LeaderUnreachable(f"the connection to {self._named} broke: {error}") from error
        except (FrameError, Undecodable) as error:
            raise LeaderAnswerUnreadable(f"{self._named} answered {type(request).__name__}: {error}") from error

    async def _connect(self) -> Connection:
        if self._closed:
            raise LeaderUnreachable(f"the link to {self._named} is closed")
        if self._connection is not None and self._connection.is_spent:
            self._disconnect()
        if self._connection is None:
            deadline_s = asyncio.get_running_loop().time() + self._connect_timeout_ms / 1000
            try:
                self._connection = await open_connection(
                    self._leader.host, self._leader.port, deadline_s=deadline_s, security=self._security
                )
            except CannotConnect as error:
                raise LeaderUnreachable(f"no connection to broker {self._leader.broker}: {error}") from error
        return self._connection

    @property
    def _named(self) -> str:
        return f"broker {self._leader.broker} at {self._leader.host}:{self._leader.port}"

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.abort()
            self._connection = None


def tcp_leader_links(*, client_id: str, security: SecuritySource | None = None) -> LeaderLinks:
    """Return a factory of leader links that connect with these security settings."""

    def link(leader: LeaderEndpoint) -> LeaderLink:
        return TcpLeaderLink(leader, client_id=client_id, security=security)

    return link
