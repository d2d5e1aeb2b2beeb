"""A controller process without a process: the production `Controller`, with the ways in which a real one ends."""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kio.static.protocol import RequestPayload
from prometheus_client import CollectorRegistry

from controller_core.controller.controller import Controller
from controller_core.controller.loop.clock import Clock
from controller_core.controller.role.seams import Seams
from controller_core.controller.serving.metrics import ControllerMetrics
from controller_core.controller.term.term import Term
from controller_core.journal.batches import Journal, NoJournal
from controller_core.model.authorization.principal import Caller
from controller_core.model.ids import BrokerId
from controller_core.model.listeners import ControllerListeners
from controller_core.model.metadata import Broker, Endpoint
from controller_core.model.quotas.mutation_quota import UNLIMITED, MutationQuota
from controller_core.model.settings.shared import collect_given
from controller_core.process.run import SERVED_APIS
from controller_core.wire.link import BrokerLink
from simulation.brokers import SimulatedBroker, SimulatedBrokerLink
from simulation.mortality import Life, MortalLink, MortalSession
from simulation.virtual_time import VirtualClock, wait_until_quiet
from simulation.zookeeper import SimulatedZooKeeper

LISTENERS = ControllerListeners(
    endpoints=(Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host="controller", port=9000),)
)
"""One address, for all listener names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """The settings of a controller process in tests."""

    unclean_leader_election_enable: bool | None = False
    unclean_recovery_timeout_ms: int = 5000
    auto_leader_rebalance_enable: bool | None = False
    leader_imbalance_per_broker_percentage: int | None = 10
    leader_imbalance_check_interval_seconds: int | None = 300
    address_cache_seconds: int = 40
    delete_topic_enable: bool | None = True
    topic_deletion_waits_for_absent_brokers: bool = True
    removed_replicas_retention_days: int = 90
    delegation_token_check_interval_ms: int | None = None
    num_partitions: int | None = 1
    default_replication_factor: int | None = 1
    remote_log_storage_system_enable: bool | None = False
    zookeeper_timeout_ms: int = 60_000
    brokers_timeout_ms: int = 30_000
    hot_standby: bool = True
    exclusive: bool = True
    most_queued_requests: int = 500
    journal_snapshot_interval_seconds: int = 3600
    journal_alive_interval_seconds: int = 10

    @property
    def shared(self) -> dict[str, str]:
        """The given settings that brokers' files have, too, by their names there."""
        return collect_given(self)


class Process:
    """A controller process from its start to its end."""

    def __init__(
        self,
        own_id: BrokerId,
        zk: SimulatedZooKeeper,
        brokers: Mapping[BrokerId, SimulatedBroker],
        clock: Clock,
        *,
        life: Life,
        settings: ProcessSettings,
        journal: Journal | None = None,
        listeners: ControllerListeners = LISTENERS,
    ) -> None:
        self.id = own_id
        self.life = life
        self.session = zk.session()
        self.connections_closed = 0
        self._zk = zk
        self._clock = clock
        self.registry = CollectorRegistry()

        async def close_connections() -> None:
            self.connections_closed += 1

        def link(broker: Broker) -> BrokerLink:
            return MortalLink(SimulatedBrokerLink(brokers, broker.id), life)

        self.controller = Controller(
            own_id,
            listeners,
            Seams(
                zk=MortalSession(self.session, life),
                links=link,
                clock=clock,
                close_connections=close_connections,
                journal=journal or NoJournal(),
            ),
            settings,
            ControllerMetrics(self.registry),
            SERVED_APIS,
        )
        self.running = asyncio.create_task(self.controller.run(), name=f"controller-{own_id}")

    @property
    def term(self) -> Term:
        """The current term. The process must be the controller."""
        term = self.controller.term
        assert term is not None, f"{self.id} is not the controller"
        return term

    @property
    def is_active(self) -> bool:
        return self.controller.term is not None and not self.life.is_over and not self.running.done()

    @property
    def terms(self) -> int:
        """The number of times it became the controller."""
        return int(self.metric("kontroller_terms_total") or 0)

    def metric(self, name: str, **labels: str) -> float | None:
        """Return the value of a metric, or None if it has none yet."""
        return self.registry.get_sample_value(name, labels)

    @property
    def unexpected_errors(self) -> int:
        samples = (sample for metric in self.registry.collect() for sample in metric.samples)
        return int(sum(sample.value for sample in samples if sample.name == "kontroller_event_errors_total"))

    async def answer(
        self, request: RequestPayload, quota: MutationQuota = UNLIMITED, caller: Caller | None = None
    ) -> Any:
        """Return the answer to a request, both in their newest versions."""
        return await self.controller.answer(request, quota, caller)

    async def kill(self, *, session_ends: bool = True) -> None:
        """Send SIGKILL: nothing more is written or sent. The session ends now, or later by `end_session`."""
        self.life.is_over = True
        await self._end()
        if session_ends:
            await self.end_session()

    async def end_session(self) -> None:
        """Expire the session in ZooKeeper."""
        await self.session.close()

    async def stop(self) -> None:
        """Send SIGTERM: the process resigns from the role."""
        self.life.last_write = self.life.last_request = None
        await self._end()
        await self.session.close()

    async def _end(self) -> None:
        self.running.cancel()
        if isinstance(self._clock, VirtualClock):
            await wait_until_quiet()
            while not self.running.done():
                self._clock.pass_to_next(math.inf)  # it waits until another controller takes the role
                await wait_until_quiet()
        await asyncio.gather(self.running, return_exceptions=True)

    def raise_failure(self) -> None:
        """Raise the error that ended the process, if any."""
        if not self.life.is_over and self.running.done() and not self.running.cancelled():
            self.running.result()
