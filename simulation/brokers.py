"""Brokers without processes: what a broker keeps of the controller's requests, and how it judges them.

A `SimulatedBroker` accepts or refuses control requests by the rules of Kafka 3.9 and holds the outcome: its replicas,
its logs and its metadata cache. Tests of the controller look at that state, which is what matters, rather than at
messages. It holds no records and does no I/O. `tests/contract/test_broker_link.py` holds it to what a real broker does.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TypeVar

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
from simulation.broker_state import SimulatedMetadata, SimulatedReplica, SimulatedReplicas, log_dirs

T = TypeVar("T")
R = TypeVar("R", LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest)


class SimulatedBroker:
    """One broker, whose state is open to tests. The methods from `crash` on are its faults."""

    def __init__(self, broker_id: BrokerId, epoch: BrokerEpoch) -> None:
        self.id = broker_id
        self.epoch = epoch
        self.controller_epoch = ControllerEpoch(0)
        """The largest that the broker has seen."""
        self.metadata = SimulatedMetadata()
        self.requests: list[ControlRequest] = []
        """Every request that arrived, in order, refused ones included."""
        self.static_config = {"min.insync.replicas": "1", "log.retention.hours": "168"}
        """What its own file says, or Kafka's defaults."""
        self._state = SimulatedReplicas(broker_id)
        self._is_reachable = True
        self.is_supported = True
        """Whether it knows what a controller of ours asks."""
        self._running = asyncio.Event()
        self._running.set()
        self._errors: deque[ErrorCode] = deque()
        self._refuses: tuple[ErrorCode, type[ControlRequest]] | None = None
        self._answers_to_lose = 0
        self._kinds_to_delay: list[type[ControlRequest]] = []
        self._delayed: list[ControlRequest] = []

    @property
    def replicas(self) -> dict[TopicPartition, SimulatedReplica]:
        """The partitions that the broker leads or follows, or that it stopped."""
        return self._state.hosted

    @property
    def logs(self) -> dict[TopicPartition, TopicId | None]:
        """The logs on its disks, with the topic id in each one's metadata. They survive `bounce`."""
        return self._state.logs

    @property
    def log_bytes(self) -> dict[TopicPartition, int]:
        """How large its logs are, where they are not empty: a follower with less than its leader has not caught up."""
        return self._state.log_bytes

    @property
    def log_epochs(self) -> dict[TopicPartition, list[LogEnd]]:
        """Where each epoch of a log ends, in order; the last one is the log's end. To lead adds one, without records."""
        return self._state.log_epochs

    @property
    def offline(self) -> set[TopicPartition]:
        """The partitions whose log is on a failed directory: add to it to make one fail."""
        return self._state.offline

    @property
    def unopened(self) -> set[TopicPartition]:
        """The partitions whose log cannot be opened: UNKNOWN_SERVER_ERROR. Add to it to make one fail."""
        return self._state.unopened

    def leads(self, topic_partition: TopicPartition) -> bool:
        """Whether it takes itself for the leader."""
        replica = self.replicas.get(topic_partition)
        return replica is not None and replica.leader == self.id and self._is_served(topic_partition)

    def follows(self, topic_partition: TopicPartition) -> bool:
        """Whether it fetches the partition from a leader."""
        replica = self.replicas.get(topic_partition)
        return replica is not None and replica.leader not in (self.id, -1) and self._is_served(topic_partition)

    def _is_served(self, topic_partition: TopicPartition) -> bool:
        return not self.replicas[topic_partition].is_stopped and topic_partition not in self.offline

    def requests_of(self, kind: type[R]) -> list[R]:
        """The requests of one API that arrived, in order."""
        return [request for request in self.requests if isinstance(request, kind)]

    def crash(self) -> None:
        """The broker cannot be reached until `bounce`; requests under way fail, and copies of them end with it."""
        self._is_reachable = False
        self._delayed.clear()
        self._running.set()

    def cut_off(self) -> None:
        """The broker cannot be reached until `reconnect`, and keeps all that it has in memory."""
        self._is_reachable = False

    def reconnect(self) -> None:
        """Ends `cut_off`."""
        self._is_reachable = True

    def bounce(self, epoch: BrokerEpoch) -> None:
        """The broker started again and registered with a new epoch: it has its logs, and nothing else."""
        self.epoch = epoch
        self.controller_epoch = ControllerEpoch(0)
        self.metadata = SimulatedMetadata()
        self._state.hosted.clear()
        self._delayed.clear()
        self._is_reachable = True
        self._running.set()

    def hang(self) -> None:
        """Requests are neither read nor answered until `resume`."""
        self._running.clear()

    def resume(self) -> None:
        """Ends `hang`: what waits is handled in order."""
        self._running.set()

    def answer_next_with(self, error: ErrorCode) -> None:
        """The next request is not applied, and gets this error as its top-level code. Calls add up."""
        self._errors.append(error)

    def refuse_from_now_on(self, error: ErrorCode, kind: type[ControlRequest]) -> None:
        """Requests of one API are not applied, and get this error as their top-level code, until `obey`."""
        self._refuses = error, kind

    def obey(self) -> None:
        """Ends `refuse_from_now_on` and `answer_next_with`."""
        self._refuses = None
        self._errors.clear()

    def delay_next(self, *kinds: type[ControlRequest]) -> None:
        """The connection of the next request of each of these kinds dies before the broker has read it. A copy stays, which
        the broker reads in `read_delayed`, or never where it ends before. Calls add up."""
        self._kinds_to_delay.extend(kinds)

    def read_delayed(self) -> None:
        """Handles the copies that dead connections left, in order; nobody learns of the answers."""
        delayed, self._delayed = self._delayed, []
        for request in delayed:
            self.requests.append(request)
            self._judge(request)

    def lose_next_answers(self, count: int = 1) -> None:
        """The next requests are applied, and the connection breaks before their answers are sent."""
        self._answers_to_lose += count

    async def answer_connection(self) -> None:
        """Answers somebody who asks for nothing. Raises `BrokerUnreachable` where a fault asks for it."""
        await self._running.wait()
        if not self._is_reachable:
            raise NotConnected(f"broker {self.id} cannot be reached")
        if not self.is_supported:
            raise NotSpoken(f"broker {self.id} is of another release")

    async def tell_static_config(self, broker: BrokerId, names: Collection[str]) -> Mapping[str, str]:
        """Says what its own file says. Raises `BrokerUnreachable` where a fault asks for it, and `UnreadableAnswer`."""
        await self.answer_connection()
        if broker != self.id:
            raise UnreadableAnswer(f"broker {self.id} was asked for the configuration of broker {broker}")
        return {name: value for name, value in self.static_config.items() if name in names}

    async def tell_log_ends(
        self, epochs: Mapping[TopicPartition, LeaderEpoch]
    ) -> Mapping[TopicPartition, LogEnd | None]:
        """Says where the records of an epoch end in its logs. Raises `BrokerUnreachable` where a fault asks for it."""
        await self.answer_connection()
        return {
            each: self._state.end_of_epoch(each, epoch)
            for each, epoch in epochs.items()
            if each in self.metadata.partitions and each in self.replicas and each not in self.offline
        }

    async def describe_log_dirs(self, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        """Says how large its logs are, and nothing of those in a directory that failed. Raises `BrokerUnreachable` where a
        fault asks for it."""
        await self.answer_connection()
        asked = {
            TopicPartition(TopicName(str(topic.topic)), PartitionId(int(number)))
            for topic in request.topics or ()
            for number in topic.partitions
        }
        return log_dirs(self.logs.keys() & asked - self.offline, self.log_bytes, has_failed=bool(self.offline))

    async def handle(self, request: ControlRequest) -> ControlResponse:
        """Judges and applies a request. Raises `BrokerUnreachable` where a fault asks for it."""
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
            case LeaderAndIsrRequest():
                return self._state.become_leader_or_follower(request)
            case UpdateMetadataRequest():
                return self.metadata.apply(request)
            case StopReplicaRequest():
                return self._state.stop(request)


class SimulatedBrokerLink:
    """A `BrokerLink` to a simulated broker. Requests are encoded too, so that a value no field can carry is found."""

    def __init__(self, brokers: Mapping[BrokerId, SimulatedBroker], broker_id: BrokerId) -> None:
        self._brokers = brokers
        self._broker_id = broker_id
        self._turn = asyncio.Lock()
        self._until_closed: asyncio.Timeout | None = None
        self._closed = False

    async def send(self, request: ControlRequest) -> ControlResponse:
        """See `BrokerLink.send`."""
        encode_control_request(request, 0, "simulation")
        return await self._ask(lambda broker: broker.handle(request))

    async def reach(self) -> None:
        """See `BrokerLink.reach`."""
        await self._ask(lambda broker: broker.answer_connection())

    async def static_config(self, broker: BrokerId, names: Collection[str]) -> Mapping[str, str]:
        """See `BrokerLink.static_config`."""
        return await self._ask(lambda answering: answering.tell_static_config(broker, names))

    async def log_ends(self, epochs: Mapping[TopicPartition, LeaderEpoch]) -> Mapping[TopicPartition, LogEnd | None]:
        """See `BrokerLink.log_ends`."""
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
        """See `BrokerLink.close`. A request sent later fails too."""
        self._closed = True
        if self._until_closed is not None:
            self._until_closed.reschedule(asyncio.get_running_loop().time())


def simulated_link_factory(brokers: Mapping[BrokerId, SimulatedBroker]) -> BrokerLinkFactory:
    """Makes links to the brokers of a dictionary; one that is not in it when a request is sent cannot be reached."""

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
