"""The picture of a cluster follows its ZooKeeper by watches alone, whatever happens to the connection."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from controller_core.model.ids import BrokerId, ControllerEpoch, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import LeaderAndIsr, ReplicaAssignment, TopicAssignment
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, SetData, WriteOp
from controller_operator.cluster_view import ClusterView, ControllerKind
from controller_operator.observation.observer import ClusterObserver, NotCurrent
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession

ORDERS = TopicPartition(TopicName("orders"), PartitionId(0))


class Observed:
    """An observer of a simulated ZooKeeper, and a session that others write with."""

    def __init__(self) -> None:
        self.zookeeper = SimulatedZooKeeper()
        self.others = self.zookeeper.session()
        self.own: list[SimulatedSession] = []
        self.observer = ClusterObserver(self._open, debounce_ms=0)

    async def write(self, *ops: WriteOp) -> None:
        await self.others.transact(ops)

    async def create_topic(self) -> None:
        content = TopicAssignment(
            topic_id=None, partitions={ORDERS.partition: ReplicaAssignment(replicas=(BrokerId(1), BrokerId(2)))}
        )
        await self.write(
            Create(path=paths.topic(ORDERS.topic), data=codecs.encode_topic(content)),
            Create(path=paths.partitions(ORDERS.topic)),
            Create(path=paths.partition(ORDERS)),
            Create(path=paths.partition_state(ORDERS), data=state(1, 1, 2)),
        )

    async def seen(self, isr: tuple[int, ...]) -> ClusterView:
        """The first current view in which the partition has this ISR."""
        async with asyncio.timeout(5):
            observation = await self.observer.wait_for(
                lambda seen: seen.trouble is None and seen.view is not None and isr_of(seen.view) == isr
            )
        assert observation.view is not None
        return observation.view

    async def _open(self) -> SimulatedSession:
        self.own.append(self.zookeeper.session())
        return self.own[-1]


def state(leader: int, *isr: int) -> bytes:
    members = tuple(BrokerId(member) for member in isr)
    return codecs.encode_partition_state(LeaderAndIsr(leader=BrokerId(leader), isr=members), ControllerEpoch(1))


def isr_of(view: ClusterView) -> tuple[int, ...]:
    topic = view.topics.get(ORDERS.topic)
    found = topic.states.get(ORDERS.partition) if topic else None
    return tuple(found.leader_and_isr.isr) if found else ()


@pytest.fixture
async def observed() -> AsyncIterator[Observed]:
    """A cluster with Kafka's parent znodes, one broker-less controller, and the observer at work."""
    cluster = Observed()
    parents = (
        "/brokers",
        paths.BROKER_IDS,
        paths.TOPICS,
        "/admin",
        paths.DELETE_TOPICS,
        "/config",
        paths.TOPIC_CONFIGS,
    )
    await cluster.write(*(Create(path=path) for path in parents))
    await cluster.write(
        Create(path=paths.CONTROLLER_EPOCH, data=b"4"),
        Create(path=paths.CONTROLLER, data=codecs.encode_controller(BrokerId(1000), 0)),
    )
    cluster.observer.start()
    yield cluster
    await cluster.observer.stop()


async def test_a_new_topic_and_every_change_of_its_isr_are_seen(observed: Observed) -> None:
    await observed.create_topic()
    view = await observed.seen((1, 2))
    assert view.controller is not None
    assert (view.controller.id, view.controller.epoch, view.controller.kind) == (1000, 4, ControllerKind.KONTROLLER)
    for isr in ((1,), (2, 1), (1, 2)):
        await observed.write(SetData(path=paths.partition_state(ORDERS), data=state(isr[0], *isr)))
        await observed.seen(isr)


async def test_what_changes_while_the_connection_is_away_is_seen_afterwards(observed: Observed) -> None:
    await observed.create_topic()
    await observed.seen((1, 2))
    observed.zookeeper.disconnect(observed.own[-1])
    await observed.write(SetData(path=paths.partition_state(ORDERS), data=state(2, 2)))
    observed.zookeeper.reconnect(observed.own[-1])
    await observed.seen((2,))


async def test_an_expired_session_loses_nothing(observed: Observed) -> None:
    await observed.create_topic()
    await observed.seen((1, 2))
    observed.zookeeper.expire(observed.own[-1])
    await observed.write(SetData(path=paths.partition_state(ORDERS), data=state(2, 2)))
    await observed.seen((2,))


async def test_a_topic_in_which_nothing_changed_stays_the_same_object(observed: Observed) -> None:
    await observed.create_topic()
    before = await observed.seen((1, 2))
    await observed.write(SetData(path=paths.CONTROLLER_EPOCH, data=b"5"))
    async with asyncio.timeout(5):
        after = await observed.observer.wait_for(
            lambda seen: seen.view is not None and seen.view.controller is not None and seen.view.controller.epoch == 5
        )
    assert after.view is not None
    assert after.view.topics[ORDERS.topic] is before.topics[ORDERS.topic]


async def test_before_there_is_a_session_nothing_can_be_written() -> None:
    with pytest.raises(NotCurrent):
        _ = Observed().observer.session
