"""A term: everything an operation needs while this process is the controller.

A term begins when `/controller` is won and ends when it is lost; nothing of it outlives it. Operations are functions over
a term, one module for each procedure of the specification, and reach the world only through what the term holds.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from controller_core.controller.loop.answer_meanings import Meaning
from controller_core.controller.loop.clock import Clock
from controller_core.controller.loop.events import Event
from controller_core.controller.loop.faults import Fault
from controller_core.controller.loop.watched_reads import WatchedReads
from controller_core.controller.recording.state_change_log import StateChangeLog
from controller_core.controller.recording.static_configs import StaticConfigs
from controller_core.controller.recording.term_journal import TermJournal
from controller_core.controller.sending.broker_requests import ControllerIdentity
from controller_core.controller.sending.channels import BrokerChannels
from controller_core.controller.sending.log_ends import LogEnds
from controller_core.controller.sending.request_batch import RequestBatch
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.controller.state.refusals import Refusals
from controller_core.controller.term.standby import Standby
from controller_core.controller.term.unserved_listeners import UnservedListeners
from controller_core.supervision import noticed
from controller_core.zk.fenced import FencedWriter
from controller_core.zk.session import ZkSession


class Settings(Protocol):
    """What operations need to know of the controller's settings."""

    @property
    def unclean_leader_election_enable(self) -> bool:
        """The default of topics that do not say `unclean.leader.election.enable` themselves."""
        ...

    @property
    def unclean_recovery_timeout_ms(self) -> int:
        """How long brokers may take to say how far logs reach before an unclean election; 0: they are not asked."""
        ...

    @property
    def auto_leader_rebalance_enable(self) -> bool:
        """Whether leaders go back to their preferred replicas by themselves."""
        ...

    @property
    def leader_imbalance_per_broker_percentage(self) -> int:
        """How many percent of its leaderships a broker may miss before they are given back."""
        ...

    @property
    def leader_imbalance_check_interval_seconds(self) -> int:
        """How often that is looked at."""
        ...

    @property
    def delete_topic_enable(self) -> bool:
        """Whether topics may be deleted at all."""
        ...

    @property
    def removed_replicas_retention_days(self) -> int:
        """How long it is remembered what a broker has to delete that is not there; 0: for ever."""
        ...

    @property
    def delegation_token_check_interval_ms(self) -> int | None:
        """How often it is looked whether delegation tokens are over; None: the cluster has none."""
        ...

    @property
    def num_partitions(self) -> int | None:
        """The partitions of a topic whose creator does not say how many; None if the cluster's default is unknown."""
        ...

    @property
    def default_replication_factor(self) -> int | None:
        """The replicas of a partition whose creator does not say how many; None if the cluster's default is unknown."""
        ...

    @property
    def remote_log_storage_system_enable(self) -> bool:
        """Whether brokers have remote storage; those that do not refuse to start with topics that want it."""
        ...


class Counts(Protocol):
    """What operations count of what they do."""

    def leaders_elected(self, number: int, *, unclean: int) -> None:
        """So many partitions that had one before got a leader; so many of them from outside the ISR."""
        ...

    def request_refused(self, request: str, error: str, meaning: Meaning) -> None:
        """A broker answered a control request, or one partition in it, with an error; `request`: the name of its type."""
        ...

    def event_failed(self, event: str, fault: Fault) -> None:
        """An event met an error that its operation has no answer for."""
        ...


class Pauses(Protocol):
    """What may be done in the middle of a long operation; `serving.between_groups` is the real one."""

    def are_wanted(self, term: "Term") -> bool:
        """Whether somebody waits for a pause."""
        ...

    async def serve(self, term: "Term") -> None:
        """Does what was waited for. Nothing may be under way, and nothing be decided that is not written."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One term as the controller."""

    identity: ControllerIdentity
    zk: ZkSession
    watched: WatchedReads[Event]
    standby: Standby
    """What was read before the term began; nothing, once the cluster is loaded."""
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
    enqueue: Callable[[Event], None]
    pauses: Pauses
    unserved: UnservedListeners
    refusals: Refusals = field(default_factory=Refusals)
    timers: set[asyncio.Task[None]] = field(default_factory=set)
    """What will queue events later; they end with the term."""

    def enqueue_later(self, event: Event, delay_ms: float) -> None:
        """Queues an event after a while, if this is still the term then."""

        async def wait() -> None:
            await self.clock.sleep_ms(delay_ms)
            self.enqueue(event)

        self.end_with_term(noticed(wait(), name=f"timer of {type(event).__name__}"))

    def end_with_term(self, timer: asyncio.Task[None]) -> None:
        """Something that goes on beside the events, and queues some of them, ends when the term does."""
        self.timers.add(timer)
        timer.add_done_callback(self.timers.discard)

    def stop_timers(self) -> None:
        """Nothing is queued for this term any more."""
        for timer in self.timers:
            timer.cancel()

    def send_requests(self) -> None:
        """Sends what the operation has gathered so far, before it goes on; the rest is sent at the event's end."""
        self.batch.flush(self.channels)

    async def send_all_requests(self) -> None:
        """As `send_requests`, for very much. The operation waits meanwhile: the state does not change."""
        await self.batch.flush_gently(self.channels)
