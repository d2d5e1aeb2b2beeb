"""Keeps the view of one cluster without ZooKeeper current: looks, pauses, and looks again.

A view is published only if something has changed. A caller of `refresh` triggers a look at once, and all waiting
callers share it.
"""

import asyncio
from collections.abc import Callable, Iterable

import structlog

from controller_core.client.errors import NotAdmittedError
from controller_core.client.transport.kept_client import KeptClient
from controller_core.client.transport.request_client import Address
from controller_core.model.ids import TopicName
from controller_core.model.snapshot import Snapshot
from controller_core.polling.pace import Pace
from controller_core.polling.paced_looks import LookFailed, OpenKept, PacedLooks
from controller_core.polling.questions import NoKRaftError
from controller_core.security.properties_file import InvalidProperties
from controller_core.supervision import start_supervised
from controller_operator.observation.observation import NotCurrent, Observation, Observations
from controller_operator.resources.conditions import Reason

_log = structlog.get_logger(__name__)


class ClusterPoller:
    """Observes one cluster. `Cluster` documents the methods that it shares with the observer of ZooKeeper."""

    def __init__(self, open_kept: OpenKept, *, pace: Pace | None = None) -> None:
        self._open_kept = open_kept
        self._looks = PacedLooks(open_kept, pace=pace)
        self._touched: set[TopicName] = set()
        self._woken = asyncio.Event()
        self._observations = Observations(
            Observation(trouble="it was not asked yet", reason=Reason.BROKERS_UNAVAILABLE, is_being_read=True)
        )
        self._task: asyncio.Task[None] | None = None

    @property
    def observation(self) -> Observation:
        return self._observations.last

    @property
    def servers(self) -> tuple[Address, ...]:
        """The servers to ask, those that answer first. Raises `NotCurrent` if none was reached yet."""
        if not self._looks.servers:
            raise NotCurrent(self.observation.trouble or "it was not asked yet")
        return self._looks.servers

    def open_client(self) -> KeptClient:
        """Return another client of the brokers. Raises `NotCurrent` if none was reached yet."""
        client, _ = self._open_kept()
        client.learn(self.servers)
        return client

    def start(self) -> None:
        """Begin to observe, in a task of its own."""
        self._task = start_supervised(self._run, name="cluster poller")

    async def stop(self) -> None:
        """End the observation."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._looks.close()

    def add_listener(self, listener: Callable[[Observation], None]) -> None:
        """See `Observations`."""
        self._observations.add_listener(listener)

    async def refresh(self, topics: Iterable[TopicName] = (), timeout_s: float = 20.0) -> Snapshot:
        """Return a view that shows everything that was done before the call; of configurations, only those of these
        topics and of new ones.

        Raises `NotCurrent`."""
        self._touched.update(topics)
        return await self._observations.refresh(self._woken.set, timeout_s, waits_for_sight=False)

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            try:
                await self._look_once()
            except Exception as error:
                await self._tell_trouble(error)
                raise  # logged, and started again
            await self._looks.rest(self._woken)

    async def _look_once(self) -> None:
        """Look once, and publish a new view if something has changed."""
        asked, touched = self._observations.asked, self._touched
        self._touched = set()
        try:
            await self._looks.look(touched, is_waited_for=self._observations.is_waited_for)
        except LookFailed as error:
            self._touched |= touched
            await self._tell_trouble(error)
            return
        before, known = self.observation, self._looks.known
        view = known.take_snapshot() if known.has_news else None
        if view is not None or before.trouble is not None:
            await self._observations.tell(Observation(view=view or before.view))
        if known.controller is None:
            await self._observations.fail_refreshes(asked, "the controllers have no leader")
        else:
            await self._observations.mark_refreshed(asked)

    async def _tell_trouble(self, error: Exception) -> None:
        trouble, reason = str(error) or type(error).__name__, Reason.BROKERS_UNAVAILABLE
        if isinstance(error.__cause__, NoKRaftError):
            trouble = f"{trouble}: name the ZooKeeper in spec.zookeeper.connect, or brokers of Kafka 4"
            reason = Reason.NOT_SUPPORTED
        elif isinstance(error.__cause__, NotAdmittedError | InvalidProperties):
            reason = Reason.NOT_ADMITTED
        if trouble != self.observation.trouble:
            _log.warning("cluster out of sight", trouble=trouble)
        await self._observations.tell(Observation(view=self.observation.view, trouble=trouble, reason=reason))
