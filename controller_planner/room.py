"""The room on disks for the loss of any one broker or rack: whether the others could take its replicas.

A plan evens out disks, and cannot make room: only fewer bytes, larger disks or more brokers do. So the lack is reported.
A reported lack is certain. The room may be too little without a report, because replicas are not placed one by one."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from controller_planner.goals import Mode
from controller_planner.loads import NO_BROKER, Bools, Floats
from controller_planner.losses import make_result
from controller_planner.plan import Plan
from controller_planner.resources import DISK, measure_replicas

_Racks = np.ndarray[tuple[int], np.dtype[np.str_]]
"""The name of each broker's rack. A broker without one is alone in its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A loss after which the disks of the others are too small."""

    brokers: tuple[int, ...]
    """The ids of the lost brokers."""
    rack: str | None
    """The lost rack; None: one broker is lost."""
    within: str | None
    """The only rack whose brokers may take the replicas, because each other one has a replica; None: any broker may."""
    needed_bytes: float
    room_bytes: float


def find_shortages(plan: Plan) -> tuple[Shortage, ...]:
    """Return the losses for which there is no room after the plan, the worst first.

    There are none if a capacity or all sizes are unknown: that is said elsewhere."""
    brokers, used = plan.snapshot.brokers, plan.loads_after[:, DISK]
    takes = brokers.takes_replicas & brokers.is_live
    if plan.goals.mode is Mode.DRAIN:
        takes = takes & ~np.isin(brokers.ids, plan.goals.brokers)
    free = np.maximum(brokers.capacity_disk_bytes - used, 0)
    if np.isnan(free[takes]).any() or np.isnan(used).any():
        return ()
    racks = np.array([f"rack {rack}" if rack is not None else f"broker {at}" for at, rack in enumerate(brokers.racks)])
    found = [*_list_lost_brokers(plan, takes, free, racks), *_list_lost_racks(plan, takes, free)]
    return tuple(sorted(found, key=lambda each: (each.room_bytes - each.needed_bytes, each.brokers)))


def _list_lost_brokers(plan: Plan, takes: Bools, free: Floats, racks: _Racks) -> Iterator[Shortage]:
    brokers, used = plan.snapshot.brokers, plan.loads_after[:, DISK]
    held_fast = _sum_held_fast(plan, takes, racks)
    for at in np.flatnonzero(brokers.is_live & (used > 0)).tolist():
        others = takes & (np.arange(len(takes)) != at)
        beside = others & (racks == racks[at])
        for needed, takers, within in (
            (float(used[at]), others, None),
            (float(held_fast[at]) if beside.any() else 0.0, beside, brokers.racks[at]),
        ):
            room = float(free[takers].sum())
            if needed > room:
                yield Shortage(
                    brokers=(int(brokers.ids[at]),), rack=None, within=within, needed_bytes=needed, room_bytes=room
                )
                break


def _list_lost_racks(plan: Plan, takes: Bools, free: Floats) -> Iterator[Shortage]:
    brokers, used = plan.snapshot.brokers, plan.loads_after[:, DISK]
    for rack in sorted({each for each in brokers.racks if each is not None}):
        lost = np.array([each == rack for each in brokers.racks], dtype=np.bool_) & brokers.is_live
        needed, room = float(used[lost].sum()), float(free[takes & ~lost].sum())
        if lost.sum() > 1 and needed > room:
            ids = tuple(sorted(brokers.ids[lost].tolist()))
            yield Shortage(brokers=ids, rack=rack, within=None, needed_bytes=needed, room_bytes=room)


def _sum_held_fast(plan: Plan, takes: Bools, racks: _Racks) -> Floats:
    """Return the bytes of each broker that only its own rack may take: of partitions with one replica in each rack."""
    partitions = make_result(plan).partitions
    rack_of = np.append(np.unique(racks, return_inverse=True)[1], NO_BROKER)
    open_racks = np.unique(rack_of[:-1][takes])
    found = np.flatnonzero(partitions.count_replicas() == len(open_racks))
    for rack in open_racks.tolist():
        found = found[(rack_of[partitions.replicas[found]] == rack).any(axis=1)]
    rows = partitions.replicas[found]
    sizes = np.broadcast_to(measure_replicas(plan.snapshot)[found, DISK][:, None], rows.shape)
    used = rows >= 0
    return np.bincount(rows[used], sizes[used], len(plan.snapshot.brokers)).astype(np.float64)
