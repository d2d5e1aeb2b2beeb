"""Resolves names of servers in such a way that a hanging name server delays only the callers who need that name.

The system's resolver blocks as long as its configuration says, and cannot be interrupted. So each name is resolved in a
thread of its own: in a shared pool a few hanging names would occupy all threads and delay every connection. Nothing is
cached, so a server that moved is found at its new address by the next connection.

Concurrent requests for a name share one lookup, so even a lookup that outlasts one caller's timeout serves the next.
The threads are daemons: they do not keep a process from ending."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Final, TypeAlias

from controller_core.model.access import parse_address

MOST_AT_ONCE: Final = 1000
"""Names that are resolved at the same time. A cluster has fewer brokers."""

Resolve: TypeAlias = Callable[[str], Iterable[str]]
"""Returns all addresses of a host, as text. Raises `OSError`, and `UnicodeError` for an impossible name."""


def resolve_host(host: str) -> list[str]:
    """Resolve a host by the system's resolver, in its order of preference. Blocks. Raises `OSError` and
    `UnicodeError`."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


class Names:
    """A resolver of names, for use from any thread or event loop."""

    def __init__(self, resolve: Resolve = resolve_host) -> None:
        self._resolve = resolve
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[list[str]]] = {}

    async def addresses(self, host: str) -> list[str]:
        """Return all addresses of a host, the preferred one first. Raises `OSError` and `UnicodeError`."""
        return await asyncio.wrap_future(self.look_up(host))

    def look_up(self, host: str) -> Future[list[str]]:
        """Return a future of all addresses, for a thread that waits without an event loop."""
        literal = parse_address(host)
        if literal is not None:
            return _make_result(str(literal))
        with self._lock:
            found = self._under_way.get(host)
            if found is not None:
                return found
            if len(self._under_way) >= MOST_AT_ONCE:
                return _make_failure(OSError(f"{host} is not resolved: {MOST_AT_ONCE} other names are being resolved"))
            return self._begin(host)

    def _begin(self, host: str) -> Future[list[str]]:
        found: Future[list[str]] = Future()
        found.set_running_or_notify_cancel()  # a caller that gives up must not cancel it for the others
        thread = threading.Thread(target=self._look_up, args=(host, found), daemon=True, name=f"name-{host}")
        try:
            thread.start()
        except RuntimeError as error:
            return _make_failure(OSError(f"{host} is not resolved: {error}"))
        self._under_way[host] = found
        return found

    def _look_up(self, host: str, found: Future[list[str]]) -> None:
        try:
            addresses = list(self._resolve(host))
        except Exception as error:  # noqa: BLE001 - the waiting callers get it
            self._end(host)
            found.set_exception(error)
        else:
            # Forget the lookup first, so that a caller that retries after the result starts a new one.
            self._end(host)
            found.set_result(addresses)

    def _end(self, host: str) -> None:
        with self._lock:
            del self._under_way[host]


def _make_result(address: str) -> Future[list[str]]:
    found: Future[list[str]] = Future()
    found.set_result([address])
    return found


def _make_failure(error: OSError) -> Future[list[str]]:
    found: Future[list[str]] = Future()
    found.set_exception(error)
    return found


NAMES: Final = Names()
"""The resolver of this process."""
