"""HTTP with limits, for every port of a process that speaks it: probes, metrics, the journal and the webhook.

The connections of an address and of all together are limited (`places`). A connection is closed if it is silent, if its
TLS handshake or a request's head takes too long or is too large, or if its client does not take its answer."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from controller_core.process.http_access.door import TokenUnreadable
from controller_core.process.http_access.places import OPEN_PLACES, Place, Places, get_places_of_process
from controller_core.supervision import start_task
from controller_core.wire.connections.tls_transport import TlsTransport
from controller_core.wire.limits.accepting import open_port
from controller_core.wire.limits.complaints import Complaints
from controller_core.wire.listener.refusals import Port, Reason, Refusals

log = structlog.get_logger()

PATIENCE_S: Final = 30.0
"""Seconds for a TLS handshake, for a request's head, until the next request begins, and for a part of an answer to be
taken."""
MOST_HEAD_BYTES: Final = 16 << 10
MOST_BYTES: Final = 16 << 20
"""Limit of a request with its body. A port whose requests have no body has the limit of a head."""
_MOST_FIELD_BYTES: Final = 4 << 10
_MOST_FIELDS: Final = 64
_GOODBYE_S: Final = 1.0
"""Seconds for what is under way when the server stops or closes a connection."""

_REASONS: Final[Mapping[type[web.HTTPException], Reason]] = {
    web.HTTPBadRequest: Reason.BYTES,
    web.HTTPForbidden: Reason.RIGHT,
    web.HTTPRequestEntityTooLarge: Reason.BYTES,
    web.HTTPServiceUnavailable: Reason.LIMIT,
    web.HTTPUnauthorized: Reason.LOGIN,
    TokenUnreadable: Reason.LOGIN,
}
"""The reasons of raised refusals. A probe returns its 503, which is no refusal."""

FindContext: TypeAlias = Callable[[], ssl.SSLContext]
_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def serve_http(
    application: web.Application,
    host: str | None,
    port: int,
    *,
    tls: ssl.SSLContext | FindContext | None = None,
    most_bytes: int = MOST_BYTES,
    places: Places | None = None,
    patience_s: float = PATIENCE_S,
    refusals: Refusals | None = None,
) -> Callable[[], Awaitable[None]]:
    """Serve an application; return the function that stops it. Raises `OSError` if the port is taken.

    With `tls` the port is HTTPS; a function is asked for each connection. `places`: by default those of the process.
    `refusals`: those of the process."""
    refusals = refusals or Refusals()
    places = places if places is not None else get_places_of_process()

    @web.middleware
    async def note_progress(request: web.Request, handler: _Handler) -> web.StreamResponse:
        if (place := OPEN_PLACES.get(request.protocol)) is not None:
            place.unanswered_bytes = 0
            places.note_progress(place)
        try:
            return await handler(request)
        except web.HTTPException as refusal:
            if (reason := _REASONS.get(type(refusal))) is not None:
                refusals.count(reason, Port.HTTP)
            raise
        except ConnectionResetError as error:
            if request.transport is not None:
                raise
            raise web.HTTPBadRequest from error  # the client has left, and gets no answer

    application.middlewares.insert(0, note_progress)
    complaints = Complaints(log)
    runner = web.AppRunner(
        application,
        access_log=None,
        logger=_make_logger(complaints, refusals),
        keepalive_timeout=patience_s,
        lingering_time=_GOODBYE_S,
        shutdown_timeout=_GOODBYE_S,
        max_line_size=_MOST_FIELD_BYTES,
        max_field_size=_MOST_FIELD_BYTES,
        max_headers=_MOST_FIELDS,
    )
    await runner.setup()
    serve = cast("Callable[[], asyncio.Protocol]", runner.server)
    limits = _Limits(serve, places, complaints, refusals, most_bytes, patience_s)
    opening: set[_Connection] = set()

    def take(accepted: socket.socket, address: str) -> None:
        connection = _Connection(limits, address)
        if limits.places.take(connection.place) is not None:
            limits.refuse(Reason.LIMIT, address, "HTTP connections closed to make room: there are too many")
        opening.add(connection)
        connection.open(accepted, tls() if callable(tls) else tls, lambda: opening.discard(connection))

    try:
        accepting = await open_port(host, port, take)
    except OSError:
        await runner.cleanup()
        raise

    async def stop() -> None:
        accepting.close()
        for connection in [*opening]:
            connection.close()
        await runner.cleanup()

    return stop


class _MalformedRequests(logging.Filter):
    """Replaces the tracebacks of requests that are no HTTP by one line a minute: strangers choose their number."""

    def __init__(self, complaints: Complaints, refusals: Refusals) -> None:
        super().__init__()
        self._complaints = complaints
        self._refusals = refusals

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter`."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, HttpProcessingError):
            return record.levelno >= logging.WARNING
        event = "HTTP request refused: it is malformed, or a part of its head is too large"
        self._complaints.warn(event, event, kind=type(error).__name__)
        self._refusals.count(Reason.BYTES, Port.HTTP)
        return False


def _make_logger(complaints: Complaints, refusals: Refusals) -> logging.Logger:
    """Return the logger of a port, for aiohttp."""
    logger = logging.Logger("aiohttp.server", logging.DEBUG)  # bytes that are no HTTP at all are at this level
    logger.parent = logging.getLogger(logger.name)
    logger.addFilter(_MalformedRequests(complaints, refusals))
    return logger


@dataclass(frozen=True, slots=True)
class _Limits:
    """The limits of all connections of a port."""

    serve: Callable[[], asyncio.Protocol]
    """Returns the protocol that serves a connection."""
    places: Places
    complaints: Complaints
    refusals: Refusals
    most_bytes: int
    patience_s: float

    def refuse(self, reason: Reason | None, address: str, event: str, **values: object) -> None:
        """Count a refusal, and log it once a minute for all addresses: a stranger may have many. Without a reason it
        is only logged."""
        if reason is not None:
            self.refusals.count(reason, Port.HTTP)
        self.complaints.warn(event, event, address=address, **values)


class _Tls(TlsTransport):
    """Waits only a moment for the other side's closing message."""

    def close(self) -> None:
        """See `asyncio.WriteTransport`."""
        super().close()
        asyncio.get_running_loop().call_later(_GOODBYE_S, self.abort)


class _Connection(asyncio.Protocol):
    """One connection. Forwards its events to the protocol that serves it."""

    def __init__(self, limits: _Limits, address: str) -> None:
        self.place: Final = Place(address, self.close)
        self._limits = limits
        self._opening: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._serving = asyncio.Protocol()
        self._deadline: asyncio.TimerHandle | None = None

    def open(self, accepted: socket.socket, context: ssl.SSLContext | None, on_opened: Callable[[], object]) -> None:
        """Begin to serve an accepted socket, after a TLS handshake if there is a context."""

        def end_opening(_: object) -> None:
            on_opened()
            if self._transport is None:  # it lost its place, failed its handshake, or left before
                self._limits.places.give_back(self.place)
                accepted.close()

        self._opening = start_task(self._open(accepted, context), name=f"HTTP connection of {self.place.address}")
        self._opening.add_done_callback(end_opening)

    async def _open(self, accepted: socket.socket, context: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        if context is None:
            await loop.connect_accepted_socket(lambda: self, accepted)
            return
        tls = _Tls(context, self)
        await loop.connect_accepted_socket(lambda: tls, accepted)
        try:
            async with asyncio.timeout(self._limits.patience_s):
                await tls.shake_hands()
        except asyncio.CancelledError:
            tls.abort()
            raise
        except OSError as error:  # ssl.SSLError and TimeoutError are some
            why = (isinstance(error, ssl.SSLError) and error.reason) or "it left, or took too long"
            reason = Reason.TLS if isinstance(error, ssl.SSLError) else None
            self._limits.refuse(reason, self.place.address, "HTTPS connection closed: no TLS", why=why)
            tls.close()
            await tls.wait_lost()

    def close(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()
        elif self._opening is not None:
            self._opening.cancel()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._serving = self._limits.serve()
        OPEN_PLACES[self._serving] = self.place
        self._serving.connection_made(transport)
        # Bytes that the client does not take pause the writing: with TLS also now, so the protocol must be connected.
        # With 0, TLS would pause it when nothing is written.
        self._transport.set_write_buffer_limits(high=1)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._limits.places.give_back(self.place)
        OPEN_PLACES.pop(self._serving, None)
        self._serving.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.place.unanswered_bytes += len(data)
        if self.place.unanswered_bytes > self._limits.most_bytes:
            self._limits.refuse(Reason.BYTES, self.place.address, "HTTP connection closed: its request is too large")
            self.close()
            return
        self._serving.data_received(bytes(data))  # TLS gives a part of a buffer that it uses again

    def eof_received(self) -> bool | None:
        keeps_open = self._serving.eof_received()
        if not keeps_open and self._transport is not None:
            self._transport.close()
        return keeps_open

    def pause_writing(self) -> None:
        if self._transport is not None:
            self._deadline = asyncio.get_running_loop().call_later(self._limits.patience_s, self._transport.abort)
        self._serving.pause_writing()

    def resume_writing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._limits.places.note_progress(self.place)
        self._serving.resume_writing()
