"""Polls one cluster with a client of its own, with a pause after each poll.

If a broker is gone, the next one is asked. During a pause a broker is asked now and then for the length of the
controllers' log, which costs next to nothing; if that indicates a change, the next poll comes sooner."""

import asyncio
from collections import deque
from collections.abc import Callable, Set
from contextlib import suppress
from typing import Final

import structlog

from controller_core.client.errors import AdminError, NotAnsweredError, OutcomeUnknown, Unreachable
from controller_core.client.transport.kept_client import KeptClient
from controller_core.client.transport.request_client import Address
from controller_core.model.ids import TopicName
from controller_core.polling.known_cluster import KnownCluster
from controller_core.polling.looking import Looking
from controller_core.polling.pace import Credit, Pace
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.codecs.decoding import Undecodable

OpenKept = Callable[[], tuple[KeptClient, str]]
"""Opens a client of the cluster, and returns it with the security protocol of its brokers. Raises `InvalidProperties`,
and `ValueError` for an invalid address."""

_LOOKS_TIMED: Final = 8
_PEEK_S: Final = 0.37
"""Not a divisor of the half second after which controllers write something, so that each check hits another moment of
it."""
_log = structlog.get_logger(__name__)


class LookFailed(AdminError):
    """Nothing was seen, or not everything. Retriable: another poll may succeed. The cause has the reason."""


class PacedLooks:
    """The polls of one cluster. `close` them at the end."""

    def __init__(self, open_kept: OpenKept, *, pace: Pace | None = None) -> None:
        self.answers = 0
        """The number of answers in successful polls."""
        self._open_kept = open_kept
        self._pace = pace or Pace()
        self._opened: tuple[KeptClient, str] | None = None
        self._looking = Looking()
        self._looks_s: deque[float] = deque(maxlen=_LOOKS_TIMED)
        """Seconds that the last polls waited for answers, without searches. The shortest is the best estimate of a
        poll's cost."""
        self._quiet = self._failures = 0
        self._credit = Credit()
        """The budget for early polls after a change."""
        self._is_early = False

    @property
    def known(self) -> KnownCluster:
        """Everything that was heard."""
        return self._looking.known

    @property
    def servers(self) -> tuple[Address, ...]:
        """The servers to ask, those that answer first. Empty before the first poll."""
        return () if self._opened is None else self._opened[0].servers

    async def rest(self, woken: asyncio.Event) -> None:
        """Return at the time of the next poll, earlier after a change, and at once when `woken` is set."""
        time = asyncio.get_running_loop().time
        began_s = time()
        due_s = began_s + self._pause_s()
        self._is_early = False
        while (left_s := due_s - time()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, _PEEK_S)):
                    await woken.wait()
                return
            if left_s > _PEEK_S and not self._is_early and await self._has_changed():
                self._is_early = True
                due_s = min(due_s, began_s + self._pace.while_moving_s)

    def _pause_s(self) -> float:
        """Return the pause after the last poll if nothing changes."""
        if self._failures:
            return self._pace.pause_after_failures_s(self._failures)
        return self._pace.pause_s(look_s=min(self._looks_s), quiet_looks=self._quiet, is_moving=bool(self.known.moves))

    async def _has_changed(self) -> bool:
        """Return True if there seems to be a change and the budget allows an early poll. Errors are left to the next
        due poll."""
        if self._failures or self._opened is None or not self._credit.is_left(asyncio.get_running_loop().time()):
            return False
        try:
            return await self._looking.has_changed(self._opened[0])
        except (AdminError, Undecodable) as error:
            _log.info("unknown whether anything has changed", error=str(error))
            return False

    async def look(self, touched: Set[TopicName] = frozenset(), *, is_waited_for: bool = False) -> None:
        """Ask for everything and store it; see `Looking.look`. Raises `LookFailed`."""
        try:
            self._opened = client, protocol = self._opened or self._open_kept()
            waited_s, answers = client.waited_s - self._looking.searched_s, client.answers
            await self._look(client, protocol, touched, is_waited_for=is_waited_for)
        except Exception as error:
            self._failures += 1
            # The security settings may be the problem: a broker with logins closes a connection without one.
            if isinstance(error, NotAnsweredError) or not isinstance(error, OutcomeUnknown | Unreachable):
                self.close()
            if isinstance(error, AdminError | InvalidProperties | Undecodable | ValueError):
                raise LookFailed(str(error) or type(error).__name__) from error
            raise
        self._failures = 0
        self.answers += client.answers - answers
        self._looks_s.append(client.waited_s - self._looking.searched_s - waited_s)
        if self._is_early:
            self._credit.use(self._looks_s[-1])
        self._quiet = 0 if self.known.has_news else self._quiet + 1

    async def _look(self, client: KeptClient, protocol: str, touched: Set[TopicName], *, is_waited_for: bool) -> None:
        try:
            await self._looking.look(client, protocol, touched, is_waited_for=is_waited_for)
        except (OutcomeUnknown, Unreachable) as error:
            _log.info("another broker is asked", now=str(client.server), error=str(error))
            try:
                await self._looking.look(client, protocol, touched, is_waited_for=is_waited_for)
            except Unreachable:
                if isinstance(error, NotAnsweredError):
                    raise error from None  # a broker that refuses to answer says more than one that is gone
                raise

    def close(self) -> None:
        """Close the connection. Another poll would open a new one."""
        if self._opened is not None:
            self._opened[0].close()
            self._opened = None
