"""The addresses that registered brokers connect from: those of the hosts in all their listeners.

Names are resolved outside of the event loop (`controller_core.names`), each on its own, so a hanging one delays nobody.
A connection from an unknown address triggers a new resolution, because a moved broker has a new address; but only every
few seconds, unless a name is new. The connection waits for the result, and is not refused on old data. A name that
cannot be resolved keeps its former addresses. A machine has several addresses, and a local connection may come from any
of them: a host may resolve to 127.0.1.1, and its broker connect from 127.0.0.1. So if a broker runs on the controller's
machine, all addresses of that machine count as a broker's.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Collection, Set
from typing import Final

import structlog

from controller_core.model.access import Address, parse_address
from controller_core.names import NAMES, Names
from controller_core.supervision import start_task

log = structlog.get_logger()

MIN_INTERVAL_S: Final = 2.0
"""Seconds between two resolutions that unknown addresses trigger."""
MAX_AGE_S: Final = 60.0
"""Seconds until names are resolved again without an unknown address, because an address may belong to somebody else by
then."""
PATIENCE_S: Final = 5.0
"""Seconds that a connection from an unknown address waits for a resolution, and that a name is waited for."""

Hosts = Callable[[], Collection[str]]


def is_of_this_machine(address: Address) -> bool:
    """Return True if a connection from this address comes from this machine. Nothing is sent.

    The kernel would send from an own address to itself. Other loopback addresses than 127.0.0.1 are nobody's unless
    chosen on purpose, to tell clients apart.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return parse_address(probe.getsockname()[0]) == address
    except OSError:  # no route to the address
        return False


class BrokerAddresses:
    """The addresses of the hosts that are registered at the moment."""

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

    async def look_up(self, address: Address) -> Set[Address]:
        """Return the known addresses, after a new resolution if the address is unknown."""
        known = self.look(address)
        while address not in known and self._resolving is not None:
            resolved, _ = await asyncio.wait((self._resolving,), timeout=PATIENCE_S)
            if not resolved or self._list_registered() <= self._resolved:
                return self._list_known(address)
            known = self.look(address)  # a host has registered since that resolution began, so this begins another one
        return known

    def look(self, address: Address) -> Set[Address]:
        """Return the known addresses. Start a new resolution if the address is unknown or the addresses are old."""
        known = self._list_known(address)
        age_s = self._now_s() - self._resolved_s
        names = self._list_registered()
        if address not in known and names:
            self._begin(0.0 if names - self._resolved else max(0.0, self._min_interval_s - age_s))
        elif age_s >= MAX_AGE_S:
            self._begin(0.0)
        return known

    def _list_known(self, address: Address) -> Set[Address]:
        found: set[Address] = set()
        for host in set(self._hosts()):
            literal = parse_address(host)
            found |= self._of_name.get(host, frozenset()) if literal is None else {literal}
        # Any address of this machine counts as a broker's if a broker runs on it.
        if (
            address not in found
            and self._is_own(address)
            and any(one.is_loopback or self._is_own(one) for one in found)
        ):
            found.add(address)
        return found

    def _list_registered(self) -> frozenset[str]:
        return frozenset(host for host in self._hosts() if parse_address(host) is None)

    def _begin(self, pause_s: float) -> None:
        if self._resolving is None:
            self._resolving = start_task(self._resolve_all(pause_s), name="resolving brokers' names")
            self._resolving.add_done_callback(self._on_resolved)

    def _on_resolved(self, _: asyncio.Task[None]) -> None:
        self._resolving = None

    async def _resolve_all(self, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        self._resolved_s, self._resolved = self._now_s(), self._list_registered()
        self._of_name = {name: self._of_name[name] for name in self._resolved if name in self._of_name}
        await asyncio.gather(*map(self._resolve_one, self._resolved))

    async def _resolve_one(self, name: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await self._names.addresses(name)
        except (OSError, UnicodeError) as error:  # an invalid name raises a UnicodeError
            log.info(
                "a broker's host cannot be resolved", host=name, error=str(error) or "the name server does not answer"
            )
            return
        self._of_name[name] = frozenset(address for text in found if (address := parse_address(text)) is not None)
