"""Choosing the replicas that leave brokers above the band.

A broker above the band gives away what relieves it most for the fewest bytes. It chooses in rounds: each round takes the
replicas of the best score until half of the remaining excess of one resource is gone, and scores the others again,
because relief in disk may have become worthless while relief in traffic is still needed. A replica that has moved
already scores as nearly free: to move it once more does not copy its bytes twice.

New brokers that are filled have room for what the others have above the level of all, and for no more. So at first each
broker must give away what it has too much of each resource *exactly* (`evict_exactly`). That is a linear program with a
column for each replica and three rows. Its dual has three variables: the prices of the resources. A replica leaves if
what it relieves, at these prices, is worth more than its cost, and Newton's method finds the prices."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from controller_planner.arranging.layout import Layout, Slots
from controller_planner.loads import Bools, Floats, Ints
from controller_planner.resources import DISK, OF_A_REPLICA

_ROUNDS: Final = 14
_MOVED_COST: Final = 0.1
_SOFTNESS: Final = (1.0, 0.1, 0.01)
_NEWTON_STEPS: Final = 12


def evict(layout: Layout, bounds: Floats, aim: float, movable: Bools, moved: Bools, givers: Bools) -> Slots:
    """Return slots that should leave their brokers, so that each bears at most its bound less a little (`aim` below 1).

    `movable` and `moved` have an entry for each slot, `givers` for each broker."""
    excess = layout.compute_relative()[:-1, :OF_A_REPLICA] - bounds[:-1, :OF_A_REPLICA]
    over = np.flatnonzero((excess > 1e-9).any(axis=1) & givers)
    resources = layout.resources
    mean_disk = float(resources.of_replica[:, DISK].mean()) if len(resources.of_replica) else 0.0
    pool = [np.empty(0, dtype=np.int64)]
    for broker, slots in _find_slots(layout, over, movable):
        share = resources.per_share[broker, :OF_A_REPLICA]
        loads = resources.of_replica[slots // layout.width] * share
        cost = np.where(moved[slots], _MOVED_COST, 1.0) * loads[:, DISK] + 0.15 * mean_disk * share[DISK] + 1e-12
        over_aim = layout.loads[broker, :OF_A_REPLICA] * share - 1 - (bounds[broker, :OF_A_REPLICA] - 1) * aim
        pool.append(slots[_choose(loads, cost, over_aim)])
    return np.concatenate(pool)


def evict_exactly(layout: Layout, bounds: Floats, movable: Bools, givers: Bools, rng: np.random.Generator) -> Slots:
    """Return slots that should leave their brokers, so that each bears its bounds, and little less."""
    excess = layout.compute_relative()[:-1, :OF_A_REPLICA] - bounds[:-1, :OF_A_REPLICA]
    over = np.flatnonzero((excess > 1e-9).any(axis=1) & givers)
    pool = [np.empty(0, dtype=np.int64)]
    for broker, slots in _find_slots(layout, over, movable):
        loads = layout.resources.of_replica[slots // layout.width] * layout.resources.per_share[broker, :OF_A_REPLICA]
        pool.append(slots[_choose_exactly(loads, excess[broker], rng.random(len(slots)))])
    return np.concatenate(pool)


def _find_slots(layout: Layout, brokers: Ints, movable: Bools) -> Iterator[tuple[int, Slots]]:
    """Yield each of these brokers with its movable slots."""
    flat = layout.replicas.ravel()
    chosen = np.flatnonzero(np.isin(flat, brokers) & movable if len(brokers) < layout.brokers // 4 else movable)
    on = flat[chosen]
    order = chosen[np.argsort(on.astype(np.int16) if layout.brokers < 2**15 else on, kind="stable")]
    for broker, start, end in zip(brokers.tolist(), *np.searchsorted(flat[order], [brokers, brokers + 1]), strict=True):
        yield broker, order[start:end]


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


def _choose_exactly(loads: Floats, excess: Floats, luck: Floats) -> Bools:
    """Return True for each replica of one broker that leaves it, so that about its excess leaves.

    The cost of a replica is what it takes along without need, and luck, so that those who leave are a mixture."""
    wanted = excess > 1e-9
    fits = (loads[:, wanted] <= excess[wanted]).all(axis=1)
    mean = loads[fits].mean(axis=0) if fits.any() else np.ones(loads.shape[1])
    mean = np.where(mean > 0, mean, 1.0)
    relief, target = (loads / mean)[:, wanted][fits], (excess / mean)[wanted]
    cost = (loads / mean)[:, ~wanted][fits].sum(axis=1) + luck[fits]
    prices = np.zeros(len(target))
    for softness in _SOFTNESS:
        worth = _sum_softly(prices, relief, target, cost, softness)
        for _ in range(_NEWTON_STEPS):
            part = _get_part(prices, relief, cost, softness)
            slope = target - part @ relief
            curve = (relief * (part * (1 - part))[:, None]).T @ relief / softness
            step = np.linalg.solve(curve + np.eye(len(target)) * (1e-9 + 1e-6 * curve.trace()), slope)
            while (after := _sum_softly(prices + step, relief, target, cost, softness)) < worth and _is_long(step):
                step /= 4
            if not _is_long(step):
                break
            prices, worth = prices + step, after
    leaves = np.zeros(len(loads), dtype=np.bool_)
    leaves[fits] = relief @ prices > cost
    return leaves


def _is_long(step: Floats) -> bool:
    return bool(np.abs(step).max() > 1e-6)


def _get_part(prices: Floats, relief: Floats, cost: Floats, softness: float) -> Floats:
    """Return the part of each replica that leaves at these prices: about 1 if it is worth it, about 0 otherwise."""
    return np.asarray(1 / (1 + np.exp(np.clip((cost - relief @ prices) / softness, -50, 50))))


def _sum_softly(prices: Floats, relief: Floats, target: Floats, cost: Floats, softness: float) -> float:
    """Return the dual's value, in which the step from 0 to 1 is as soft as the softness says."""
    return float(prices @ target - softness * np.logaddexp(0, (relief @ prices - cost) / softness).sum())
