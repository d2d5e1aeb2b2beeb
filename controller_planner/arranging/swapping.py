"""Relieving the last brokers above their bounds, replica by replica.

In the end a broker may be stuck above its bound, because each replica that would relieve it overfills every other
broker. This step looks closer. It tries each replica of the broker on each receiver, and if no move helps, exchanges of
two replicas. It takes the best, as long as the sum of squared excesses falls."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from controller_planner.arranging.layout import Layout, Slots
from controller_planner.loads import Bools, Floats, Ints
from controller_planner.resources import OF_A_REPLICA

_MOST_STEPS: Final = 300
_MOST_SLOTS: Final = 300
_PARTNERS: Final = 8
_LEAST_GAIN: Final = 1e-8


@dataclass(slots=True)
class _Search:
    layout: Layout
    bounds: Floats
    movable: Bools
    receivers: Ints

    def compute_excess(self) -> Floats:
        relative = self.layout.loads[:, :OF_A_REPLICA] * self.layout.resources.per_share[:, :OF_A_REPLICA]
        return relative - self.bounds[:, :OF_A_REPLICA]

    def find_slots(self, broker: int, column: int, *, largest: bool) -> Slots:
        """Return movable slots on a broker, at most a number, the largest or smallest in a resource first."""
        slots = np.flatnonzero((self.layout.replicas.ravel() == broker) & self.movable)
        loads = self.layout.resources.of_replica[slots // self.layout.width, column]
        return slots[np.argsort(-loads if largest else loads, kind="stable")[:_MOST_SLOTS]]

    def find_allowed(self, slots: Slots, home: int, brokers: Ints) -> Bools:
        """Return True for each slot and broker if the slot may move there from home."""
        others = self.layout.find_others(slots)
        there = np.broadcast_to(brokers, (len(slots), len(brokers)))
        here = np.full((len(slots), 1), home, dtype=np.int32)
        allowed = np.asarray(self.layout.count_in_racks(others, there) <= self.layout.count_in_racks(others, here))
        allowed &= self.layout.compute_exposure(others, there) <= self.layout.compute_exposure(others, here)
        for at in range(others.shape[1]):
            allowed &= others[:, at, None] != there
        return allowed

    def find_move(self, broker: int, excess: Floats) -> tuple[Slots, Ints] | None:
        """Return the best move of one replica off the broker."""
        layout = self.layout
        slots = self.find_slots(broker, int(excess[broker].argmax()), largest=True)
        to = self.receivers[self.receivers != broker]
        if not len(slots) or not len(to):
            return None
        loads = layout.resources.of_replica[slots // layout.width]
        share = layout.resources.per_share[:, :OF_A_REPLICA]
        gain = (_penalize(excess[broker]) - _penalize(excess[broker] - loads * share[broker]))[:, None]
        gain = gain - _penalize(excess[to] + loads[:, None] * share[to]) + _penalize(excess[to])
        full = layout.loads[to, :OF_A_REPLICA] + loads[:, None] > layout.resources.capacity[to, :OF_A_REPLICA]
        gain[~self.find_allowed(slots, broker, to) | full.any(axis=2)] = -1
        at, best = np.unravel_index(gain.argmax(), gain.shape)
        if gain[at, best] <= _LEAST_GAIN:
            return None
        return slots[at : at + 1], to[best : best + 1]

    def find_exchange(self, broker: int, excess: Floats) -> tuple[Slots, Ints] | None:
        """Return the best exchange of a replica of the broker with one of the least loaded receivers."""
        if broker not in self.receivers:
            return None
        layout, share = self.layout, self.layout.resources.per_share[:, :OF_A_REPLICA]
        column = int(excess[broker].argmax())
        mine = self.find_slots(broker, column, largest=True)
        partners = self.receivers[np.argsort(excess[self.receivers, column], kind="stable")]
        best, found = _LEAST_GAIN, None
        for partner in partners[partners != broker][:_PARTNERS].tolist():
            theirs = self.find_slots(partner, column, largest=False)
            if not len(mine) or not len(theirs):
                continue
            difference = (
                layout.resources.of_replica[mine // layout.width][:, None]
                - layout.resources.of_replica[theirs // layout.width]
            )
            gain = _penalize(excess[broker]) - _penalize(excess[broker] - difference * share[broker])
            gain += _penalize(excess[partner]) - _penalize(excess[partner] + difference * share[partner])
            there, here = np.array([partner], dtype=np.int32), np.array([broker], dtype=np.int32)
            allowed = self.find_allowed(mine, broker, there) & self.find_allowed(theirs, partner, here).T
            capacity = layout.resources.capacity[:, :OF_A_REPLICA]
            allowed &= (layout.loads[partner, :OF_A_REPLICA] + difference <= capacity[partner]).all(axis=2)
            allowed &= (layout.loads[broker, :OF_A_REPLICA] - difference <= capacity[broker]).all(axis=2)
            gain[~allowed] = -1
            at, other = np.unravel_index(gain.argmax(), gain.shape)
            if gain[at, other] > best:
                best = float(gain[at, other])
                found = np.array([mine[at], theirs[other]]), np.array([partner, broker], dtype=np.int32)
        return found


def relieve_the_last(layout: Layout, bounds: Floats, movable: Bools, receivers: Ints, givers: Bools) -> None:
    """Move or exchange single replicas until no broker that gives is above its bounds, or nothing helps."""
    search = _Search(layout, bounds, movable, receivers)
    stuck = ~np.append(givers, np.False_)
    for _ in range(_MOST_STEPS):
        excess = search.compute_excess()
        penalty = np.where(stuck, 0.0, _penalize(excess))
        broker = int(penalty.argmax())
        if penalty[broker] <= _LEAST_GAIN:
            break
        found = search.find_move(broker, excess) or search.find_exchange(broker, excess)
        if found is None:
            stuck[broker] = True
            continue
        slots, brokers = found
        loads = layout.get_loads_of(slots)
        layout.lift(slots, loads)
        layout.put(slots, brokers, loads)


def _penalize(excess: Floats) -> Floats:
    """Return the sum of the squared excesses over the resources, the last axis."""
    over = np.maximum(excess, 0)
    return np.asarray((over * over).sum(axis=-1))
