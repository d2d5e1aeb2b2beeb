"""Keeps the view of one cluster without ZooKeeper current: looks, pauses as `pace` says, and looks again.

A view is published only where it says something new. Who waits for a view that shows what was done (`refresh`) has a look
made at once, and all who wait share it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

import structlog

from controller_core.model.ids import TopicName
from controller_core.security.properties_file import InvalidProperties
from controller_core.supervision import supervised
from controller_core.wire.client.kept_client import KeptClient
from controller_core.wire.client.request_client import Address, AnswerLost, ControllerUnreachable, RequestError
from controller_core.wire.codecs.decoding import Undecodable
from controller_operator.kafka.cluster_view import ClusterView
from controller_operator.observation.observer import NotCurrent, Observation
from controller_operator.observation.polling.looking import Looking
from controller_operator.observation.polling.pace import Pace
from controller_operator.observation.polling.questions import NoKRaftError
from controller_operator.resources.conditions import Reason

OpenKept = Callable[[], tuple[KeptClient, str]]
"""Makes a client of the cluster; returns also the protocol by which its brokers are spoken to. Raises `InvalidProperties`,
and `ValueError` where its address is none."""

_LOOKS_TIMED: Final = 8
_log = structlog.get_logger(__name__)


class ClusterPoller:
    """Observes one cluster. What it has in common with the observer of ZooKeeper is said in `Cluster`."""

    def __init__(self, open_kept: OpenKept, *, pace: Pace | None = None) -> None:
        self._open_kept = open_kept
        self._pace = pace or Pace()
        self._opened: tuple[KeptClient, str] | None = None
        self._looking = Looking()
        self._touched: set[TopicName] = set()
        self._refreshes_asked = self._refreshes_done = 0
        self._looks_s: deque[float] = deque(maxlen=_LOOKS_TIMED)
        """How long the last looks waited for answers; the shortest one says the most of what a look costs."""
        self._quiet_looks = self._failures = 0
        self._woken = asyncio.Event()
        self._changed = asyncio.Condition()
        self._listeners: list[Callable[[Observation], None]] = []
        self._observation = Observation(
            trouble="it was not asked yet", reason=Reason.BROKERS_UNAVAILABLE, is_being_read=True
        )
        self._task: asyncio.Task[None] | None = None

    @property
    def observation(self) -> Observation:
        return self._observation

    @property
    def servers(self) -> tuple[Address, ...]:
        """Who may be asked, those that answer first. Raises `NotCurrent` where nobody was reached yet."""
        if self._opened is None:
            raise NotCurrent(self._observation.trouble or "it was not asked yet")
        return self._opened[0].servers

    def start(self) -> None:
        """Begins to observe, in a task of its own."""
        self._task = supervised(self._run, name="cluster poller")

    async def stop(self) -> None:
        """Ends the observation."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._close()

    def add_listener(self, listener: Callable[[Observation], None]) -> None:
        """Calls the listener with every new observation, on the event loop; it must not block."""
        self._listeners.append(listener)

    async def refresh(self, topics: Iterable[TopicName] = (), timeout_s: float = 20.0) -> ClusterView:
        """A view that shows all that was done before the call; of configurations, those of these topics and of new ones.

        Raises `NotCurrent`."""
        self._refreshes_asked += 1
        wanted = self._refreshes_asked
        self._touched.update(topics)
        self._woken.set()
        try:
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait_for(lambda: self._refreshes_done >= wanted or self._failures > 0)
        except TimeoutError as error:
            raise NotCurrent(f"the cluster was not read within {timeout_s:g} s") from error
        if self._observation.view is None or self._observation.trouble is not None:
            raise NotCurrent(self._observation.trouble or "nothing was read yet")
        return self._observation.view

    async def _run(self) -> None:
        while True:
            try:
                pause_s = await self._look_once()
            except Exception as error:
                await self._fail(error)
                raise  # logged, and begun anew
            if self._refreshes_asked != self._refreshes_done and not self._failures:
                continue
            self._woken.clear()
            try:
                async with asyncio.timeout(pause_s):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def _look_once(self) -> float:
        """One look, and a new view where it says something new; returns how long to pause."""
        asked, touched = self._refreshes_asked, self._touched
        self._touched = set()
        try:
            self._opened = client, _ = self._opened or self._open_kept()
            waited_s = client.waited_s
            await self._look(*self._opened, touched, is_waited_for=asked != self._refreshes_done)
        except (RequestError, InvalidProperties, NoKRaftError, Undecodable, ValueError) as error:
            self._touched |= touched
            return await self._fail(error)
        self._looks_s.append(client.waited_s - waited_s)
        self._refreshes_done = asked
        await self._publish()
        is_moving = bool(self._looking.known.moves)
        return self._pace.pause_s(look_s=min(self._looks_s), quiet_looks=self._quiet_looks, is_moving=is_moving)

    async def _look(self, client: KeptClient, protocol: str, touched: set[TopicName], *, is_waited_for: bool) -> None:
        """A broker that is gone is no trouble where the next one answers."""
        try:
            await self._looking.look(client, protocol, touched, is_waited_for=is_waited_for)
        except (AnswerLost, ControllerUnreachable) as error:
            _log.info("another broker is asked", now=str(client.server), error=str(error))
            await self._looking.look(client, protocol, touched, is_waited_for=is_waited_for)

    async def _fail(self, error: Exception) -> float:
        self._failures += 1
        if not isinstance(error, AnswerLost | ControllerUnreachable):
            self._close()  # what is wrong may be the way in which it is spoken to
        reason = Reason.NOT_SUPPORTED if isinstance(error, NoKRaftError) else Reason.BROKERS_UNAVAILABLE
        trouble = str(error) or type(error).__name__
        if trouble != self._observation.trouble:
            _log.warning("cluster out of sight", trouble=trouble)
        await self._tell(Observation(view=self._observation.view, trouble=trouble, reason=reason))
        return self._pace.after_failures_s(self._failures)

    async def _publish(self) -> None:
        before = self._observation
        view = self._looking.known.view(before.view.version + 1 if before.view else 1)
        self._failures = 0
        self._quiet_looks = 0 if view is not None else self._quiet_looks + 1
        if view is not None or before.trouble is not None:
            await self._tell(Observation(view=view or before.view))
        else:
            async with self._changed:
                self._changed.notify_all()

    async def _tell(self, observation: Observation) -> None:
        async with self._changed:
            self._observation = observation
            self._changed.notify_all()
        for listener in self._listeners:
            listener(observation)

    def _close(self) -> None:
        if self._opened is not None:
            self._opened[0].close()
            self._opened = None
