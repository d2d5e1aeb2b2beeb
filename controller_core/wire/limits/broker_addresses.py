"""From which addresses registered brokers connect: those of the hosts that they registered, on all their listeners.

Names are resolved beside the event loop (`controller_core.names`), each for itself: one for which the name server hangs is
given up for now, and holds up nobody who connects to a broker, nor the other names. What they resolve to is kept. When
somebody comes from an address that is not known, all are resolved anew, as a broker that moved has another one; but not
more often than every few seconds, whoever comes, unless a name is new. Who comes too early waits for it: nobody is
refused for what was known before. Where a name cannot be resolved now, what it was before holds.

A machine has several addresses, and which of them a connection within it comes from depends on how it was made: a host
may resolve to 127.0.1.1, and its broker connect from 127.0.0.1 or from the address of a network. So where a broker is on
the controller's own machine, all of that machine is a broker's.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Collection, Set
from typing import Final

import structlog

from controller_core.model.access import Address, parse_address
from controller_core.names import NAMES, Names
from controller_core.supervision import noticed

log = structlog.get_logger()

MIN_INTERVAL_S: Final = 2.0
"""Between two times that names are resolved because of an address that is not known."""
MAX_AGE_S: Final = 60.0
"""After so long names are resolved anew although all who come are known: an address may belong to somebody else by now."""
PATIENCE_S: Final = 5.0
"""How long one who comes from an unknown address waits for that, and a name is waited for."""

Hosts = Callable[[], Collection[str]]


def is_of_this_machine(address: Address) -> bool:
    """Whether what comes from the address comes from this machine. Nothing is sent: what goes to an own address would come
    from it. A loopback address other than 127.0.0.1 is nobody's who did not choose it, to be distinguished from others."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return parse_address(probe.getsockname()[0]) == address
    except OSError:  # there is no way there
        return False


class BrokerAddresses:
    """The addresses of the hosts that are registered at each moment."""

    def __init__(
        self,
        hosts: Hosts,
        *,
        names: Names = NAMES,
        is_own: Callable[[Address], bool] = is_of_this_machine,
        now_s: Callable[[], float] = time.monotonic,
        min_interval_s: float = MIN_INTERVAL_S,
    ) -> None:
        self._hosts = hosts
        self._names = names
        self._is_own = is_own
        self._now_s = now_s
        self._min_interval_s = min_interval_s
        self._of_name: dict[str, frozenset[Address]] = {}
        self._resolved: frozenset[str] = frozenset()
        self._resolved_s = -MAX_AGE_S
        self._resolving: asyncio.Task[None] | None = None

    async def looked_up(self, address: Address) -> Set[Address]:
        """What is known, after names were resolved anew where the address is unknown."""
        known = self.look(address)
        if address not in known and self._resolving is not None:
            await asyncio.wait((self._resolving,), timeout=PATIENCE_S)
            return self._known(address)
        return known

    def look(self, address: Address) -> Set[Address]:
        """What is known now; names begin to be resolved anew where the address is unknown, or what is known is old."""
        known = self._known(address)
        age_s = self._now_s() - self._resolved_s
        names = self._registered()
        if address not in known and names:
            self._begin(0.0 if names - self._resolved else max(0.0, self._min_interval_s - age_s))
        elif age_s >= MAX_AGE_S:
            self._begin(0.0)
        return known

    def _known(self, address: Address) -> Set[Address]:
        found: set[Address] = set()
        for host in set(self._hosts()):
            literal = parse_address(host)
            found |= self._of_name.get(host, frozenset()) if literal is None else {literal}
        if (
            address not in found
            and self._is_own(address)
            and any(one.is_loopback or self._is_own(one) for one in found)
        ):
            found.add(address)
        return found

    def _registered(self) -> frozenset[str]:
        return frozenset(host for host in self._hosts() if parse_address(host) is None)

    def _begin(self, pause_s: float) -> None:
        if self._resolving is None:
            self._resolving = noticed(self._resolve_all(pause_s), name="resolving brokers' names")
            self._resolving.add_done_callback(self._ended)

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._resolving = None

    async def _resolve_all(self, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        self._resolved_s, self._resolved = self._now_s(), self._registered()
        self._of_name = {name: self._of_name[name] for name in self._resolved if name in self._of_name}
        await asyncio.gather(*map(self._resolve_one, self._resolved))

    async def _resolve_one(self, name: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await self._names.addresses(name)
        except (OSError, UnicodeError) as error:  # a name that cannot be one is a UnicodeError
            log.info("a broker's host has no address now", host=name, error=str(error) or "it takes too long")
            return
        self._of_name[name] = frozenset(address for text in found if (address := parse_address(text)) is not None)
