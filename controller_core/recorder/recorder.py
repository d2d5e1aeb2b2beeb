"""The recorder at work: it looks whenever a watch has fired, not more often than is set, and records what it saw.

From time to time it looks at everything, whatever the watches said, and the snapshot after that is of what ZooKeeper
says. What differs then without a watch having fired is `unobserved`, as is what changed while there was no connection.
"""

from collections.abc import Callable, Iterator
from typing import Final, Protocol

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.journal.batches import Journal
from controller_core.journal.changes import Change, Kind
from controller_core.model.ids import ControllerEpoch
from controller_core.recorder.looking import Looker
from controller_core.recorder.observed_journal import ObservedJournal
from controller_core.zk import paths
from controller_core.zk.session import ConnectionLost, SessionExpired, SessionState, ZkSession, ZooKeeperUnreachable

log = structlog.get_logger()


_REST: Final = 3
"""How much longer than the last look took nothing is looked at: many small looks take a quarter of a processor at most."""
_LONGEST_REST_MS: Final = 1000
"""A long look is a rare one: the first, or one at very many changes."""


class RecorderSettings(Protocol):
    """What a recorder needs to know of its process's settings."""

    @property
    def look_interval_ms(self) -> int: ...

    @property
    def zookeeper_timeout_ms(self) -> int: ...

    @property
    def journal_snapshot_interval_seconds(self) -> int: ...

    @property
    def journal_alive_interval_seconds(self) -> int: ...


class Recorder:
    """Records one cluster. `last_epoch`: the newest controller epoch that the journal has already."""

    def __init__(
        self,
        zk: ZkSession,
        journal: Journal,
        clock: Clock,
        settings: RecorderSettings,
        *,
        last_epoch: ControllerEpoch | None = None,
    ) -> None:
        self.looks = 0
        self.last_look_s = 0.0
        """When ZooKeeper was last looked at, in seconds since 1970."""
        self.looker = Looker(zk)
        self.observed_journal = ObservedJournal(
            journal,
            clock,
            snapshot_interval_ms=settings.journal_snapshot_interval_seconds * 1000,
            alive_interval_ms=settings.journal_alive_interval_seconds * 1000,
            last_epoch=last_epoch,
        )
        self._zk = zk
        self._clock = clock
        self._settings = settings
        self._is_blind = False
        """Whether the connection was lost since the last look."""
        zk.add_listener(self._on_session_state)

    async def run(self) -> None:
        """Records until it is cancelled. Raises `ZooKeeperUnreachable`, `AccessRefused` and `AnotherCluster`."""
        while True:
            began_ms = self._clock.monotonic_ms()
            try:
                await self.look()
            except (ConnectionLost, SessionExpired) as error:
                log.warning("nothing is seen until ZooKeeper is back", error=str(error))
                await self._wait_for_zookeeper()
            took_ms = self._clock.monotonic_ms() - began_ms
            await self._clock.sleep_ms(max(self._settings.look_interval_ms, min(_REST * took_ms, _LONGEST_REST_MS)))
            await self.looker.wait(self._alive_interval_ms)

    async def look(self) -> None:
        """Looks once, and records what has changed. After `ConnectionLost` and `SessionExpired` the next look does."""
        is_blind, self._is_blind = self._is_blind, False
        is_complete = self.observed_journal.is_snapshot_due
        try:
            view = await self.looker.look(everything=is_complete)
        except BaseException:
            self._is_blind = True
            raise
        self.looks += 1
        self.last_look_s = self._clock.now_ms() / 1000
        self.observed_journal.follow(view, _doubt(is_blind, self.looker.notified if is_complete else None))
        if is_complete:
            self.observed_journal.take_snapshot()
        await self._record_alive()

    async def _record_alive(self) -> None:
        """Where nothing else was recorded for long, and ZooKeeper still names the same controller."""
        role = self.observed_journal.role
        is_silent = self.observed_journal.silent_ms >= self._alive_interval_ms
        if role is not None and is_silent and await self.looker.read_role() == role:
            self.observed_journal.record_alive()

    @property
    def _alive_interval_ms(self) -> int:
        return self._settings.journal_alive_interval_seconds * 1000

    async def _wait_for_zookeeper(self) -> None:
        timeout_ms = self._settings.zookeeper_timeout_ms
        if not await self._zk.wait_connected(timeout_ms):
            raise ZooKeeperUnreachable(
                f"ZooKeeper was out of reach for {timeout_ms} ms: check its servers and the network, "
                "or allow more time with --zookeeper-timeout-ms"
            )

    def _on_session_state(self, state: SessionState) -> None:
        if state is not SessionState.CONNECTED:
            self._is_blind = True


def _doubt(is_blind: bool, notified: frozenset[str] | None) -> Callable[[Change], bool]:
    """Which changes are `unobserved`: all after a blind time; none else but in a look at everything, where some may be."""
    if is_blind:
        return lambda _: True
    if notified is None:
        return lambda _: False
    return lambda change: notified.isdisjoint(_watched_paths(change))


def _watched_paths(change: Change) -> Iterator[str]:
    """The znodes whose watches fire at a change: its own, and where something came or went also its parents."""
    has_come_or_gone = change.before is None or change.after is None
    match change.kind:
        case Kind.BROKER:
            own, parents = paths.broker(change.key), [paths.BROKER_IDS]
        case Kind.BROKER_CONFIG:
            own, parents = paths.broker_config(change.key), [paths.BROKER_CONFIGS]
        case Kind.FEATURES:
            own, parents = paths.FEATURE, []
        case Kind.TOPIC:
            own, parents = paths.topic(change.key), [paths.TOPICS]
        case Kind.TOPIC_CONFIG:
            own, parents = paths.topic_config(change.key), [paths.TOPICS]
        case Kind.ASSIGNMENT:
            own, parents = paths.topic(change.key.topic), [paths.TOPICS]
        case _:
            own, parents = paths.partition_state(change.key), [paths.topic(change.key.topic), paths.TOPICS]
    yield own
    if has_come_or_gone:
        yield from parents
