"""`startReplica`, `closeReplica` and `onLeaderChange`: one task for each replica, which follows its partition's znodes.

The task reads the znodes, takes the role that they require, and waits for a change. So an election or a waiting leader
delays no other partition, and each partition does one thing at a time. A reassignment that is requested while a leader
waits for its followers begins when the leader is open.

A replica starts if it is in the AR or the RAR. The seed's `startReplica` throws without `replicas`, but the admin
writes that only after the replicas have started.

The seed does not treat failed log directories. Here the broker resigns from its leaderships in one and leaves their
ISRs, so that others can lead, and takes part in no election until it restarts with its log.
"""

import asyncio
from collections.abc import Iterable

import structlog

from controller_core.model.ids import EPOCH_DURING_DELETE, BrokerId, ControllerEpoch, TopicPartition
from controller_core.supervision import start_supervised
from controller_core.wire.messages import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Conflict, ConnectionLost, Delete, SessionExpired
from replica_broker.membership.looking import wait_until_connected
from replica_broker.v2.broker.becoming import Becoming
from replica_broker.v2.broker.leader_election import leader_election
from replica_broker.v2.broker.reassigning import Reassigning
from replica_broker.v2.znodes import paths
from replica_broker.v2.znodes.partitions import PartitionZnodes, read_partition

log = structlog.get_logger()


class NotReplicaForPartition(Exception):
    """The seed's NotReplicaForPartitionException: a replica was to start that is not assigned here. Not retriable."""


class Hosting:
    """The started replicas on this broker."""

    def __init__(self, becoming: Becoming, reassigning: Reassigning) -> None:
        self._becoming = becoming
        self._reassigning = reassigning
        self._zk = becoming.zk
        self._own = becoming.node.id
        self._woken: dict[TopicPartition, asyncio.Event] = {}
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        becoming.replicas.when_offline(lambda partition: self.on_leader_change(partition.topic_partition))

    @property
    def started(self) -> Iterable[TopicPartition]:
        return tuple(self._tasks)

    async def start_replica(self, where: TopicPartition) -> None:
        """Run the seed's `startReplica`. The log was recovered when the directories were opened.

        Raises `NotReplicaForPartition`, and the errors of ZooKeeper.
        """
        znodes = await read_partition(self._zk, where)
        if self._own not in znodes.hosts:
            raise NotReplicaForPartition(f"{where} is on brokers {znodes.hosts}, not on broker {self._own}")
        if where in self._tasks:
            self.on_leader_change(where)
            return
        self._woken[where] = asyncio.Event()
        self._tasks[where] = start_supervised(
            lambda: self._keep(where), name=f"replica of {where}", sleep_ms=self._becoming.clock.sleep_ms
        )

    async def close_replica(self, where: TopicPartition) -> None:
        """Run the seed's `closeReplica`: `close and delete r`, started or not. Its leadership becomes free."""
        await self._end([where])
        self._becoming.close(where)
        partition = StopReplicaPartitionState(
            partition_index=where.partition, leader_epoch=EPOCH_DURING_DELETE, delete_partition=True
        )
        await self._becoming.replicas.on_stop_replica_command(
            StopReplicaRequest(
                controller_id=BrokerId(-1),
                controller_epoch=ControllerEpoch(0),
                topic_states=(StopReplicaTopicState(topic_name=where.topic, partition_states=(partition,)),),
            )
        )
        znodes = await read_partition(self._zk, where)
        if znodes.leader is not None and znodes.leader_session == self._zk.session_id:
            await self._zk.transact_many([[Delete(path=paths.leader(where))]])
        log.info("closed", partition=str(where))

    def on_leader_change(self, where: TopicPartition) -> None:
        """Run the seed's `onLeaderChange`, if the replica has started."""
        if where in self._woken:
            self._woken[where].set()

    async def close(self) -> None:
        """End all tasks; the replicas stay as they are."""
        await self._end(list(self._tasks))

    async def _end(self, ending: Iterable[TopicPartition]) -> None:
        tasks = [self._tasks.pop(where) for where in ending if where in self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, where: TopicPartition) -> None:
        woken = self._woken[where]
        while True:
            woken.clear()
            try:
                is_settled = await self._look(where)
            except (ConnectionLost, SessionExpired):
                await wait_until_connected(self._zk)
                continue
            except MalformedZnode as error:
                log.error("unreadable partition stays unchanged", partition=str(where), reason=str(error))
                is_settled = True
            if is_settled:
                await woken.wait()

    async def _look(self, where: TopicPartition) -> bool:
        """Take the role that the znodes require. Return False if they must be read again."""
        znodes = await read_partition(self._zk, where)
        if self._own not in znodes.hosts:
            return True  # a close-replica will come
        if self._is_lost(znodes):
            return await self._give_up(znodes)
        if znodes.leader is None:
            becoming = self._becoming
            return not await leader_election(self._zk, where, self._own, becoming.settings, becoming.clock)
        if self._is_done(znodes):
            await self._reassigning.on_partitions_reassigned(znodes)
            return True
        if znodes.leader.broker_id != self._own:
            await self._becoming.become_follower(znodes)
        elif znodes.leader_session == self._zk.session_id:
            await self._becoming.become_leader(znodes)
        else:
            log.info(
                "waiting for the session of this broker's earlier life, which is the leader, to end",
                partition=str(where),
            )
        return True

    def _is_lost(self, znodes: PartitionZnodes) -> bool:
        """Return True if this replica's log is in a failed directory.

        A replica that was never in sync had none to lose.
        """
        replicas, where = self._becoming.replicas, znodes.topic_partition
        if replicas.is_offline(where):
            return True
        is_new = self._own not in znodes.isr or znodes.is_first_led_by(self._zk.session_id)
        return not is_new and replicas.may_be_offline(where)

    async def _give_up(self, znodes: PartitionZnodes) -> bool:
        """Resign from a leadership, and leave the ISR if it has other members.

        Return False if the znodes must be read again.
        """
        where, leader = znodes.topic_partition, znodes.leader
        self._becoming.close(where)
        if leader is None or znodes.leader_session != self._zk.session_id:
            return True
        others = tuple(broker for broker in znodes.isr if broker != self._own)
        isr = znodes.make_isr_writes(others, assigned=znodes.assigned) if others else []
        try:
            await self._zk.transact([znodes.make_epoch_check(leader.epoch), Delete(path=paths.leader(where)), *isr])
        except Conflict:
            return False
        log.error(
            "a leader resigned because its log directory failed", partition=str(where), in_sync=others or self._own
        )
        return True

    def _is_done(self, znodes: PartitionZnodes) -> bool:
        partition = self._becoming.replicas.hosted.get(znodes.topic_partition)
        leader = znodes.leader
        if partition is None or leader is None or partition.leader_epoch != leader.epoch:
            return False
        return not partition.is_leader or znodes.topic_partition in self._becoming.replicas.opened
