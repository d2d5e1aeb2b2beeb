"""A controller process without a process: the production `Controller`, and the ways in which a real one can end."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from kio.static.protocol import RequestPayload
from prometheus_client import CollectorRegistry

from controller_core.controller.controller import Controller
from controller_core.controller.loop.clock import Clock
from controller_core.controller.role.seams import Seams
from controller_core.controller.serving.metrics import ControllerMetrics
from controller_core.controller.term.term import Term
from controller_core.journal.batches import Journal, NoJournal
from controller_core.model.ids import BrokerId
from controller_core.model.listeners import ControllerListeners
from controller_core.model.metadata import Broker, Endpoint
from controller_core.process.run import SERVED_APIS
from controller_core.wire.link import BrokerLink
from controller_core.wire.messages import ControlRequest, ControlResponse
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.session import (
    TreeWatch,
    Watch,
    WriteOp,
    ZkError,
    ZkNode,
    ZkSession,
)
from simulation.brokers import SimulatedBroker, SimulatedBrokerLink
from simulation.zookeeper import SimulatedZooKeeper

T = TypeVar("T")

LISTENERS = ControllerListeners(
    endpoints=(Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host="controller", port=9000),)
)
"""One address, under whatever names brokers have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """The settings of a controller process in tests."""

    unclean_leader_election_enable: bool = False
    auto_leader_rebalance_enable: bool = False
    leader_imbalance_per_broker_percentage: int = 10
    leader_imbalance_check_interval_seconds: int = 300
    delete_topic_enable: bool = True
    removed_replicas_retention_days: int = 90
    num_partitions: int = 1
    default_replication_factor: int = 1
    remote_log_storage_system_enable: bool = False
    zookeeper_timeout_ms: int = 60_000
    brokers_timeout_ms: int = 30_000
    hot_standby: bool = True
    journal_snapshot_interval_seconds: int = 3600
    journal_alive_interval_seconds: int = 10


@dataclass(slots=True)
class Life:
    """Whether a process still runs, and with which of its acts it dies: the N-th write or the N-th control request."""

    last_write: int | None = None
    last_request: int | None = None
    writes: int = 0
    requests: int = 0
    is_over: bool = False
    errors: list[Exception] = field(default_factory=list)
    """What the next reads meet instead of an answer."""

    async def unless_over(self, act: Awaitable[T]) -> T:
        """The result of an act; a dead process never learns of it."""
        result = await act
        if self.is_over:
            await self.never()
        return result

    async def never(self) -> NoReturn:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("unreachable: nobody completes that future")


class MortalSession(DelegatingSession):
    """A `ZkSession` that falls silent when its process dies, as a real one does between two instructions."""

    def __init__(self, session: ZkSession, life: Life) -> None:
        super().__init__(session)
        self._life = life

    async def wait_connected(self, timeout_ms: int) -> bool:
        return not self._life.is_over and await self._session.wait_connected(timeout_ms)

    async def read_many(self, paths: Sequence[str]) -> list[ZkNode | None]:
        return await self._read(lambda: self._session.read_many(paths))

    async def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
        return await self._read(lambda: self._session.children_many(paths))

    async def read_watched(self, paths: Sequence[str], watch: Callable[[str], Watch]) -> list[ZkNode | None]:
        return await self._read(lambda: self._session.read_watched(paths, watch))

    async def children_watched(self, path: str, watch: Watch) -> tuple[str, ...] | None:
        return await self._read(lambda: self._session.children_watched(path, watch))

    async def watch_tree(self, path: str, watch: TreeWatch) -> Callable[[], Awaitable[None]]:
        return await self._read(lambda: self._session.watch_tree(path, watch))

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        result = (await self.transact_many([ops]))[0]
        if isinstance(result, ZkError):
            raise result
        return result

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        life = self._life
        if life.is_over:
            await life.never()
        if life.last_write is not None and life.writes + len(transactions) >= life.last_write:
            await self._session.transact_many(transactions[: life.last_write - life.writes])
            life.is_over = True
            await life.never()
        life.writes += len(transactions)
        return await life.unless_over(self._session.transact_many(transactions))

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        if self._life.is_over:
            await self._life.never()
        if self._life.errors:
            raise self._life.errors.pop(0)
        return await self._life.unless_over(read())


class MortalLink:
    """A `BrokerLink` over which nothing goes any more when its process is dead."""

    def __init__(self, link: BrokerLink, life: Life) -> None:
        self._link = link
        self._life = life

    async def send(self, request: ControlRequest) -> ControlResponse:
        life = self._life
        life.requests += 1
        if life.last_request is not None and life.requests >= life.last_request:
            life.is_over = True
        if life.is_over:
            await life.never()
        return await life.unless_over(self._link.send(request))

    async def reach(self) -> None:
        if self._life.is_over:
            await self._life.never()
        await self._life.unless_over(self._link.reach())

    async def close(self) -> None:
        await self._link.close()


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
        """The present term; it must be the controller."""
        term = self.controller.term
        assert term is not None, f"{self.id} is not the controller"
        return term

    @property
    def is_active(self) -> bool:
        return self.controller.term is not None and not self.life.is_over and not self.running.done()

    @property
    def terms(self) -> int:
        """How often it has become the controller."""
        return int(self.metric("kontroller_terms_total") or 0)

    def metric(self, name: str, **labels: str) -> float | None:
        """The value of a metric; None where it has none yet."""
        return self.registry.get_sample_value(name, labels)

    @property
    def unexpected_errors(self) -> int:
        samples = (sample for metric in self.registry.collect() for sample in metric.samples)
        return int(sum(sample.value for sample in samples if sample.name == "kontroller_event_errors_total"))

    async def answer(self, request: RequestPayload) -> Any:
        """What the process answers to a request, in the newest version of both."""
        return await self.controller.answer(request)

    async def kill(self, *, session_ends: bool = True) -> None:
        """SIGKILL: nothing more is written or sent. The session ends now, or when the test says so: `end_session`."""
        self.life.is_over = True
        await self._end()
        if session_ends:
            await self.end_session()

    async def end_session(self) -> None:
        """ZooKeeper gives the session up."""
        await self.session.close()

    async def stop(self) -> None:
        """SIGTERM: the role is given back."""
        self.life.last_write = self.life.last_request = None
        await self._end()
        await self.session.close()

    async def _end(self) -> None:
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)

    def raise_failure(self) -> None:
        """Raises what ended the process by itself, if anything did."""
        if not self.life.is_over and self.running.done() and not self.running.cancelled():
            self.running.result()
