"""Several brokers' replicas in one event loop, over simulated disks, with a network and a controller between them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from uuid import UUID

from controller_core.model.ids import (
    INITIAL_LEADER_EPOCH,
    NO_LEADER,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import LeaderRecoveryState
from controller_core.wire.messages import (
    ErrorCode,
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from replica_broker.counters import BrokerCounters
from replica_broker.log.config import LogConfig
from replica_broker.log.directories import LogDirectories
from replica_broker.replicas.partition import Partition
from replica_broker.replicas.replicas import Replicas
from replica_broker.replicas.requests import Asked, Fetch, Fetched
from replica_broker.replicas.seams import IsrRefused, IsrToWrite, IsrWriter, IsrWriteUncertain, IsrWritten
from replica_broker.replicas.settings import ReplicaSettings
from simulation.fast_loop import LoopClock
from simulation.replicas.disk import Crashed, SimulatedDisk, run_at_once
from simulation.replicas.leader_links import SimulatedNetwork
from tests.unit.replica_broker.replicas.messages import batch, messages_in, values_in

A, B, C = map(BrokerId, (1, 2, 3))
ORDERS = TopicPartition(TopicName("orders"), PartitionId(0))
ORDERS_1 = TopicPartition(TopicName("orders"), PartitionId(1))
FIRST_VERSION = PartitionEpoch(0)
ORDERS_ID = TopicId(UUID(int=0xBEEF))
TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The contents of the state znode and of the topic's znode about a partition."""

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    leader: BrokerId
    leader_epoch: LeaderEpoch = INITIAL_LEADER_EPOCH
    partition_epoch: PartitionEpoch = FIRST_VERSION
    recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


@dataclass(slots=True)
class Controller:
    """The states and their writer, which checks versions as ZooKeeper does."""

    states: dict[TopicPartition, State] = field(default_factory=dict)
    deaf_to: set[BrokerId] = field(default_factory=set)
    """Brokers whose requests do not arrive."""
    answers_to_lose: int = 0
    ineligible: set[BrokerId] = field(default_factory=set)
    writes: list[IsrToWrite] = field(default_factory=list)

    async def write(self, isr: IsrToWrite) -> IsrWritten | IsrRefused:
        """An `IsrWriter`, by the controller's rules."""
        if isr.leader in self.deaf_to:
            raise IsrWriteUncertain("no controller answers")
        outcome = self._decide(isr)
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            raise IsrWriteUncertain("the answer was lost")
        return outcome

    def _decide(self, isr: IsrToWrite) -> IsrWritten | IsrRefused:
        self.writes.append(isr)
        state = self.states[isr.topic_partition]
        if isr.leader_epoch != state.leader_epoch:
            return IsrRefused(error_code=ErrorCode.fenced_leader_epoch)
        is_same = (state.isr, state.recovery_state) == (isr.isr, isr.recovery_state)
        if not (is_same and isr.partition_epoch <= state.partition_epoch):
            if isr.partition_epoch != state.partition_epoch:
                return IsrRefused(error_code=ErrorCode.invalid_update_version)
            if self.ineligible & set(isr.isr):
                return IsrRefused(error_code=ErrorCode.ineligible_replica)
            state = replace(
                state,
                isr=isr.isr,
                recovery_state=isr.recovery_state,
                partition_epoch=PartitionEpoch(state.partition_epoch + 1),
            )
            self.states[isr.topic_partition] = state
        return IsrWritten(
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            isr=state.isr,
            recovery_state=state.recovery_state,
        )

    def elect(
        self, topic_partition: TopicPartition, leader: BrokerId, isr: Iterable[BrokerId], *, is_clean: bool = True
    ) -> None:
        """Decides about a partition; the replicas learn of it by `Cluster.tell`."""
        state = self.states[topic_partition]
        self.states[topic_partition] = replace(
            state,
            leader=leader,
            isr=tuple(isr),
            leader_epoch=LeaderEpoch(state.leader_epoch + 1),
            partition_epoch=PartitionEpoch(state.partition_epoch + 1),
            recovery_state=LeaderRecoveryState.RECOVERED if is_clean else LeaderRecoveryState.RECOVERING,
        )


@dataclass(slots=True)
class Configs:
    """The `TopicConfigs` of all brokers."""

    config: LogConfig = field(default_factory=LogConfig)
    min_insync: int = 1

    def log_config(self, topic: TopicName) -> LogConfig:
        return self.config

    def min_insync_replicas(self, topic: TopicName) -> int:
        return self.min_insync


class Cluster:
    """See the module. Brokers are started by `start`; partitions are made by `create`."""

    def __init__(
        self,
        *,
        settings: Callable[[BrokerId], ReplicaSettings] | None = None,
        isr_writer: Callable[[BrokerId], IsrWriter] | None = None,
    ) -> None:
        self.clock = LoopClock()
        self.network = SimulatedNetwork()
        self.controller = Controller()
        self.configs = Configs()
        self.disks: dict[BrokerId, SimulatedDisk] = {}
        self.directories: dict[BrokerId, LogDirectories] = {}
        self.counters: dict[BrokerId, BrokerCounters] = {}
        self.running = self.network.running
        self._isr_writer = isr_writer or (lambda _: self.controller)
        self.directory_failures: list[BrokerId] = []
        self._settings = settings or (lambda broker: ReplicaSettings(broker_id=broker, flush_interval_ms=None))

    def start(self, *brokers: BrokerId) -> None:
        """Start brokers, or restart them with the contents of their disks."""
        for broker in brokers:
            disk = self.disks.setdefault(broker, SimulatedDisk())
            directories = LogDirectories.open(
                disk,
                [PurePath("/data/1"), PurePath("/data/2")],
                broker_id=broker,
                cluster_id="cluster",
                config_of=self.configs.log_config,
                beside=run_at_once,
                clock=self.clock,
                on_offline=lambda _, broker=broker: self.running[broker].on_directory_offline(),  # type: ignore[misc]
            )
            self.directories[broker] = directories
            replicas = Replicas(
                self._settings(broker),
                directories,
                self.network.links(broker),
                self._isr_writer(broker),
                self.configs,
                self.clock,
                is_alive=self.running.__contains__,
                counters=self.counters.setdefault(broker, BrokerCounters()),
                on_directory_failed=lambda broker=broker: self.directory_failures.append(broker),  # type: ignore[misc]
            )
            replicas.start()
            self.running[broker] = replicas

    async def crash(self, broker: BrokerId, *, loses_power: bool = False) -> None:
        """End the process at once. Its disk keeps the written data, or the flushed data after a loss of power."""
        replicas = self.running[broker]
        self.network.stop(broker)
        disk = self.disks[broker]
        after = disk.restart() if loses_power else _copy_disk(disk)
        disk.crash()
        self.disks[broker] = after
        with suppress(Crashed):
            await replicas.close()

    async def close(self) -> None:
        """End all brokers."""
        for broker in list(self.running):
            replicas = self.running[broker]
            self.network.stop(broker)
            await replicas.close()
            self.directories[broker].close(replicas.high_watermarks)

    async def create(
        self, *replicas: BrokerId, topic_partition: TopicPartition = ORDERS, isr: Iterable[BrokerId] | None = None
    ) -> None:
        """A new partition, led by its first replica."""
        self.controller.states[topic_partition] = State(
            replicas=replicas, isr=replicas if isr is None else tuple(isr), leader=replicas[0]
        )
        await self.tell(topic_partition)

    async def elect(
        self,
        leader: BrokerId,
        isr: Iterable[BrokerId],
        *,
        topic_partition: TopicPartition = ORDERS,
        is_clean: bool = True,
        tells: Iterable[BrokerId] | None = None,
    ) -> None:
        """Elect another leader, and tell all running replicas, or only some."""
        self.controller.elect(topic_partition, leader, isr, is_clean=is_clean)
        await self.tell(topic_partition, brokers=tells)

    async def tell(
        self,
        topic_partition: TopicPartition = ORDERS,
        *,
        brokers: Iterable[BrokerId] | None = None,
        is_new: bool = False,
    ) -> dict[BrokerId, ErrorCode]:
        """Sends a LeaderAndIsr of the present state."""
        state = self.controller.states[topic_partition]
        answers = {}
        for broker in state.replicas if brokers is None else brokers:
            if broker in self.running:
                request = command(topic_partition, state, self.running, is_new=is_new)
                response = await self.running[broker].on_leader_and_isr_command(request)
                answers[broker] = response.topics[0].partition_errors[0].error_code
        return answers

    async def stop_replica(
        self, broker: BrokerId, *, leader_epoch: int, delete: bool, topic_partition: TopicPartition = ORDERS
    ) -> ErrorCode:
        """Sends a StopReplica."""
        state = StopReplicaPartitionState(
            partition_index=topic_partition.partition, leader_epoch=LeaderEpoch(leader_epoch), delete_partition=delete
        )
        request = StopReplicaRequest(
            controller_id=BrokerId(9),
            controller_epoch=ControllerEpoch(1),
            topic_states=(StopReplicaTopicState(topic_name=topic_partition.topic, partition_states=(state,)),),
        )
        return (await self.running[broker].on_stop_replica_command(request)).partition_errors[0].error_code

    def partition(self, broker: BrokerId, topic_partition: TopicPartition = ORDERS) -> Partition:
        return self.running[broker].hosted[topic_partition]

    async def produce(
        self, broker: BrokerId, *values: str, acks: int = -1, timeout_ms: int = TIMEOUT_MS, to: TopicPartition = ORDERS
    ) -> int:
        """Appends one batch; returns the first offset."""
        appended = await self.running[broker].append(to, batch(*values), acks=acks, timeout_ms=timeout_ms)()
        return appended.first_offset

    async def consume(self, broker: BrokerId, offset: int, *, max_wait_ms: int = 0, min_bytes: int = 1) -> Fetched:
        """Return the records that a consumer gets."""
        asked = Fetch(
            partitions={ORDERS: Asked(offset=offset, max_bytes=1 << 20)}, max_wait_ms=max_wait_ms, min_bytes=min_bytes
        )
        return (await self.running[broker].fetch(asked))[ORDERS]

    def values(self, broker: BrokerId, topic_partition: TopicPartition = ORDERS) -> list[str]:
        """Return all values in a replica's log."""
        return values_in(self.log_bytes(broker, topic_partition))

    def messages(self, broker: BrokerId, topic_partition: TopicPartition = ORDERS) -> dict[int, str]:
        """Return all values in a replica's log, by offset."""
        return dict(messages_in(self.log_bytes(broker, topic_partition)))

    def log_bytes(self, broker: BrokerId, topic_partition: TopicPartition = ORDERS) -> bytes:
        log = self.partition(broker, topic_partition).log
        return log.read(log.log_start_offset, 1 << 30, below=log.log_end_offset)

    async def wait_until(self, condition: Callable[[], bool], *, within_ms: float = 120_000) -> None:
        """Let time pass until the condition is true."""
        deadline_ms = self.clock.monotonic_ms() + within_ms
        while not condition():
            assert self.clock.monotonic_ms() < deadline_ms, "it never came"
            await self.clock.sleep_ms(20)

    async def wait_until_in_sync(self, leader: BrokerId, *members: BrokerId) -> None:
        """Wait until the leader knows that these are the ISR, and no other change is under way."""
        partition = self.partition(leader)
        await self.wait_until(lambda: set(partition.isr) == set(members) and partition.proposed is None)


def command(
    topic_partition: TopicPartition,
    state: State,
    running: Mapping[BrokerId, object],
    *,
    topic_id: TopicId | None = ORDERS_ID,
    is_new: bool = False,
) -> LeaderAndIsrRequest:
    """The LeaderAndIsr that says a state."""
    partition = LeaderAndIsrPartitionState(
        partition_index=topic_partition.partition,
        controller_epoch=ControllerEpoch(1),
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=state.partition_epoch,
        replicas=state.replicas,
        leader_recovery_state=int(state.recovery_state),
        is_new=is_new,
    )
    live = state.leader != NO_LEADER and state.leader in running
    return LeaderAndIsrRequest(
        controller_id=BrokerId(9),
        controller_epoch=ControllerEpoch(1),
        topic_states=(
            LeaderAndIsrTopicState(topic_name=topic_partition.topic, topic_id=topic_id, partition_states=(partition,)),
        ),
        live_leaders=(LeaderAndIsrLiveLeader(broker_id=state.leader, host_name="host", port=9092),) if live else (),
    )


def _copy_disk(disk: SimulatedDisk) -> SimulatedDisk:
    """The disk for the next process on a machine that goes on: nothing is lost."""
    after = SimulatedDisk()
    after._folders = set(disk._folders)
    after._files = {path: replace(content, data=bytearray(content.data)) for path, content in disk._files.items()}
    return after


async def play(scenario: Callable[[Cluster], Awaitable[None]], cluster: Cluster) -> None:
    """Plays a scenario, and ends all brokers."""
    try:
        await scenario(cluster)
    finally:
        await cluster.close()
