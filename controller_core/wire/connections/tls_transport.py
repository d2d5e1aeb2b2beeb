"""The server's end of a TLS connection, with small buffers.

asyncio's `SSLProtocol` keeps a buffer of 256 KiB for each connection, from the first byte of a handshake on. Here bytes
are received and decrypted in buffers that all connections share, and OpenSSL is given one piece at a time: its own
buffers never shrink. The transport passes pressure on: it stops to receive if its stream is full, and its stream waits
until the kernel has taken what was written.
"""

import asyncio
import ssl
from contextlib import suppress
from typing import Any, Final

from controller_core.wire.connections.small_reads import SCRATCH

PIECE_BYTES: Final = 32 * 1024
"""Two TLS records. OpenSSL's buffers stay as large as the largest piece that they have had."""
MOST_HANDSHAKE_BYTES: Final = 64 * 1024
"""Limit of what a client sends in its handshake. A chain of certificates has some KiB."""


class TlsTransport(asyncio.Transport, asyncio.BufferedProtocol):
    """The protocol of a TCP transport, and the transport of another protocol, for the data inside of TLS.

    Call `shake_hands` before anything else. The data's protocol is connected when the handshake has succeeded.
    """

    def __init__(self, context: ssl.SSLContext, serving: asyncio.Protocol) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._serving = serving
        self._tcp: asyncio.Transport | None = None
        self._peer: Any = None
        self._shaken: asyncio.Future[None] = self._loop.create_future()
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._handshake_bytes = 0
        self._is_serving = False
        self._is_paused = False
        self._has_ended = False
        """True if the other side sends no more data."""
        self._is_closing = False
        self._error: Exception | None = None

    async def shake_hands(self) -> None:
        """Wait for the end of the handshake. Raises `OSError`; `ssl.SSLError`, which is one, if TLS failed."""
        await self._shaken

    async def wait_lost(self) -> None:
        """Wait until the TCP connection is closed."""
        await asyncio.shield(self._lost)

    # As the protocol of TCP:

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._tcp = transport
        self._peer = transport.get_extra_info("peername")

    def get_buffer(self, sizehint: int) -> memoryview:
        return SCRATCH.received

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_closing or self._error is not None:
            return  # bytes that are on their way are received, because the kernel would reset the connection otherwise
        self._incoming.write(SCRATCH.received[:nbytes])
        if not self._is_serving:
            self._handshake_bytes += nbytes
        self._go_on()

    def eof_received(self) -> bool:
        """See `asyncio.BufferedProtocol`. Frames have lengths, so a missing closing message hides nothing."""
        if self._is_closing or not self._is_serving:
            self._fail_handshake(ConnectionResetError("the client left during the handshake"))
            return False
        self._incoming.write_eof()
        self._go_on()
        return True

    def pause_writing(self) -> None:
        self._serving.pause_writing()

    def resume_writing(self) -> None:
        self._serving.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._fail_handshake(exc or ConnectionResetError("the client left during the handshake"))
        if self._is_serving:
            self._serving.connection_lost(self._error or exc)
        if not self._lost.done():
            self._lost.set_result(None)
        # Errors refer to this object by their tracebacks. Without these the memory of TLS is free at once.
        self._error, self._shaken, self._tcp = None, self._lost, None

    def _go_on(self) -> None:
        """Do what the received bytes allow."""
        try:
            if not self._is_serving:
                self._continue_handshake()
            if self._is_serving:
                self._decrypt()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            self._flush()  # the alert, which tells the client the reason
            self._error = error
            self._fail_handshake(error)
            if self._is_serving:
                self.abort()

    def _continue_handshake(self) -> None:
        if self._handshake_bytes > MOST_HANDSHAKE_BYTES:
            raise ssl.SSLError(f"its handshake has more than {MOST_HANDSHAKE_BYTES} bytes")
        self._tls.do_handshake()
        self._flush()
        self._is_serving = True
        self._serving.connection_made(self)
        if not self._shaken.done():
            self._shaken.set_result(None)

    def _decrypt(self) -> None:
        while not (self._is_paused or self._has_ended or self._is_closing):
            try:
                length = int(self._tls.read(len(SCRATCH.decrypted), SCRATCH.decrypted))  # its type says bytes
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                length = 0
            if not length:
                self._has_ended = True
                self._serving.eof_received()
                return
            self._serving.data_received(SCRATCH.decrypted[:length])  # type: ignore[arg-type]  # the stream copies it

    def _fail_handshake(self, error: Exception) -> None:
        if not self._shaken.done():
            self._shaken.set_exception(error)

    def _flush(self) -> None:
        if self._outgoing.pending:
            data = self._outgoing.read()
            if self._tcp is not None:
                self._tcp.write(data)

    # As the transport of the data:

    def write(self, data: Any) -> None:
        if self._is_closing or self._error is not None:
            return
        with memoryview(data) as whole:
            for offset in range(0, len(whole), PIECE_BYTES):
                self._tls.write(whole[offset : offset + PIECE_BYTES])
                self._flush()

    def pause_reading(self) -> None:
        self._is_paused = True
        if self._tcp is not None:
            self._tcp.pause_reading()

    def resume_reading(self) -> None:
        if not self._is_paused or self._is_closing:
            return
        self._is_paused = False
        self._go_on()
        if not self._is_paused and self._tcp is not None:
            self._tcp.resume_reading()

    def is_reading(self) -> bool:
        return not self._is_paused

    def close(self) -> None:
        """Send the closing message, and close when the other side has closed too. Abort it if that takes too long."""
        if self._is_closing:
            return
        self._is_closing = True
        with suppress(ssl.SSLError):  # the answer to the closing message has not arrived
            if self._error is None and self._is_serving:
                self._tls.unwrap()
        self._flush()
        if self._tcp is None:
            return
        if self._has_ended:
            self._tcp.close()
            return
        self._tcp.resume_reading()
        with suppress(OSError):
            self._tcp.write_eof()

    def abort(self) -> None:
        self._is_closing = True
        if self._tcp is not None:
            self._tcp.abort()

    def is_closing(self) -> bool:
        return self._is_closing

    def can_write_eof(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if self._tcp is not None:
            self._tcp.set_write_buffer_limits(high=high, low=low)

    def get_write_buffer_size(self) -> int:
        return 0 if self._tcp is None else self._tcp.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "peercert":
            return self._tls.getpeercert()
        known = {"ssl_object": self._tls, "sslcontext": self._tls.context, "peername": self._peer}
        if name in known:
            return known[name]
        return default if self._tcp is None else self._tcp.get_extra_info(name, default)
