"""A TLS connection as kazoo's loop can wait for it: what has arrived is what can be read.

kazoo waits for the socket below, which says nothing of what is decrypted already: answers that came in one record would
wait for the next one to arrive. And where that socket has something that is no answer, as the tickets of TLS 1.3, kazoo
would wait for an answer in the middle of it and send nothing meanwhile. So all that has arrived is decrypted at once, and
the connection is ready when there is some of it.
"""

import ssl
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final, TypeAlias

_PIECE_BYTES: Final = 1 << 16
_ENOUGH_BYTES: Final = 1 << 20
"""Where an answer is larger, the rest of it waits in the socket."""

Ready: TypeAlias = tuple[list[Any], list[Any], list[Any]]
Select: TypeAlias = Callable[[Sequence[Any], Sequence[Any], Sequence[Any], float | None], Ready]


class TlsSocket:
    """What kazoo needs of a socket, over TLS. Used by one thread."""

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
        """As a socket that does not block: raises `ssl.SSLError` where it would."""
        return self._tls.send(data)

    def recv(self, size: int) -> bytes:
        """As a socket that does not block; empty at the end. Raises `OSError`."""
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
        """How many bytes can be read without waiting, at least."""
        return len(self._arrived)

    def has_arrived(self) -> bool:
        """Whether there is something to read: content, the end, or an error. Does not wait."""
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
    """What is ready, as `select` says it, where some of the readers may be `TlsSocket`s."""
    if not any(isinstance(reader, TlsSocket) for reader in readers):
        return select(readers, writers, errors, timeout_s)
    deadline_s = None if timeout_s is None else monotonic() + timeout_s
    while True:
        arrived = [reader for reader in readers if isinstance(reader, TlsSocket) and reader.has_arrived()]
        left_s = 0.0 if arrived else None if deadline_s is None else max(deadline_s - monotonic(), 0.0)
        ready, writable, wrong = select(readers, writers, errors, left_s)
        ready = [
            reader for reader in readers if (reader.has_arrived() if isinstance(reader, TlsSocket) else reader in ready)
        ]
        if ready or writable or wrong or left_s == 0.0:
            return ready, writable, wrong
