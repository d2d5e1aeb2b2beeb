"""A cluster in one event loop: simulated ZooKeeper and brokers around the production `Controller`.

Brokers register with a session of their own, so a broker's death is the end of its session and a bounce gives it another
epoch. Followers do not fetch; `replicate` lets every leader report those followers that were sent a request to follow it
under its own leader epoch, which is what a real leader would find in sync. `settle` waits until nobody has anything left
to do.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload
from structlog.typing import EventDict

from controller_core.journal.batches import Journal
from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import (
    Broker,
    Endpoint,
    FeatureRange,
    PartitionState,
    ReplicaAssignment,
    TopicAssignment,
)
from controller_core.wire.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ErrorCode,
)
from controller_core.wire.messages.alter_partition import AskedIsr, AskedTopic
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, CreateMode, Delete, SessionId, SetData, WriteOp
from simulation.broker_state import SimulatedReplica
from simulation.brokers import SimulatedBroker
from simulation.process import LISTENERS, Life, Process, ProcessSettings
from simulation.virtual_time import VirtualClock, until_quiet
from simulation.zookeeper import SimulatedZooKeeper

CONTROLLER: Final = BrokerId(1000)
_NOBODY: Final = SessionId(0)
_PARENTS: Final = (
    paths.BROKERS, paths.BROKER_IDS, paths.TOPICS, paths.ADMIN, paths.DELETE_TOPICS, paths.ISR_CHANGE_NOTIFICATION,
    paths.CONFIG, paths.TOPIC_CONFIGS, paths.BROKER_CONFIGS, paths.CONFIG_CHANGES, paths.LOG_DIR_EVENT_NOTIFICATION,
)  # fmt: skip


def tp(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(TopicName(topic), PartitionId(partition))


def ids(numbers: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(number) for number in numbers)


class ObservedZooKeeper(SimulatedZooKeeper):
    """A simulated ZooKeeper that calls observers before every transaction that comes and after every one it applied."""

    def __init__(self) -> None:
        super().__init__()
        self.interventions: list[Callable[[Sequence[WriteOp]], None]] = []
        """Each may write something else before, or raise the error that the transaction ends with."""
        self.observers: list[Callable[[], None]] = []

    def transact(self, ops: Sequence[WriteOp], session_id: SessionId) -> tuple[str, ...]:
        for intervention in self.interventions:
            intervention(ops)
        paths = super().transact(ops, session_id)
        for observer in self.observers:
            observer()
        return paths


class Cluster:
    """Brokers, ZooKeeper and controller processes. Plain methods act at once; the controller sees it in `settle`."""

    def __init__(self, *, empty_zookeeper: bool = False) -> None:
        self.zk = ObservedZooKeeper()
        self.clock = VirtualClock()
        self.zk.tree.now_ms = self.clock.now_ms
        self.brokers: dict[BrokerId, SimulatedBroker] = {}
        self.processes: list[Process] = []
        self.settings = ProcessSettings()
        self.listeners = LISTENERS
        self.journal: Journal | None = None
        """What the processes that are started from now on write their history to."""
        self.logs: list[EventDict] = []
        """What was logged so far."""
        self.surprises_expected = False
        self.features: dict[BrokerId, Mapping[str, FeatureRange]] = {}
        """What brokers say that they support when they register the next time."""
        self._sessions: dict[BrokerId, SessionId] = {}
        self._answered: dict[tuple[BrokerId, TopicPartition], PartitionState] = {}
        """What leaders know from the answers to their last AlterPartition."""
        if not empty_zookeeper:
            self.write(*(Create(path=path) for path in _PARENTS))

    # ZooKeeper

    def write(self, *ops: WriteOp, owner: SessionId = _NOBODY) -> None:
        self.zk.transact(ops, owner)

    def put(self, path: str, data: bytes) -> None:
        """Creates a znode, or writes it."""
        exists = self.zk.tree.read(path) is not None
        self.write(SetData(path=path, data=data) if exists else Create(path=path, data=data))

    def data(self, path: str) -> bytes | None:
        node = self.zk.tree.read(path)
        return node.data if node else None

    def exists(self, path: str) -> bool:
        return self.zk.tree.read(path) is not None

    def state(self, partition: TopicPartition) -> PartitionState:
        node = self.zk.tree.read(paths.partition_state(partition))
        assert node is not None, f"{partition} has no state"
        return codecs.decode_partition_state(partition, node)

    def leadership(self, partition: TopicPartition) -> tuple[int, list[int]]:
        """Leader and ISR, as ZooKeeper has them."""
        state = self.state(partition).leader_and_isr
        return state.leader, list(state.isr)

    def topic(self, name: str) -> TopicAssignment:
        data = self.data(paths.topic(TopicName(name)))
        assert data is not None, f"there is no topic {name}"
        return codecs.decode_topic(TopicName(name), data)

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        return self.topic(partition.topic).partitions[partition.partition]

    def assigned(self, partition: TopicPartition) -> list[int]:
        return list(self.assignment(partition).replicas)

    # What people and tools do

    def create_topic(
        self, name: str, *replicas: Sequence[int], has_id: bool = True, config: Mapping[str, str] | None = None
    ) -> TopicId | None:
        """A topic with the replicas of each of its partitions, as a tool creates it."""
        if config is not None:
            self.put(paths.topic_config(TopicName(name)), codecs.encode_config(config))
        topic_id = self.clock.new_topic_id() if has_id else None
        partitions = {PartitionId(number): ReplicaAssignment(replicas=ids(r)) for number, r in enumerate(replicas)}
        content = TopicAssignment(topic_id=topic_id, partitions=partitions)
        self.write(Create(path=paths.topic(TopicName(name)), data=codecs.encode_topic(content)))
        return topic_id

    def add_partitions(self, name: str, *replicas: Sequence[int]) -> None:
        content = self.topic(name)
        first = len(content.partitions)
        added = {
            PartitionId(number): ReplicaAssignment(replicas=ids(r)) for number, r in enumerate(replicas, start=first)
        }
        self.put(
            paths.topic(TopicName(name)),
            codecs.encode_topic(replace(content, partitions={**content.partitions, **added})),
        )

    def remove_topic(self, name: str) -> None:
        """Removes a topic's znodes without asking the controller."""
        self.remove(paths.topic(TopicName(name)))

    def remove(self, path: str) -> None:
        """Deletes a znode and all below it."""
        for below in self._tree(path):
            self.write(Delete(path=below))

    def _tree(self, path: str) -> list[str]:
        below = [sub for child in self.zk.tree.children(path) or () for sub in self._tree(f"{path}/{child}")]
        return [*below, path]

    def request_deletion(self, name: str) -> None:
        self.write(Create(path=paths.delete_topic(TopicName(name))))

    def request_reassignment(self, targets: Mapping[TopicPartition, Sequence[int]]) -> None:
        self.put(
            paths.REASSIGN_PARTITIONS,
            codecs.encode_reassignment({partition: ids(target) for partition, target in targets.items()}),
        )

    def request_election(self, *partitions: TopicPartition) -> None:
        self.put(paths.PREFERRED_REPLICA_ELECTION, codecs.encode_preferred_election(partitions))

    def alter_config(self, entity_path: str, config: Mapping[str, str]) -> None:
        """Changes a configuration and leaves a notification of it, as a tool does; `entity_path` is such as
        `topics/orders`."""
        self.put(f"{paths.CONFIG}/{entity_path}", codecs.encode_config(config))
        data, mode = codecs.encode_config_change(entity_path), CreateMode.PERSISTENT_SEQUENTIAL
        self.write(Create(path=paths.CONFIG_CHANGE_PREFIX, data=data, mode=mode))

    # Brokers

    def fail_log_dir(self, number: int, *partitions: TopicPartition) -> None:
        """A log directory of a broker fails, with these partitions in it, and the broker reports it."""
        self.broker(number).offline.update(partitions)
        data, mode = codecs.encode_log_dir_event(BrokerId(number)), CreateMode.PERSISTENT_SEQUENTIAL
        self.write(Create(path=paths.LOG_DIR_EVENT_PREFIX, data=data, mode=mode))

    def start_brokers(self, *numbers: int) -> None:
        for number in numbers:
            self.start_broker(number)

    def start_broker(self, number: int) -> None:
        """A broker starts, for the first time or again, and registers."""
        broker_id = BrokerId(number)
        epoch = self._register(broker_id)
        if broker_id in self.brokers:
            self.brokers[broker_id].bounce(epoch)
        else:
            self.brokers[broker_id] = SimulatedBroker(broker_id, epoch)
        self._forget_answers(broker_id)

    def kill_broker(self, number: int) -> None:
        """A broker dies, and ZooKeeper has noticed."""
        self.broker(number).crash()
        self.zk.end(self._sessions.pop(BrokerId(number)))

    def bounce_broker(self, number: int) -> None:
        """A broker dies and is back before anyone had a look."""
        self.kill_broker(number)
        self.start_broker(number)

    def expire_broker(self, number: int) -> None:
        """ZooKeeper ends a broker's session; the broker itself lives on with all that it has in memory."""
        self.zk.end(self._sessions.pop(BrokerId(number)))

    def register_again(self, number: int) -> None:
        """A broker whose session had ended notices, and registers without having been restarted."""
        self.broker(number).epoch = self._register(BrokerId(number))

    def move_broker(self, number: int, port: int) -> None:
        """A live broker rewrites its registration with another port."""
        self.write(SetData(path=paths.broker(BrokerId(number)), data=self._registration(BrokerId(number), port)))

    def support(self, number: int, **features: tuple[int, int]) -> None:
        """The versions that a broker supports of each feature: when it registers, or as it rewrites its registration."""
        broker_id = BrokerId(number)
        self.features[broker_id] = {
            name: FeatureRange(min_version=lowest, max_version=highest) for name, (lowest, highest) in features.items()
        }
        if broker_id in self.live:
            self.move_broker(number, 9000 + number)

    def broker(self, number: int) -> SimulatedBroker:
        return self.brokers[BrokerId(number)]

    @property
    def live(self) -> set[BrokerId]:
        return set(self._sessions)

    def _register(self, broker_id: BrokerId) -> BrokerEpoch:
        session = self._sessions[broker_id] = self.zk.new_session_id()
        data = self._registration(broker_id, 9000 + broker_id)
        path = paths.broker(broker_id)
        self.write(Create(path=path, data=data, mode=CreateMode.EPHEMERAL), owner=session)
        node = self.zk.tree.read(path)
        assert node is not None
        return BrokerEpoch(node.czxid)

    def _registration(self, broker_id: BrokerId, port: int) -> bytes:
        endpoint = Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host=f"broker-{broker_id}", port=port)
        features = self.features.get(broker_id, {})
        return codecs.encode_broker(
            Broker(id=broker_id, epoch=BrokerEpoch(0), endpoints=(endpoint,), features=features)
        )

    def make_kafka_controller(self, number: int) -> ControllerEpoch:
        """A broker's own controller takes the role, as Kafka's brokers do when nobody has it."""
        node = self.zk.tree.read(paths.CONTROLLER_EPOCH)
        epoch = ControllerEpoch(codecs.decode_controller_epoch(node.data) + 1 if node else 1)
        self.put(paths.CONTROLLER_EPOCH, codecs.encode_controller_epoch(epoch))
        data = codecs.encode_controller(BrokerId(number), self.clock.now_ms())
        create = Create(path=paths.CONTROLLER, data=data, mode=CreateMode.EPHEMERAL)
        self.write(create, owner=self._sessions[BrokerId(number)])
        return epoch

    # Controllers

    def start_controller(self, own_id: int = CONTROLLER, *, life: Life | None = None) -> Process:
        process = Process(
            BrokerId(own_id),
            self.zk,
            self.brokers,
            self.clock,
            life=life or Life(),
            settings=self.settings,
            journal=self.journal,
            listeners=self.listeners,
        )
        self.processes.append(process)
        return process

    async def serve(self, own_id: int = CONTROLLER) -> Process:
        """Starts a controller and waits until it is in charge and has nothing left to do."""
        process = self.start_controller(own_id)
        await self.settle()
        assert process.is_active
        return process

    @property
    def active(self) -> Process:
        return next(process for process in self.processes if process.is_active)

    async def settle(self, passing_ms: float = 3000) -> None:
        """Waits until nobody has anything left to do, and longer: until nobody had for some time that passes."""
        latest_ms = self.clock.monotonic_ms() + passing_ms
        await until_quiet()
        while self.clock.pass_to_next(latest_ms):
            await until_quiet()
        for process in self.processes:
            process.raise_failure()

    async def close(self) -> None:
        for process in self.processes:
            await process.stop()

    # What brokers and clients ask the controller

    async def request(self, request: RequestPayload) -> Any:
        """A client's request to the controller in charge, and its answer once all that follows from it is done."""
        answer = asyncio.create_task(self.active.answer(request))
        await self.settle()
        assert answer.done(), f"{request} is not answered"
        return answer.result()

    async def ask(self, broker: BrokerId, request: RequestPayload) -> Any:
        """Sends a request to whom the broker takes for the controller; None where nobody answers."""
        wanted = self.brokers[broker].metadata.controller_id
        process = next((p for p in reversed(self.processes) if p.id == wanted and not p.running.done()), None)
        if process is None:
            return None
        answer = asyncio.create_task(process.answer(request))
        await self.settle()
        if not answer.done():
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)
            return None
        return answer.result()

    def leader_of(self, partition: TopicPartition) -> SimulatedBroker | None:
        """The broker that takes itself for the leader, the one with the largest epoch where there are several."""
        leaders = [self.brokers[b] for b in self.live if self.brokers[b].leads(partition)]
        return max(leaders, key=lambda broker: broker.replicas[partition].leader_epoch, default=None)

    async def alter_isr(self, partition: TopicPartition, isr: Iterable[int]) -> ErrorCode | None:
        """The leader asks for an ISR; None where nobody leads or answers."""
        leader = self.leader_of(partition)
        if leader is None:
            return None
        view = self._view(leader, partition)
        assert view.topic_id is not None
        request = alter_partition(leader, view.topic_id, partition, view, ids(isr))
        response = await self.ask(leader.id, request)
        if response is None:
            return None
        assert isinstance(response, AlterPartitionResponse)
        if response.error_code is not ErrorCode.none:
            return response.error_code
        result = response.topics[0].partitions[0]
        if isinstance(result.outcome, PartitionState):
            self._answered[leader.id, partition] = result.outcome
        return result.error_code

    async def join_isr(self, partition: TopicPartition, *numbers: int) -> None:
        """The leader found brokers in sync."""
        leader = self.leader_of(partition)
        assert leader is not None, f"nobody leads {partition}"
        isr = self._view(leader, partition).isr
        assert await self.alter_isr(partition, (*isr, *numbers)) is ErrorCode.none

    async def replicate(self) -> None:
        """Every leader reports the followers that keep up, until there are no more."""
        await self.settle()
        changed = True
        while changed:
            changed = False
            for partition in sorted({p for broker in self.brokers.values() for p in broker.replicas}):
                leader = self.leader_of(partition)
                if leader is None or leader.metadata.controller_id is None:
                    continue
                view = self._view(leader, partition)
                joining = [b for b in view.replicas if b not in view.isr and self._follows(b, partition, view)]
                if joining and await self.alter_isr(partition, (*view.isr, *joining)) is ErrorCode.none:
                    changed = True

    async def shut_down(self, number: int, epoch: int | None = None) -> ControlledShutdownResponse | None:
        """A broker asks to be relieved of its leaderships, and goes on running; None where nobody answers."""
        broker = self.broker(number)
        request = ControlledShutdownRequest(
            broker_id=broker.id, broker_epoch=BrokerEpoch(broker.epoch if epoch is None else epoch)
        )
        response = await self.ask(broker.id, request)
        assert isinstance(response, ControlledShutdownResponse | None)
        return response

    def _follows(self, broker_id: BrokerId, partition: TopicPartition, leader: SimulatedReplica) -> bool:
        broker = self.brokers[broker_id]
        follows = broker_id in self.live and broker.follows(partition)
        return follows and broker.replicas[partition].leader_epoch == leader.leader_epoch

    def _view(self, leader: SimulatedBroker, partition: TopicPartition) -> SimulatedReplica:
        sent = leader.replicas[partition]
        known = self._answered.get((leader.id, partition))
        if known is None or known.partition_epoch <= sent.partition_epoch:
            return sent
        if known.leader_and_isr.leader_epoch != sent.leader_epoch:
            return sent
        return replace(sent, isr=known.leader_and_isr.isr, partition_epoch=known.partition_epoch)

    def _forget_answers(self, broker: BrokerId) -> None:
        for known in [known for known in self._answered if known[0] == broker]:
            del self._answered[known]


def alter_reassignments(targets: Mapping[TopicPartition, Sequence[int] | None]) -> AlterPartitionReassignmentsRequest:
    """A client's request to move partitions; a target of None takes the reassignment back."""
    return AlterPartitionReassignmentsRequest(
        topics=tuple(
            ReassignableTopic(
                name=WireTopicName(topic),
                partitions=tuple(
                    ReassignablePartition(
                        partition_index=i32(partition.partition),
                        replicas=None if target is None else tuple(WireBrokerId(number) for number in target),
                    )
                    for partition, target in targets.items()
                    if partition.topic == topic
                ),
            )
            for topic in dict.fromkeys(partition.topic for partition in targets)
        )
    )


def alter_partition(
    broker: SimulatedBroker,
    topic_id: TopicId,
    partition: TopicPartition,
    view: SimulatedReplica,
    isr: Iterable[BrokerId],
    *,
    recovery_state: int = 0,
) -> AlterPartitionRequest:
    """The request of a leader for one partition, from what it knows of it."""
    asked = AskedIsr(partition.partition, view.leader_epoch, tuple(isr), recovery_state, view.partition_epoch)
    return AlterPartitionRequest(
        broker_id=broker.id, broker_epoch=broker.epoch, topics=(AskedTopic(topic_id, [asked]),)
    )
