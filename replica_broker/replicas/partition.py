"""One partition with a replica on this broker, in the state of the controller's last command.

The seed's `Partition{topic, partition_id, leader, ISR, AR, LeaderAndISRVersionInZK}`. A change never spans two turns of
the event loop, so no reader sees half of one. `notify` wakes those who wait for a change.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from controller_core.model.ids import (
    NO_EPOCH,
    NO_LEADER,
    BrokerId,
    LeaderEpoch,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from controller_core.model.metadata import LeaderRecoveryState
from controller_core.wire.messages import LeaderAndIsrPartitionState
from replica_broker.log.log import Log
from replica_broker.replicas.byte_positions import BytePositions
from replica_broker.replicas.errors import FencedLeaderEpoch, NotLeader, StorageFailed, UnknownLeaderEpoch
from replica_broker.replicas.isr import LeaderView
from replica_broker.replicas.replica import Follower, Replica


@dataclass(frozen=True, slots=True, eq=False)
class ProposedIsr:
    """An ISR that is being written. Until the result is known, it counts beside the current ISR."""

    isr: tuple[BrokerId, ...]


class Partition:
    """A partition and its replica on this broker."""

    def __init__(self, topic_partition: TopicPartition, topic_id: TopicId | None, replica: Replica) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.replica = replica
        self.leader = NO_LEADER
        self.leader_epoch: LeaderEpoch = NO_EPOCH
        self.partition_epoch = PartitionEpoch(-1)
        """`LeaderAndISRVersionInZK`: the version of the state znode."""
        self.isr: tuple[BrokerId, ...] = ()
        self.proposed: ProposedIsr | None = None
        self.assigned_replicas: tuple[BrokerId, ...] = ()
        """The assigned replicas (AR)."""
        self.recovery_state = LeaderRecoveryState.RECOVERED
        self.is_stopped = False
        """True if stopped but not deleted: it follows no leader until the next command."""
        self.is_offline = False
        self.reigns = 0
        """Counts how often this replica started or stopped leading. A wait from an earlier reign is void."""
        self.followers: dict[BrokerId, Follower] = {}
        self.epoch_start_offset = 0
        self._positions = BytePositions(0, 0, 0)
        self._wake: set[Callable[[], None]] = set()

    @property
    def log(self) -> Log:
        return self.replica.log

    @property
    def is_leader(self) -> bool:
        return self.replica.is_leader

    @property
    def high_watermark(self) -> int:
        return self.replica.high_watermark

    @property
    def maximal_isr(self) -> frozenset[BrokerId]:
        """The union of the current ISR and the proposed one."""
        return frozenset(self.isr) | frozenset(self.proposed.isr if self.proposed else ())

    def become_leader(self, state: LeaderAndIsrPartitionState, now_ms: float) -> bool:
        """Run the seed's `becomeLeader`, without the fetcher. Return True if this broker did not lead before.

        The log records the start of the epoch, so that followers can find it.
        """
        is_new = not self.is_leader
        self.log.begin_epoch(state.leader_epoch)
        self.epoch_start_offset = self.replica.end_offset
        self._take(state)
        self.reigns += is_new
        self.replica.is_leader = True
        known = {} if is_new else self.followers
        self.followers = {
            broker: known.get(broker, Follower())
            for broker in self.assigned_replicas
            if broker != self.replica.broker_id
        }
        for broker, follower in self.followers.items():
            follower.begin_again(now_ms, is_in_sync=broker in self.isr, is_new_leader=is_new)
        if is_new:
            self._positions = BytePositions(self.log.log_start_offset, self.replica.end_offset, self.log.size_bytes)
        return is_new

    def become_follower(self, state: LeaderAndIsrPartitionState) -> None:
        """Run the seed's `becomeFollower`, without truncation and the fetcher."""
        self.reigns += self.is_leader
        self.replica.is_leader = False
        self.followers = {}
        self._take(state)

    def stop(self) -> None:
        """Stop leading or following until the next command."""
        self.reigns += self.is_leader
        self.replica.is_leader = False
        self.is_stopped = True
        self.proposed = None
        self.followers = {}
        self.notify()

    def _take(self, state: LeaderAndIsrPartitionState) -> None:
        self.leader = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.isr = tuple(state.isr)
        self.proposed = None
        self.assigned_replicas = tuple(state.replicas)
        self.recovery_state = LeaderRecoveryState(state.leader_recovery_state)
        self.is_stopped = False

    def assign(self, replicas: tuple[BrokerId, ...]) -> None:
        """Assign other replicas in the same epoch. The new ones start as unknown."""
        self.assigned_replicas = replicas
        if self.is_leader:
            others = (broker for broker in replicas if broker != self.replica.broker_id)
            self.followers = {broker: self.followers.get(broker, Follower()) for broker in others}

    def note_append(self, size_bytes: int) -> None:
        """Record the size of the leader's append."""
        self._positions.note(self.replica.end_offset, size_bytes)

    def view(self, now_ms: float) -> LeaderView:
        """Return the basis of decisions about the ISR and the high watermark."""
        return LeaderView(
            leader=self.replica.broker_id,
            isr=self.isr,
            maximal_isr=self.maximal_isr,
            followers=self.followers,
            end_offset=self.replica.end_offset,
            high_watermark=self.replica.high_watermark,
            epoch_start_offset=self.epoch_start_offset,
            bytes_between=self._positions.estimate_bytes,
            now_ms=now_ms,
        )

    def require_log(self) -> None:
        """Raise `StorageFailed` if the log directory failed."""
        if self.is_offline:
            raise StorageFailed(self.topic_partition, "its log directory failed")

    def require_leader(self, current_leader_epoch: LeaderEpoch = NO_EPOCH) -> None:
        """Raise `StorageFailed`, `FencedLeaderEpoch`, `UnknownLeaderEpoch` (KIP-320) or `NotLeader`, in this order."""
        self.require_log()
        if current_leader_epoch != NO_EPOCH and current_leader_epoch < self.leader_epoch:
            raise FencedLeaderEpoch(
                self.topic_partition, f"the leader epoch is already {self.leader_epoch}, not {current_leader_epoch}"
            )
        if current_leader_epoch > self.leader_epoch:
            raise UnknownLeaderEpoch(
                self.topic_partition, f"the leader epoch is still {self.leader_epoch}, not {current_leader_epoch}"
            )
        if not self.is_leader:
            raise NotLeader(self.topic_partition, f"the known leader is broker {self.leader}")

    def notify(self) -> None:
        """Wake those who wait for a change of the log's end, the high watermark, the ISR or the leader."""
        for wake in self._wake:
            wake()

    @contextmanager
    def wake_on_change(self, wake: Callable[[], None]) -> Iterator[None]:
        """Call `wake` at every change within this context."""
        self._wake.add(wake)
        try:
            yield
        finally:
            self._wake.discard(wake)
