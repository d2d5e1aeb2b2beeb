"""TLS alerts to clients whose handshake fails, which tell them the reason.

asyncio closes the connection before the alert is sent. A Java client would take that for a network error and retry
until its timeout, instead of reporting the real error to its user. So this module sends the pending bytes of a
handshake at the moment it fails.
"""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

_CONNECTION: Final = ContextVar[asyncio.WriteTransport]("connection")
"""The connection of the handshake that begins in this context."""


@contextmanager
def send_alerts_on(transport: asyncio.WriteTransport) -> Iterator[None]:
    """Make the handshake that begins in the block send its alerts on this transport. It needs an `AlertingContext`."""
    token = _CONNECTION.set(transport)
    try:
        yield
    finally:
        _CONNECTION.reset(token)


class AlertingContext(ssl.SSLContext):
    """A server's TLS context that sends alerts on the connection of `send_alerts_on`."""

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any) -> Any:
        """See `ssl.SSLContext.wrap_bio`."""
        return _Alerting(super().wrap_bio(incoming, outgoing, *args, **kwargs), outgoing, _CONNECTION.get())


class _Alerting:
    """An `ssl.SSLObject` that writes its alert to the connection if the handshake fails."""

    def __init__(self, wrapped: ssl.SSLObject, outgoing: ssl.MemoryBIO, transport: asyncio.WriteTransport) -> None:
        self._wrapped = wrapped
        self._outgoing = outgoing
        self._transport = transport
        self.read = wrapped.read
        self.write = wrapped.write

    def do_handshake(self) -> None:
        """See `ssl.SSLObject.do_handshake`."""
        try:
            self._wrapped.do_handshake()
        # These ask for more input or report a lost connection: there is no alert to send.
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, ssl.SSLSyscallError):
            raise
        except ssl.SSLError:
            self._transport.write(self._outgoing.read())
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)
