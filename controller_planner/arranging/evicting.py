"""Choosing the replicas that leave brokers above the band.

A broker above the band gives away what relieves it most for the fewest bytes. It chooses in rounds: each round takes the
replicas of the best score until half of the remaining excess of one resource is gone, and scores the others again,
because relief in disk may have become worthless while relief in traffic is still needed. A replica that has moved
already scores as nearly free: to move it once more does not copy its bytes twice."""

from typing import Final

import numpy as np

from controller_planner.arranging.layout import Layout, Slots
from controller_planner.loads import Bools, Floats
from controller_planner.resources import DISK, OF_A_REPLICA

_ROUNDS: Final = 14
_MOVED_COST: Final = 0.1


def evict(layout: Layout, bounds: Floats, aim: float, movable: Bools, moved: Bools, givers: Bools) -> Slots:
    """Return slots that should leave their brokers, so that each bears at most its bound less a little (`aim` below 1).

    `movable` and `moved` have an entry for each slot, `givers` for each broker."""
    width = layout.width
    excess = layout.compute_relative()[:-1, :OF_A_REPLICA] - bounds[:-1, :OF_A_REPLICA]
    over = np.flatnonzero((excess > 1e-9).any(axis=1) & givers)
    if not len(over):
        return np.empty(0, dtype=np.int64)
    flat = layout.replicas.ravel()
    chosen = np.flatnonzero(np.isin(flat, over)) if len(over) < layout.brokers // 4 else np.arange(len(flat))
    chosen = chosen[movable[chosen]]
    brokers = flat[chosen]
    order = chosen[np.argsort(brokers.astype(np.int16) if layout.brokers < 2**15 else brokers, kind="stable")]
    ends = np.searchsorted(flat[order], [over, over + 1])
    resources = layout.resources
    mean_disk = float(resources.of_replica[:, DISK].mean()) if len(resources.of_replica) else 0.0
    pool = []
    for broker, start, end in zip(over, *ends, strict=True):
        slots = order[start:end]
        share = resources.per_share[broker, :OF_A_REPLICA]
        loads = resources.of_replica[slots // width] * share
        cost = np.where(moved[slots], _MOVED_COST, 1.0) * loads[:, DISK] + 0.15 * mean_disk * share[DISK] + 1e-12
        over_aim = layout.loads[broker, :OF_A_REPLICA] * share - 1 - (bounds[broker, :OF_A_REPLICA] - 1) * aim
        pool.append(slots[_choose(loads, cost, over_aim)])
    return np.concatenate(pool)


def _choose(loads: Floats, cost: Floats, excess: Floats) -> Bools:
    """Return True for each replica of one broker that leaves it."""
    leaves = np.zeros(len(loads), dtype=np.bool_)
    excess = excess.copy()
    for _ in range(_ROUNDS):
        need = np.maximum(excess, 0)
        wanted = need > 1e-9
        if not wanted.any():
            break
        score = (np.minimum(loads, need) @ need - 2 * (loads @ np.maximum(-excess, 0)) * need.max()) / cost
        score[leaves] = -1
        number = min(len(score), max(8, len(score) // 6))
        best = np.argpartition(-score, number - 1)[:number] if number < len(score) else np.arange(len(score))
        best = best[score[best] > 0]
        best = best[np.lexsort((best, -score[best]))]
        if not len(best):
            break
        sums = np.cumsum(loads[best], axis=0)
        enough = np.flatnonzero((sums[:, wanted] >= 0.5 * need[wanted]).any(axis=1))
        best = best[: enough[0] + 1] if len(enough) else best
        excess -= loads[best].sum(axis=0)
        leaves[best] = True
    return leaves
