"""What TLS has a server say to a client whose handshake it does not take: an alert, which says why.

asyncio cuts the connection before that is sent. Clients of Java would take it for a fault of the network, and try again for
as long as they may, in place of telling their users. So the last words of a handshake are sent here, in the moment that it
fails.
"""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

_CONNECTION: Final = ContextVar[asyncio.WriteTransport]("connection")
"""What the handshake that begins in this context is on."""


@contextmanager
def alerting(transport: asyncio.WriteTransport) -> Iterator[None]:
    """For a handshake that begins in the block, with an `AlertingContext`."""
    token = _CONNECTION.set(transport)
    try:
        yield
    finally:
        _CONNECTION.reset(token)


class AlertingContext(ssl.SSLContext):
    """A server's, which sends alerts on the connection of `alerting`."""

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any) -> Any:
        """See `ssl.SSLContext.wrap_bio`."""
        return _Alerting(super().wrap_bio(incoming, outgoing, *args, **kwargs), outgoing, _CONNECTION.get())


class _Alerting:
    """An `ssl.SSLObject`, but for how its handshake fails."""

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
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, ssl.SSLSyscallError):
            raise
        except ssl.SSLError:
            self._transport.write(self._outgoing.read())
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)
