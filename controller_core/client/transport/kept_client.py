"""Repeatedly asks any of a cluster's brokers over a connection that stays open.

A caller that polls a cluster every second would otherwise connect, and perhaps log in, every second. One server is
asked as long as it answers. After a failure the next question goes to the next server. Only for requests that may be
sent twice.
"""

import asyncio
import ssl
from collections.abc import Sequence
from typing import Final, TypeVar

from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import AnswerUnreadable, NotAdmittedError, OutcomeUnknown
from controller_core.client.transport.request_client import (
    CLIENT_ID,
    CORRELATION_ID,
    Address,
    encode,
    translate_connection_errors,
)
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import (
    DEFAULT_MAX_FRAME_BYTES,
    FrameCut,
    FrameError,
    decode_response,
    read_correlation_id,
    read_frame,
)
from controller_core.wire.connections.connecting import Connection, open_connection
from controller_core.wire.connections.security import SecuritySource

DEFAULT_TIMEOUT_MS: Final = 5_000

Response = TypeVar("Response", bound=ResponsePayload)


class KeptClient:
    """A client that sends one question at a time. `close` it at the end."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        security: SecuritySource | None = None,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> None:
        """`timeout_ms` is for one question, including the connection."""
        self._bootstrap = tuple(bootstrap)
        self._servers = self._bootstrap
        self._security = security
        self._timeout_s = timeout_ms / 1000
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()
        self.waited_s = 0.0
        """Total seconds of waiting for answers, which is more than the servers' working time."""
        self.answers = 0
        """Number of answers."""

    @property
    def server(self) -> Address:
        """The server that is asked next."""
        return self._servers[0]

    @property
    def servers(self) -> tuple[Address, ...]:
        """All servers that may be asked, the next one first."""
        return self._servers

    def learn(self, brokers: Sequence[Address]) -> None:
        """Replace the known brokers. The current server stays first if it is one of them. Bootstrap servers remain
        known."""
        known = dict.fromkeys((*brokers, *self._bootstrap))
        self._servers = tuple(dict.fromkeys((*(each for each in self._servers[:1] if each in known), *known)))

    def restrict_to(self, address: Address) -> "KeptClient":
        """Return a client that asks only this server, over a connection of its own."""
        return KeptClient((address,), security=self._security, timeout_ms=round(self._timeout_s * 1000))

    def move_on(self) -> None:
        """Send the next question to the next server."""
        self._disconnect()
        self._servers = (*self._servers[1:], *self._servers[:1])

    async def ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """Return the answer. Raises `AdminError`."""
        return self.read(await self.ask_unread(request), response_type)

    async def ask_unread(self, request: RequestPayload) -> bytes:
        """Return the bytes of the answer, which often equal those of the one before. Raises like `ask`."""
        frame = encode(request, CLIENT_ID)
        async with self._turn:
            try:
                return await self._exchange(frame)
            except BaseException:
                # After a cancellation too: the late answer would be taken for that of the next question.
                self.move_on()
                raise

    def read(self, content: bytes, response_type: type[Response]) -> Response:
        """Decode an answer. Raises `AnswerUnreadable`."""
        try:
            return decode_response(response_type, content)
        except Undecodable as error:
            raise AnswerUnreadable(
                f"{self.server} sent an answer that is not a {response_type.__name__}: {error}"
            ) from error

    def close(self) -> None:
        """Close the connection. Another question would open a new one."""
        self._disconnect()

    async def _exchange(self, frame: bytes) -> bytes:
        deadline_s = asyncio.get_running_loop().time() + self._timeout_s
        connection = await self._ensure_connected(deadline_s)
        asked_at_s = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(deadline_s):
                connection.writer.write(frame)
                await connection.writer.drain()
                content = await read_frame(connection.reader, DEFAULT_MAX_FRAME_BYTES)
                answered = None if content is None else read_correlation_id(content)
        except TimeoutError as error:
            raise OutcomeUnknown(f"{self.server} did not answer within {self._timeout_s:g} s") from error
        except ssl.SSLError as error:  # with TLS 1.3 the server refuses a certificate after the handshake
            raise NotAdmittedError(f"{self.server} ended the connection by TLS, see ssl.keystore.*: {error}") from error
        except (OSError, FrameCut) as error:
            raise OutcomeUnknown(f"the connection to {self.server} broke: {error}") from error
        except FrameError as error:
            raise AnswerUnreadable(f"{self.server} does not answer by Kafka's protocol: {error}") from error
        finally:
            self.waited_s += asyncio.get_running_loop().time() - asked_at_s
        if content is None:
            raise OutcomeUnknown(f"{self.server} closed the connection without an answer")
        if answered != CORRELATION_ID:
            raise AnswerUnreadable(f"{self.server} answered another request")
        self.answers += 1
        return content

    async def _ensure_connected(self, deadline_s: float) -> Connection:
        if self._connection is not None and self._connection.is_spent:
            self._disconnect()
        if self._connection is None:
            self._connection = await self._connect(deadline_s)
        return self._connection

    async def _connect(self, deadline_s: float) -> Connection:
        host, port = self.server
        with translate_connection_errors():
            return await open_connection(host, port, deadline_s=deadline_s, security=self._security)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.abort()
            self._connection = None
