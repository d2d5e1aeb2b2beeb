"""The journal of a term: a snapshot at its start, then the changes of each event.

The cluster state notices its changes itself (`ClusterState.changes`). Here they get their epoch, cause and time.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.controller.loop.events import (
    BrokerModified,
    BrokersChanged,
    ControllerChanged,
    Event,
    RequestReceived,
    RoleDue,
    SessionEnded,
)
from controller_core.controller.recording.stamped_journal import StampedJournal
from controller_core.controller.sending.broker_requests import ControllerIdentity
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.journal.batches import (
    Alive,
    Committed,
    Context,
    Elected,
    Journal,
    Requested,
    Resigned,
    StateCopy,
    TopicCopy,
)
from controller_core.journal.changes import Change, Kind
from controller_core.journal.configs import RecordedConfig
from controller_core.model.authorization.principal import Caller
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkSession

log = structlog.get_logger()

STOPPED: Final = "controller_stopped"
"""The cause of changes that no event has caused: the end of a process."""
BROKER_FAILED: Final = "broker_failed"
BROKER_RESTARTED: Final = "broker_restarted"
BROKER_STARTED: Final = "broker_started"

_WORD_START: Final = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(slots=True, kw_only=True)
class TermJournal:
    """Records one term in the journal."""

    journal: Journal
    zk: ZkSession
    identity: ControllerIdentity
    state: ClusterState
    clock: Clock
    snapshot_interval_ms: float
    alive_interval_ms: float
    own_config: RecordedConfig
    """The values of the controller's settings for keys that no configuration sets."""
    _cluster_id: str | None = None
    _cause: str = STOPPED
    _caller: Caller | None = None
    """The client whose request is being handled."""
    _since_ms: float | None = None
    """The arrival of the event that is being handled; None if there is none."""
    _events: int = 0
    """The number of events in this term so far."""
    _event: int = 0
    """The number of the event that is being handled."""
    _requests: int = 0
    """The number of audited requests in this term so far."""
    _stamped: StampedJournal = field(init=False)

    def __post_init__(self) -> None:
        self._stamped = StampedJournal(
            journal=self.journal, clock=self.clock, snapshot_interval_ms=self.snapshot_interval_ms
        )

    @property
    def _whole_interval_ms(self) -> int:
        return round(self.alive_interval_ms)

    @property
    def is_kept(self) -> bool:
        """True if a journal is written."""
        return self.journal.is_kept

    def begin_event(self, event: Event, since_ms: float) -> None:
        """Make this event the cause of the following records.

        It arrived at `since_ms` on the clock's monotonic time.
        """
        self._cause, self._since_ms = name_cause(event), since_ms
        self._caller = event.caller if isinstance(event, RequestReceived) else None
        self._count_event()

    @contextmanager
    def record_nested(self, event: Event, since_ms: float) -> Iterator[None]:
        """Handle another event in the middle of this one. Record the changes before it first, then its own."""
        if self.state.changes.is_open:
            self._hand_over()
        outer = self._cause, self._caller, self._since_ms, self._event
        self.begin_event(event, since_ms)
        yield
        if self.state.changes.is_open:
            self._hand_over()
        self._cause, self._caller, self._since_ms, self._event = outer

    async def begin_term(self) -> None:
        """Record the whole state as it was loaded. From here on, changes are recorded."""
        if not self.is_kept:
            return
        await self._learn_cluster_id()
        elected = Elected(context=self._context(), config=self.own_config, alive_interval_ms=self._whole_interval_ms)
        self._stamped.record(elected)
        self.state.changes.is_open = True
        self._take_snapshot()

    async def end_event(self) -> None:
        """Record the changes of the event, and the whole state if it is time for that."""
        if self.state.changes.is_open:
            if self._cluster_id is None and self.state.brokers:
                await self._learn_cluster_id()
            self._hand_over()
            if self.journal.wants_snapshot or self._stamped.is_snapshot_due:
                self._take_snapshot()
        self._cause, self._caller, self._since_ms = STOPPED, None, None

    async def record_alive(self) -> float:
        """Record that the controller still has the role if nothing was recorded for long. ZooKeeper is asked first.

        Return the milliseconds until the next check.
        """
        silent_ms = self._stamped.silent_ms
        if silent_ms < self.alive_interval_ms:
            return self.alive_interval_ms - silent_ms
        if not self._stamped.is_snapshot_due and await self._has_role():
            self._stamped.record(Alive(context=self._context(), alive_interval_ms=self._whole_interval_ms))
        return self.alive_interval_ms

    def record_request(self, request: Mapping[str, object]) -> None:
        """Record that a request was answered. It is no sign of life, because ZooKeeper need not have taken part.

        It may be called at any time, also in the middle of an event."""
        if not self.state.changes.is_open:
            return
        self._requests += 1
        context = self._stamped.make_context(
            cluster_id=self._cluster_id,
            controller_id=self.identity.id,
            controller_epoch=self.identity.epoch,
            cause=name_cause_of_name(str(request.get("api", ""))),
            event=f"request-{self._requests}",
        )
        self.journal.append(Requested(context=context, request=request))

    def end_term(self, reason: str) -> None:
        """Record the changes until the end. The next snapshot has what ZooKeeper accepted but no broker was sent."""
        if self.state.changes.is_open:
            if self._since_ms is None:
                self._count_event()
            self._hand_over()
            self.state.changes.is_open = False
            self._stamped.record(Resigned(context=self._context(), reason=reason))

    def _count_event(self) -> None:
        self._events += 1
        self._event = self._events

    def _hand_over(self) -> None:
        changes = self.state.changes.take()
        if changes:
            self._cause = _cause_from_changes(self._cause, changes)
            self._stamped.record(Committed(context=self._context(), changes=changes))

    def _take_snapshot(self) -> None:
        self._stamped.take_snapshot(self._context(), copy_state(self.state))

    def _context(self) -> Context:
        took_ms = None if self._since_ms is None else self.clock.monotonic_ms() - self._since_ms
        return self._stamped.make_context(
            cluster_id=self._cluster_id,
            controller_id=self.identity.id,
            controller_epoch=self.identity.epoch,
            cause=self._cause,
            event=self._event,
            took_ms=took_ms,
            caller=self._caller,
        )

    async def _has_role(self) -> bool:
        """Return True if ZooKeeper confirms the role: somebody holds it, and no successor has raised the epoch."""
        epoch, holder = await self.zk.read_many([paths.CONTROLLER_EPOCH, paths.CONTROLLER])
        if epoch is None or holder is None:
            return False
        try:
            return codecs.decode_controller_epoch(epoch.data) == self.identity.epoch
        except MalformedZnode as error:
            log.error(
                "unreadable controller epoch, the journal does not say that this is the controller", error=str(error)
            )
            return False

    async def _learn_cluster_id(self) -> None:
        (node,) = await self.zk.read_many([paths.CLUSTER_ID])
        try:
            self._cluster_id = codecs.decode_cluster_id(node.data) if node else None
        except MalformedZnode as error:
            self._cluster_id = ""
            log.error("unreadable cluster id, the journal has none", error=str(error))


def name_cause(event: Event) -> str:
    """Return the journal's name of an event, such as `topics_changed`, or of its request, such as `alter_partition`."""
    match event:
        case ControllerChanged() | SessionEnded() | RoleDue():
            return "controller_failover"
        case RequestReceived(request=request):
            return name_cause_of_type(type(request))
        case _:
            return name_cause_of_type(type(event))


def name_cause_of_type(happened: type) -> str:
    """Return the journal's name of a type of events or requests."""
    return name_cause_of_name(happened.__name__.removesuffix("Request"))


def name_cause_of_name(name: str) -> str:
    """Return the journal's name for the name of an event or API, such as `create_topics` for CreateTopics."""
    return _WORD_START.sub("_", name).lower()


def _cause_from_changes(cause: str, changes: Sequence[Change]) -> str:
    """Return what brokers did, if the event says only that something happened to them.

    A failure outweighs a restart, and that a start.
    """
    if cause not in _OF_BROKERS:
        return cause
    of_brokers = [change for change in changes if change.kind is Kind.BROKER]
    left = {change.key for change in of_brokers if change.after is None}
    came = {change.key for change in of_brokers if change.before is None}
    if left - came:
        return BROKER_FAILED
    if left:
        return BROKER_RESTARTED  # it registered again before anybody noticed its failure
    return BROKER_STARTED if came else cause


_OF_BROKERS: Final = (name_cause_of_type(BrokersChanged), name_cause_of_type(BrokerModified))


def copy_state(state: ClusterState) -> StateCopy:
    """Copy the state for another thread: collections are copied, values are immutable."""
    topics = {
        name: TopicCopy(topic_id=topic.topic_id, czxid=topic.czxid, partitions=dict(topic.partitions))
        for name, topic in state.topics.items()
    }
    return StateCopy(
        brokers=dict(state.brokers),
        topics=topics,
        states=dict(state.states),
        features=state.finalized_features,
        topic_configs=dict(state.topic_configs),
        broker_configs=dict(state.broker_configs),
        failed_replicas=dict(state.failed_replicas),
        static_configs=dict(state.static_configs),
    )
