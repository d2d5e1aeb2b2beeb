"""Repeatedly asks any of a cluster's brokers over a connection that stays open.

A caller that polls a cluster every second would otherwise connect, and perhaps log in, every second. One server is
asked as long as it answers. After a failure the next question goes to the next server. Only for requests that may be
sent twice.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from kio.static.protocol import RequestPayload

from controller_core.client.transport.exchange import Response, connect, decode, encode, exchange
from controller_core.client.transport.request_client import CLIENT_ID, Address
from controller_core.wire.connections.connecting import Connection
from controller_core.wire.connections.security import SecuritySource

DEFAULT_TIMEOUT_MS: Final = 5_000


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
        return decode(self.server, content, response_type)

    def close(self) -> None:
        """Close the connection. Another question would open a new one."""
        self._disconnect()

    async def _exchange(self, frame: bytes) -> bytes:
        deadline_s = asyncio.get_running_loop().time() + self._timeout_s
        connection = await self._ensure_connected(deadline_s)
        asked_at_s = asyncio.get_running_loop().time()
        try:
            content = await exchange(connection, self.server, frame, deadline_s)
        finally:
            self.waited_s += asyncio.get_running_loop().time() - asked_at_s
        self.answers += 1
        return content

    async def _ensure_connected(self, deadline_s: float) -> Connection:
        if self._connection is not None and self._connection.is_spent:
            self._disconnect()
        if self._connection is None:
            self._connection = await connect(*self.server, self._security, deadline_s)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.abort()
            self._connection = None
