"""Brokers without processes: they judge the controller's requests and keep the result.

A `SimulatedBroker` applies or refuses control requests by the rules of Kafka 3.9. Tests check its replicas, logs and
metadata cache rather than messages. It has no records and does no I/O. `tests/contract/test_broker_link.py` compares it
with a real broker.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from kio.schema.alter_replica_log_dirs.v2 import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from kio.schema.describe_log_dirs.v2 import DescribeLogDirsRequest, DescribeLogDirsResponse

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import Broker, LogEnd
from controller_core.wire.codecs.encoding import encode_control_request
from controller_core.wire.link import (
    BrokerLink,
    BrokerLinkFactory,
    BrokerUnreachable,
    NotConnected,
    NotSpoken,
    UnreadableAnswer,
)
from controller_core.wire.messages import (
    ControlRequest,
    ControlResponse,
    ErrorCode,
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from simulation.broker_state import SimulatedDirectories, SimulatedMetadata, SimulatedReplica, SimulatedReplicas

T = TypeVar("T")
R = TypeVar("R", LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest)


class SimulatedBroker:
    """One broker with a state that tests can read. The methods from `crash` on are its faults."""

    def __init__(self, broker_id: BrokerId, epoch: BrokerEpoch) -> None:
        self.id = broker_id
        self.epoch = epoch
        self.controller_epoch = ControllerEpoch(0)
        """The largest controller epoch that the broker has seen."""
        self.metadata = SimulatedMetadata()
        self.requests: list[ControlRequest] = []
        """All requests that arrived, in order, including refused ones."""
        self.static_config = {"min.insync.replicas": "1", "log.retention.hours": "168"}
        """The configuration from the broker's file, or Kafka's defaults."""
        self._state = SimulatedReplicas(broker_id)
        self.directories = SimulatedDirectories()
        self._is_reachable = True
        self.is_supported = True
        """False for a release that cannot answer a Kontroller."""
        self._running = asyncio.Event()
        self._running.set()
        self._errors: deque[ErrorCode] = deque()
        self._refuses: tuple[ErrorCode, type[ControlRequest]] | None = None
        self._answers_to_lose = 0
        self._kinds_to_delay: list[type[ControlRequest]] = []
        self._delayed: list[ControlRequest] = []

    @property
    def replicas(self) -> dict[TopicPartition, SimulatedReplica]:
        """The partitions that the broker leads, follows or has stopped."""
        return self._state.hosted

    @property
    def logs(self) -> dict[TopicPartition, TopicId | None]:
        """The logs on its disks with the topic ids in their metadata. They survive `bounce`."""
        return self._state.logs

    @property
    def log_bytes(self) -> dict[TopicPartition, int]:
        """The sizes of its non-empty logs. A follower with a smaller log than its leader has not caught up."""
        return self._state.log_bytes

    @property
    def log_epochs(self) -> dict[TopicPartition, list[LogEnd]]:
        """The end of each epoch in a log, in order; the last is the log's end. A new leader adds an empty one."""
        return self._state.log_epochs

    @property
    def offline(self) -> set[TopicPartition]:
        """The partitions with a log in a failed directory. Add one to make it fail."""
        return self._state.offline

    @property
    def unopened(self) -> set[TopicPartition]:
        """The partitions whose log cannot be opened (UNKNOWN_SERVER_ERROR). Add one to make it fail."""
        return self._state.unopened

    @property
    def refused(self) -> dict[TopicPartition, ErrorCode]:
        """The partitions that it neither leads nor follows, each with its answer. Add one to make it refuse."""
        return self._state.refused

    def lose_log_in_memory(self, topic_partition: TopicPartition) -> None:
        """Let the broker keep a partition's leader epoch without its log, as after a lost session while it began it."""
        self.replicas[topic_partition] = replace(self.replicas[topic_partition], is_stopped=True)
        self._state.without_log.add(topic_partition)

    def leads(self, topic_partition: TopicPartition) -> bool:
        """Return True if the broker acts as the leader."""
        replica = self.replicas.get(topic_partition)
        return replica is not None and replica.leader == self.id and self._is_served(topic_partition)

    def follows(self, topic_partition: TopicPartition) -> bool:
        """Return True if the broker fetches the partition from a leader."""
        replica = self.replicas.get(topic_partition)
        return replica is not None and replica.leader not in (self.id, -1) and self._is_served(topic_partition)

    def _is_served(self, topic_partition: TopicPartition) -> bool:
        return not self.replicas[topic_partition].is_stopped and topic_partition not in self.offline

    def requests_of(self, kind: type[R]) -> list[R]:
        """Return the requests of one API that arrived, in order."""
        return [request for request in self.requests if isinstance(request, kind)]

    def crash(self) -> None:
        """Make the broker unreachable until `bounce`. Requests in flight fail, and delayed copies are lost."""
        self._is_reachable = False
        self._delayed.clear()
        self._running.set()

    def cut_off(self) -> None:
        """Make the broker unreachable until `reconnect`. It keeps its memory."""
        self._is_reachable = False

    def reconnect(self) -> None:
        """End `cut_off`."""
        self._is_reachable = True

    def bounce(self, epoch: BrokerEpoch) -> None:
        """Restart the broker with a new epoch. It keeps only its logs."""
        self.epoch = epoch
        self.controller_epoch = ControllerEpoch(0)
        self.metadata = SimulatedMetadata()
        self._state.hosted.clear()
        self._state.without_log.clear()
        self.directories.restart()
        self._delayed.clear()
        self._is_reachable = True
        self._running.set()

    def hang(self) -> None:
        """Stop reading and answering requests until `resume`."""
        self._running.clear()

    def resume(self) -> None:
        """End `hang` and handle the waiting requests in order."""
        self._running.set()

    def answer_next_with(self, error: ErrorCode) -> None:
        """Refuse the next request with this top-level error code. Calls add up."""
        self._errors.append(error)

    def refuse_from_now_on(self, error: ErrorCode, kind: type[ControlRequest]) -> None:
        """Refuse all requests of one API with this top-level error code, until `obey`."""
        self._refuses = error, kind

    def obey(self) -> None:
        """End `refuse_from_now_on` and `answer_next_with`."""
        self._refuses = None
        self._errors.clear()

    def delay_next(self, *kinds: type[ControlRequest]) -> None:
        """Break the connection of the next request of each of these kinds before the broker has read it.

        The broker keeps a copy, which `read_delayed` handles, unless the broker ends before. Calls add up.
        """
        self._kinds_to_delay.extend(kinds)

    def read_delayed(self) -> None:
        """Handle the copies that broken connections left, in order. The answers are lost."""
        delayed, self._delayed = self._delayed, []
        for request in delayed:
            self.requests.append(request)
            self._judge(request)

    def lose_next_answers(self, count: int = 1) -> None:
        """Apply the next requests, and break the connection before their answers are sent."""
        self._answers_to_lose += count

    async def answer_connection(self) -> None:
        """Answer an empty request. Raises `BrokerUnreachable` for a fault."""
        await self._running.wait()
        if not self._is_reachable:
            raise NotConnected(f"broker {self.id} cannot be reached")
        if not self.is_supported:
            raise NotSpoken(f"broker {self.id} is of another release")

    async def tell_static_config(self, broker: BrokerId, names: Collection[str]) -> Mapping[str, str]:
        """Return its file's configuration. Raises `BrokerUnreachable` for a fault, and `UnreadableAnswer`."""
        await self.answer_connection()
        if broker != self.id:
            raise UnreadableAnswer(f"broker {self.id} was asked for the configuration of broker {broker}")
        return {name: value for name, value in self.static_config.items() if name in names}

    async def tell_log_ends(
        self, epochs: Mapping[TopicPartition, LeaderEpoch]
    ) -> Mapping[TopicPartition, LogEnd | None]:
        """Return the ends of epochs in its logs. Raises `BrokerUnreachable` for a fault."""
        await self.answer_connection()
        return {
            each: self._state.find_epoch_end(each, epoch)
            for each, epoch in epochs.items()
            if each in self.metadata.partitions and each in self.replicas and each not in self.offline
        }

    async def describe_log_dirs(self, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        """Return the sizes of its logs, without those in a failed directory. Raises `BrokerUnreachable` for a fault."""
        await self.answer_connection()
        asked = {
            TopicPartition(TopicName(str(topic.topic)), PartitionId(int(number)))
            for topic in request.topics or ()
            for number in topic.partitions
        }
        logs = self.logs.keys() - self.offline
        return self.directories.describe(logs, asked, self.log_bytes, has_failed=bool(self.offline))

    async def alter_replica_log_dirs(self, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
        """Put logs into other directories. Raises `BrokerUnreachable` for a fault."""
        await self.answer_connection()
        return self.directories.alter(request, self.logs.keys() - self.offline, has_failed=bool(self.offline))

    async def handle(self, request: ControlRequest) -> ControlResponse:
        """Apply or refuse a request. Raises `BrokerUnreachable` for a fault."""
        await self.answer_connection()
        if type(request) in self._kinds_to_delay:
            self._kinds_to_delay.remove(type(request))
            self._delayed.append(request)
            raise BrokerUnreachable(f"the connection to broker {self.id} died")
        self.requests.append(request)
        if self._errors:
            return _refusal(request, self._errors.popleft())
        if self._refuses is not None and isinstance(request, self._refuses[1]):
            return _refusal(request, self._refuses[0])
        response = self._judge(request)
        if self._answers_to_lose:
            self._answers_to_lose -= 1
            raise BrokerUnreachable(f"broker {self.id} closed the connection without an answer")
        return response

    def _judge(self, request: ControlRequest) -> ControlResponse:
        if request.broker_epoch != -1 and request.broker_epoch < self.epoch:
            return _refusal(request, ErrorCode.stale_broker_epoch)
        if request.controller_epoch < self.controller_epoch:
            return _refusal(request, ErrorCode.stale_controller_epoch)
        self.controller_epoch = request.controller_epoch
        match request:
            case LeaderAndIsrRequest() if self._state.lacks_log(request):
                return _refusal(request, ErrorCode.not_leader_or_follower)
            case LeaderAndIsrRequest():
                return self._state.become_leader_or_follower(request)
            case UpdateMetadataRequest():
                return self.metadata.apply(request)
            case StopReplicaRequest():
                return self._state.stop(request)


class SimulatedBrokerLink:
    """A `BrokerLink` to a simulated broker. It encodes requests, so that values that do not fit their fields fail."""

    def __init__(self, brokers: Mapping[BrokerId, SimulatedBroker], broker_id: BrokerId) -> None:
        self._brokers = brokers
        self._broker_id = broker_id
        self._turn = asyncio.Lock()
        self._until_closed: asyncio.Timeout | None = None
        self._closed = False

    async def send(self, request: ControlRequest) -> ControlResponse:
        """Send a control request. See `BrokerLink.send`."""
        encode_control_request(request, 0, "simulation")
        return await self._ask(lambda broker: broker.handle(request))

    async def reach(self) -> None:
        """Check the connection. See `BrokerLink.reach`."""
        await self._ask(lambda broker: broker.answer_connection())

    async def static_config(self, broker: BrokerId, names: Collection[str]) -> Mapping[str, str]:
        """Ask for a configuration. See `BrokerLink.static_config`."""
        return await self._ask(lambda answering: answering.tell_static_config(broker, names))

    async def log_ends(self, epochs: Mapping[TopicPartition, LeaderEpoch]) -> Mapping[TopicPartition, LogEnd | None]:
        """Ask for the ends of epochs. See `BrokerLink.log_ends`."""
        return await self._ask(lambda answering: answering.tell_log_ends(epochs))

    async def _ask(self, ask: Callable[[SimulatedBroker], Awaitable[T]]) -> T:
        async with self._turn:
            broker = self._brokers.get(self._broker_id)
            if self._closed or broker is None:
                raise NotConnected(f"no connection to broker {self._broker_id}")
            try:
                async with asyncio.timeout(None) as self._until_closed:
                    return await ask(broker)
            except TimeoutError as error:
                raise BrokerUnreachable(f"the link to broker {self._broker_id} was closed") from error
            finally:
                self._until_closed = None

    async def close(self) -> None:
        """Close the link. See `BrokerLink.close`. Later requests fail, too."""
        self._closed = True
        if self._until_closed is not None:
            self._until_closed.reschedule(asyncio.get_running_loop().time())


def make_simulated_link_factory(brokers: Mapping[BrokerId, SimulatedBroker]) -> BrokerLinkFactory:
    """Return a factory of links to these brokers. A broker outside of the dictionary is unreachable."""

    def link(broker: Broker) -> BrokerLink:
        return SimulatedBrokerLink(brokers, broker.id)

    return link


def _refusal(request: ControlRequest, error: ErrorCode) -> ControlResponse:
    match request:
        case LeaderAndIsrRequest():
            topics = tuple(
                LeaderAndIsrTopicError(
                    topic_id=topic.topic_id,
                    partition_errors=tuple(
                        LeaderAndIsrPartitionError(partition_index=state.partition_index, error_code=error)
                        for state in topic.partition_states
                    ),
                )
                for topic in request.topic_states
            )
            return LeaderAndIsrResponse(error_code=error, topics=topics)
        case UpdateMetadataRequest():
            return UpdateMetadataResponse(error_code=error)
        case StopReplicaRequest():
            errors = tuple(
                StopReplicaPartitionError(
                    topic_name=topic.topic_name, partition_index=state.partition_index, error_code=error
                )
                for topic in request.topic_states
                for state in topic.partition_states
            )
            return StopReplicaResponse(error_code=error, partition_errors=errors)
