"""From which addresses registered brokers connect: those of the hosts that they registered, on all their listeners.

Names are resolved beside the event loop, by threads of their own: a name server that is slow holds up nobody who
connects to a broker. What they resolve to is kept. When somebody comes from an address that is not known, all are
resolved anew, as a broker that moved has another one; but not more often than every few seconds, whoever comes. Where
a name cannot be resolved now, what it was before holds.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Collection, Iterable, Set
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from controller_core.model.access import Address, parse_address
from controller_core.supervision import noticed

log = structlog.get_logger()

MIN_INTERVAL_S: Final = 2.0
"""Between two times that names are resolved because of an address that is not known."""
MAX_AGE_S: Final = 60.0
"""After so long names are resolved anew although all who come are known: an address may belong to somebody else by now."""
PATIENCE_S: Final = 3.0
"""How long one who comes from an unknown address waits for that."""
_THREADS: Final = ThreadPoolExecutor(max_workers=4, thread_name_prefix="broker-names")

Hosts = Callable[[], Collection[str]]
Resolve = Callable[[str], Iterable[str]]


def resolve_host(host: str) -> list[str]:
    """All addresses of a host. Raises `OSError`."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


class BrokerAddresses:
    """The addresses of the hosts that are registered at each moment."""

    def __init__(
        self, hosts: Hosts, *, resolve: Resolve = resolve_host, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._hosts = hosts
        self._resolve = resolve
        self._now_s = now_s
        self._of_name: dict[str, frozenset[Address]] = {}
        self._resolved_s: float | None = None
        self._resolving: asyncio.Task[None] | None = None

    def known(self) -> Set[Address]:
        """What is known now."""
        found: set[Address] = set()
        for host in set(self._hosts()):
            literal = parse_address(host)
            found |= self._of_name.get(host, frozenset()) if literal is None else {literal}
        return found

    async def looked_up(self, address: Address) -> Set[Address]:
        """What is known, after names were resolved anew where the address is unknown, or what is known is old."""
        known = self.look(address)
        if address not in known and self._resolving is not None:
            await asyncio.wait((self._resolving,), timeout=PATIENCE_S)
            return self.known()
        return known

    def look(self, address: Address) -> Set[Address]:
        """What is known now; names begin to be resolved anew where the address is unknown, or what is known is old."""
        known = self.known()
        age_s = None if self._resolved_s is None else self._now_s() - self._resolved_s
        if age_s is None or age_s >= (MAX_AGE_S if address in known else MIN_INTERVAL_S):
            self._begin()
        return known

    def _begin(self) -> None:
        if self._resolving is None:
            self._resolved_s = self._now_s()
            self._resolving = noticed(self._resolve_all(), name="resolving brokers' names")
            self._resolving.add_done_callback(self._ended)

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._resolving = None

    async def _resolve_all(self) -> None:
        names = [host for host in set(self._hosts()) if parse_address(host) is None]
        self._of_name = {name: self._of_name[name] for name in names if name in self._of_name}
        await asyncio.gather(*map(self._resolve_one, names))

    async def _resolve_one(self, name: str) -> None:
        try:
            found = await asyncio.get_running_loop().run_in_executor(_THREADS, lambda: list(self._resolve(name)))
        except (OSError, UnicodeError) as error:  # a name that cannot be one is a UnicodeError
            log.info("a broker's host has no address now", host=name, error=str(error))
            return
        self._of_name[name] = frozenset(address for text in found if (address := parse_address(text)) is not None)
