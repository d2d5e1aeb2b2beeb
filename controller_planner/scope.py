"""The scope of a plan: what the goals mean for a snapshot, as masks over its partitions and brokers."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from controller_planner.goals import Goals, InvalidGoals, Mode, Unsatisfiable
from controller_planner.loads import NO_BROKER, Bools, Ints, LoadSnapshot, name_brokers

_EXAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scope:
    """The partitions and brokers that a plan may change."""

    partitions: Bools
    """True: the partition may change."""
    factors: Ints
    """The wanted number of replicas of each partition."""
    takes: Bools
    """True for each broker that shares the load: it lives, takes replicas, is not drained and not excluded."""
    excluded: Bools
    """True for each broker that keeps its replicas and gets no others."""
    drained: Bools
    relieved: Bools
    receivers: Ints
    """The brokers that replicas may be placed on."""
    left_out: tuple[str, ...]


def find_scope(snapshot: LoadSnapshot, goals: Goals) -> Scope:
    """Return the scope. Raises InvalidGoals for unknown names, and Unsatisfiable for too few brokers."""
    brokers, partitions = snapshot.brokers, snapshot.partitions
    in_scope = _find_partitions(snapshot, goals)
    factors = partitions.count_replicas()
    if goals.replication_factor is not None:
        factors = np.where(in_scope, np.int32(goals.replication_factor), factors)
    named = _find_brokers(snapshot, goals.brokers)
    outside = _find_outside(snapshot, goals)
    excluded = _find_brokers(snapshot, goals.excluded_brokers) | outside
    _find_brokers(snapshot, (broker for pair in goals.failed_together for broker in pair[:2]))
    drained = named if goals.mode is Mode.DRAIN else np.zeros_like(named)
    relieved = named if goals.mode is Mode.RELIEVE else np.zeros_like(named)
    excluded &= ~(drained | relieved)
    takes = brokers.takes_replicas & brokers.is_live & ~drained & ~excluded & ~outside
    if goals.below_percent is not None:
        is_unknown = np.isnan(brokers.capacity_disk_bytes)
        if (relieved & is_unknown).any():
            raise InvalidGoals(
                "no percentage of an unknown disk capacity can be kept: give the capacity of"
                f" {name_brokers(brokers.ids[relieved & is_unknown])}, or no percentage"
            )
        takes &= ~is_unknown
    receivers = takes & ~relieved
    if goals.mode is Mode.EXPAND:
        used = np.bincount(partitions.replicas[partitions.replicas >= 0], minlength=len(brokers)) > 0
        receivers = takes & (named if goals.brokers else ~used)
        if (named & ~takes).any():
            unfit = ", ".join(map(str, np.sort(brokers.ids[named & ~takes]).tolist()))
            raise InvalidGoals(
                "brokers cannot be filled, because they are down, take no replicas, or are in other racks than those of"
                f" the scope: {unfit}"
            )
        if not receivers.any():
            raise InvalidGoals("there is no broker to fill: name new brokers that are up and take replicas")
    readable = (partitions.in_sync & np.append(brokers.is_live, np.False_)[partitions.replicas]).any(axis=1)
    lost = in_scope & ~readable
    left_out = []
    if lost.any() and goals.mode is not Mode.LEADERS_ONLY:
        left_out.append(
            f"{_name(snapshot, lost)}: no replica in sync is on a live broker, so nothing can be copied from it"
        )
    scope = Scope(
        partitions=in_scope & readable,
        factors=np.where(readable, factors, partitions.count_replicas()).astype(np.int32),
        takes=takes,
        excluded=excluded,
        drained=drained,
        relieved=relieved,
        receivers=np.flatnonzero(receivers).astype(np.int32),
        left_out=tuple(left_out),
    )
    _check_number(snapshot, scope)
    return scope


def _find_partitions(snapshot: LoadSnapshot, goals: Goals) -> Bools:
    topics = snapshot.partitions.topics
    wanted = set(topics if goals.topics is None else goals.topics)
    if unknown := (wanted | set(goals.excluded_topics)) - set(topics):
        raise InvalidGoals(f"the cluster has no topic {', '.join(sorted(unknown)[:_EXAMPLES])}")
    wanted -= set(goals.excluded_topics)
    return np.array([topic in wanted for topic in topics], dtype=np.bool_)[snapshot.partitions.topic]


def _find_brokers(snapshot: LoadSnapshot, ids: Iterable[int]) -> Bools:
    wanted = np.array(sorted(set(ids)), dtype=np.int64)
    if len(unknown := wanted[~np.isin(wanted, snapshot.brokers.ids)]):
        raise InvalidGoals(f"the cluster has no broker {', '.join(map(str, unknown.tolist()[:_EXAMPLES]))}")
    return np.isin(snapshot.brokers.ids, wanted)


def _find_outside(snapshot: LoadSnapshot, goals: Goals) -> Bools:
    """Return True for each broker outside the racks of the goals. The rack of a broker that is down may be unknown."""
    racks = snapshot.brokers.racks
    if goals.racks is None:
        return np.zeros(len(racks), dtype=np.bool_)
    if not goals.racks:
        raise InvalidGoals("no rack is named: name racks, or leave them out for all")
    if unknown := set(goals.racks) - set(racks):
        raise InvalidGoals(f"the cluster has no rack {', '.join(sorted(unknown)[:_EXAMPLES])}")
    is_unknown = np.array([rack is None for rack in racks], dtype=np.bool_) & ~snapshot.brokers.is_live
    return np.array([rack not in goals.racks for rack in racks], dtype=np.bool_) & ~is_unknown


def _check_number(snapshot: LoadSnapshot, scope: Scope) -> None:
    """Refuse partitions that need more brokers than may hold their replicas."""
    replicas = snapshot.partitions.replicas
    on_taker = np.append(scope.takes, np.False_)[replicas]
    on_drained = np.append(scope.drained, np.False_)[replicas]
    stays = ((replicas != NO_BROKER) & ~on_taker & ~on_drained).sum(axis=1)
    grows = scope.factors > snapshot.partitions.count_replicas()
    missing = np.where(
        scope.partitions & (on_drained.any(axis=1) | grows), scope.factors - stays - scope.takes.sum(), 0
    )
    if (missing > 0).any():
        raise Unsatisfiable(
            f"{_name(snapshot, missing > 0)}: {int(scope.factors[missing.argmax()])} replicas need as many brokers,"
            f" and {int(missing.max())} too few are up, take replicas, and are not drained or excluded"
        )
    if scope.partitions.any() and (short := scope.factors < snapshot.partitions.min_isr)[scope.partitions].any():
        grown = scope.partitions & short & (scope.factors != snapshot.partitions.count_replicas())
        if grown.any():
            raise Unsatisfiable(
                f"{_name(snapshot, grown)}: {int(scope.factors[grown][0])} replicas are fewer than"
                f" min.insync.replicas {int(snapshot.partitions.min_isr[grown][0])}; lower that first"
            )


def _name(snapshot: LoadSnapshot, which: Bools) -> str:
    at = np.flatnonzero(which)
    names = ", ".join(snapshot.partitions.name(int(one)) for one in at[:_EXAMPLES])
    return f"{names} and {len(at) - _EXAMPLES} more" if len(at) > _EXAMPLES else names
