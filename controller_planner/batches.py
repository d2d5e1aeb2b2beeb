"""Packing changes into batches.

A batch ends before the next begins, so each broker needs disk for what it receives in one batch while it still has what
it gives away in that batch. The largest change goes first, and each into the first batch with room: on the disks of the
brokers that receive it, and in the bytes that these and the leader, which sends it, may transfer in one batch. A change
larger than that limit has its brokers' transfers of a batch to itself."""

from typing import Final

import numpy as np

from controller_planner.loads import NO_BROKER, Bools, Floats, Ints

NEVER: Final = -1
"""The batch of a change for which the disks never have room."""
_TRIES: Final = 8
"""A change that does not fit still takes room from those after it. So what was left out is tried again."""


def pack_batches(
    before: Ints, after: Ints, leader: Ints, size: Floats, used: Floats, capacity: Floats, max_bytes: float | None
) -> Ints:
    """Return the batch of each change.

    `before`, `after` and `leader` are indexes of brokers; `size` is what each new replica needs. `used` and `capacity`
    are the bytes of each broker's disks."""
    batch = np.full(len(after), NEVER, dtype=np.int32)
    added = np.where((after[:, :, None] == before[:, None, :]).any(axis=2), NO_BROKER, after)
    dropped = np.where((before[:, :, None] == after[:, None, :]).any(axis=2), NO_BROKER, before)
    copied = size * (added >= 0).sum(axis=1)
    left = np.lexsort((np.arange(len(after)), -copied))
    only_order = (added[left] < 0).all(axis=1)
    last, left = left[only_order], left[~only_order]
    used, number = used.copy(), 0
    limit = np.inf if max_bytes is None else max_bytes
    while len(left):
        taken = _fill_batch(left, added, leader, size, capacity - used, limit)
        if not len(taken):
            break
        batch[taken] = number
        number += 1
        used += _sum_by_broker(added[taken], size[taken], len(used)) - _sum_by_broker(
            dropped[taken], size[taken], len(used)
        )
        left = left[batch[left] == NEVER]
    batch[last] = max(number - 1, 0)
    return batch


def _fill_batch(left: Ints, added: Ints, leader: Ints, size: Floats, room: Floats, limit: float) -> Ints:
    """Return the changes of one batch, of those that are left, the largest first."""
    brokers = len(room)
    received, moved = np.zeros(brokers), np.zeros(brokers)
    taken: list[Ints] = []
    for _ in range(_TRIES):
        receivers, new = added[left], size[left]
        sent = new * (receivers >= 0).sum(axis=1)
        fits = _fit_in_turn(receivers, np.broadcast_to(new[:, None], receivers.shape), room - received, None)
        if np.isfinite(limit):
            on = np.column_stack([receivers, leader[left]])
            amounts = np.column_stack([np.broadcast_to(new[:, None], receivers.shape), sent])
            fits &= _fit_in_turn(on, amounts, limit - moved, moved == 0)
        some = left[fits]
        if not len(some):
            break
        taken.append(some)
        bytes_in = _sum_by_broker(added[some], size[some], brokers)
        received += bytes_in
        moved += bytes_in + _sum_by_broker(leader[some][:, None], sent[fits], brokers)
        left = left[~fits]
        if not len(left):
            break
    return np.concatenate(taken) if taken else left[:0]


def fit_in_turn(amounts: Floats, room: float) -> Bools:
    """Return True for each amount that fits after those before it. One that is too large does not hinder the next."""
    fits = np.zeros(len(amounts), dtype=np.bool_)
    for _ in range(_TRIES):
        left = np.flatnonzero(~fits)
        more = left[(amounts[left] <= room) & (np.cumsum(np.where(amounts[left] <= room, amounts[left], 0)) <= room)]
        fits[more] = True
        room -= float(amounts[more].sum())
        if not len(more):
            break
    return fits


def _fit_in_turn(on: Ints, amounts: Floats, room: Floats, unused: Bools | None) -> Bools:
    """Return True for each change (a row) whose brokers all have room after the changes before it.

    The first change at a broker that is `unused` fits, whatever its size."""
    fits = np.ones(len(on), dtype=np.bool_)
    used = on >= 0
    change, brokers, amount = np.nonzero(used)[0], on[used], amounts[used]
    if (np.bincount(brokers, amount, len(room)) <= room).all():
        return fits
    order = np.argsort(brokers.astype(np.int16) if len(room) < 2**15 else brokers, kind="stable")
    brokers, change, amount = brokers[order], change[order], amount[order]
    starts = np.flatnonzero(np.append(True, brokers[1:] != brokers[:-1]))
    group = np.repeat(starts, np.diff(np.append(starts, len(brokers))))
    sums = np.cumsum(amount)
    sums -= sums[group] - amount[group]
    good = sums <= room[brokers]
    if unused is not None:
        good |= (change == change[group]) & unused[brokers]
    fits[change[~good]] = False
    return fits


def _sum_by_broker(brokers: Ints, amounts: Floats, number: int) -> Floats:
    """Return the sum of the amounts for each broker that occurs in a row."""
    used = brokers >= 0
    weights = np.broadcast_to(amounts[:, None], brokers.shape)[used]
    sums: Floats = np.bincount(brokers[used], weights, number).astype(np.float64)
    return sums
