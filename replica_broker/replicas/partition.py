"""One partition of which a replica is on this broker, as the last command of the controller says it.

The seed's `Partition{topic, partition_id, leader, ISR, AR, LeaderAndISRVersionInZK}`. Everything here happens between
two turns of the event loop, so no reader ever sees half of a change; who waits for one is woken by `notify`.
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
    """What is being written, or was: as long as it stands, it counts beside the one that is known to be written."""

    isr: tuple[BrokerId, ...]


class Partition:
    """See the module."""

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
        """AR."""
        self.recovery_state = LeaderRecoveryState.RECOVERED
        self.is_stopped = False
        """Stopped and not deleted: it follows nobody until the next command."""
        self.is_offline = False
        self.reigns = 0
        """How often this replica began to lead, or ceased to: a wait from before one of these is in vain."""
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
        """Whoever is in the ISR that is known to be written, or in the one that is proposed."""
        return frozenset(self.isr) | frozenset(self.proposed.isr if self.proposed else ())

    def become_leader(self, state: LeaderAndIsrPartitionState, now_ms: float) -> bool:
        """The seed's `becomeLeader`, without the fetcher. Returns whether it did not lead before.

        The log notes where the epoch begins, so that followers can tell what is from before it."""
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
        """The seed's `becomeFollower`, without cutting the log and the fetcher."""
        self.reigns += self.is_leader
        self.replica.is_leader = False
        self.followers = {}
        self._take(state)

    def stop(self) -> None:
        """It leads and follows nobody, until the next command."""
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
        """Other replicas are assigned, in the same epoch: those that are new begin with nothing."""
        self.assigned_replicas = replicas
        if self.is_leader:
            others = (broker for broker in replicas if broker != self.replica.broker_id)
            self.followers = {broker: self.followers.get(broker, Follower()) for broker in others}

    def note_append(self, size_bytes: int) -> None:
        """The leader has appended."""
        self._positions.note(self.replica.end_offset, size_bytes)

    def view(self, now_ms: float) -> LeaderView:
        """What the leader decides about the ISR and the high watermark from."""
        return LeaderView(
            leader=self.replica.broker_id,
            isr=self.isr,
            maximal_isr=self.maximal_isr,
            followers=self.followers,
            end_offset=self.replica.end_offset,
            high_watermark=self.replica.high_watermark,
            epoch_start_offset=self.epoch_start_offset,
            bytes_between=self._positions.between,
            now_ms=now_ms,
        )

    def require_log(self) -> None:
        """Raises `StorageFailed`."""
        if self.is_offline:
            raise StorageFailed(self.topic_partition, "its log directory failed")

    def require_leader(self, current_leader_epoch: LeaderEpoch = NO_EPOCH) -> None:
        """Raises `StorageFailed`, `FencedLeaderEpoch` and `UnknownLeaderEpoch` (KIP-320), and `NotLeader`, in this
        order."""
        self.require_log()
        if current_leader_epoch != NO_EPOCH and current_leader_epoch < self.leader_epoch:
            raise FencedLeaderEpoch(
                self.topic_partition, f"the epoch is {self.leader_epoch} by now, and not {current_leader_epoch}"
            )
        if current_leader_epoch > self.leader_epoch:
            raise UnknownLeaderEpoch(
                self.topic_partition, f"the epoch is still {self.leader_epoch}, and not {current_leader_epoch}"
            )
        if not self.is_leader:
            raise NotLeader(self.topic_partition, f"broker {self.leader} leads it, as far as is known")

    def notify(self) -> None:
        """Wakes whoever waits for a change: of the log's end, of the high watermark, of the ISR, of the leader."""
        for wake in self._wake:
            wake()

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Has it called at every change from now on."""
        self._wake.add(wake)
        try:
            yield
        finally:
            self._wake.discard(wake)
