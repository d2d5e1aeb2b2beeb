"""`becomeFollower` and `becomeLeader` of the seed.

The replicas expect a controller's commands, so each broker sends them to itself from what it read in ZooKeeper. These
points differ from the seed, which would not work or could lose messages:

- `becomeLeader` waits for followers before it tells them to start, so brokers that see a new leader follow it at once.
- A live replica has caught up if it has all that the leader had at its start. A checkpointed `r.hw` may be less.
- The replicas of the RAR are told to start, too, because they ignore the previous leader's request by its epoch.
- The point where followers truncate is a setting shared with the other designs.
"""

from dataclasses import dataclass, field
from typing import Final

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, PartitionEpoch, TopicPartition
from controller_core.wire.messages import (
    ErrorCode,
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from controller_core.zk.session import Conflict, ZkSession
from replica_broker.membership.node import Node
from replica_broker.replicas.partition import Partition, ProposedIsr
from replica_broker.v2.broker.opened_replicas import OpenedReplicas
from replica_broker.v2.settings import V2Settings
from replica_broker.v2.znodes.partitions import PartitionZnodes, read_partition
from replica_broker.v2.znodes.state_change_queue import FollowerStateChangeQueueFull, send_state_change

log = structlog.get_logger()

_NO_CONTROLLER: Final = BrokerId(-1)
_NO_EPOCH: Final = ControllerEpoch(0)
_LOOK_MS: Final = 20


@dataclass(slots=True, kw_only=True)
class Becoming:
    """Changes the roles of replicas. `reassigned` has the RAR of led partitions that are to move or be deleted."""

    zk: ZkSession
    node: Node
    replicas: OpenedReplicas
    settings: V2Settings
    clock: Clock
    reassigned: dict[TopicPartition, tuple[BrokerId, ...]] = field(default_factory=dict)

    async def become_follower(self, znodes: PartitionZnodes) -> bool:
        """Run the seed's `becomeFollower`.

        Return False if the leader is not registered, so that its address is unknown.
        """
        where, leader = znodes.topic_partition, znodes.leader
        assert leader is not None, "a follower needs a leader"
        self.close(where)
        endpoint = self.node.metadata.endpoint(leader.broker_id, self.node.inter_broker_listener)
        if endpoint is None:
            return False
        lives = LeaderAndIsrLiveLeader(broker_id=leader.broker_id, host_name=endpoint.host, port=endpoint.port)
        await self._command(znodes, leader.broker_id, leader.epoch, znodes.isr, (lives,))
        return True

    async def become_leader(self, znodes: PartitionZnodes) -> None:
        """Run the seed's `becomeLeader`. If another leader has replaced this one, nothing is written or opened."""
        where, leader = znodes.topic_partition, znodes.leader
        assert leader is not None, "this broker was elected"
        self.close(where)
        await self._command(znodes, leader.broker_id, leader.epoch, znodes.isr, ())
        partition = self.replicas.hosted.get(where)
        if partition is None or not partition.is_leader:
            return
        if self.settings.becoming_leader_high_watermark == "end":
            partition.replica.high_watermark = partition.replica.end_offset
        await self._wait_for_live(partition, znodes)
        written = await self._write_isr(partition, leader.epoch)
        if written is None:
            return
        self.replicas.opened.add(where)
        log.info("open", partition=str(where), leader_epoch=leader.epoch, isr=partition.isr, cur=_cur(partition))
        for broker in written.hosts:
            if broker in self.node.metadata.brokers and broker != self.node.id:  # this broker has started itself
                await self.start_elsewhere(where, broker, leader.epoch)
        if written.reassigned is not None and written.replicas is not None:
            self.reassigned[where] = written.reassigned  # an earlier leader has begun it

    async def start_elsewhere(self, where: TopicPartition, broker: BrokerId, epoch: LeaderEpoch) -> None:
        """Send a start-replica. A full queue is only logged, because the broker reads its assignment when it starts."""
        bound = self.settings.state_change_queue_bound
        try:
            await send_state_change(self.zk, "start-replica", where, broker, epoch, bound=bound)
        except FollowerStateChangeQueueFull as error:
            log.error("a start request could not be sent", partition=str(where), reason=str(error))

    def close(self, where: TopicPartition) -> None:
        """Stop serving clients, and end the commit task for the partition."""
        self.replicas.opened.discard(where)
        self.reassigned.pop(where, None)

    async def _wait_for_live(self, partition: Partition, znodes: PartitionZnodes) -> None:
        """Run `wait until every live replica in AR catches up or a KeepInSyncTime has passed`."""
        until_ms = self.clock.monotonic_ms() + self.settings.keep_in_sync_time_ms
        while self.clock.monotonic_ms() < until_ms and partition.leader_epoch == getattr(znodes.leader, "epoch", -1):
            live = [broker for broker in znodes.assigned if broker in self.node.metadata.brokers]
            if set(live) - {self.node.id} <= _caught_up(partition):
                return
            await self.clock.sleep_ms(_LOOK_MS)

    async def _write_isr(self, partition: Partition, epoch: LeaderEpoch) -> PartitionZnodes | None:
        """Write the replicas that are in sync. Return None if this broker was replaced."""
        where = partition.topic_partition
        while partition.leader_epoch == epoch and partition.is_leader:
            znodes = await read_partition(self.zk, where)
            if znodes.epoch != epoch:
                return None
            if partition.proposed is not None:  # a fetch has started another change
                await self.clock.sleep_ms(_LOOK_MS)
                continue
            in_sync = _caught_up(partition) | {self.node.id}
            isr = tuple(broker for broker in znodes.assigned if broker in in_sync)
            partition.proposed = proposed = ProposedIsr(isr)
            try:
                await self.zk.transact(
                    [znodes.make_epoch_check(epoch), *znodes.make_isr_writes(isr, assigned=znodes.assigned)]
                )
            except Conflict:
                continue
            finally:
                if partition.proposed is proposed:
                    partition.proposed = None
            self.replicas.take_written(
                where,
                isr=isr,
                partition_epoch=PartitionEpoch(znodes.partition_epoch + 1),
                assigned_replicas=znodes.hosts,
            )
            return znodes
        return None

    async def _command(
        self,
        znodes: PartitionZnodes,
        leader: BrokerId,
        epoch: LeaderEpoch,
        isr: tuple[BrokerId, ...],
        live_leaders: tuple[LeaderAndIsrLiveLeader, ...],
    ) -> None:
        where = znodes.topic_partition
        state = LeaderAndIsrPartitionState(
            partition_index=where.partition,
            controller_epoch=_NO_EPOCH,
            leader=leader,
            leader_epoch=epoch,
            isr=isr,
            partition_epoch=znodes.partition_epoch,
            replicas=znodes.hosts,
            is_new=self.node.id not in znodes.isr or znodes.is_first_led_by(self.zk.session_id),
        )
        topic = LeaderAndIsrTopicState(topic_name=where.topic, topic_id=znodes.topic_id, partition_states=(state,))
        response = await self.replicas.on_leader_and_isr_command(
            LeaderAndIsrRequest(
                controller_id=_NO_CONTROLLER,
                controller_epoch=_NO_EPOCH,
                topic_states=(topic,),
                live_leaders=live_leaders,
            )
        )
        error = response.topics[0].partition_errors[0].error_code
        if error not in (
            ErrorCode.none,
            ErrorCode.stale_controller_epoch,
        ):  # stale_controller_epoch: it was done before
            log.error("a replica cannot change its role", partition=str(where), error=error.name)


def _caught_up(partition: Partition) -> set[BrokerId]:
    """Return the followers that have all that the leader had when it began."""
    return {
        broker
        for broker, follower in partition.followers.items()
        if follower.end_offset >= partition.epoch_start_offset
    }


def _cur(partition: Partition) -> tuple[BrokerId, ...]:
    return tuple(broker for broker in partition.assigned_replicas if broker not in partition.isr)
