"""Choosing the replicas that leave a full disk: the fewest bytes that bring it below its bound, and few replicas.

The largest replicas that are not more than the excess go first. At each step the smallest replica that is as large as
the rest of the excess may be the last one, and the best of these ends counts. The largest replicas may be a bad start
(7 and 3 are as good as 9 and 3 for an excess of 10, and copy less), so the choice is also tried without the first few."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from controller_planner.arranging.layout import Layout, Slots
from controller_planner.loads import Bools, Floats
from controller_planner.resources import DISK

ROUNDING: Final = 1e-9
"""The part of a bound by which sums of bytes may differ with the order of their terms."""
_STARTS: Final = 16
_STEPS: Final = 100
"""A percent of the excess more or less does not matter: fewer replicas do."""


def compute_disk_limits(layout: Layout, members: Bools, below_percent: int | None, band: float) -> Floats:
    """Return the bytes that the disks of each broker may have in use.

    This is a percentage of their capacity. Without one, it is the share of all members in their bytes, times the band:
    in proportion to their capacities if all are known."""
    capacity = layout.resources.capacity[:-1, DISK]
    if below_percent is not None:
        return np.asarray(capacity * (below_percent / 100))
    weights = capacity if np.isfinite(capacity[members]).all() else np.ones(len(capacity))
    total = layout.loads[:-1, DISK][members].sum()
    return np.asarray(np.minimum(band * total * weights / weights[members].sum(), capacity))


def choose_relief(layout: Layout, slots: Slots, limits: Floats) -> Slots:
    """Return those of the slots that should leave their brokers, so that these keep the limits of their disks."""
    on = layout.replicas.ravel()[slots]
    size = layout.resources.of_replica[slots // layout.width, DISK]
    pool = [slots[:0]]
    for broker in np.unique(on).tolist():
        excess, slack = float(layout.loads[broker, DISK] - limits[broker]), float(limits[broker]) * ROUNDING
        if excess > slack:
            here = np.flatnonzero((on == broker) & (size > 0))
            pool.append(slots[here[_cover(size[here], excess, slack)]])
    return np.concatenate(pool)


def _cover(size: Floats, excess: float, slack: float) -> Slots:
    """Return the indexes of sizes whose sum is the excess, and little more. All of them if they are less."""
    order = np.argsort(-size, kind="stable")
    if size.sum() <= excess:
        return order
    largest_first = size[order]
    best, found = (np.inf, 0, np.inf), list[int]()
    for start in range(min(_STARTS, len(size))):
        for chosen in _iterate_ends(largest_first, excess, slack, start):
            total = float(largest_first[chosen].sum())
            rating = float(np.ceil(_STEPS * (total / excess - 1) - ROUNDING)), len(chosen), total
            if rating < best:
                best, found = rating, chosen
    return order[found]


def _iterate_ends(largest_first: Floats, excess: float, slack: float, start: int) -> Iterator[list[int]]:
    """Yield the indexes of each choice that is enough: replicas that are not more than the rest, and a last one."""
    taken, rest, at, last = list[int](), excess, start, -1
    while rest > slack:
        fits = int(np.searchsorted(-largest_first, -rest))
        if fits > at:
            at, last = fits, fits - 1
        if last >= 0:
            yield [*taken, last]
        if at == len(largest_first):
            return
        taken.append(at)
        rest -= float(largest_first[at])
        at += 1
    yield taken
