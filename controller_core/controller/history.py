"""What a term of office tells the journal: at its start a snapshot, and after each event what the event has changed.

What changed is noticed by the cluster's state itself (`ClusterState.changes`); here it gets its epoch, cause and time.
"""

import re
from dataclasses import dataclass, field
from typing import Final

import structlog

from controller_core.controller.clock import Clock
from controller_core.controller.cluster_state import ClusterState
from controller_core.controller.events import ControllerChanged, Event, RequestReceived, SessionEnded
from controller_core.controller.request_batch import ControllerIdentity
from controller_core.journal.batches import (
    Committed,
    Context,
    Elected,
    Journal,
    Resigned,
    Snapshot,
    StateCopy,
    TopicCopy,
)
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkSession

log = structlog.get_logger()

_WORD_START: Final = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(slots=True, kw_only=True)
class History:
    """The history of one term, on its way to the journal."""

    journal: Journal
    zk: ZkSession
    identity: ControllerIdentity
    state: ClusterState
    clock: Clock
    snapshot_interval_ms: float
    _cluster_id: str | None = None
    _cause: str = "controller_failover"
    _events: int = 0
    _next_snapshot_ms: float = field(default=0.0)

    def begin_event(self, event: Event) -> None:
        """What is recorded from now on is caused by this event."""
        self._cause = cause_of(event)
        self._events += 1

    async def begin_term(self) -> None:
        """Records the whole state as it was found; from here on, what changes in it."""
        if not self.journal.is_kept:
            return
        await self._learn_cluster_id()
        self.journal.append(Elected(context=self._context()))
        self.state.changes.is_open = True
        self._take_snapshot()

    async def end_event(self) -> None:
        """Records what the event has changed, and the whole state when it is time for that."""
        if not self.state.changes.is_open:
            return
        if self._cluster_id is None and self.state.brokers:
            await self._learn_cluster_id()
        self._hand_over()
        if self.journal.wants_snapshot or self.clock.monotonic_ms() >= self._next_snapshot_ms:
            self._take_snapshot()

    def end_term(self, reason: str) -> None:
        """Records what was changed until the end. What ZooKeeper took and nobody was told, the next snapshot shows."""
        if self.state.changes.is_open:
            self._hand_over()
            self.state.changes.is_open = False
            self.journal.append(Resigned(context=self._context(), reason=reason))

    def _hand_over(self) -> None:
        changes = self.state.changes.take()
        if changes:
            self.journal.append(Committed(context=self._context(), changes=changes))

    def _take_snapshot(self) -> None:
        self._next_snapshot_ms = self.clock.monotonic_ms() + self.snapshot_interval_ms
        self.journal.append(Snapshot(context=self._context(), state=copy_of(self.state)))

    def _context(self) -> Context:
        return Context(
            cluster_id=self._cluster_id,
            controller_id=self.identity.id,
            controller_epoch=self.identity.epoch,
            event_time_us=self.clock.now_ms() * 1000,
            cause=self._cause,
            correlation_id=f"{self.identity.epoch}-{self._events}",
        )

    async def _learn_cluster_id(self) -> None:
        (node,) = await self.zk.read_many([paths.CLUSTER_ID])
        try:
            self._cluster_id = codecs.decode_cluster_id(node.data) if node else None
        except MalformedZnode as error:
            self._cluster_id = ""
            log.error("unreadable cluster id, the journal has none", error=str(error))


def cause_of(event: Event) -> str:
    """What the journal calls an event: `brokers_changed`; for a request, the request: `alter_partition`."""
    match event:
        case ControllerChanged() | SessionEnded():
            return "controller_failover"
        case RequestReceived(request=request):
            return _WORD_START.sub("_", type(request).__name__.removesuffix("Request")).lower()
        case _:
            return _WORD_START.sub("_", type(event).__name__).lower()


def copy_of(state: ClusterState) -> StateCopy:
    """The state as it is now, for another thread to read: collections are copied, values are immutable."""
    topics = {
        name: TopicCopy(topic_id=topic.topic_id, czxid=topic.czxid, partitions=topic.partitions.copy())
        for name, topic in state.topics.items()
    }
    return StateCopy(
        brokers=dict(state.brokers), topics=topics, states=dict(state.states), features=state.finalized_features
    )
