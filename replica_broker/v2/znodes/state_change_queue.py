"""The queue of state change requests for one broker: sequential znodes below `/brokers/state/[broker_id]`.

A broker deletes a request after its work. If it is down for long, the queue fills up. A full queue is reduced to what
must not be lost: the latest close-replica of each partition, so that the broker deletes replicas that it no longer
hosts. It reads from the assignment which replicas to start.
"""

import structlog

from controller_core.model.ids import BrokerId, LeaderEpoch, TopicPartition
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import ensure_znodes
from controller_core.zk.session import Create, CreateMode, Delete, NoNode, ZkError, ZkSession
from replica_broker.v2.znodes import codecs, paths
from replica_broker.v2.znodes.codecs import StateChange, StateChangeRequest

log = structlog.get_logger()


class FollowerStateChangeQueueFull(Exception):
    """A broker's queue is full of requests that must not be lost. Retriable when that broker is back."""


class StateChangeQueue:
    """The queue of one broker."""

    def __init__(self, zk: ZkSession, broker: BrokerId, *, bound: int) -> None:
        self._zk = zk
        self._broker = broker
        self._bound = bound

    async def create(self) -> None:
        """Run `create /brokers/state/[broker_id] path if it doesn't already exist`."""
        await ensure_znodes(self._zk, [Create(path=paths.state(self._broker))], self._zk.transact)

    async def requests(self) -> list[tuple[str, StateChangeRequest]]:
        """Return the requests in order, with their paths. Unreadable ones are logged and removed."""
        (names,) = await self._zk.children_many([paths.state(self._broker)])
        where = [f"{paths.state(self._broker)}/{name}" for name in sorted(names or ())]
        found = []
        for path, node in zip(where, await self._zk.read_many(where), strict=True):
            if node is None:
                continue
            try:
                found.append((path, codecs.decode_request(path, node.data)))
            except MalformedZnode as error:
                log.error("unreadable state change request is removed", path=path, reason=str(error))
                await self.remove(path)
        return found

    async def remove(self, path: str) -> None:
        """Remove a request after its work."""
        (outcome,) = await self._zk.transact_many([[Delete(path=path)]])
        if isinstance(outcome, ZkError) and not isinstance(outcome, NoNode):
            raise outcome

    async def is_full(self) -> bool:
        (names,) = await self._zk.children_many([paths.state(self._broker)])
        return len(names or ()) >= self._bound

    async def shrink(self) -> None:
        """Keep the latest close-replica of each partition, and no start-replica."""
        kept: dict[TopicPartition, tuple[LeaderEpoch, str]] = {}
        requests = await self.requests()
        for path, request in requests:
            if request.change == "close-replica":
                before = kept.get(request.topic_partition)
                latest = (request.epoch, path)
                # Ordered by epoch, then by the sequential path, so the latest request survives.
                kept[request.topic_partition] = latest if before is None else max(before, latest)
        names = {path for _, path in kept.values()}
        for path, _ in requests:
            if path not in names:
                await self.remove(path)

    async def make_room(self) -> None:
        """Shrink a full queue. Raises `FollowerStateChangeQueueFull` if it is still full."""
        await self.create()
        if not await self.is_full():
            return
        await self.shrink()
        if await self.is_full():
            log.error("the queue of state changes is full", broker=self._broker, bound=self._bound)
            raise FollowerStateChangeQueueFull(
                f"the queue of broker {self._broker} has {self._bound} requests that must not be lost: start the broker"
            )

    def make_put(self, request: StateChangeRequest) -> Create:
        """Return the write that adds a request, as a part of a transaction."""
        return Create(
            path=paths.request_prefix(self._broker),
            data=codecs.encode_request(request),
            mode=CreateMode.PERSISTENT_SEQUENTIAL,
        )

    async def put(self, request: StateChangeRequest) -> None:
        await self._zk.transact([self.make_put(request)])


async def send_state_change(
    zk: ZkSession,
    change: StateChange,
    topic_partition: TopicPartition,
    broker: BrokerId,
    epoch: LeaderEpoch,
    *,
    bound: int,
) -> None:
    """Run the seed's `sendStateChange`. Raises `FollowerStateChangeQueueFull`.

    The seed throws even if shrinking made room. Here the request is then added.
    """
    queue = StateChangeQueue(zk, broker, bound=bound)
    await queue.make_room()
    await queue.put(StateChangeRequest(change=change, topic_partition=topic_partition, epoch=epoch))
