"""The consequences of losing brokers, for one loss or for many: leaders, replicas in sync, and who takes over.

After a loss each partition is led by its first replica that is in sync and lives, as the controller would elect it.
`backtest` looks only at the partitions of the lost brokers, so that a thousand losses take seconds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Final

import numpy as np

from controller_planner.loads import NO_BROKER, Bools, Floats, Ints, LoadSnapshot, Partitions
from controller_planner.plan import Plan
from controller_planner.resources import IN, find_unmeasured, measure_replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Brokers that are lost together, by their ids."""

    brokers: tuple[int, ...]
    times: int = 1
    """The number of times that this was seen."""


FIGURES: Final = ("leaderless", "belowMinIsr", "oneReplica", "leadersShare", "inShare")
"""The columns of a backtest: partitions without a replica in sync; with a leader and too few replicas in sync for
producers with acks=all; with one replica in sync left. These counts include what was so before the loss. Then the largest
part of the leaderships that move which one broker takes over, and of the bytes that producers write to them. NaN: no such
traffic is known."""
_COUNTS: Final = 3


def elect_leaders(partitions: Partitions, is_live: Bools, rows: Ints | slice = slice(None)) -> tuple[Ints, Bools]:
    """Return the leader of each of these partitions if only these brokers live, and its replicas that are in sync."""
    replicas, leader = partitions.replicas[rows], partitions.leader[rows]
    lives = np.append(is_live, np.False_)
    in_sync: Bools = partitions.in_sync[rows] & lives[replicas]
    elected = np.full(len(leader), NO_BROKER, dtype=np.int32)
    for at in reversed(range(replicas.shape[1])):
        elected = np.where(in_sync[:, at], replicas[:, at], elected)
    return np.where(lives[leader], leader, elected), in_sync


def backtest(snapshot: LoadSnapshot, losses: Sequence[Loss]) -> Floats:
    """Return losses x `FIGURES`: the consequences of each loss for the cluster as the snapshot has it."""
    brokers, partitions = snapshot.brokers, snapshot.partitions
    number, width = partitions.replicas.shape
    flat = partitions.replicas.ravel()
    by_broker = np.argsort(flat, kind="stable")
    starts = np.searchsorted(flat[by_broker], np.arange(len(brokers) + 1))
    row_of = by_broker // max(width, 1)
    leader, in_sync = elect_leaders(partitions, brokers.is_live)
    states = _classify(leader, in_sync, partitions.min_isr)
    incoming = measure_replicas(snapshot)[:, IN]
    result = np.zeros((len(losses), len(FIGURES)))
    result[:, :_COUNTS] = states.sum(axis=1)
    for at, loss in enumerate(losses):
        lost = np.isin(brokers.ids, loss.brokers)
        touched = np.zeros(number, dtype=np.bool_)
        for broker in np.flatnonzero(lost).tolist():
            touched[row_of[starts[broker] : starts[broker + 1]]] = True
        rows = np.flatnonzero(touched)
        elected, left = elect_leaders(partitions, brokers.is_live & ~lost, rows)
        after = _classify(elected, left, partitions.min_isr[rows])
        result[at, :_COUNTS] += after.sum(axis=1) - states[:, rows].sum(axis=1)
        moved = np.append(lost, np.False_)[leader[rows]] & (elected >= 0)
        for column, weights in enumerate((None, incoming[rows[moved]]), _COUNTS):
            inherited = np.bincount(elected[moved], weights)
            result[at, column] = inherited.max(initial=0) / max(inherited.sum(), 1e-300)
    if find_unmeasured(snapshot)[IN]:
        result[:, -1] = np.nan
    return result


def _classify(leader: Ints, in_sync: Bools, min_isr: Ints) -> Bools:
    """Return three rows of flags, an entry for each partition: no leader; with one, below min ISR; with one, one replica
    in sync."""
    count, is_led = in_sync.sum(axis=1), leader >= 0
    return np.stack([~is_led, is_led & (count < min_isr), is_led & (count == 1)])


def make_result(plan: Plan) -> LoadSnapshot:
    """Return the snapshot as it is after the plan: added replicas are in sync, and preferred leaders lead if they can."""
    old, width = plan.snapshot.partitions, plan.after.shape[1]
    padding = ((0, 0), (0, width - old.replicas.shape[1]))
    replicas = np.pad(old.replicas, padding, constant_values=NO_BROKER)
    in_sync, leader = np.pad(old.in_sync, padding), old.leader.copy()
    lagging = np.where(old.in_sync, NO_BROKER, old.replicas)[plan.partition]
    in_sync[plan.partition] = (plan.after >= 0) & ~(plan.after[:, :, None] == lagging[:, None, :]).any(axis=2)
    replicas[plan.partition] = plan.after
    leader[plan.partition] = NO_BROKER
    after = replace(old, replicas=replicas, in_sync=in_sync, leader=leader)
    leader = elect_leaders(after, plan.snapshot.brokers.is_live)[0]
    return replace(plan.snapshot, partitions=replace(after, leader=leader))


def list_losses(snapshot: LoadSnapshot, pairs: int, seed: int = 0) -> tuple[Loss, ...]:
    """Return the loss of each live broker, of each rack with several, and of random pairs of brokers, each pair once."""
    brokers = snapshot.brokers
    live = np.flatnonzero(brokers.is_live).tolist()
    racks = dict.fromkeys(rack for at in live if (rack := brokers.racks[at]) is not None)
    members = ([at for at in live if brokers.racks[at] == rack] for rack in racks)
    rng = np.random.Generator(np.random.PCG64(seed))
    possible = len(live) * (len(live) - 1) // 2
    chosen = rng.choice(possible, min(pairs, possible), replace=False).tolist() if possible else []
    together = ([live[at] for at in _find_pair(number)] for number in chosen)
    groups = ([at] for at in live), (group for group in members if len(group) > 1), together
    return tuple(Loss(brokers=tuple(brokers.ids[group].tolist())) for each in groups for group in each)


def _find_pair(number: int) -> tuple[int, int]:
    """Return the pair with a number, of all pairs of 0, 1, 2, ... with the smaller one first."""
    second = (1 + isqrt(1 + 8 * number)) // 2
    return number - second * (second - 1) // 2, second


def count_pairs(losses: Sequence[Loss]) -> Iterator[tuple[int, int, float]]:
    """Yield each pair of brokers that were lost together, and how often."""
    ids = sorted({broker for loss in losses for broker in loss.brokers})
    counts = np.zeros((len(ids), len(ids)))
    for loss in losses:
        lost = np.searchsorted(ids, sorted(set(loss.brokers)))
        counts[np.ix_(lost, lost)] += loss.times
    for first, second in np.argwhere(np.triu(counts, 1)).tolist():
        yield ids[first], ids[second], float(counts[first, second])
