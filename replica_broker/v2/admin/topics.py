"""The seed's admin commands: `createTopic`, `addPartition`, `deletePartition`, `deleteTopic`, reassign and clean up.

The seed leaves these points open, or contradicts itself:

- A failed creation leaves entries in `partitions_reassigned`, and maybe started replicas and a leader. The cleanup
closes them in the transaction that removes the entry. It cleans the given topic, or all.
- A partition that could not be added to a live topic is cleaned up by deleting it.
- A deletion waits for the live replicas; the others find their close-replica at their start. Because the leader tells
the replicas, a partition without a leader is deleted when it has one.
"""

import uuid
from collections.abc import Iterable, Mapping

import structlog

from controller_core.model.ids import NO_EPOCH, BrokerId, PartitionId, TopicId, TopicName, TopicPartition
from controller_core.zk.compare_and_set import ensure_znodes
from controller_core.zk.session import Conflict, Create, Delete, NodeExists, NoNode, NotEmpty, WriteOp, ZkSession
from replica_broker.v2.admin.assigning import assign_replicas
from replica_broker.v2.admin.waiting import wait_till_state_change_request_consumed, wait_until
from replica_broker.v2.znodes import codecs, paths
from replica_broker.v2.znodes.codecs import StateChangeRequest
from replica_broker.v2.znodes.partitions import PartitionZnodes, read_partition
from replica_broker.v2.znodes.registrations import live_brokers
from replica_broker.v2.znodes.state_change_queue import StateChangeQueue, send_state_change

log = structlog.get_logger()

Assignment = Mapping[PartitionId, tuple[BrokerId, ...]]


class AdminFailed(Exception):
    """A command failed or timed out. The message says what is left of it."""


class Admin:
    """The admin commands. Every method raises `AdminFailed`, and the errors of ZooKeeper."""

    def __init__(self, zk: ZkSession, *, timeout_ms: int, bound: int) -> None:
        self._zk = zk
        self._timeout_ms = timeout_ms
        self._bound = bound

    async def create_topic(
        self,
        topic: TopicName,
        *,
        num_partitions: int = 1,
        replication_factor: int = 1,
        assignment: Assignment | None = None,
    ) -> None:
        """Run the seed's `createTopic`. Raises `TooFewBrokers`."""
        if not await self.clean_failed_topic_creation_attempt(topic):
            raise AdminFailed(f"topic {topic} exists with live partitions")
        if assignment is None:
            online = [broker.id for broker in await live_brokers(self._zk)]
            assignment = assign_replicas(online, num_partitions, replication_factor)
        topic_id = TopicId(uuid.uuid4())
        try:
            await self._zk.transact([Create(path=paths.topic(topic), data=codecs.encode_topic_id(topic_id))])
        except NodeExists as error:
            raise AdminFailed(f"topic {topic} exists with live partitions") from error
        for partition, replicas in assignment.items():
            await self.add_partition(TopicPartition(topic, partition), replicas)

    async def add_partition(self, where: TopicPartition, replicas: tuple[BrokerId, ...]) -> None:
        """Run the seed's `addPartition`: `replicas` is written when all of them have started."""
        znodes = await read_partition(self._zk, where)
        if znodes.topic_id is None:
            raise AdminFailed(f"topic {where.topic} does not exist")
        if znodes.replicas is not None or znodes.reassigned is not None:
            raise AdminFailed(f"{where} exists or is being created")
        await self._write_reassigned(where, replicas)
        for replica in replicas:
            await send_state_change(self._zk, "start-replica", where, replica, NO_EPOCH, bound=self._bound)
        if not await wait_till_state_change_request_consumed(self._zk, replicas, where, self._timeout_ms):
            raise AdminFailed(
                f"cannot create partition {where}: not all of {replicas} have started it within {self._timeout_ms} ms"
            )
        await ensure_znodes(self._zk, [Create(path=paths.partition(where))], self._zk.transact)
        await self._zk.transact(
            [
                Create(path=paths.replicas(where), data=codecs.encode_brokers(replicas)),
                Delete(path=paths.reassignment(where)),
            ]
        )
        await self._forget_empty(where.topic)

    async def delete_partition(self, where: TopicPartition) -> None:
        """Run the seed's `deletePartition`: the leader reassigns it to nobody, and its znodes go after its replicas."""
        znodes = await read_partition(self._zk, where)
        if znodes.replicas is None and znodes.reassigned is not None:
            await self._clean_failed(znodes)
            await self._forget_empty(where.topic)
            return
        if znodes.replicas is None:
            raise AdminFailed(f"{where} does not exist")
        if znodes.reassigned:
            raise AdminFailed(f"{where} is being reassigned to {znodes.reassigned}: wait until it ends")
        hosts = await self._hosts_to_close(where, znodes)
        if znodes.reassigned is None:
            await self._write_reassigned(where, ())
        # An empty AR means that the leader has told all replicas to close.
        is_told = await wait_until(self._zk, where, lambda found: not found.replicas, self._timeout_ms)
        if not is_told or not await wait_till_state_change_request_consumed(
            self._zk, await self._live(hosts), where, self._timeout_ms
        ):
            raise AdminFailed(
                f"cannot delete {where} within {self._timeout_ms} ms: the deletion needs a leader, so try again"
            )
        await self._delete_below(paths.partition(where))
        await self._zk.transact([Delete(path=paths.reassignment(where))])
        await self._forget_empty(where.topic)

    async def delete_topic(self, topic: TopicName) -> None:
        """Run the seed's `deleteTopic`."""
        (partitions,) = await self._zk.children_many([paths.topic(topic)])
        if partitions is None:
            raise AdminFailed(f"topic {topic} does not exist")
        for number in partitions:
            await self.delete_partition(TopicPartition(topic, PartitionId(int(number))))
        await self._zk.transact([Delete(path=paths.topic(topic))])

    async def reassign(self, where: TopicPartition, replicas: tuple[BrokerId, ...], *, waits: bool = True) -> None:
        """Ask the leader to move a partition, and wait until it has moved."""
        znodes = await read_partition(self._zk, where)
        if not znodes.replicas:
            raise AdminFailed(f"{where} does not exist")
        if znodes.reassigned is not None:
            raise AdminFailed(f"{where} is being reassigned or deleted")
        if not replicas or len(set(replicas)) != len(replicas):
            raise AdminFailed(f"{replicas} is not a list of distinct brokers")
        await self._write_reassigned(where, replicas)
        if not waits:
            return
        if not await wait_until(self._zk, where, lambda found: found.reassigned is None, self._timeout_ms):
            raise AdminFailed(f"{where} was not reassigned within {self._timeout_ms} ms: the reassignment continues")
        await self._forget_empty(where.topic)

    async def clean_failed_topic_creation_attempts(self) -> list[TopicName]:
        """Run the seed's `cleanFailedTopicCreationAttempts` for all topics. Return the cleaned ones."""
        (names,) = await self._zk.children_many([paths.REASSIGNED])
        topics = [TopicName(name) for name in names or ()]
        return [topic for topic in topics if await self.clean_failed_topic_creation_attempt(topic)]

    async def clean_failed_topic_creation_attempt(self, topic: TopicName) -> bool:
        """Clean up a topic. Return False if it has a live partition, True if nothing is left of it."""
        entries, partitions = await self._zk.children_many([paths.topic_reassignment(topic), paths.topic(topic)])
        if entries is None and partitions == ():
            await self._delete_below(paths.topic(topic))  # it failed before its first partition, or lost its last one
            return True
        if entries is None:
            return partitions is None
        numbers = {*entries, *(partitions or ())}
        read = [await read_partition(self._zk, TopicPartition(topic, PartitionId(int(each)))) for each in numbers]
        if any(znodes.replicas is not None for znodes in read):
            log.error("cannot clean up: the topic has a live partition", topic=topic)
            return False
        for znodes in read:
            await self._clean_failed(znodes)
        await self._delete_below(paths.topic(topic))
        await self._forget_empty(topic)
        return True

    async def _clean_failed(self, znodes: PartitionZnodes) -> None:
        if znodes.reassigned is not None:
            await self._close_failed(znodes, znodes.reassigned)
        await self._delete_below(paths.partition(znodes.topic_partition))

    async def _close_failed(self, znodes: PartitionZnodes, replicas: tuple[BrokerId, ...]) -> None:
        operations: list[WriteOp] = [Delete(path=paths.reassignment(znodes.topic_partition))]
        for broker in replicas:
            queue = StateChangeQueue(self._zk, broker, bound=self._bound)
            await queue.make_room()
            request = StateChangeRequest(change="close-replica", topic_partition=znodes.topic_partition, epoch=NO_EPOCH)
            operations.append(queue.make_put(request))
        await self._zk.transact(operations)

    async def _hosts_to_close(self, where: TopicPartition, znodes: PartitionZnodes) -> tuple[BrokerId, ...]:
        """Return the hosts, or all live brokers if an earlier attempt has emptied the assignment."""
        return znodes.assigned or tuple(broker.id for broker in await live_brokers(self._zk))

    async def _live(self, brokers: Iterable[BrokerId]) -> tuple[BrokerId, ...]:
        live = {broker.id for broker in await live_brokers(self._zk)}
        return tuple(broker for broker in brokers if broker in live)

    async def _write_reassigned(self, where: TopicPartition, replicas: tuple[BrokerId, ...]) -> None:
        parent = Create(path=paths.topic_reassignment(where.topic))
        await ensure_znodes(self._zk, [parent], self._zk.transact)
        await self._zk.transact([Create(path=paths.reassignment(where), data=codecs.encode_brokers(replicas))])

    async def _forget_empty(self, topic: TopicName) -> None:
        """Delete the topic's entry if it is empty: the topic is not being created."""
        try:
            await self._zk.transact([Delete(path=paths.topic_reassignment(topic))])
        except (NotEmpty, NoNode):
            return

    async def _delete_below(self, path: str) -> None:
        """Delete a znode and its children, as far as they exist."""
        while True:
            (children,) = await self._zk.children_many([path])
            if children is None:
                return
            try:
                await self._zk.transact([*(Delete(path=f"{path}/{child}") for child in children), Delete(path=path)])
            except Conflict:
                continue
