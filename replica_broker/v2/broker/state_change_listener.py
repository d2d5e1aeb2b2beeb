"""The seed's `stateChangeListener`: handles the requests in this broker's queue, in order.

A close-replica is obeyed in any epoch, so that a partition that was deleted while this broker was dead is deleted here.
A start-replica is obeyed if there is no leader, which means a new partition, or in the leader's epoch. The admin's
request for a new partition (epoch -1) is always obeyed: the first started replica may lead before the others have read
theirs.

A request is removed after its work. One that fails is logged and removed, because a retry would not help. A closed
replica that is assigned again is started, because a full queue may have lost its start-replica.
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
    """Handles state change requests."""

    def __init__(self, zk: ZkSession, queue: StateChangeQueue, hosting: Hosting) -> None:
        self._zk = zk
        self._queue = queue
        self._hosting = hosting

    async def drain(self) -> None:
        """Run `drain the state change queue`. Raises the errors of ZooKeeper; the next call handles the rest."""
        for path, request in await self._queue.requests():
            try:
                await self._do(request)
            except (NotReplicaForPartition, MalformedZnode) as error:
                log.error("a state change request failed", change=request.change, reason=str(error))
            await self._queue.remove(path)

    async def _do(self, request: StateChangeRequest) -> None:
        where = request.topic_partition
        if request.change == "close-replica":
            await self._hosting.close_replica(where)
            try:
                await self._hosting.start_replica(where)
            except NotReplicaForPartition:
                return
            log.info("the replica is assigned here again and starts empty", partition=str(where))
            return
        znodes = await read_partition(self._zk, where)
        if znodes.leader is not None and request.epoch not in (NO_EPOCH, znodes.leader.epoch):
            log.info("a start request of another epoch is ignored", partition=str(where), epoch=request.epoch)
            return
        await self._hosting.start_replica(where)
