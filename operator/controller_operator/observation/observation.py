"""What is known of a cluster at one moment, who is told of it, and who waits for it to be read again.

Both who watches ZooKeeper and who asks brokers keep an `Observations`: the last one, those that listen, and those that
wait for a view which shows all that was done before they asked.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from controller_core.zk.session import ZkError
from controller_operator.kafka.cluster_view import ClusterView
from controller_operator.resources.conditions import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What is known of a cluster now. `view` is None until everything was read once."""

    view: ClusterView | None = None
    trouble: str | None = None
    """Why the view may be out of date, or None where it is current."""
    reason: Reason = Reason.ZOOKEEPER_UNAVAILABLE
    """What kind of trouble."""
    is_being_read: bool = False
    """The only trouble is that there is so much to read, or that nobody was asked yet."""
    lag_s: float | None = None
    """Seconds from the first sign of a change to this view."""

    @property
    def next_version(self) -> int:
        """Of the view after this one."""
        return self.view.version + 1 if self.view else 1


class NotCurrent(ZkError):
    """The cluster cannot be read at present. Retriable."""


class Observations:
    """Of one cluster. Listeners are called on the event loop and must not block."""

    def __init__(self, first: Observation) -> None:
        self._last = first
        self._changed = asyncio.Condition()
        self._listeners: list[Callable[[Observation], None]] = []
        self._asked = self._done = 0
        self._in_vain: tuple[int, str] = (0, "")
        """How many refreshes were asked for when it was found that there can be none now, and why."""

    @property
    def last(self) -> Observation:
        return self._last

    @property
    def asked(self) -> int:
        """How often a refresh was asked for."""
        return self._asked

    @property
    def is_waited_for(self) -> bool:
        """Whether a refresh was asked for that is not done."""
        return self._asked != self._done

    def add_listener(self, listener: Callable[[Observation], None]) -> None:
        """Calls the listener with every new observation."""
        self._listeners.append(listener)

    async def tell(self, observation: Observation) -> None:
        """This is the last observation now."""
        async with self._changed:
            self._last = observation
            self._changed.notify_all()
        for listener in self._listeners:
            listener(observation)

    def set_silently(self, observation: Observation) -> None:
        """As `tell`, where nobody need be told."""
        self._last = observation

    async def refreshed(self, asked: int) -> None:
        """All is read that had changed when so many refreshes were asked for; it is told, where it is anything new."""
        async with self._changed:
            self._done = asked
            self._changed.notify_all()

    async def not_refreshed(self, asked: int, why: str) -> None:
        """Those who asked before are told that nobody knows whether all is seen. What is seen is current otherwise."""
        self._in_vain = (asked, why)
        await self.refreshed(asked)

    async def wait_for(self, predicate: Callable[[Observation], bool]) -> Observation:
        """Waits until an observation is as wanted, beginning with the present one."""
        async with self._changed:
            await self._changed.wait_for(lambda: predicate(self._last))
            return self._last

    async def refresh(self, wake: Callable[[], None], timeout_s: float, *, waits_for_sight: bool) -> ClusterView:
        """A view that shows all that was done before the call; `wake` has it read.

        `waits_for_sight`: a cluster that is out of sight is waited for, else it is no longer than until that is known.
        Raises `NotCurrent`."""
        self._asked += 1
        wanted = self._asked
        wake()
        try:
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait_for(
                    lambda: self._done >= wanted or (not waits_for_sight and self._is_out_of_sight)
                )
        except TimeoutError as error:
            raise NotCurrent(f"the cluster was not read within {timeout_s:g} s") from error
        in_vain, why = self._in_vain
        if wanted <= in_vain:
            raise NotCurrent(why)
        if self._last.view is None or self._last.trouble is not None:
            raise NotCurrent(self._last.trouble or "nothing was read yet")
        return self._last.view

    @property
    def _is_out_of_sight(self) -> bool:
        return self._last.trouble is not None and not self._last.is_being_read
