"""`onPartitionsReassigned`, and the end of a reassignment, which the seed omits.

The leader starts the new replicas (RAR - AR). When all of the RAR are in sync, one transaction makes it the AR, writes
the ISR, removes the entry, and sends a close-replica to the rest (AR - RAR). It must be one transaction: a replica that
is deleted while in the ISR could lead without a message, and a forgotten one would keep its log. A leader outside of
the RAR resigns in the same transaction.

A deletion is a reassignment to nobody (an empty entry): all replicas are told to close, and the empty AR prevents
elections and starts. The admin deletes the znodes when the requests are consumed.
"""

import structlog

from controller_core.model.ids import TopicPartition
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Conflict, Delete, SetData, WriteOp, ZkError
from replica_broker.replicas.partition import Partition, ProposedIsr
from replica_broker.v2.broker.becoming import Becoming
from replica_broker.v2.znodes import codecs, paths
from replica_broker.v2.znodes.codecs import StateChangeRequest
from replica_broker.v2.znodes.partitions import PartitionZnodes, read_partition
from replica_broker.v2.znodes.state_change_queue import FollowerStateChangeQueueFull, StateChangeQueue

log = structlog.get_logger()


class Reassigning:
    """Moves and deletes the partitions that this broker leads."""

    def __init__(self, becoming: Becoming) -> None:
        self._becoming = becoming

    async def on_partitions_reassigned(self, znodes: PartitionZnodes) -> None:
        """Start a reassignment or deletion, or notice its end. Raises the errors of ZooKeeper."""
        where, started = znodes.topic_partition, self._becoming.reassigned
        partition = self._find_led(where)
        if partition is None:
            return
        if znodes.reassigned is None or znodes.replicas is None:  # it is over, or the partition is being created
            started.pop(where, None)
            partition.assign(znodes.assigned or partition.assigned_replicas)
            return
        if started.get(where) == znodes.reassigned:
            return
        partition.assign(znodes.hosts)
        for broker in znodes.reassigned:
            if broker not in znodes.replicas:
                await self._becoming.start_elsewhere(where, broker, partition.leader_epoch)
        started[where] = znodes.reassigned  # after the requests: if one fails, the replica's task tries again

    async def keep_committing(self) -> None:
        """Run the commit task of all led partitions, until cancelled."""
        while True:
            await self._becoming.clock.sleep_ms(self._becoming.settings.commit_interval_ms)
            for where, replicas in list(self._becoming.reassigned.items()):
                partition = self._find_led(where)
                if partition is None or partition.proposed is not None or not set(replicas) <= set(partition.isr):
                    continue
                try:
                    await self._finish(partition)
                except FollowerStateChangeQueueFull as error:
                    log.error("a reassignment cannot be completed", partition=str(where), reason=str(error))
                except (ZkError, MalformedZnode) as error:
                    log.warning(
                        "the completion of a reassignment is uncertain", partition=str(where), reason=str(error)
                    )

    def _find_led(self, where: TopicPartition) -> Partition | None:
        partition = self._becoming.replicas.hosted.get(where)
        is_open = where in self._becoming.replicas.opened
        return partition if partition is not None and partition.is_leader and is_open else None

    async def _finish(self, partition: Partition) -> None:
        where, epoch = partition.topic_partition, partition.leader_epoch
        znodes = await read_partition(self._becoming.zk, where)
        if znodes.reassigned is None or not znodes.replicas:
            self._is_over(partition, znodes)
            return
        target = znodes.reassigned
        isr = tuple(broker for broker in znodes.isr if broker in target)
        if not set(target) <= set(isr) or partition.proposed is not None:
            return
        operations: list[WriteOp] = [
            znodes.make_epoch_check(epoch),
            SetData(path=paths.replicas(where), data=codecs.encode_brokers(target)),
            *znodes.make_isr_writes(isr, assigned=target),
            *await self._prepare_close_requests(znodes, partition),
        ]
        if target:
            operations.append(Delete(path=paths.reassignment(where)))
        if self._becoming.node.id not in target:
            operations.append(Delete(path=paths.leader(where)))
        partition.proposed = proposed = ProposedIsr(isr)
        try:
            await self._becoming.zk.transact(operations)
        except Conflict as conflict:
            log.info("a reassignment is checked again", partition=str(where), path=conflict.failed.op.path)
            return
        finally:
            if partition.proposed is proposed:
                partition.proposed = None
        self._is_over(partition, await read_partition(self._becoming.zk, where))

    async def _prepare_close_requests(self, znodes: PartitionZnodes, partition: Partition) -> list[WriteOp]:
        """Return the close-replica requests for AR - RAR. Raises `FollowerStateChangeQueueFull`."""
        operations: list[WriteOp] = []
        request = StateChangeRequest(
            change="close-replica", topic_partition=znodes.topic_partition, epoch=partition.leader_epoch
        )
        for broker in znodes.hosts:
            if broker not in (znodes.reassigned or ()):
                bound = self._becoming.settings.state_change_queue_bound
                queue = StateChangeQueue(self._becoming.zk, broker, bound=bound)
                await queue.make_room()
                operations.append(queue.make_put(request))
        return operations

    def _is_over(self, partition: Partition, znodes: PartitionZnodes) -> None:
        where = partition.topic_partition
        self._becoming.reassigned.pop(where, None)
        log.info("reassigned", partition=str(where), replicas=znodes.assigned, isr=znodes.isr)
        if self._becoming.node.id not in znodes.assigned:
            self._becoming.close(where)
        elif znodes.epoch == partition.leader_epoch:
            self._becoming.replicas.take_written(
                where,
                isr=znodes.isr,
                partition_epoch=znodes.partition_epoch,
                assigned_replicas=znodes.hosts,
            )
