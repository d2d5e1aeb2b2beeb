"""A hot standby over a real ensemble of ZooKeeper servers: the state that it reads beforehand, and keeps.

The controllers are the production code in this process, and the brokers simulated, so that every read is counted.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import pytest

from controller_core.controller.loop.clock import SystemClock
from controller_core.model.ids import BrokerEpoch, BrokerId, PartitionId, TopicId, TopicName, TopicPartition
from controller_core.model.metadata import Broker, Endpoint, ReplicaAssignment, TopicAssignment
from controller_core.zk import codecs, paths
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.session import (
    ConnectionLost,
    Create,
    CreateMode,
    NodeExists,
    SessionState,
    WriteOp,
    ZkNode,
    ZkSession,
)
from devcluster.clusters.ensemble import ZooKeeperEnsemble
from devcluster.clusters.run_folder import RunFolder
from simulation.brokers import SimulatedBroker
from simulation.cluster.znodes import PARENTS
from simulation.mortality import Life
from simulation.process import Process, ProcessSettings

BROKERS: Final = (1, 2, 3)
PARTITIONS: Final = 50
FIRST, SECOND = BrokerId(1000), BrokerId(2000)
SESSION_TIMEOUT_MS: Final = 30_000
DEADLINE_S: Final = 60.0


@pytest.fixture(scope="module")
def ensemble(servers_folder: RunFolder) -> Iterator[ZooKeeperEnsemble]:
    with ZooKeeperEnsemble(servers_folder) as ensemble:
        yield ensemble


class Counted(DelegatingSession):
    """Counts the states that are read, and the losses of the connection."""

    def __init__(self, session: ZkSession) -> None:
        super().__init__(session)
        self.states_read = 0
        self.losses = 0
        session.add_listener(self._on_state)

    async def read_many(self, paths: Sequence[str]) -> list[ZkNode | None]:
        self.states_read += sum(path.endswith("/state") for path in paths)
        return await super().read_many(paths)

    def _on_state(self, state: SessionState) -> None:
        self.losses += state is SessionState.SUSPENDED


class World:
    """A cluster of simulated brokers, whose controllers have real sessions."""

    def __init__(self, connect: str, cleanup: AsyncExitStack) -> None:
        self.brokers: dict[BrokerId, SimulatedBroker] = {}
        self.topics = 0
        self._connect = connect
        self._cleanup = cleanup

    async def session(self) -> KazooSession:
        session = await KazooSession.connect(
            self._connect, session_timeout_ms=SESSION_TIMEOUT_MS, connect_timeout_ms=30_000
        )
        self._cleanup.push_async_callback(session.close)
        return session

    async def open(self) -> None:
        self._own = await self.session()
        for path in PARENTS:
            await self.write(Create(path=path))
        for number in BROKERS:
            await self._register(BrokerId(number))

    async def write(self, *ops: WriteOp) -> None:
        """Write; retry after every loss of the connection."""
        while True:
            try:
                await self._own.transact(ops)
            except ConnectionLost:
                assert await self._own.wait_connected(SESSION_TIMEOUT_MS)
            except NodeExists:
                return  # by the write whose answer was lost
            else:
                return

    async def _register(self, broker_id: BrokerId) -> None:
        endpoint = Endpoint(
            listener="PLAINTEXT", security_protocol="PLAINTEXT", host=f"broker-{broker_id}", port=9000 + broker_id
        )
        data = codecs.encode_broker(Broker(id=broker_id, epoch=BrokerEpoch(0), endpoints=(endpoint,)))
        path = paths.broker(broker_id)
        await self.write(Create(path=path, data=data, mode=CreateMode.EPHEMERAL))
        (node,) = await self._own.read_many([path])
        assert node is not None
        self.brokers[broker_id] = SimulatedBroker(broker_id, BrokerEpoch(node.czxid))

    async def create_topic(self) -> None:
        self.topics += 1
        name = TopicName(f"topic-{self.topics}")
        assignment = ReplicaAssignment(replicas=tuple(map(BrokerId, BROKERS)))
        content = TopicAssignment(
            partitions={PartitionId(number): assignment for number in range(PARTITIONS)},
            topic_id=TopicId(SystemClock().new_topic_id()),
        )
        await self.write(Create(path=paths.topic(name), data=codecs.encode_topic(content)))
        last = TopicPartition(name, PartitionId(PARTITIONS - 1))
        await wait_until(lambda: all(broker.metadata.partitions.get(last) for broker in self.brokers.values()))

    async def start_controller(self, own_id: BrokerId) -> tuple[Process, Counted]:
        counted = Counted(await self.session())

        class Ensemble:
            def session(self) -> ZkSession:
                return counted

        ensemble: Any = Ensemble()
        process = Process(own_id, ensemble, self.brokers, SystemClock(), life=Life(), settings=ProcessSettings())
        self._cleanup.push_async_callback(process.stop)
        return process, counted


@asynccontextmanager
async def cluster_at(connect: str) -> AsyncIterator[World]:
    async with AsyncExitStack() as cleanup:
        world = World(connect, cleanup)
        await world.open()
        yield world


async def wait_until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - the conditions are over what simulated brokers and metrics say
            await asyncio.sleep(0.01)


def knows_all(process: Process, world: World) -> bool:
    """Return True if it is hot, and has also read the last changes."""
    known = process.controller._standby.known  # only a test needs the moments in between
    is_hot = process.metric("kontroller_standby_hot") == 1
    return is_hot and len(known.state.states) == world.topics * PARTITIONS


async def test_a_standby_stays_hot_through_a_rolling_restart_of_zookeeper(ensemble: ZooKeeperEnsemble) -> None:
    async with cluster_at(f"{ensemble.connect}/rolling") as world:
        first, _ = await world.start_controller(FIRST)
        await wait_until(lambda: first.is_active)
        await world.create_topic()
        second, reads = await world.start_controller(SECOND)
        await wait_until(lambda: knows_all(second, world))
        restarts = ensemble.restart_in_turn()
        while await asyncio.to_thread(next, restarts, None):
            await world.create_topic()
            await wait_until(lambda: knows_all(second, world))
        assert reads.losses, "the standby's own server was among those that were restarted"
        assert first.is_active
        before = reads.states_read
        assert before >= world.topics * PARTITIONS
        await first.kill()
        await wait_until(lambda: second.is_active)
        await wait_until(lambda: all(broker.metadata.controller_id == SECOND for broker in world.brokers.values()))
        assert len(second.term.state.states) == world.topics * PARTITIONS
        assert reads.states_read == before, "a takeover reads what was not known before"
