"""Several brokers of design v2 in one event loop, over a simulated ZooKeeper, simulated disks and a network."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import Broker, Endpoint
from controller_core.supervision import start_task
from controller_core.zk.session import ZkSession
from replica_broker.log.directories import LogDirectories
from replica_broker.membership.node import UNREGISTERED, Node
from replica_broker.membership.registration import Registration
from replica_broker.replicas.partition import Partition
from replica_broker.replicas.requests import Asked, Fetch, Fetched
from replica_broker.replicas.settings import ReplicaSettings
from replica_broker.v2.admin.topics import Admin
from replica_broker.v2.broker.broker import V2Broker, ensure_parents
from replica_broker.v2.broker.isr_writer import V2IsrWriter
from replica_broker.v2.broker.opened_replicas import OpenedReplicas
from replica_broker.v2.settings import V2Settings
from replica_broker.v2.znodes.partitions import PartitionZnodes, read_partition
from replica_broker.v2.znodes.state_change_queue import StateChangeQueue
from simulation.fast_loop import LoopClock
from simulation.replicas.disk import Crashed, SimulatedDisk, run_at_once
from simulation.replicas.leader_links import SimulatedNetwork
from simulation.zookeeper import SimulatedZooKeeper
from simulation.zookeeper_session import SimulatedSession
from tests.unit.replica_broker.replicas.cluster import Configs
from tests.unit.replica_broker.replicas.messages import batch, values_in

A, B, C, D = map(BrokerId, (1, 2, 3, 4))
TOPIC = TopicName("orders")
ORDERS = TopicPartition(TOPIC, PartitionId(0))
FOLDER, OTHER_FOLDER = PurePath("/data"), PurePath("/more-data")
BOUND = 20


class Cluster:
    """Brokers are started by `start`; topics are made by the admin."""

    def __init__(self, settings: V2Settings | None = None) -> None:
        self.clock = LoopClock()
        self.zookeeper = SimulatedZooKeeper()
        self.network = SimulatedNetwork()
        self.configs = Configs()
        self.settings = settings or V2Settings(state_change_queue_bound=BOUND)
        self.disks: dict[BrokerId, SimulatedDisk] = {}
        self.directories: dict[BrokerId, LogDirectories] = {}
        self.running: dict[BrokerId, OpenedReplicas] = {}
        self.nodes: dict[BrokerId, Node] = {}
        self.sessions: dict[BrokerId, SimulatedSession] = {}
        self.brokers: dict[BrokerId, V2Broker] = {}
        self._tasks: dict[BrokerId, asyncio.Task[None]] = {}
        self.zk: ZkSession = self.zookeeper.session()
        self.admin = Admin(self.zk, timeout_ms=30_000, bound=BOUND)

    async def start(self, *brokers: BrokerId) -> None:
        """Start brokers, or restart them with the contents of their disks. They are registered on return."""
        for broker in brokers:
            await self.spawn(broker)
        await self.wait_until(lambda: all(self.nodes[broker].epoch != UNREGISTERED for broker in brokers))

    async def spawn(self, broker: BrokerId) -> None:
        session = self.sessions[broker] = self.zookeeper.session()
        await ensure_parents(session)
        directories = self.directories[broker] = LogDirectories.open(
            self.disks.setdefault(broker, SimulatedDisk()),
            [FOLDER, OTHER_FOLDER],
            broker_id=broker,
            cluster_id="cluster",
            config_of=self.configs.log_config,
            beside=run_at_once,
            clock=self.clock,
        )
        node = self.nodes[broker] = Node(id=broker, cluster_id="cluster")
        replicas = self.running[broker] = self.network.running[broker] = OpenedReplicas(
            ReplicaSettings(broker_id=broker, flush_interval_ms=None),
            directories,
            self.network.links(broker),
            V2IsrWriter(session),
            self.configs,
            self.clock,
            is_known=node.metadata.__contains__,
        )
        replicas.start()
        endpoint = Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host="here", port=9000 + broker)
        registration = Registration(
            session, node, Broker(id=broker, epoch=UNREGISTERED, endpoints=(endpoint,)), session_timeout_ms=6_000
        )
        self.brokers[broker] = V2Broker(session, node, replicas, registration, self.settings, self.clock)
        self._tasks[broker] = start_task(self.brokers[broker].run(), name=f"broker {broker}")

    async def kill(self, broker: BrokerId) -> None:
        """End the process at once. Its disk keeps the written data. Its session expires."""
        self.network.stop(broker)
        disk = self.disks[broker]
        after = SimulatedDisk()
        after._folders = set(disk._folders)
        after._files = {path: replace(content, data=bytearray(content.data)) for path, content in disk._files.items()}
        disk.crash()
        self.disks[broker] = after
        self._tasks[broker].cancel()
        await asyncio.gather(self._tasks.pop(broker), return_exceptions=True)
        with suppress(Crashed):
            await self.running.pop(broker).close()
        await self.sessions[broker].close()

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for broker, replicas in self.running.items():
            self.network.stop(broker)
            await replicas.close()

    async def create(self, *replicas: BrokerId) -> None:
        """The topic with one partition, which is led and in sync on return."""
        await self.admin.create_topic(TOPIC, assignment={ORDERS.partition: replicas})
        await self.wait_until_led()
        await self.wait_until_isr(*replicas)

    async def znodes(self, where: TopicPartition = ORDERS) -> PartitionZnodes:
        return await read_partition(self.zk, where)

    async def leader(self) -> BrokerId:
        znodes = await self.znodes()
        assert znodes.leader is not None
        return znodes.leader.broker_id

    def partition(self, broker: BrokerId) -> Partition:
        return self.running[broker].hosted[ORDERS]

    def queue(self, broker: BrokerId, *, bound: int = BOUND) -> StateChangeQueue:
        return StateChangeQueue(self.zk, broker, bound=bound)

    async def exists(self, path: str) -> bool:
        return (await self.zk.read_many([path]))[0] is not None

    def has_log(self, broker: BrokerId, where: TopicPartition = ORDERS) -> bool:
        """Return True if the disk has a directory of the partition."""
        return any(self.disks[broker].exists(folder / str(where)) for folder in (FOLDER, OTHER_FOLDER))

    def break_directory(self, broker: BrokerId) -> None:
        """Make the log directory of the partition fail at its next use."""
        path = str(self.directories[broker].find_path(ORDERS))
        self.disks[broker].broken = lambda each: each.startswith(path)

    async def produce(self, broker: BrokerId, *values: str, acks: int = -1) -> int:
        appended = await self.running[broker].append(ORDERS, batch(*values), acks=acks, timeout_ms=20_000)()
        return appended.first_offset

    async def consume(self, broker: BrokerId) -> Fetched:
        asked = Fetch(partitions={ORDERS: Asked(offset=0, max_bytes=1 << 20)})
        return (await self.running[broker].fetch(asked))[ORDERS]

    def values(self, broker: BrokerId) -> list[str]:
        log = self.partition(broker).log
        return values_in(log.read(log.log_start_offset, 1 << 30, below=log.log_end_offset))

    async def wait_until(self, is_so: Callable[[], bool | Awaitable[bool]], *, within_ms: float = 120_000) -> None:
        """Let time pass until the condition is true."""
        deadline_ms = self.clock.monotonic_ms() + within_ms
        while True:
            found = is_so()
            if found if isinstance(found, bool) else await found:
                return
            assert self.clock.monotonic_ms() < deadline_ms, "it never came"
            await self.clock.sleep_ms(20)

    async def wait_until_led(self, *, not_by: BrokerId | None = None) -> BrokerId:
        """Wait until a broker leads, and is open to clients."""

        async def is_led() -> bool:
            leader = (await self.znodes()).leader
            if leader is None or leader.broker_id == not_by or leader.broker_id not in self.running:
                return False
            return ORDERS in self.running[leader.broker_id].opened

        await self.wait_until(is_led)
        return await self.leader()

    async def wait_until_isr(self, *members: BrokerId, where: TopicPartition = ORDERS) -> None:
        async def is_so() -> bool:
            return set((await self.znodes(where)).isr) == set(members)

        await self.wait_until(is_so)


async def play(scenario: Callable[[Cluster], Awaitable[None]], cluster: Cluster | None = None) -> None:
    """Plays a scenario, and ends all brokers."""
    playing = cluster or Cluster()
    try:
        await scenario(playing)
    finally:
        await playing.close()
