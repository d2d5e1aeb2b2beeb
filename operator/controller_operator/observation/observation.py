"""The present knowledge of a cluster, its listeners, and the callers that wait for a new read.

The observer of ZooKeeper and the poller of brokers each keep an `Observations`: the last observation, the listeners,
and the callers that wait for a view which shows everything that was done before their call.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from controller_core.model.snapshot import Snapshot
from controller_core.zk.session import ZkError
from controller_operator.resources.conditions import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The present knowledge of a cluster. `view` is None until everything was read once."""

    view: Snapshot | None = None
    trouble: str | None = None
    """The reason why the view may be out of date; None if it is current."""
    reason: Reason = Reason.ZOOKEEPER_UNAVAILABLE
    """The kind of trouble."""
    is_being_read: bool = False
    """True if the only trouble is that the first read has not ended or begun yet."""
    lag_s: float | None = None
    """Seconds from the first sign of a change to this view."""


class NotCurrent(ZkError):
    """The cluster cannot be read at present. Retriable."""


class Observations:
    """The observations of one cluster. Listeners are called on the event loop and must not block."""

    def __init__(self, first: Observation) -> None:
        self._last = first
        self._changed = asyncio.Condition()
        self._listeners: list[Callable[[Observation], None]] = []
        self._asked = self._done = 0
        self._in_vain: tuple[int, str] = (0, "")
        """The number of refreshes asked for when a refresh was found to be impossible, and the reason."""

    @property
    def last(self) -> Observation:
        return self._last

    @property
    def asked(self) -> int:
        """The number of refreshes that were asked for."""
        return self._asked

    @property
    def is_waited_for(self) -> bool:
        """True if a refresh was asked for and is not done."""
        return self._asked != self._done

    def add_listener(self, listener: Callable[[Observation], None]) -> None:
        """Call the listener with every new observation."""
        self._listeners.append(listener)

    async def tell(self, observation: Observation) -> None:
        """Set the last observation, and notify the listeners."""
        async with self._changed:
            self._last = observation
            self._changed.notify_all()
        for listener in self._listeners:
            listener(observation)

    def set_silently(self, observation: Observation) -> None:
        """Set the last observation without notifying anybody."""
        self._last = observation

    async def mark_refreshed(self, asked: int) -> None:
        """Mark so many refreshes as done: everything that had changed before them was read, and published if new."""
        async with self._changed:
            self._done = asked
            self._changed.notify_all()

    async def fail_refreshes(self, asked: int, why: str) -> None:
        """Fail so many refreshes, because it is unknown if everything was seen. The view is current otherwise."""
        self._in_vain = (asked, why)
        await self.mark_refreshed(asked)

    async def wait_for(self, predicate: Callable[[Observation], bool]) -> Observation:
        """Wait until an observation meets the predicate, beginning with the present one."""
        async with self._changed:
            await self._changed.wait_for(lambda: predicate(self._last))
            return self._last

    async def refresh(self, wake: Callable[[], None], timeout_s: float, *, waits_for_sight: bool) -> Snapshot:
        """Return a view that shows everything that was done before the call; `wake` triggers the read.

        `waits_for_sight`: if true, wait for a cluster that is out of sight; otherwise fail as soon as it is known to
        be. Raises `NotCurrent`."""
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
