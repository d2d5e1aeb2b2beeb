"""A whole installation in one process: brokers, ZooKeeper, our controller, an API server, and an operator with mishaps."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from kio.schema.alter_replica_log_dirs.v2 import AlterReplicaLogDirsRequest
from kio.schema.describe_log_dirs.v2 import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v4 import DescribeLogDirsRequest as DisksRequest
from kio.schema.describe_log_dirs.v4 import DescribeLogDirsResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import Unreachable
from controller_core.client.loads.cluster_loads import BrokerLoad, ClusterLoads, PartitionLoad
from controller_core.client.log_dirs.log_sizes import BrokerClient
from controller_core.client.transport.request_client import Address, ControllerClient
from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.wire.link import BrokerUnreachable
from controller_core.zk import paths
from controller_core.zk.session import ConnectionLost, Create, TreeWatch, Watch, WriteOp, ZkError, ZkNode, ZkSession
from controller_operator.kubernetes.object_api import ObjectApi
from controller_operator.plans.rebalance.looking import Planned
from controller_operator.reconciling.measuring.plan_maker import PlanMaker
from controller_operator.reconciling.runtime import OperatorRuntime
from controller_operator.settings import OperatorSettings
from simulation.broker_state import DIRECTORIES
from simulation.cluster import Cluster
from simulation.cluster.names import tp
from simulation.controller_client import Answer, SimulatedControllerClient
from simulation.mortality import MortalSession
from simulation.zookeeper_session import SimulatedSession
from tests.unit.operator.crashes.operated import CLUSTER, Operated
from tests.unit.operator.running.simulated_watcher import SimulatedWatcher

T = TypeVar("T")
BROKERS = (1, 2, 3, 4, 5, 6)
_REPLICATION_PAUSE_S = 0.5
_COPIED_BYTES_PER_S = 1_000


class World(Operated):
    """See `Operated`."""

    def __init__(self) -> None:
        super().__init__()
        self.is_zookeeper_away = False
        self._sessions: list[SimulatedSession] = []
        self.cluster = Cluster()
        self.cluster.clock = self.clock
        self.cluster.zk.tree.now_ms = self.cluster.clock.now_ms
        self.sizes_asked: list[tuple[float, int]] = []
        """The times at which brokers were asked for the sizes of logs, in the loop's time, and the brokers."""
        self._unheard: deque[Callable[[], object]] = deque()
        self.silent: set[int] = set()
        """The brokers that never say how large their logs are."""
        self.disks: dict[int, DescribeLogDirsResponse] = {}
        """The brokers' answers about their disks. Brokers that are missing here have a release that cannot answer."""
        self.disks_asked: list[tuple[float, int]] = []
        """The times at which brokers were asked for their disks, in the loop's time, and the brokers."""
        self.idle: set[int] = set()
        """The brokers that copy nothing."""

    def new_operator(self, api: ObjectApi, now: Callable[[], datetime]) -> OperatorRuntime:
        settings = OperatorSettings(all_namespaces=True)
        watcher = SimulatedWatcher(api)
        return OperatorRuntime(
            settings,
            api,
            watcher,
            self._connect,
            self._client,
            now,
            open_broker=self._broker_client,
            make_plan_maker=partial(PlanMaker, describe=self._describe_loads, compute=_compute_here),
        )

    def kafka(self) -> Mapping[str, Any]:
        """Return the state in the znodes."""
        cluster, tree = self.cluster, self.cluster.zk.tree
        topics = [TopicName(name) for name in tree.children(paths.TOPICS) or ()]
        return {
            "topics": {
                name: {str(at): str(each) for at, each in cluster.topic(name).partitions.items()} for name in topics
            },
            "leaders": {str(at): str(self.find_leader(at)) for name in topics for at in self.partitions(name)},
            "configs": {name: str(cluster.data(paths.topic_config(name))) for name in topics},
            "limits": {
                "wanted": [*(tree.children(paths.THROTTLES) or ())],
                "set": str(cluster.data(paths.THROTTLES)),
                "brokers": {
                    name: str(cluster.data(f"{paths.BROKER_CONFIGS}/{name}"))
                    for name in tree.children(paths.BROKER_CONFIGS) or ()
                },
            },
            "requests": [*(tree.children("/admin") or ()), *(tree.children(paths.DELETE_TOPICS) or ())],
            "features": str(cluster.data(paths.FEATURE)),
            "log dirs": {
                str(broker): str(sorted((*each.directories.moved.items(), *each.directories.futures.items())))
                for broker, each in cluster.brokers.items()
            },
        }

    def partitions(self, topic: str) -> list[TopicPartition]:
        return [tp(topic, number) for number in self.cluster.topic(topic).partitions]

    def find_leader(self, partition: TopicPartition) -> tuple[int, list[int]] | None:
        """Return the leader and the ISR, or None if there was none yet."""
        if not self.cluster.exists(paths.partition_state(partition)):
            return None
        leader, isr = self.cluster.leadership(partition)
        return leader, sorted(isr)

    def take_zookeeper_away(self) -> None:
        """Take ZooKeeper away from the operator. Brokers and the controller may lose it as well."""
        self.is_zookeeper_away = True
        for session in self._sessions:
            self.cluster.zk.disconnect(session)

    def bring_zookeeper_back(self) -> None:
        self.is_zookeeper_away = False
        for session in self._sessions:
            self.cluster.zk.reconnect(session)

    def hear(self, tell: Callable[[], object]) -> None:
        """Tell the operator of an event, now or later."""
        self._unheard.append(tell)
        if self.late_s:
            asyncio.get_running_loop().call_later(self.late_s, self.hear_all)
        else:
            self.hear_all()

    def hear_all(self) -> None:
        """Deliver all events up to now. ZooKeeper promises that a client hears of a change before it reads the new
        data."""
        while self._unheard:
            self._unheard.popleft()()

    async def _connect(self, _address: str) -> ZkSession:
        if self.is_zookeeper_away:
            raise ConnectionLost("nobody answers")
        self._sessions.append(self.cluster.zk.session())
        return _MortalSession(self._sessions[-1], self)

    def _client(self, bootstrap: Sequence[Address], **_: object) -> ControllerClient:
        return _MortalClient(self)

    def _broker_client(self, bootstrap: Sequence[Address], **_: object) -> BrokerClient:
        return _BrokerClient(self, [int(address.host.removeprefix("broker-")) for address in bootstrap])

    async def _describe_loads(self, _servers: object, _security: object, between_looks_s: float) -> ClusterLoads:
        """Return the brokers and partitions as they are after the time of two looks."""
        await asyncio.sleep(between_looks_s)
        cluster = self.cluster
        topics = {TopicName(name): cluster.topic(name) for name in cluster.zk.tree.children(paths.TOPICS) or ()}
        partitions = {
            at: (assignment.target, self.find_leader(at) or (None, []))
            for name, topic in topics.items()
            for at, assignment in ((tp(name, number), each) for number, each in topic.partitions.items())
        }
        holders = {broker for replicas, _ in partitions.values() for broker in replicas}
        return ClusterLoads(
            cluster_id="a-cluster",
            taken_at_s=self.clock.now_ms() / 1000,
            brokers=tuple(
                BrokerLoad(id=BrokerId(number), is_live=number in cluster.live, takes_replicas=number in cluster.live)
                for number in sorted({*cluster.live, *holders})
            ),
            partitions={
                at: PartitionLoad(
                    replicas=replicas,
                    isr=tuple(map(BrokerId, isr)),
                    leader=None if leader is None else BrokerId(leader),
                    size_bytes=1_000,
                )
                for at, (replicas, (leader, isr)) in partitions.items()
            },
        )


async def _compute_here(compute: Callable[[], Planned]) -> Planned:
    return compute()


class _MortalSession(MortalSession):
    """A session whose transactions count as writes of the operator."""

    def __init__(self, session: SimulatedSession, world: World) -> None:
        super().__init__(session, world.life)
        self._simulated = session
        self._world = world

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        async def hear_and_read() -> T:
            self._world.hear_all()
            return await read()

        return await super()._read(hear_and_read)

    async def read_watched(self, paths: Sequence[str], watch: Callable[[str], Watch]) -> list[ZkNode | None]:
        def late(path: str) -> Watch:
            told = watch(path)
            return lambda event: self._world.hear(partial(told, event))

        return await super().read_watched(paths, late)

    async def children_watched(self, path: str, watch: Watch) -> tuple[str, ...] | None:
        return await super().children_watched(path, lambda event: self._world.hear(partial(watch, event)))

    async def watch_tree(self, path: str, watch: TreeWatch) -> Callable[[], Awaitable[None]]:
        return await super().watch_tree(path, lambda changed: self._world.hear(partial(watch, changed)))

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        return [answer for ops in transactions for answer in await self._transact(ops)]

    async def _transact(self, ops: Sequence[WriteOp]) -> list[tuple[str, ...] | ZkError]:
        async def act() -> list[tuple[str, ...] | ZkError]:
            return await self._simulated.transact_many([ops])

        async def lose(is_done: bool) -> list[tuple[str, ...] | ZkError]:
            zk = self._world.cluster.zk
            (zk.lose_next_response if is_done else zk.fail_before_apply)(self._simulated)
            return await act()

        return await self._world.write(f"transact {ops[0].path}", act, lose)


class _MortalClient:
    """The way to the controller."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._client = SimulatedControllerClient(self._find_controller)

    async def ask(self, request: RequestPayload, response_type: type[Any]) -> Any:
        async def act() -> Any:
            return await self._client.ask(request, response_type)

        async def lose(is_done: bool) -> Any:
            if not is_done:
                raise Unreachable("nobody answers")
            self._client.answers_to_lose += 1
            return await act()

        return await self._world.write(type(request).__name__, act, lose)

    def _find_controller(self) -> Answer | None:
        active = next((process for process in self._world.cluster.processes if process.is_active), None)
        return active.answer if active else None


class _BrokerClient:
    """The way to one broker. An operator that is dead learns nothing."""

    def __init__(self, world: World, listeners: Sequence[int]) -> None:
        self._world = world
        self._listeners = listeners
        self._client = SimulatedControllerClient(lambda: self._answer)
        self._life = world.life

    async def ask_any(self, request: RequestPayload, response_type: type[Any]) -> Any:
        async def act() -> Any:
            return await self._client.ask(request, response_type)

        async def lose(is_done: bool) -> Any:
            if is_done:
                await act()
            raise Unreachable("the connection was lost")

        if isinstance(request, AlterReplicaLogDirsRequest):
            return await self._world.write(type(request).__name__, act, lose)
        response = await act()
        return await self._life.never() if self._life.is_over else response

    async def _answer(self, request: RequestPayload) -> ResponsePayload:
        (number,) = self._listeners
        if isinstance(request, DisksRequest):
            self._world.disks_asked.append((asyncio.get_running_loop().time(), number))
            if number not in self._world.disks or number not in self._world.cluster.live:
                raise Unreachable("it says nothing")
            return self._world.disks[number]
        if isinstance(request, AlterReplicaLogDirsRequest):
            return await self._ask_broker(self._world.cluster.broker(number).alter_replica_log_dirs(request))
        if not isinstance(request, DescribeLogDirsRequest):
            raise Unreachable("it only says what is in its log directories")
        self._world.sizes_asked.append((asyncio.get_running_loop().time(), number))
        if number in self._world.silent:
            await asyncio.Event().wait()
        return await self._ask_broker(self._world.cluster.broker(number).describe_log_dirs(request))

    async def _ask_broker(self, answer: Coroutine[Any, Any, ResponsePayload]) -> ResponsePayload:
        try:
            return await answer
        except BrokerUnreachable as error:
            raise Unreachable(str(error)) from error


@asynccontextmanager
async def installation() -> AsyncIterator[World]:
    """Six brokers, a controller in charge, followers that catch up, and the KafkaCluster `demo`; no operator yet."""
    world = World()
    for number in BROKERS:
        world.cluster.support(number, f=(1, 3))
    world.cluster.write(
        Create(path="/cluster"), Create(path=paths.CLUSTER_ID, data=b'{"version":"1","id":"a-cluster"}')
    )
    world.cluster.start_brokers(*BROKERS)
    for number in BROKERS:
        world.cluster.broker(number).directories.paths = DIRECTORIES
    await world.cluster.serve()
    await world.apply(CLUSTER.kind, CLUSTER.name, {"zookeeper": {"connect": "zk:2181"}})
    replicating = asyncio.create_task(_replicate(world))
    try:
        yield world
    finally:
        replicating.cancel()
        await asyncio.gather(replicating, return_exceptions=True)
        await world.cluster.close()


async def _replicate(world: World) -> None:
    while True:
        if world.cluster.has_joining_followers():
            await world.cluster.replicate()
        await asyncio.sleep(_REPLICATION_PAUSE_S)
        _copy(world.cluster, world.idle, int(_COPIED_BYTES_PER_S * _REPLICATION_PAUSE_S))


def _copy(cluster: Cluster, idle: set[int], most_bytes: int) -> None:
    """Let every follower copy that many bytes of each partition, or the rest of it."""
    for broker in (each for each in cluster.brokers.values() if each.id not in idle):
        for partition in filter(broker.follows, broker.replicas):
            size, leader = broker.log_bytes.get(partition, 0), cluster.leader_of(partition)
            left = leader.log_bytes.get(partition, 0) - size if leader else 0
            broker.log_bytes[partition] = size + max(0, min(left, most_bytes))
        broker.directories.copy(broker.log_bytes, most_bytes)
