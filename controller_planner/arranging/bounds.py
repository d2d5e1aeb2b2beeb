"""The highest load that a plan aims at for each broker, as a multiple of its fair share.

It is the band (1.05) unless something forces more: a single replica that is larger than that, numbers of replicas and
leaders that cannot be divided (7 replicas on 2 brokers are 4 on one of them), or racks of unequal size.
If a partition has three replicas and there are three racks, each rack holds one, so a rack with fewer brokers bears more
on each. In the mode that fills new brokers, the others cannot fill each other: they stop at the level at which the new
brokers are as full as they are."""

from typing import Final

import numpy as np

from controller_planner.arranging.layout import Layout
from controller_planner.loads import NO_BROKER, Floats, Ints
from controller_planner.resources import LEADERS, OF_A_REPLICA, REPLICAS

_ABOVE_FORCED: Final = 0.2
"""The part of the band that is left above a forced mean, because replicas cannot be divided."""
_BISECTIONS: Final = 40


def compute_bounds(layout: Layout, band: float, factors: Ints, fixed: Ints) -> Floats:
    """Return the bound of each broker and resource; the last row is no broker's. `fixed`: the replicas that stay on brokers
    that take none, in the form of the layout's."""
    resources = layout.resources
    largest = np.concatenate([resources.of_replica.max(axis=0, initial=0), resources.of_leader.max(axis=0, initial=0)])
    bounds = np.maximum(band, largest * resources.per_share)
    for column in (REPLICAS, LEADERS):
        bounds[:, column] = np.maximum(bounds[:, column], _round_up(resources.per_share[:, column]))
    racks, members = np.unique(layout.rack[layout.takes], return_counts=True)
    held = layout.rack[fixed]
    outside = ((fixed != NO_BROKER) & ~np.isin(held, racks)).sum(axis=1)
    level = np.maximum(factors - outside, 0) // max(len(racks), 1)
    for rack, number in zip(racks, members, strict=True):
        has = (held == rack).sum(axis=1) if level.any() else 0
        least = np.minimum(np.maximum(level - has, 0), number) @ resources.of_replica
        brokers = np.flatnonzero(layout.takes & (layout.rack == rack))
        per_share = resources.per_share[brokers, :OF_A_REPLICA]
        with np.errstate(divide="ignore", invalid="ignore"):
            forced = np.nan_to_num(least / (1 / per_share).sum(axis=0))
        raised = forced * (1 + (band - 1) * _ABOVE_FORCED)
        bounds[brokers, :OF_A_REPLICA] = np.maximum(bounds[brokers, :OF_A_REPLICA], raised)
        whole = _round_up(per_share[:, REPLICAS], float(forced[REPLICAS]))
        bounds[brokers, REPLICAS] = np.maximum(bounds[brokers, REPLICAS], whole)
    return bounds


def _round_up(per_share: Floats, level: float = 1.0) -> Floats:
    """Return a level of the share, rounded up to a whole number of replicas or leaders, as a multiple of the share."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num(np.ceil(level / per_share - 1e-9) * per_share, posinf=0.0))


def raise_for_expansion(layout: Layout, bounds: Floats, band: float, receivers: Ints) -> None:
    """Raise the bounds to the level at which the receivers have room for what is above it on the others."""
    relative, per_share = layout.compute_relative(), layout.resources.per_share
    is_receiver = np.isin(np.arange(len(bounds)), receivers)
    racks = np.unique(layout.rack[receivers])
    apart = layout.width >= len(racks)
    for group in [layout.rack == rack for rack in racks] if apart else [layout.takes]:
        members = np.flatnonzero(group & layout.takes)
        fills = is_receiver[members]
        for column in range(OF_A_REPLICA):
            share = per_share[members, column]
            if not share.all():
                continue
            load, low, high = relative[members, column], 1.0, float(relative[members, column].max(initial=1.0))
            for _ in range(_BISECTIONS):
                level = (low + high) / 2
                gap = np.where(fills, np.minimum(load - level, 0), np.maximum(load - level, 0)) / share
                low, high = (level, high) if gap.sum() > 0 else (low, level)
            bounds[members, column] = np.maximum(bounds[members, column], high * (1 + (band - 1) * _ABOVE_FORCED))
