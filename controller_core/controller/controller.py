"""The controller process: stands for election, holds the role for a term, and handles one event at a time.

Without a term it only watches `/controller`. When it wins the role it runs `on_controller_failover` first. From then on
it handles every event to its end before the next, and sends the brokers the results of each event when the event ends.
It resigns when the role is gone (a fenced write, an expired session, another id in `/controller`), when no broker is
within reach, and after an error that may have left its memory inconsistent. The next controller, perhaps the same
process, reads everything again. `loop.faults` maps errors to consequences. `role` decides when to stand for election.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable

import structlog
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core import gc_pauses
from controller_core.controller import failover, handlers
from controller_core.controller.loop.event_queue import EventQueue, Queued
from controller_core.controller.loop.events import (
    Event,
    Periodic,
    RequestReceived,
    RoleDue,
    RoleEvent,
    SessionEnded,
)
from controller_core.controller.loop.faults import Fault, find_fault
from controller_core.controller.loop.retrying_reads import PatientSession
from controller_core.controller.loop.watched_reads import WatchedReads
from controller_core.controller.recording.state_change_log import StateChangeLog
from controller_core.controller.recording.static_configs import StaticConfigs
from controller_core.controller.recording.term_journal import TermJournal
from controller_core.controller.role.readiness import Readiness
from controller_core.controller.role.role import Role, Won
from controller_core.controller.role.seams import ControllerSettings, Seams
from controller_core.controller.sending.broker_requests import ControllerIdentity
from controller_core.controller.sending.channels import BrokerChannels
from controller_core.controller.sending.log_ends import LogEnds
from controller_core.controller.sending.request_batch import RequestBatch
from controller_core.controller.serving.between_groups import RequestsBetweenGroups
from controller_core.controller.serving.metrics import ControllerMetrics
from controller_core.controller.serving.open_requests import OpenRequests
from controller_core.controller.serving.served_api import AnyServedApi
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.controller.term.cluster_settings import ClusterSettings
from controller_core.controller.term.rights import Writes
from controller_core.controller.term.standby import Standby
from controller_core.controller.term.term import Term
from controller_core.controller.term.traces import is_untouched, take_traces
from controller_core.controller.term.unserved_listeners import UnservedListeners
from controller_core.gc_pauses import gc_paused
from controller_core.model.authorization.principal import Caller
from controller_core.model.ids import BrokerId
from controller_core.model.listeners import ControllerListeners
from controller_core.model.quotas.mutation_quota import UNLIMITED, MutationQuota
from controller_core.supervision import run_until_one_ends
from controller_core.zk import paths
from controller_core.zk.fenced import Fenced, FencedWriter
from controller_core.zk.session import (
    ConnectionLost,
    Delete,
    SessionExpired,
    SessionState,
    ZkError,
)

log = structlog.get_logger()

GIVE_BACK_TIMEOUT_MS = 500
"""The time that a resigning process waits for ZooKeeper to give the role back before its session ends."""


class ZooKeeperGone(Exception):
    """ZooKeeper was out of reach for longer than the configured time. Fatal: the process should end."""


class Controller:
    """One process that is the controller of a cluster, or stands by."""

    def __init__(
        self,
        own_id: BrokerId,
        listeners: ControllerListeners,
        seams: Seams,
        settings: ControllerSettings,
        metrics: ControllerMetrics,
        apis: Iterable[AnyServedApi],
    ) -> None:
        self._id = own_id
        self._listeners = listeners
        self._seams = seams
        self._settings = settings
        self._metrics = metrics
        self._zk = PatientSession(seams.zk, settings.zookeeper_timeout_ms)
        self._queue = EventQueue(seams.clock, most_requests=settings.most_queued_requests)
        self._requests = OpenRequests(apis, seams.clock, self._queue.put)
        self._between_groups = RequestsBetweenGroups(self._queue, self._requests, metrics, lambda: self._term)
        self._standby = Standby(
            seams.zk, seams.clock, is_enabled=settings.hot_standby, on_heat=lambda: self._role.on_heat()
        )
        self._static_configs = StaticConfigs(links=seams.links, clock=seams.clock, enqueue=self._queue.put)
        self._role = Role(own_id, self._zk, seams, settings, self._queue.put, self._standby, self._static_configs)
        self._term: Term | None = None
        self._suspended = asyncio.Event()
        metrics.observe(lambda: self._term, lambda: len(self._queue))
        metrics.observe_role(
            lambda: self._role.hindrance,
            reached=lambda: len(self._role.reach.reached),
            unsupported=lambda: len(self._role.reach.unsupported),
            is_own_id_taken=lambda: self._role.reach.is_own_id_taken,
        )
        if settings.hot_standby:
            metrics.observe_standby(lambda: self._standby.is_hot)

    @property
    def term(self) -> Term | None:
        """The present term; None while this process is not the controller."""
        return self._term

    @property
    def out_of_reach(self) -> Collection[BrokerId]:
        """The registered brokers that did not answer when this process last asked all of them."""
        return self._role.reach.failures

    def check_readiness(self) -> Readiness:
        """Return the state of this process for its probes: controller or standby, and what hinders it."""
        if self._term is not None:
            not_obeying = self._term.refusals.find_standing(self._term.state.brokers)
            return self._role.check_readiness("controller", brokers_not_obeying=not_obeying)
        return self._role.check_readiness("standby", hot=self._standby.is_hot)

    async def run(self) -> None:
        """Stand for election and handle events until cancelled.

        Raises `ZooKeeperGone`, `AccessRefused` and `IdInUse`.
        """
        remove_listener = self._seams.zk.add_listener(self._on_session_state)
        self._queue.put(RoleDue())
        try:
            await run_until_one_ends(self._guard_connection(), self._be_one_of_the_controllers())
        finally:
            remove_listener()
            await self._resign("the process is stopping", hand_over=True)
            self._role.close()
            self._static_configs.close()
            await self._standby.close()

    async def _be_one_of_the_controllers(self) -> None:
        await self._claim_id()
        await run_until_one_ends(self._handle_events(), self._role.keep())

    async def answer(
        self, request: RequestPayload, quota: MutationQuota = UNLIMITED, caller: Caller | None = None
    ) -> ResponsePayload:
        """Answer a request that only the controller answers, in order with the other events.

        The request has the newest version of one of the served APIs, and so has the response. `quota` is the caller's.
        The journal names the caller with the changes; None for a broker.
        """
        received = self._requests.receive(request, quota, caller)
        if self._term is not None and self._requests.needs_cluster_settings(request):
            await self._static_configs.wait_for_first_answers()
        if self._term is None:
            self._requests.refuse(received)
        else:
            await self._queue.put_request(received)
        return await received.answer

    # Events

    async def _handle_events(self) -> None:
        while True:
            queued = await self._queue.next()
            await self._handle(queued)

    async def _handle(self, queued: Queued) -> None:
        event = queued.event
        started_ms = self._seams.clock.monotonic_ms()
        self._metrics.event_queue_time.observe((started_ms - queued.since_ms) / 1000)
        try:
            if isinstance(event, RoleEvent):
                await self._look_at_role(queued)
            elif self._term is not None:
                await self._run_in_term(self._term, queued, lambda term: self._operate(term, event))
        finally:
            if isinstance(event, RequestReceived):
                self._requests.refuse(event)  # no effect if it is answered or waits
        elapsed_ms = self._seams.clock.monotonic_ms() - started_ms
        self._metrics.event_time.labels(type(event).__name__).observe(elapsed_ms / 1000)

    async def _operate(self, term: Term, event: Event) -> None:
        if isinstance(event, RequestReceived):
            await self._requests.answer(term, event)
        else:
            await handlers.handle(term, event)

    async def _run_in_term(self, term: Term, queued: Queued, operation: Callable[[Term], Awaitable[None]]) -> None:
        """Run an operation of a term and send what it gathered. `loop.faults` says what follows from an error."""
        event = queued.event
        # The traces tell afterwards if a failed periodic event changed anything. If not, it is just handled again
        # later.
        before = take_traces(term) if isinstance(event, Periodic) else None
        term.state_change_log.cause = type(event).__name__
        term.journal.begin_event(event, queued.since_ms)
        try:
            with gc_paused():
                # Brokers' urgent requests go first, because the operation may take long.
                await self._between_groups.serve()
                await operation(term)
                await term.send_all_requests()
                self._requests.settle(term)
                await term.journal.end_event()
                await term.state_change_log.write_gently(self._between_groups.serve)
                self._requests.settle(term)
        except Exception as error:
            fault = find_fault(error)
            if fault.policy.may_go_on:
                self._metrics.count_failed_event(type(event).__name__, fault)
            if fault.policy.may_go_on and is_untouched(term, before):
                log.exception("unexpected error, tried again later", handling=repr(event), fault=fault.value)
                term.retry_later(event)
            else:
                await self._end_term(event, error, fault)
        finally:
            term.state_change_log.write()

    async def _end_term(self, event: Event, error: Exception, fault: Fault) -> None:
        """End the term because of an error. If the class of the error ends the process too, raise it."""
        policy = fault.policy
        if policy.may_go_on:
            log.error("unexpected error, resigning", handling=repr(event), fault=fault.value, exc_info=error)
        await self._resign(policy.explain(error), hand_over=policy.gives_role_back, failed=policy.may_go_on)
        if fault is Fault.ZOOKEEPER_GONE:
            raise ZooKeeperGone(self._explain_outage()) from error
        if policy.ends_process:
            raise error
        self._queue.put(RoleDue())

    # The role

    async def _look_at_role(self, queued: Queued) -> None:
        """Read `/controller` and act on its content: keep the term, end it, take the role, or stand by."""
        try:
            node = await self._role.look()
            if self._term is not None:
                is_ours = self._role.is_ours(node)
                is_handed_over = self._role.is_handed_over(node)
                if is_ours and not self._role.reach.is_lost and not is_handed_over:
                    return
                self._term.journal.begin_event(queued.event, queued.since_ms)
                if is_ours and is_handed_over:
                    await self._resign("the role is handed over to Kafka's brokers", hand_over=True)
                elif is_ours:
                    await self._resign("no registered broker is within reach", hand_over=True, failed=True)
                else:
                    await self._resign("/controller is held by another process, or by none")
                node = await self._role.look()
            won = await self._role.stand(node)
        except SessionExpired:
            log.info("session expired while standing for the role")
            return
        except ConnectionLost:
            await self._wait_for_zookeeper()
            self._queue.put(RoleDue())
            return
        if won is not None:
            await self._begin_term(won, queued.event)

    async def _begin_term(self, won: Won, event: Event) -> None:
        taken = Queued(event=event, since_ms=self._seams.clock.monotonic_ms())
        log.info("became the controller", controller_epoch=won.role.epoch, role_was_with=won.taken_from.name)
        self._metrics.terms.inc()
        identity = ControllerIdentity(id=self._id, epoch=won.role.epoch, listeners=self._listeners)
        state = ClusterState(is_journaled=self._seams.journal.is_kept)
        self._term = Term(
            identity=identity,
            zk=self._zk,
            watched=WatchedReads(self._zk, self._queue.put),
            standby=self._standby,
            writer=FencedWriter(
                self._seams.zk, won.role.epoch_version, reconnect_timeout_ms=self._settings.zookeeper_timeout_ms
            ),
            state=state,
            batch=RequestBatch(state, identity),
            channels=BrokerChannels(self._seams.links, self._seams.clock, won.role.epoch, self._queue.put),
            state_change_log=StateChangeLog(identity=identity),
            journal=TermJournal(
                journal=self._seams.journal,
                zk=self._zk,
                identity=identity,
                state=state,
                clock=self._seams.clock,
                snapshot_interval_ms=self._settings.journal_snapshot_interval_seconds * 1000,
                alive_interval_ms=self._settings.journal_alive_interval_seconds * 1000,
                own_config=self._settings.shared,
            ),
            static_configs=self._static_configs,
            log_ends=LogEnds(links=self._seams.links, clock=self._seams.clock),
            counts=self._metrics,
            clock=self._seams.clock,
            settings=self._settings,
            cluster_settings=ClusterSettings(given=self._settings.shared, state=state),
            enqueue=self._queue.put,
            pauses=self._between_groups,
            unserved=UnservedListeners(self._listeners),
        )
        await self._run_in_term(self._term, taken, failover.on_controller_failover)
        if self._term is not None:
            self._role.on_leading(self._term.identity.epoch)
            gc_pauses.freeze()

    async def _resign(self, reason: str, *, hand_over: bool = False, failed: bool = False) -> None:
        """End the term, if there is one: send and answer nothing more. Brokers then look for another controller.

        `failed` means that the next term of this process would probably fail as well.
        """
        term, self._term = self._term, None
        if term is None:
            return
        self._role.end(term.identity.epoch, failed=failed)
        log.warning("resigning", reason=reason, controller_epoch=term.identity.epoch)
        term.journal.end_term(reason)
        term.batch.discard()
        term.stop_timers()
        gc_pauses.unfreeze()
        await term.channels.close()
        for received in self._queue.withdraw_requests():
            self._requests.refuse(received)
        self._requests.refuse_delayed()
        await self._seams.close_connections()
        if hand_over:
            await self._give_back(term)

    async def _give_back(self, term: Writes) -> None:
        if not await self._seams.zk.wait_connected(GIVE_BACK_TIMEOUT_MS):
            return
        try:
            if not await self._role.pass_on(self._seams.zk, term.writer):
                await term.writer.write({paths.CONTROLLER: [Delete(path=paths.CONTROLLER)]})
        except (ZkError, Fenced) as error:
            log.info("/controller is not given back, it ends with the session", reason=str(error))

    async def _claim_id(self) -> None:
        while True:
            try:
                return await self._role.claim_id()
            except (ConnectionLost, SessionExpired):
                await self._wait_for_zookeeper()

    # The session

    def _on_session_state(self, state: SessionState) -> None:
        match state:
            case SessionState.SUSPENDED:
                self._suspended.set()
            case SessionState.EXPIRED:
                self._suspended.set()
                self._queue.put(SessionEnded())
            case SessionState.CONNECTED:
                self._queue.put(RoleDue())
                self._role.on_connected()

    async def _guard_connection(self) -> None:
        while True:
            await self._suspended.wait()
            self._suspended.clear()
            await self._wait_for_zookeeper()

    async def _wait_for_zookeeper(self) -> None:
        if not await self._seams.zk.wait_connected(self._settings.zookeeper_timeout_ms):
            raise ZooKeeperGone(self._explain_outage())

    def _explain_outage(self) -> str:
        return (
            f"ZooKeeper was out of reach for {self._settings.zookeeper_timeout_ms} ms: check its servers and the network, "
            "or allow more time with --zookeeper-timeout-ms"
        )
