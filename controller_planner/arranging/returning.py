"""Sending replicas home that moved without need.

The replicas that leave a broker and those that come to it are chosen apart. In the end a broker that gave replicas away
may have a little room below its bound. The largest replica that fits there stays at home after all, and its bytes are
not copied."""

import numpy as np

from controller_planner.arranging.layout import Layout
from controller_planner.loads import Bools, Floats, Ints
from controller_planner.resources import DISK, OF_A_REPLICA


def return_home(layout: Layout, original: Ints, bounds: Floats, may_return: Bools) -> None:
    """Put moved replicas back on brokers where they were, while these stay within the bounds.

    `original` has the replicas of the start, `may_return` an entry for each broker."""
    width = layout.width
    partition, position, home = _find_moved(layout, original)
    keep = may_return[home]
    partition, position, home = partition[keep], position[keep], home[keep]
    cost = layout.resources.of_replica[partition, DISK]
    order = np.lexsort((partition, -cost, home))
    partition, position, home = partition[order], position[order], home[order]
    loads = layout.resources.of_replica[partition]
    starts = np.searchsorted(home, np.arange(layout.brokers + 1))
    per_share = layout.resources.per_share[:, :OF_A_REPLICA]
    capacity = layout.resources.capacity[:, :OF_A_REPLICA]
    for broker in range(layout.brokers):
        some = np.arange(starts[broker], starts[broker + 1])
        with np.errstate(divide="ignore"):
            most = np.where(per_share[broker] > 0, bounds[broker, :OF_A_REPLICA] / per_share[broker], np.inf)
        most = np.minimum(most, capacity[broker])
        while len(some):
            room = most - layout.loads[broker, :OF_A_REPLICA]
            some = some[(loads[some] <= room).all(axis=1)]
            if not len(some):
                break
            at, some = some[0], some[1:]
            slots = np.array([partition[at] * width + position[at]], dtype=np.int64)
            others, now = layout.find_others(slots), layout.replicas.ravel()[slots]
            both = np.array([[broker, now[0]]], dtype=np.int32)
            crowd, exposure = layout.count_in_racks(others, both)[0], layout.compute_exposure(others, both)[0]
            if crowd[0] > crowd[1] or exposure[0] > exposure[1] or (others == broker).any():
                continue
            load = layout.get_loads_of(slots)
            layout.lift(slots, load)
            layout.put(slots, np.array([broker], dtype=np.int32), load)


def _find_moved(layout: Layout, original: Ints) -> tuple[Ints, Ints, Ints]:
    """Return partition and position of each replica on a new broker, with a broker that the partition left."""
    now = layout.replicas
    new = (now >= 0) & ~(now[:, :, None] == original[:, None, :]).any(axis=2)
    left = (original >= 0) & ~(original[:, :, None] == now[:, None, :]).any(axis=2)
    rows = np.flatnonzero(new.any(axis=1))
    number = np.minimum(new[rows].sum(axis=1), left[rows].sum(axis=1))
    found: list[tuple[Ints, Ints, Ints]] = []
    for at in range(int(number.max(initial=0))):
        some = rows[number > at]
        position = np.argsort(~new[some], axis=1, kind="stable")[:, at]
        home = original[some, np.argsort(~left[some], axis=1, kind="stable")[:, at]]
        found.append((some, position, home))
    if not found:
        nothing = np.empty(0, dtype=np.int64)
        return nothing, nothing, nothing
    partition, position, home = (np.concatenate(each) for each in zip(*found, strict=True))
    return partition, position, home
