"""HTTP for probes and scrapes, with limits. Without them any client could use up the process's file descriptors.

The connections of an address and of all addresses together are limited. A connection is closed if it is silent, sends a
request's head too slowly, or does not take its answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, cast

import structlog
from aiohttp import web

from controller_core.wire.limits.admission import Admission, descriptor_limit
from controller_core.wire.limits.complaints import Complaints

log = structlog.get_logger()

MOST_CONNECTIONS: Final = 256
"""Limit of all connections. `Admission` reserves an eighth for brokers, which do not connect here, so 224 remain."""
MOST_CONNECTIONS_OF_AN_ADDRESS: Final = 64
PATIENCE_S: Final = 30.0
"""Seconds for a request's head to arrive, for the next request to begin, and for a part of an answer to be taken."""


async def serve_http(
    application: web.Application,
    host: str | None,
    port: int,
    *,
    admission: Admission | None = None,
    patience_s: float = PATIENCE_S,
) -> Callable[[], Awaitable[None]]:
    """Serve an application; return the function that stops it. Raises `OSError` if the port is taken.

    `admission` counts the connections. Default: the limits above, or a quarter of the process's descriptors."""
    runner = web.AppRunner(application, access_log=None, keepalive_timeout=patience_s)
    await runner.setup()
    serving = cast("Callable[[], asyncio.Protocol]", runner.server)
    admission = admission or Admission(
        most=min(MOST_CONNECTIONS, descriptor_limit() // 4), most_of_an_address=MOST_CONNECTIONS_OF_AN_ADDRESS
    )
    complaints = Complaints(log)
    try:
        server = await asyncio.get_running_loop().create_server(
            lambda: _Bounded(serving(), admission, complaints, patience_s), host, port
        )
    except OSError:
        await runner.cleanup()
        raise

    async def stop() -> None:
        server.close()
        await runner.cleanup()

    return stop


class _Bounded(asyncio.Protocol):
    """One connection. Forwards its events to the protocol that serves it, if it is admitted."""

    def __init__(
        self, serving: asyncio.Protocol, admission: Admission, complaints: Complaints, patience_s: float
    ) -> None:
        self._serving = serving
        self._admission = admission
        self._complaints = complaints
        self._patience_s = patience_s
        self._address: str | None = None
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if peer else "unknown"
        why_not = self._admission.admit(address, is_broker=False)
        if why_not is not None:
            self._complaints.warn((address, why_not), "HTTP connection refused: too many", address=address, why=why_not)
            # Later events of the refused connection must not reach the application.
            self._serving = asyncio.Protocol()
            self._transport.abort()
            return
        self._address = address
        self._transport.set_write_buffer_limits(high=0)  # any byte that the client does not take pauses the writing
        self._serving.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if self._address is not None:
            self._admission.leave(self._address)
        self._serving.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._serving.data_received(data)

    def eof_received(self) -> bool | None:
        return self._serving.eof_received()

    def pause_writing(self) -> None:
        if self._transport is not None:
            self._deadline = asyncio.get_running_loop().call_later(self._patience_s, self._transport.abort)
        self._serving.pause_writing()

    def resume_writing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._serving.resume_writing()
