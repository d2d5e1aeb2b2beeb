"""The seed's `stateChangeListener`: does what the requests in this broker's queue say, in their order.

A close-replica counts whatever its epoch is, so that a partition that was deleted while this broker was dead is deleted
here. A start-replica counts where there is no leader, which is so only for a new partition, or in the leader's epoch: one
of an earlier leader is ignored. The admin's for a new partition (epoch -1) is of no leader, and always counts: the first
replica that starts may lead before the others have read theirs, and then waits for them.

Requests are consumed when they were done. Those that cannot be done are logged and consumed, too: "this should not
happen", and nothing would become better by keeping them. A replica that is assigned here again when it was closed starts
anew, as its start-replica may have gone when the queue was shrunk.
"""

import structlog

from controller_core.model.ids import NO_EPOCH
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkSession
from replica_broker.v2.broker.hosting import Hosting, NotReplicaForPartition
from replica_broker.v2.znodes.codecs import StateChangeRequest
from replica_broker.v2.znodes.partitions import read_partition
from replica_broker.v2.znodes.state_change_queue import StateChangeQueue

log = structlog.get_logger()


class StateChangeListener:
    """See the module."""

    def __init__(self, zk: ZkSession, queue: StateChangeQueue, hosting: Hosting) -> None:
        self._zk = zk
        self._queue = queue
        self._hosting = hosting

    async def drain(self) -> None:
        """`drain the state change queue`. Raises the errors of ZooKeeper: what is left is done the next time."""
        for path, request in await self._queue.requests():
            try:
                await self._do(request)
            except (NotReplicaForPartition, MalformedZnode) as error:
                log.error("a state change request cannot be done", change=request.change, reason=str(error))
            await self._queue.remove(path)

    async def _do(self, request: StateChangeRequest) -> None:
        where = request.topic_partition
        if request.change == "close-replica":
            await self._hosting.close_replica(where)
            try:
                await self._hosting.start_replica(where)
            except NotReplicaForPartition:
                return
            log.info("the replica is assigned here again, and begins anew", partition=str(where))
            return
        znodes = await read_partition(self._zk, where)
        if znodes.leader is not None and request.epoch not in (NO_EPOCH, znodes.leader.epoch):
            log.info("a start of another epoch is ignored", partition=str(where), epoch=request.epoch)
            return
        await self._hosting.start_replica(where)
