"""A thorough search for small clusters, in which single replicas decide.

The other steps know sums. If a broker has ten replicas, these do not add up to what it should give away, and the choice
of each decides. This is a *tabu search*: it always takes the best step, also if that is a step back, and forbids for a
while to undo it, so it leaves the dead ends in which other steps stop. A step moves one replica, or swaps the leader
with a follower. The best step lowers the sum of the excess, at a price, and of the bytes copied. The price rises while
brokers are above their bounds, and falls while none is, so that the search goes back and forth across that border,
where the cheapest arrangements are. The result is the best arrangement seen: the least excess, then the fewest bytes."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller_planner.arranging.layout import Layout
from controller_planner.loads import Bools, Floats, Ints
from controller_planner.resources import DISK, OF_A_REPLICA

_MOST_CHOICES: Final = 3_000
"""The product of slots and brokers up to which a cluster is small."""
_STEPS_PER_SLOT: Final = 12
_MOST_STEPS: Final = 2_400
_SHORTEST_BAN: Final = 5
_SPAN_OF_BANS: Final = 10
_PATIENCE: Final = 8
"""Steps on one side of the border after which the price changes."""
_PRICE_CHANGE: Final = 1.5
_TOLERANCE: Final = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allowed:
    """The steps that are allowed, for each partition and broker."""

    may_change: Bools
    """True for each partition."""
    may_take: Bools
    """True for each broker that may receive replicas. The others keep theirs."""
    may_lead: Bools
    """True for each partition and broker if a replica there may lead."""


def round_up_excess(excess: float) -> float:
    """Return 0 for no excess, or the next multiple of 0.01: less than that is not worth copying bytes."""
    return 0.0 if excess <= _TOLERANCE else float(np.ceil(excess * 100) / 100)


def is_small(layout: Layout) -> bool:
    """Return True if the thorough search takes about a second at most."""
    return 0 < layout.replicas.size * layout.brokers <= _MOST_CHOICES


def search_thoroughly(layout: Layout, start: Ints, bounds: Floats, allowed: Allowed, rng: np.random.Generator) -> None:
    """Replace the arrangement by the best one found. `start` has the replicas from which bytes are copied."""
    best = None
    for replicas in (start, layout.replicas):
        found = _Search(layout, start, replicas, bounds, allowed, rng).run()
        best = found if best is None or found[:2] < best[:2] else best
    if best is not None:
        layout.replicas[:] = best[2]
        layout.recompute()


class _Search:
    """One search. Loads are multiples of the brokers' shares."""

    def __init__(
        self, layout: Layout, start: Ints, replicas: Ints, bounds: Floats, allowed: Allowed, rng: np.random.Generator
    ) -> None:
        self.allowed, self.rng = allowed, rng
        self.number, self.width, self.brokers = len(start), layout.width, layout.brokers
        self.replicas = replicas.copy()
        self.bounds, self.per_share = bounds[:-1], layout.resources.per_share[:-1]
        resources = layout.resources
        self.load = np.concatenate([resources.of_replica, resources.of_leader], axis=1)
        size = resources.of_replica[:, DISK]
        self.cost = size / max(float(size.sum()), 1e-300) * self.number
        self.rack = layout.rack[:-1]
        rows = np.arange(self.number)
        at_start = np.zeros((self.number, self.brokers + 1), dtype=np.bool_)
        present = np.zeros((self.number, self.brokers + 1), dtype=np.bool_)
        self.crowd = np.zeros((self.number, layout.racks), dtype=np.int32)
        for at in range(self.width):
            at_start[rows, start[:, at]] = True
            present[rows, self.replicas[:, at]] = True
            some = rows[self.replicas[:, at] >= 0]
            self.crowd[some, self.rack[self.replicas[some, at]]] += 1
        self.at_start: Bools = at_start[:, :-1]
        self.present: Bools = present[:, :-1]
        self.slots = np.flatnonzero((self.replicas >= 0).ravel() & np.repeat(allowed.may_change, self.width))
        self.partition, self.position = self.slots // self.width, self.slots % self.width
        self.slot_load = self.load[self.partition] * np.where(
            (self.position == 0)[:, None] | (np.arange(self.load.shape[1]) < OF_A_REPLICA), 1.0, 0.0
        )
        self.capacity = resources.capacity[:-1]
        self.is_limited = bool(np.isfinite(self.capacity).any())
        self.banned_until = np.zeros((self.number, self.brokers), dtype=np.int64)
        self.not_leading_until = np.zeros((self.number, self.brokers), dtype=np.int64)
        self.relative = np.zeros((self.brokers, self.load.shape[1]))
        for at in range(self.width):
            used = self.replicas[:, at] >= 0
            columns = slice(None) if at == 0 else slice(None, OF_A_REPLICA)
            np.add.at(self.relative[:, columns], self.replicas[used, at], self.load[used][:, columns])
        self.relative *= self.per_share

    def run(self) -> tuple[float, float, Ints]:
        """Return the excess, the cost and the replicas of the best arrangement."""
        excess = float(_penalize(self.relative - self.bounds).sum())
        moved = self.present & ~self.at_start
        cost = float((moved * self.cost[:, None]).sum())
        best = (round_up_excess(excess), cost, self.replicas.copy())
        price, outside, inside = 10.0, 0, 0
        for step in range(1, min(_STEPS_PER_SLOT * len(self.slots), _MOST_STEPS) + 1):
            outside, inside = (outside + 1, 0) if excess > _TOLERANCE else (0, inside + 1)
            if outside >= _PATIENCE:
                price, outside = price * _PRICE_CHANGE, 0
            if inside >= _PATIENCE:
                price, inside = price / _PRICE_CHANGE, 0
            change = self._take_best_step(step, price, excess, cost, best)
            if change is None:
                continue
            excess, cost = max(excess + change[0], 0.0), max(cost + change[1], 0.0)
            rounded = round_up_excess(excess)
            if (rounded, cost + _TOLERANCE) < best[:2]:
                best = (rounded, cost, self.replicas.copy())
        return best

    def _take_best_step(
        self, step: int, price: float, excess: float, cost: float, best: tuple[float, float, Ints]
    ) -> tuple[float, float] | None:
        """Take the best step that is not banned, and return the change of the excess and of the cost."""
        over = self.relative - self.bounds
        penalty = _penalize(over).sum(axis=1)
        moves, bytes_of_moves, banned = self._rate_moves(step, over, penalty)
        value = price * moves + bytes_of_moves
        if banned.any():
            better = (excess + moves <= best[0] + _TOLERANCE) & (cost + bytes_of_moves < best[1] - _TOLERANCE)
            value[banned & ~better] = np.inf
        swaps = price * self._rate_swaps(step, over, penalty)
        move = int(value.argmin()) if value.size else -1
        swap = int(swaps.argmin()) if swaps.size else -1
        of_move = float(value.flat[move]) if move >= 0 else np.inf
        of_swap = float(swaps.flat[swap]) if swap >= 0 else np.inf
        if not np.isfinite(min(of_move, of_swap)):
            return None
        until = step + _SHORTEST_BAN + int(self.rng.integers(_SPAN_OF_BANS))
        if of_move <= of_swap:
            change = float(moves.flat[move]), float(bytes_of_moves.flat[move])
            self._move(*divmod(move, self.brokers), until)
            return change
        self._swap(swap // (self.width - 1), 1 + swap % (self.width - 1), until)
        return of_swap / price, 0.0

    def _rate_moves(self, step: int, over: Floats, penalty: Floats) -> tuple[Floats, Floats, Bools]:
        """Return the change of the excess and of the cost for each slot and broker, and True for those banned."""
        partition, home = self.partition, self.replicas.ravel()[self.slots]
        relief = _penalize(over[home] - self.slot_load * self.per_share[home]).sum(axis=1) - penalty[home]
        burden = _penalize(over + self.slot_load[:, None] * self.per_share).sum(axis=2) - penalty
        change = relief[:, None] + burden
        crowd = self.crowd[partition]
        there = crowd[:, self.rack] - (self.rack == self.rack[home][:, None])
        refused = self.present[partition] | ~self.allowed.may_take | ~self.allowed.may_take[home][:, None]
        refused |= there > (crowd[np.arange(len(home)), self.rack[home]] - 1)[:, None]
        refused |= (self.position == 0)[:, None] & ~self.allowed.may_lead[partition]
        if self.is_limited:
            loads = np.where(self.per_share > 0, self.relative / np.where(self.per_share > 0, self.per_share, 1), 0)
            refused |= (loads + self.slot_load[:, None] > self.capacity).any(axis=2)
        change[refused] = np.inf
        copied = self.cost[partition]
        here = np.where(self.at_start[partition, home], 0.0, copied)
        cost = np.where(self.at_start[partition], 0.0, copied[:, None]) - here[:, None]
        return change, cost, self.banned_until[partition] > step

    def _rate_swaps(self, step: int, over: Floats, penalty: Floats) -> Floats:
        """Return the change of the excess for each partition and follower that could lead."""
        leaders, followers = self.replicas[:, 0], self.replicas[:, 1:]
        load = self.load.copy()
        load[:, :OF_A_REPLICA] = 0
        change = _penalize(over[leaders] - load * self.per_share[leaders]).sum(axis=1)[:, None]
        change = change - penalty[leaders][:, None] - penalty[followers]
        change += _penalize(over[followers] + load[:, None] * self.per_share[followers]).sum(axis=2)
        rows = np.arange(self.number)[:, None]
        refused = (followers < 0) | ~self.allowed.may_lead[rows, followers] | ~self.allowed.may_change[:, None]
        refused |= ~self.allowed.may_take[followers] | (self.not_leading_until[rows, followers] > step)
        change[refused | (leaders < 0)[:, None]] = np.inf
        return np.asarray(change)

    def _move(self, at: int, to: int, until: int) -> None:
        partition, position = int(self.partition[at]), int(self.position[at])
        home = int(self.replicas[partition, position])
        self.replicas[partition, position] = to
        self.relative[home] -= self.slot_load[at] * self.per_share[home]
        self.relative[to] += self.slot_load[at] * self.per_share[to]
        self.present[partition, home], self.present[partition, to] = False, True
        self.crowd[partition, self.rack[home]] -= 1
        self.crowd[partition, self.rack[to]] += 1
        self.banned_until[partition, home] = until

    def _swap(self, partition: int, position: int, until: int) -> None:
        row = self.replicas[partition]
        old, new = int(row[0]), int(row[position])
        row[0], row[position] = new, old
        load = self.load[partition, OF_A_REPLICA:]
        self.relative[old, OF_A_REPLICA:] -= load * self.per_share[old, OF_A_REPLICA:]
        self.relative[new, OF_A_REPLICA:] += load * self.per_share[new, OF_A_REPLICA:]
        self.not_leading_until[partition, old] = until


def _penalize(over: Floats) -> Floats:
    return np.maximum(over, 0)
