"""A term: everything an operation needs while this process is the controller.

A term begins when `/controller` is won and ends when it is lost; nothing of it outlives it. Operations are functions
over a term, one module for each procedure of the specification. They reach the world only through the term, and their
signatures say which of its `rights` they need.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from controller_core.controller.loop.answer_meanings import Meaning
from controller_core.controller.loop.clock import Clock
from controller_core.controller.loop.events import Event
from controller_core.controller.loop.faults import RETRY_MS, Fault
from controller_core.controller.loop.watched_reads import WatchedReads
from controller_core.controller.recording.state_change_log import StateChangeLog
from controller_core.controller.recording.static_configs import StaticConfigs
from controller_core.controller.recording.term_journal import TermJournal
from controller_core.controller.sending.broker_requests import ControllerIdentity
from controller_core.controller.sending.channels import BrokerChannels
from controller_core.controller.sending.log_ends import LogEnds
from controller_core.controller.sending.request_batch import RequestBatch
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.controller.term.cluster_settings import ClusterSettings
from controller_core.controller.term.refusals import Refusals
from controller_core.controller.term.standby import Standby
from controller_core.controller.term.unserved_listeners import UnservedListeners
from controller_core.model.ids import TopicName
from controller_core.model.metadata import TopicAssignment
from controller_core.supervision import start_task
from controller_core.zk.fenced import FencedWriter
from controller_core.zk.session import ZkNode, ZkSession


class Settings(Protocol):
    """The process's own settings that operations need. `ClusterSettings` has those that brokers' files have, too."""

    @property
    def unclean_recovery_timeout_ms(self) -> int:
        """The time that brokers have to return the ends of logs before an unclean election; 0: they are not asked."""
        ...

    @property
    def address_cache_seconds(self) -> int:
        """The time for which clients may keep the former address of a broker that was restarted."""
        ...

    @property
    def topic_deletion_waits_for_absent_brokers(self) -> bool:
        """True if a deleted topic stays until brokers that are down have deleted their replicas."""
        ...

    @property
    def removed_replicas_retention_days(self) -> int:
        """The days for which replicas of an absent broker stay in the list of removed replicas; 0: for ever."""
        ...

    @property
    def delegation_token_check_interval_ms(self) -> int | None:
        """Milliseconds between checks for expired delegation tokens; None: the cluster has none."""
        ...


class Counts(Protocol):
    """Counters for the operations."""

    def count_elections(self, number: int, *, unclean: int) -> None:
        """Count partitions that got another leader, and how many of these leaders come from outside the ISR."""
        ...

    def count_refusal(self, request: str, error: str, meaning: Meaning) -> None:
        """Count an error of a broker in its answer to a control request, or about a partition.

        `request` is the type's name.
        """
        ...

    def count_failed_event(self, event: str, fault: Fault) -> None:
        """Count an event with an error that its operation does not handle."""
        ...


class Pauses(Protocol):
    """Work that may be done in the middle of a long operation. The real one is `serving.between_groups`."""

    def are_wanted(self) -> bool:
        """Return True if a pause is needed."""
        ...

    async def serve(self) -> None:
        """Serve the waiting requests. Precondition: no write in flight, and no decision that is not written."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One term as the controller."""

    identity: ControllerIdentity
    zk: ZkSession
    watched: WatchedReads[Event]
    standby: Standby
    """The state read before the term began; empty once the cluster is loaded."""
    writer: FencedWriter
    state: ClusterState
    batch: RequestBatch
    channels: BrokerChannels
    state_change_log: StateChangeLog
    journal: TermJournal
    static_configs: StaticConfigs
    log_ends: LogEnds
    counts: Counts
    clock: Clock
    settings: Settings
    cluster_settings: ClusterSettings
    enqueue: Callable[[Event], None]
    pauses: Pauses
    unserved: UnservedListeners
    refusals: Refusals = field(default_factory=Refusals)
    timers: set[asyncio.Task[None]] = field(default_factory=set)
    """The tasks that will queue events later. They end with the term."""
    retries: set[Event] = field(default_factory=set)
    """The events that wait for their retry."""

    def find_known_content(self, topic: TopicName, node: ZkNode) -> TopicAssignment | None:
        """Return the content of a topic's znode if the standby has read exactly this version."""
        return self.standby.known.content(topic, node)

    def enqueue_later(self, event: Event, delay_ms: float) -> None:
        """Queue an event after a delay, if this term still lasts then."""

        async def wait() -> None:
            await self.clock.sleep_ms(delay_ms)
            self.enqueue(event)

        self.end_with_term(start_task(wait(), name=f"timer of {type(event).__name__}"))

    def retry_later(self, event: Event) -> None:
        """Queue an event after `RETRY_MS`. Several calls before that make one retry."""
        if event in self.retries:
            return
        self.retries.add(event)

        async def wait() -> None:
            await self.clock.sleep_ms(RETRY_MS)
            self.retries.discard(event)
            self.enqueue(event)

        self.end_with_term(start_task(wait(), name=f"retry of {type(event).__name__}"))

    def end_with_term(self, timer: asyncio.Task[None]) -> None:
        """End a background task together with the term."""
        self.timers.add(timer)
        timer.add_done_callback(self.timers.discard)

    def stop_timers(self) -> None:
        """Cancel the background tasks, so that nothing more is queued for this term."""
        for timer in self.timers:
            timer.cancel()

    def send_requests(self) -> None:
        """Send the requests gathered so far. The rest is sent at the event's end."""
        self.batch.flush(self.channels)

    async def send_all_requests(self) -> None:
        """Like `send_requests`, for large batches. The operation waits, so the state does not change."""
        await self.batch.flush_gently(self.channels)
