"""Leaders that write the ISR themselves, as in seed 004, with ZooKeeper between them and the controller."""

import asyncio
from dataclasses import replace

import pytest

from controller_core.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, PartitionEpoch
from controller_core.model.metadata import LeaderAndIsr, PartitionState
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, SetData, ZkNode
from replica_broker.replicas.errors import NotLeader
from replica_broker.replicas.leading.state_znode import StateZnodeWriter
from replica_broker.replicas.seams import IsrWriter
from replica_broker.replicas.settings import ReplicaSettings
from simulation.fast_loop import run_fast
from simulation.zookeeper import SimulatedZooKeeper
from tests.unit.replica_broker.replicas.cluster import ORDERS, A, B, C, Cluster, play

EPOCH = ControllerEpoch(1)


class World:
    """A cluster, its ZooKeeper, and the controller's hand in it."""

    def __init__(self) -> None:
        self.zookeeper = SimulatedZooKeeper()
        self.session = self.zookeeper.session()
        self.cluster = Cluster(isr_writer=self._writer)

    def _writer(self, broker: BrokerId) -> IsrWriter:
        return StateZnodeWriter(self.zookeeper.session(), ReplicaSettings(broker_id=broker), self.cluster.clock)

    async def create(self, *replicas: BrokerId) -> None:
        path = ""
        for name in paths.partition_state(ORDERS).strip("/").split("/")[:-1]:
            path += f"/{name}"
            await self.session.transact([Create(path=path)])
        await self.session.transact([Create(path=paths.ISR_CHANGE_NOTIFICATION)])
        state = LeaderAndIsr(leader=replicas[0], isr=replicas, leader_epoch=LeaderEpoch(0))
        data = codecs.encode_partition_state(state, EPOCH)
        await self.session.transact([Create(path=paths.partition_state(ORDERS), data=data)])
        await self.cluster.create(*replicas)

    async def state(self) -> PartitionState:
        (node,) = await self.session.read_many([paths.partition_state(ORDERS)])
        assert isinstance(node, ZkNode)
        return codecs.decode_partition_state(ORDERS, node)

    async def elect(self, leader: BrokerId, isr: tuple[BrokerId, ...], *, tells: list[BrokerId]) -> None:
        found = await self.state()
        decided = replace(
            found.leader_and_isr,
            leader=leader,
            isr=isr,
            leader_epoch=LeaderEpoch(found.leader_and_isr.leader_epoch + 1),
        )
        data = codecs.encode_partition_state(decided, EPOCH)
        await self.session.transact([SetData(path=paths.partition_state(ORDERS), data=data)])
        known = self.cluster.controller.states
        known[ORDERS] = replace(
            known[ORDERS],
            leader=leader,
            isr=isr,
            leader_epoch=decided.leader_epoch,
            partition_epoch=PartitionEpoch(found.partition_epoch + 1),
        )
        await self.cluster.tell(brokers=tells)


def test_a_leader_takes_out_who_is_gone_and_takes_in_who_is_back_by_writing_the_state() -> None:
    world = World()

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A)
        await world.create(A, B)
        await cluster.produce(A, "one", timeout_ms=60_000)
        assert (await world.state()).leader_and_isr.isr == (A,)
        cluster.start(B)
        await cluster.tell(brokers=[B])
        await cluster.wait_until_in_sync(A, A, B)
        state = await world.state()
        assert (state.leader_and_isr.isr, state.partition_epoch) == ((A, B), 2)
        assert cluster.partition(A).partition_epoch == 2

    run_fast(play(scenario, world.cluster))


def test_a_stale_leader_commits_nothing_as_its_write_is_refused() -> None:
    """Seed 004, discussion 3."""
    world = World()

    async def scenario(cluster: Cluster) -> None:
        cluster.start(A, B, C)
        await world.create(A, B, C)
        await cluster.produce(A, "committed")
        await world.elect(B, (B, C), tells=[B, C])
        stale = asyncio.create_task(cluster.produce(A, "stale", timeout_ms=300_000))
        await cluster.produce(B, "of B")
        await asyncio.sleep(100)
        assert cluster.partition(A).is_leader
        assert cluster.partition(A).proposed is not None
        assert not stale.done()
        assert (await world.state()).leader_and_isr.isr == (B, C)
        await cluster.tell(brokers=[A])
        with pytest.raises(NotLeader):
            await stale
        await cluster.wait_until_in_sync(B, A, B, C)
        assert cluster.values(A) == ["committed", "of B"]

    run_fast(play(scenario, world.cluster))
