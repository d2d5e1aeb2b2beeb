"""The bars that a plan is held to, and those that it misses."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bench.plan.instances import Instance
from bench.plan.optimum import Optimum
from controller_planner.goals import Goals, Mode
from controller_planner.loads import Floats, Ints
from controller_planner.plan import Plan

_COSTS: Final = {"100,000 on 60": (2.0, None, 1.0), "1,000,000 on 1,000": (None, 20.0, 1.0)}
"""Seconds by the clock, seconds of the processor, GiB."""
_BYTES: Final = {Mode.REBALANCE: 1.06, Mode.DRAIN: 1.02, Mode.EXPAND: 1.02, Mode.RELIEVE: 1.01}
_EVENS: Final = (Mode.REBALANCE, Mode.EXPAND)
_BACKTEST_SECONDS: Final = 3.0
"""For a thousand losses of a cluster with 100,000 partitions."""
_ABOVE_BOUND: Final = 0.001
_OPTIMUM: Final = 1.02


@dataclass(slots=True, kw_only=True)
class Result:
    """The figures of one instance."""

    instance: Instance
    seconds: float | None = None
    processor_seconds: float | None = None
    memory_gib: float | None = None
    balance_before: Floats = field(default_factory=lambda: np.zeros(0))
    balance: Floats = field(default_factory=lambda: np.zeros(0))
    """The largest relative load of each resource."""
    over_bound: Floats = field(default_factory=lambda: np.zeros(0))
    """The largest relative load above the bound of its broker, of each resource."""
    total_bytes: float = 0.0
    least_bytes: float = 0.0
    next_leaders: tuple[float, float] = (0.0, 0.0)
    """The largest number that one broker takes over from another, and the bar for that broker."""
    excess: float = 0.0
    """The sum of the excesses over the bounds."""
    least_excess: float = 0.0
    """Proven: any plan has at least this. If it is not 0, it is the bar for the balance."""
    violations: list[str] = field(default_factory=list)
    others: dict[str, tuple[float, Floats]] = field(default_factory=dict)
    """Bytes and balance of other ways."""


def find_missed(result: Result) -> Iterator[str]:
    """Yield each missed bar as a sentence."""
    instance, mode = result.instance, result.instance.mode
    clock, processor, memory = _COSTS.get(instance.name, (None, None, None))
    for name, value, bar in (
        ("seconds", result.seconds, clock),
        ("seconds of the processor", result.processor_seconds, processor),
        ("GiB", result.memory_gib, memory),
    ):
        if value is not None and bar is not None and value > bar:
            yield f"{instance.name}: {value:.2f} {name}; the bar is {bar:g}"
    if result.violations:
        yield f"{instance.name}: {len(result.violations)} violations, such as {result.violations[0]}"
    if result.least_excess > 0 and result.excess > result.least_excess + _ABOVE_BOUND:
        yield f"{instance.name}: {result.excess:.3f} above the bounds in sum; the least is {result.least_excess:.3f}"
    for resource, over, balance in zip(
        ("replicas", "disk", "in", "out", "leaders"), result.over_bound, result.balance, strict=True
    ):
        if over > _ABOVE_BOUND and mode in _EVENS and not result.least_excess:
            yield f"{instance.name}: {resource} {balance:.3f} of the share, {over:.3f} above the bound"
    if result.total_bytes > _BYTES[mode] * result.least_bytes:
        yield (
            f"{instance.name}: {result.total_bytes / max(result.least_bytes, 1):.3f} times the bytes of the bound;"
            f" the bar is {_BYTES[mode]:g}"
        )
    most, bar = result.next_leaders
    if most > bar and mode is Mode.REBALANCE:
        yield f"{instance.name}: one broker takes over {most:.0f} leaders of another; the bar is {int(bar)}"
    for name, (copied, balance) in result.others.items():
        if copied < result.total_bytes and (balance <= np.maximum(result.balance, Goals().band)).all():
            yield f"{instance.name}: {name} is as even with {copied / max(result.total_bytes, 1):.3f} times the bytes"


def find_missed_optimum(name: str, excess: float, ratio: float, optimum: Optimum) -> Iterator[str]:
    """Yield the bars that a plan of a small cluster misses: as even as HiGHS can make it, with as few bytes.

    A plan that is more even than what HiGHS found in time may copy more bytes for that."""
    if excess > optimum.excess + _ABOVE_BOUND:
        yield f"{name}: {excess:.3f} above the bounds in sum; HiGHS reaches {optimum.excess:.3f}"
    elif excess > optimum.excess - _ABOVE_BOUND and ratio > _OPTIMUM:
        yield f"{name}: {ratio:.3f} times the bytes of HiGHS; the bar is {_OPTIMUM:g}"


def find_missed_backtest(name: str, seconds: float) -> Iterator[str]:
    """Yield the bar that a backtest misses."""
    if seconds > _BACKTEST_SECONDS:
        yield f"{name}: {seconds:.2f} seconds for a backtest; the bar is {_BACKTEST_SECONDS:g}"


def compute_excess(plan: Plan) -> float:
    """Return the sum of the excesses over the bounds, of all brokers and resources."""
    return float(np.nan_to_num(np.maximum(plan.loads_after / plan.shares - plan.bounds, 0)).sum())


def compute_balance(plan: Plan, loads: Floats) -> Floats:
    """Return the largest relative load of each resource."""
    relative = np.nan_to_num(loads / plan.shares)
    return np.asarray(relative.max(axis=0, initial=0))


def compute_next_leaders(plan: Plan, replicas: Ints) -> tuple[float, float]:
    """Return the worst number of leaders that one broker takes over from another, and the bar for it."""
    racks = np.unique(
        [rack or f"alone {at}" for at, rack in enumerate(plan.snapshot.brokers.racks)], return_inverse=True
    )[1]
    brokers, worst = len(racks), (0.0, np.inf)
    both = (replicas >= 0).all(axis=1) if replicas.shape[1] > 1 else np.zeros(len(replicas), dtype=np.bool_)
    for broker in range(brokers):
        next_ones = np.bincount(replicas[both & (replicas[:, 0] == broker), 1], minlength=brokers)
        possible = (racks != racks[broker]).sum() or brokers - 1
        mean = next_ones.sum() / max(possible, 1)
        bar = max(np.ceil(mean), 1.5 * mean) + 1
        if next_ones.max() - bar > worst[0] - worst[1]:
            worst = (float(next_ones.max()), float(bar))
    return worst
