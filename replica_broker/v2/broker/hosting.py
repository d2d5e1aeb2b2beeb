"""`startReplica`, `closeReplica` and `onLeaderChange`: a task for each replica here, which does what its leader's znode
asks for.

The task reads the partition's znodes and becomes what they say, then waits until something changes: a leader change, a
start-replica, another registration, another session. So an election that takes PreferredReplicaTime, or a leader that
waits for KeepInSyncTime, holds up no other partition, and each partition does one thing at a time.

A replica is started where it is in the AR, or is to be (RAR): `startReplica` of the seed throws while `replicas` is not
there, and the admin writes that only when the replicas have started.

The seed does not say what becomes of a replica whose log directory fails. What it led it gives up, and leaves the ISR with
that, so that another one can lead; it takes part in no election until the broker starts again with its log.
"""

import asyncio
from collections.abc import Iterable

import structlog

from controller_core.model.ids import EPOCH_DURING_DELETE, BrokerId, ControllerEpoch, TopicPartition
from controller_core.supervision import supervised
from controller_core.wire.messages import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Conflict, ConnectionLost, Delete, SessionExpired
from replica_broker.membership.looking import until_connected
from replica_broker.v2.broker.becoming import Becoming
from replica_broker.v2.broker.leader_election import leader_election
from replica_broker.v2.znodes import paths
from replica_broker.v2.znodes.partitions import PartitionZnodes, read_partition

log = structlog.get_logger()


class NotReplicaForPartition(Exception):
    """The seed's NotReplicaForPartitionException: a replica is to start that is not assigned here. Not retriable."""


class Hosting:
    """The replicas on this broker that have started."""

    def __init__(self, becoming: Becoming) -> None:
        self._becoming = becoming
        self._zk = becoming.zk
        self._own = becoming.node.id
        self._woken: dict[TopicPartition, asyncio.Event] = {}
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        becoming.replicas.when_offline(lambda partition: self.on_leader_change(partition.topic_partition))

    @property
    def started(self) -> Iterable[TopicPartition]:
        return tuple(self._tasks)

    async def start_replica(self, where: TopicPartition) -> None:
        """The seed's `startReplica`. Its log was recovered when the directories were opened.

        Raises `NotReplicaForPartition`, and the errors of ZooKeeper."""
        znodes = await read_partition(self._zk, where)
        if self._own not in znodes.hosts:
            raise NotReplicaForPartition(f"{where} is on {znodes.hosts}, and not on broker {self._own}")
        if where in self._tasks:
            self.on_leader_change(where)
            return
        self._woken[where] = asyncio.Event()
        self._tasks[where] = supervised(
            lambda: self._keep(where), name=f"replica of {where}", sleep_ms=self._becoming.clock.sleep_ms
        )

    async def close_replica(self, where: TopicPartition) -> None:
        """The seed's `closeReplica`: `close and delete r`, started or not. What it led is free for others."""
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
        """The seed's `onLeaderChange`, where the replica is here."""
        if where in self._woken:
            self._woken[where].set()

    async def close(self) -> None:
        """Ends all tasks; the replicas are as they are."""
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
                await until_connected(self._zk)
                continue
            except MalformedZnode as error:
                log.error("a partition makes no sense, and stays as it is", partition=str(where), reason=str(error))
                is_settled = True
            if is_settled:
                await woken.wait()

    async def _look(self, where: TopicPartition) -> bool:
        """Does what the znodes ask for. False: they have to be read again."""
        znodes = await read_partition(self._zk, where)
        if self._own not in znodes.hosts:
            return True  # a close-replica is on its way
        if self._is_lost(znodes):
            return await self._give_up(znodes)
        if znodes.leader is None:
            becoming = self._becoming
            return not await leader_election(self._zk, where, self._own, becoming.settings, becoming.clock)
        if self._is_done(znodes):
            return True
        if znodes.leader.broker_id != self._own:
            await self._becoming.become_follower(znodes)
        elif znodes.leader_session == self._zk.session_id:
            await self._becoming.become_leader(znodes)
        else:
            log.info("the leader is an earlier life of this broker, whose session has to end", partition=str(where))
        return True

    def _is_lost(self, znodes: PartitionZnodes) -> bool:
        """Whether what this replica had is in a directory that failed. One that was never in sync had nothing to lose."""
        replicas, where = self._becoming.replicas, znodes.topic_partition
        if replicas.is_offline(where):
            return True
        is_new = self._own not in znodes.isr or znodes.is_first_led_by(self._zk.session_id)
        return not is_new and replicas.may_be_offline(where)

    async def _give_up(self, znodes: PartitionZnodes) -> bool:
        """Gives a leadership back, and leaves the ISR where others are in it. False: the znodes are to be read again."""
        where, leader = znodes.topic_partition, znodes.leader
        self._becoming.close(where)
        if leader is None or znodes.leader_session != self._zk.session_id:
            return True
        others = tuple(broker for broker in znodes.isr if broker != self._own)
        isr = znodes.with_isr(others, assigned=znodes.assigned) if others else []
        try:
            await self._zk.transact([znodes.fenced(leader.epoch), Delete(path=paths.leader(where)), *isr])
        except Conflict:
            return False
        log.error("a leader gave up, as its log directory failed", partition=str(where), in_sync=others or self._own)
        return True

    def _is_done(self, znodes: PartitionZnodes) -> bool:
        partition = self._becoming.replicas.hosted.get(znodes.topic_partition)
        leader = znodes.leader
        if partition is None or leader is None or partition.leader_epoch != leader.epoch:
            return False
        return not partition.is_leader or znodes.topic_partition in self._becoming.replicas.opened
