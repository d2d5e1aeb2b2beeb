"""Leader election: the four leader selectors of seed 000, and the first election of a new partition.

Each selector takes what is known of one partition. It returns the new leadership and the replicas that must be sent it,
or the reason why there can be none. A new leadership has the next leader epoch, because brokers ignore a LeaderAndIsr
request that does not raise it.

`live` are the brokers on which a replica of *this* partition can act: registered, not shutting down, and with the log
directory of the replica online.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from controller_core.model.ids import (
    INITIAL_LEADER_EPOCH,
    NO_EPOCH,
    NO_LEADER,
    BrokerId,
    LeaderEpoch,
)
from controller_core.model.metadata import LeaderAndIsr, LeaderRecoveryState, LogEnd


class Selection(NamedTuple):
    """A new leadership, and the replicas that receive a LeaderAndIsr request for it."""

    leader_and_isr: LeaderAndIsr
    receivers: tuple[BrokerId, ...]
    unclean: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoLeader:
    """The reason why no leader can be elected. The partition stays as it is."""

    reason: str


def next_epoch(epoch: LeaderEpoch) -> LeaderEpoch:
    """The leader epoch of the next decision."""
    return LeaderEpoch(epoch + 1)


def elect_initial_leader(assigned: Sequence[BrokerId], live: Set[BrokerId]) -> Selection | NoLeader:
    """NewPartition -> OnlinePartition: the first live replica leads, all live replicas are the ISR."""
    isr = tuple(replica for replica in assigned if replica in live)
    if not isr:
        return NoLeader(reason=f"none of the assigned replicas {list(assigned)} is live")
    leader_and_isr = LeaderAndIsr(leader=isr[0], isr=isr, leader_epoch=INITIAL_LEADER_EPOCH)
    return Selection(leader_and_isr=leader_and_isr, receivers=isr)


def elect_offline_partition_leader(
    assigned: Sequence[BrokerId],
    current: LeaderAndIsr,
    live: Set[BrokerId],
    *,
    unclean_allowed: bool,
    adding: Sequence[BrokerId] = (),
    log_ends: Mapping[BrokerId, LogEnd] = MappingProxyType({}),
) -> Selection | NoLeader:
    """OfflinePartitionLeaderSelector: elect a live replica of the ISR; the new ISR is the live ISR.

    If no replica of the ISR is live and the topic allows unclean elections, a live assigned replica leads alone. It may
    miss acknowledged messages, so it starts as RECOVERING (KIP-704). The replica with the longest log is preferred, if
    the ends of some logs are known. Otherwise it is the first live replica, but replicas that a reassignment is
    `adding` come last, because their logs may be empty.
    """
    receivers, live_isr, leader = _first_in_sync(tuple(assigned), current.isr, frozenset(live))
    if leader is not None:
        return Selection(leader_and_isr=_elect(current, leader, live_isr), receivers=receivers)
    if not receivers:
        return NoLeader(reason=f"none of the assigned replicas {list(assigned)} is live")
    if not unclean_allowed:
        return NoLeader(
            reason=f"none of the in-sync replicas {list(current.isr)} is live, and unclean leader election is off"
        )
    leader = _replica_outside_isr(receivers, adding, log_ends)
    chosen = LeaderAndIsr(
        leader=leader,
        isr=(leader,),
        leader_epoch=next_epoch(current.leader_epoch),
        leader_recovery_state=LeaderRecoveryState.RECOVERING,
    )
    return Selection(leader_and_isr=chosen, receivers=receivers, unclean=True)


def _replica_outside_isr(
    live: Sequence[BrokerId], adding: Sequence[BrokerId], log_ends: Mapping[BrokerId, LogEnd]
) -> BrokerId:
    """Return the replica with the longest log, the first of equals.

    Added replicas count only if all log ends are known.
    """
    if all(replica in log_ends for replica in live):
        return max(live, key=log_ends.__getitem__)
    candidates = [replica for replica in live if replica not in adding] or live
    told = [replica for replica in candidates if replica in log_ends]
    return max(told, key=log_ends.__getitem__) if told else candidates[0]


@lru_cache(maxsize=1 << 12)
def _first_in_sync(
    assigned: tuple[BrokerId, ...], isr: tuple[BrokerId, ...], live: frozenset[BrokerId]
) -> tuple[tuple[BrokerId, ...], tuple[BrokerId, ...], BrokerId | None]:
    """Return the live replicas, the live ISR, and the first replica in both.

    Cached: many partitions have the same three.
    """
    receivers = tuple(replica for replica in assigned if replica in live)
    live_isr = tuple(replica for replica in isr if replica in live)
    return receivers, live_isr, next((replica for replica in receivers if replica in live_isr), None)


def elect_reassigned_partition_leader(
    target: Sequence[BrokerId], current: LeaderAndIsr, live: Set[BrokerId]
) -> Selection | NoLeader:
    """ReassignedPartitionLeaderSelector: elect a live replica of RAR that is in the ISR. The ISR stays as it is."""
    for replica in target:
        if replica in live and replica in current.isr:
            return Selection(leader_and_isr=_elect(current, replica, current.isr), receivers=tuple(target))
    return NoLeader(reason=f"none of the reassigned replicas {list(target)} is live and in sync")


def elect_preferred_replica_leader(
    assigned: Sequence[BrokerId], current: LeaderAndIsr, live: Set[BrokerId]
) -> Selection | NoLeader:
    """PreferredReplicaPartitionLeaderSelector: elect the first assigned replica if it is live and in sync. Same ISR."""
    if not assigned:
        return NoLeader(reason="no replica is assigned")
    preferred = assigned[0]
    if preferred in live and preferred in current.isr:
        return Selection(leader_and_isr=_elect(current, preferred, current.isr), receivers=tuple(assigned))
    state = "not in sync" if preferred in live else "not live"
    return NoLeader(reason=f"the preferred replica {preferred} is {state}")


def elect_controlled_shutdown_leader(
    assigned: Sequence[BrokerId],
    current: LeaderAndIsr,
    live_or_shutting_down: Set[BrokerId],
    shutting_down: Set[BrokerId],
) -> Selection | NoLeader:
    """ControlledShutdownLeaderSelector: elect a replica of the ISR that stays. The new ISR is without those that go.

    Replicas that are shutting down receive the decision as well: until they are gone they must know which leader to
    follow (KAFKA-7482).
    """
    receivers, isr, leader = _first_staying(
        tuple(assigned), current.isr, frozenset(live_or_shutting_down), frozenset(shutting_down)
    )
    if leader is not None:
        return Selection(leader_and_isr=_elect(current, leader, isr), receivers=receivers)
    return NoLeader(reason=f"no in-sync replica of {list(current.isr)} stays when {sorted(shutting_down)} shut down")


@lru_cache(maxsize=1 << 12)
def _first_staying(
    assigned: tuple[BrokerId, ...],
    isr: tuple[BrokerId, ...],
    reachable: frozenset[BrokerId],
    shutting_down: frozenset[BrokerId],
) -> tuple[tuple[BrokerId, ...], tuple[BrokerId, ...], BrokerId | None]:
    """Return the reachable replicas, the ISR that stays, and the first replica in both. Cached, as above."""
    receivers = tuple(replica for replica in assigned if replica in reachable)
    staying = tuple(replica for replica in isr if replica not in shutting_down)
    return receivers, staying, next((replica for replica in receivers if replica in staying), None)


def remove_replicas(current: LeaderAndIsr, leaving: Set[BrokerId]) -> LeaderAndIsr | None:
    """Replica -> OfflineReplica: return the leadership without the leaving replicas; None if nothing changes.

    An ISR never becomes empty. If all its members leave, it stays as it is and has no leader, because only they have
    every acknowledged message (KAFKA-3096).
    """
    remaining = tuple([member for member in current.isr if member not in leaving])
    leader = NO_LEADER if current.leader in leaving else current.leader
    if (leader, remaining or current.isr) == (current.leader, current.isr):
        return None
    return _elect(current, leader, remaining or current.isr)


def raise_leader_epoch(current: LeaderAndIsr, above: LeaderEpoch = NO_EPOCH) -> LeaderAndIsr:
    """Return the same leadership with the next leader epoch. Replicas apply a changed assignment only if it rises.

    `above`: the epoch must also be larger than this one.
    """
    epoch = next_epoch(max(current.leader_epoch, above))
    return _share(current.leader, current.isr, epoch, current.leader_recovery_state)


def _elect(current: LeaderAndIsr, leader: BrokerId, isr: tuple[BrokerId, ...]) -> LeaderAndIsr:
    return _share(leader, isr, next_epoch(current.leader_epoch), current.leader_recovery_state)


@lru_cache(maxsize=1 << 12)
def _share(
    leader: BrokerId, isr: tuple[BrokerId, ...], leader_epoch: LeaderEpoch, recovery_state: LeaderRecoveryState
) -> LeaderAndIsr:
    """Return one object for all equal leaderships. A broker's death makes tens of thousands, and few of them differ."""
    return LeaderAndIsr(leader=leader, isr=isr, leader_epoch=leader_epoch, leader_recovery_state=recovery_state)
