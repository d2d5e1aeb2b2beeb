"""One observer per ZooKeeper, however many KafkaClusters name it, for as long as one does."""

import asyncio
from collections.abc import Awaitable, Callable

from controller_core.zk.session import ZkSession
from controller_operator.kafka.cluster_view import ClusterView
from controller_operator.observation.observer import ClusterObserver, Observation

Connect = Callable[[str], Awaitable[ZkSession]]
"""Opens a session to a connect string; raises `ZkError` where that fails."""


class ObserverPool:
    """The observers, by connect string. `on_change` is given the connect string whose observation changed."""

    def __init__(self, connect: Connect, on_change: Callable[[str, Observation], None]) -> None:
        self._connect = connect
        self._on_change = on_change
        self._observers: dict[str, ClusterObserver] = {}

    def get(self, connect: str) -> ClusterObserver:
        """The observer of a cluster, started at the first call."""
        observer = self._observers.get(connect)
        if observer is None:
            observer = ClusterObserver(lambda: self._connect(connect))
            observer.add_listener(lambda observation: self._on_change(connect, observation))
            self._observers[connect] = observer
            observer.start()
        return observer

    def last_view(self, connect: str) -> ClusterView | None:
        """What was last seen of a cluster, current or not; None where it is not observed, or nothing was read yet."""
        observer = self._observers.get(connect)
        return observer.observation.view if observer else None

    async def keep_only(self, connects: set[str]) -> None:
        """Stops the observers of clusters that nothing names any more."""
        gone = [self._observers.pop(connect) for connect in set(self._observers) - connects]
        await asyncio.gather(*(observer.stop() for observer in gone))

    async def close(self) -> None:
        """Stops all observers."""
        await self.keep_only(set())
