"""Runs tests repeatedly to find those that fail by chance."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import comb
from typing import Final

from devcluster.running.processes import spawn
from scripts.checks.parts import python

_CONFIDENCE: Final = 0.95


def upper_bound(failures: int, runs: int) -> float:
    """Return the highest failure rate that the runs allow with 95 % confidence (Clopper and Pearson, one-sided)."""
    if failures >= runs:
        return 1.0
    low, high = failures / runs, 1.0
    while high - low > 1e-6:
        rate = (low + high) / 2
        if _compute_probability(failures, runs, rate) > 1 - _CONFIDENCE:
            low = rate
        else:
            high = rate
    return high


def report(failures: Counter[str], runs: int, way: str) -> str:
    """Return a line for each test that failed, or one for all: failures of runs, and the bound of the rate."""
    lines = [
        f"{count}/{runs} {way}: {case} (at most {upper_bound(count, runs):.1%})"
        for case, count in failures.most_common()
    ]
    return "\n".join(lines or [f"0/{runs} {way}: no test failed (each at most {upper_bound(0, runs):.1%})"])


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep that many processors busy while the block runs."""
    with ExitStack() as ends:
        for _ in range(count):
            process = spawn(python("-c", "while True: pass"))
            ends.callback(process.wait)
            ends.callback(process.kill)
        yield


def _compute_probability(failures: int, runs: int, rate: float) -> float:
    """Return the probability of at most this many failures."""
    return sum(comb(runs, count) * rate**count * (1 - rate) ** (runs - count) for count in range(failures + 1))
