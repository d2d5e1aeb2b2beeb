"""The rights of operations: a signature says what an operation may do with its term.

An operation takes the narrowest of five types. `Reads` changes nothing. `Remembers` also changes the cluster state in
memory, logs, counts, and queues events. `Writes` also writes to ZooKeeper, and `Sends` also sends requests to brokers.
`Term` has all rights, for operations that write and send, such as the commit of a leadership. A function that only reads
the cluster state takes a `ReadOnlyState` instead.

mypy refuses uses that a right does not include, and `tests/unit/controller/test_rights.py` refuses signatures with more
rights than needed. At run time there is only the `Term`.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from controller_core.controller.loop.clock import Clock
from controller_core.controller.loop.events import Event
from controller_core.controller.loop.watched_reads import WatchedReads
from controller_core.controller.recording.state_change_log import StateChangeLog
from controller_core.controller.recording.static_configs import StaticConfigs
from controller_core.controller.recording.term_journal import TermJournal
from controller_core.controller.sending.broker_requests import ControllerIdentity
from controller_core.controller.sending.channels import BrokerChannels
from controller_core.controller.sending.log_ends import LogEnds
from controller_core.controller.sending.request_batch import RequestBatch
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.cluster_settings import ClusterSettings
from controller_core.controller.term.refusals import Refusals
from controller_core.controller.term.standby import Standby
from controller_core.controller.term.term import Counts, Pauses, Settings
from controller_core.controller.term.unserved_listeners import UnservedListeners
from controller_core.model.ids import TopicName
from controller_core.model.metadata import TopicAssignment
from controller_core.zk.fenced import FencedWriter
from controller_core.zk.session import ZkNode, ZkSession


class ZkReads(Protocol):
    """The plain reads of a `ZkSession`."""

    async def read_many(self, paths: Sequence[str]) -> list[ZkNode | None]: ...
    async def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]: ...


class Reads(Protocol):
    """Read the cluster state, ZooKeeper, the settings and the clock. A watch that is armed queues an event later."""

    @property
    def identity(self) -> ControllerIdentity: ...
    @property
    def state(self) -> ReadOnlyState: ...
    @property
    def zk(self) -> ZkReads: ...
    @property
    def watched(self) -> WatchedReads[Event]: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def cluster_settings(self) -> ClusterSettings: ...
    @property
    def clock(self) -> Clock: ...
    def find_known_content(self, topic: TopicName, node: ZkNode) -> TopicAssignment | None: ...


class Remembers(Reads, Protocol):
    """Also change the cluster state in memory, log, count, record, and queue events."""

    @property
    def state(self) -> ClusterState: ...
    @property
    def refusals(self) -> Refusals: ...
    @property
    def state_change_log(self) -> StateChangeLog: ...
    @property
    def journal(self) -> TermJournal: ...
    @property
    def counts(self) -> Counts: ...
    @property
    def standby(self) -> Standby: ...
    @property
    def unserved(self) -> UnservedListeners: ...
    def enqueue(self, event: Event, /) -> None: ...
    def enqueue_later(self, event: Event, delay_ms: float) -> None: ...
    def retry_later(self, event: Event) -> None: ...
    def end_with_term(self, timer: asyncio.Task[None]) -> None: ...


class Writes(Remembers, Protocol):
    """Also write to ZooKeeper, fenced by the controller epoch, and remember what was written."""

    @property
    def zk(self) -> ZkSession: ...
    @property
    def writer(self) -> FencedWriter: ...


class Sends(Remembers, Protocol):
    """Also send requests to brokers, ask brokers, and pause between groups of partitions.

    A pause answers other requests, with the rights of their own operations.
    """

    @property
    def batch(self) -> RequestBatch: ...
    @property
    def channels(self) -> BrokerChannels: ...
    @property
    def log_ends(self) -> LogEnds: ...
    @property
    def static_configs(self) -> StaticConfigs: ...
    @property
    def pauses(self) -> Pauses: ...
    def send_requests(self) -> None: ...
    async def send_all_requests(self) -> None: ...
