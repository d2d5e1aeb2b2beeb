"""Names of servers, resolved where a name server that hangs holds up nobody but who asks for that name.

The system's resolver blocks, for as long as its configuration says, and cannot be interrupted. So each name has a thread of
its own while it is resolved: in a pool that others use, a few names that hang would take all its threads, and every
connection would wait for them. Nothing is kept: a server that moved is found at its new address by whoever connects next.

A name is resolved once at a time. Who asks meanwhile waits for the same answer, so one that takes longer than anybody's
patience is still of use to the next. The threads do not keep a process from ending.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Final, TypeAlias

from controller_core.model.access import parse_address

MOST_AT_ONCE: Final = 1000
"""How many names are resolved at a time; a cluster has fewer brokers."""

Resolve: TypeAlias = Callable[[str], Iterable[str]]
"""All addresses of a host, as text. Raises `OSError`, and `UnicodeError` for a name that cannot be one."""


def resolve_host(host: str) -> list[str]:
    """By the system's resolver, in its order of preference. Blocks. Raises `OSError` and `UnicodeError`."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


class Names:
    """May be used from several event loops."""

    def __init__(self, resolve: Resolve = resolve_host) -> None:
        self._resolve = resolve
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[list[str]]] = {}

    async def addresses(self, host: str) -> list[str]:
        """All addresses of a host, the preferred first. Raises `OSError` and `UnicodeError`."""
        return await asyncio.wrap_future(self.looked_up(host))

    def looked_up(self, host: str) -> Future[list[str]]:
        """The same, for a thread that waits by itself."""
        literal = parse_address(host)
        if literal is not None:
            return _known(str(literal))
        with self._lock:
            found = self._under_way.get(host)
            if found is not None:
                return found
            if len(self._under_way) >= MOST_AT_ONCE:
                return _failed(OSError(f"{host} is not resolved now: {MOST_AT_ONCE} other names are"))
            return self._begin(host)

    def _begin(self, host: str) -> Future[list[str]]:
        found: Future[list[str]] = Future()
        found.set_running_or_notify_cancel()  # one who no longer waits must not cancel it for the others
        thread = threading.Thread(target=self._look_up, args=(host, found), daemon=True, name=f"name-{host}")
        try:
            thread.start()
        except RuntimeError as error:
            return _failed(OSError(f"{host} is not resolved now: {error}"))
        self._under_way[host] = found
        return found

    def _look_up(self, host: str, found: Future[list[str]]) -> None:
        try:
            addresses = list(self._resolve(host))
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            self._end(host)
            found.set_exception(error)
        else:
            self._end(host)
            found.set_result(addresses)

    def _end(self, host: str) -> None:
        with self._lock:
            del self._under_way[host]


def _known(address: str) -> Future[list[str]]:
    found: Future[list[str]] = Future()
    found.set_result([address])
    return found


def _failed(error: OSError) -> Future[list[str]]:
    found: Future[list[str]] = Future()
    found.set_exception(error)
    return found


NAMES: Final = Names()
"""Of this process."""
