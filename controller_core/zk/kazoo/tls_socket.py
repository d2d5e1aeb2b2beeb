"""A TLS connection that kazoo's loop can wait for: readable means that decrypted data is available.

kazoo selects on the raw socket, which does not show data that is already decrypted. So an answer that came in one
record with another would wait for the next record. A raw socket may also be readable without an answer, for example
with TLS 1.3 session tickets, and kazoo would block on it and send nothing. So everything that arrived is decrypted at
once, and the connection counts as readable if there is some of it.
"""

import ssl
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final, TypeAlias

_PIECE_BYTES: Final = 1 << 16
_ENOUGH_BYTES: Final = 1 << 20
"""Limit of the decrypted data. The rest of a larger answer waits in the socket."""

Ready: TypeAlias = tuple[list[Any], list[Any], list[Any]]
Select: TypeAlias = Callable[[Sequence[Any], Sequence[Any], Sequence[Any], float | None], Ready]


class TlsSocket:
    """The part of a socket's interface that kazoo uses, over TLS. Used by one thread."""

    def __init__(self, tls: ssl.SSLSocket) -> None:
        self._tls = tls
        self._arrived = bytearray()
        self._end: OSError | None = None
        self._is_at_end = False

    def fileno(self) -> int:
        return self._tls.fileno()

    def setblocking(self, blocking: bool) -> None:
        self._tls.setblocking(blocking)

    def close(self) -> None:
        self._tls.close()

    def send(self, data: bytes) -> int:
        """Send like a socket that does not block. Raises `ssl.SSLError` if it would block."""
        return self._tls.send(data)

    def recv(self, size: int) -> bytes:
        """Receive like a socket that does not block; empty at the end. Raises `OSError`."""
        if not self.has_arrived():
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "nothing has arrived")
        if self._arrived:
            taken = bytes(self._arrived[:size])
            del self._arrived[:size]
            return taken
        if self._end is not None:
            raise self._end
        return b""

    def pending(self) -> int:
        """Return the number of bytes that can certainly be read without waiting."""
        return len(self._arrived)

    def has_arrived(self) -> bool:
        """Return True if there is something to read: data, the end, or an error. Does not wait."""
        if not self._arrived:
            self._take_in()
        return bool(self._arrived) or self._is_at_end

    def _take_in(self) -> None:
        while not self._is_at_end and len(self._arrived) < _ENOUGH_BYTES:
            try:
                piece = self._tls.recv(_PIECE_BYTES)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            except OSError as error:
                self._end, self._is_at_end = error, True
            else:
                self._arrived += piece
                self._is_at_end = not piece


def select_with_tls(
    select: Select, readers: Sequence[Any], writers: Sequence[Any], errors: Sequence[Any], timeout_s: float | None
) -> Ready:
    """Return the ready sockets like `select`, if some of the readers may be `TlsSocket`s."""
    if not any(isinstance(reader, TlsSocket) for reader in readers):
        return select(readers, writers, errors, timeout_s)
    deadline_s = None if timeout_s is None else monotonic() + timeout_s
    while True:
        arrived = [reader for reader in readers if isinstance(reader, TlsSocket) and reader.has_arrived()]
        left_s = 0.0 if arrived else None if deadline_s is None else max(deadline_s - monotonic(), 0.0)
        # If decrypted data is waiting, only poll: the raw sockets may never become readable.
        ready, writable, wrong = select(readers, writers, errors, left_s)
        ready = [
            reader for reader in readers if (reader.has_arrived() if isinstance(reader, TlsSocket) else reader in ready)
        ]
        if ready or writable or wrong or left_s == 0.0:
            return ready, writable, wrong
