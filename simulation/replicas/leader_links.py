"""A network in memory between the replicas of several brokers in one event loop.

`SimulatedNetwork` has the running brokers; its methods are its faults. A request takes a turn of the loop each way, so
that something else can happen before it is read and before the answer arrives. A cut connection fails at once, whether
or not the request was handled.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from controller_core.model.ids import BrokerId, LeaderEpoch, TopicPartition
from controller_core.wire.messages import ErrorCode
from replica_broker.replicas.errors import ReplicaRefused
from replica_broker.replicas.replicas import Replicas
from replica_broker.replicas.requests import EpochEnd, Fetch, Fetched
from replica_broker.replicas.seams import LeaderEndpoint, LeaderLink, LeaderLinks, LeaderUnreachable

T = TypeVar("T")


class SimulatedNetwork:
    """The running brokers, and the connections between them."""

    def __init__(self) -> None:
        self.running: dict[BrokerId, Replicas] = {}
        """Add a broker's replicas at its start, and remove them with `stop`."""
        self.connections: Counter[tuple[BrokerId, BrokerId]] = Counter()
        """The number of created links by pair of brokers."""
        self._cut: set[frozenset[BrokerId]] = set()
        self._in_flight: dict[asyncio.Timeout, frozenset[BrokerId]] = {}

    def links(self, asking: BrokerId) -> LeaderLinks:
        """Return the link factory of a broker."""

        def link(leader: LeaderEndpoint) -> LeaderLink:
            self.connections[asking, leader.broker] += 1
            return SimulatedLeaderLink(self, asking, leader.broker)

        return link

    def stop(self, broker: BrokerId) -> None:
        """Stop a broker and break its connections."""
        self.running.pop(broker, None)
        self._break(lambda pair: broker in pair)

    def cut(self, one: BrokerId, other: BrokerId) -> None:
        """Disconnect two brokers until `mend`."""
        self._cut.add(frozenset((one, other)))
        self._break(lambda pair: pair in self._cut)

    def mend(self) -> None:
        """Reconnect all brokers."""
        self._cut.clear()

    async def ask(self, asking: BrokerId, asked: BrokerId, ask: Callable[[Replicas], Awaitable[T]]) -> T:
        """Send a request and return its answer. Raises `LeaderUnreachable`."""
        pair = frozenset((asking, asked))
        try:
            async with asyncio.timeout(None) as until_broken:
                self._in_flight[until_broken] = pair
                await asyncio.sleep(0)
                answer = await ask(self._reach(pair, asked))
                await asyncio.sleep(0)
                self._reach(pair, asked)
                return answer
        except TimeoutError as error:
            raise LeaderUnreachable(f"the connection to broker {asked} broke") from error
        finally:
            self._in_flight.pop(until_broken, None)

    def _reach(self, pair: frozenset[BrokerId], asked: BrokerId) -> Replicas:
        if pair in self._cut or asked not in self.running:
            raise LeaderUnreachable(f"broker {asked} cannot be reached")
        return self.running[asked]

    def _break(self, is_broken: Callable[[frozenset[BrokerId]], bool]) -> None:
        for timeout, pair in self._in_flight.items():
            if is_broken(pair) and not timeout.expired():
                timeout.reschedule(asyncio.get_running_loop().time())


class SimulatedLeaderLink:
    """A `LeaderLink` through a simulated network."""

    def __init__(self, network: SimulatedNetwork, asking: BrokerId, leader: BrokerId) -> None:
        self._network = network
        self._asking = asking
        self._leader = leader
        self._turn = asyncio.Lock()
        self._until_closed: asyncio.Timeout | None = None
        self._is_closed = False

    async def fetch(self, asked: Fetch) -> Mapping[TopicPartition, Fetched]:
        """Fetch from the leader. See `LeaderLink.fetch`."""
        return await self._ask(lambda leader: leader.fetch(asked))

    async def ends_of_epochs(
        self, asked: Mapping[TopicPartition, tuple[LeaderEpoch, LeaderEpoch]], replica_id: BrokerId
    ) -> Mapping[TopicPartition, EpochEnd | ErrorCode]:
        """Ask for the ends of epochs. See `LeaderLink.ends_of_epochs`."""

        async def answer(leader: Replicas) -> Mapping[TopicPartition, EpochEnd | ErrorCode]:
            return {
                each: _answer(
                    lambda each=each, current=current, epoch=epoch: leader.find_epoch_end(  # type: ignore[misc]
                        each, current_leader_epoch=current, asked_epoch=epoch
                    )
                )
                for each, (current, epoch) in asked.items()
            }

        return await self._ask(answer)

    async def list_offsets(
        self, asked: Mapping[TopicPartition, tuple[LeaderEpoch, int]], replica_id: BrokerId
    ) -> Mapping[TopicPartition, int | ErrorCode]:
        """Ask for offsets. See `LeaderLink.list_offsets`."""

        async def answer(leader: Replicas) -> Mapping[TopicPartition, int | ErrorCode]:
            return {
                each: _answer(
                    lambda each=each, current=current, timestamp=timestamp: (
                        leader.list_offset(  # type: ignore[misc]
                            each, timestamp, current_leader_epoch=current, replica_id=replica_id
                        ).offset
                    )
                )
                for each, (current, timestamp) in asked.items()
            }

        return await self._ask(answer)

    async def close(self) -> None:
        """Close the link. See `LeaderLink.close`. Later requests fail, too."""
        self._is_closed = True
        if self._until_closed is not None and not self._until_closed.expired():
            self._until_closed.reschedule(asyncio.get_running_loop().time())

    async def _ask(self, ask: Callable[[Replicas], Awaitable[T]]) -> T:
        async with self._turn:
            if self._is_closed:
                raise LeaderUnreachable("the link is closed")
            try:
                async with asyncio.timeout(None) as self._until_closed:
                    return await self._network.ask(self._asking, self._leader, ask)
            except TimeoutError as error:
                raise LeaderUnreachable("the link was closed") from error
            finally:
                self._until_closed = None


def _answer(find: Callable[[], T]) -> T | ErrorCode:
    try:
        return find()
    except ReplicaRefused as error:
        return error.error_code
