"""What is promised of availability, and how much of the time that may be lost is lost already: the error budget.

A promise of 99.9 % lets partitions be without a leader for a thousandth of their known time. Unknown time neither adds to
the budget nor spends it.
"""

from dataclasses import dataclass
from fractions import Fraction

LEAST_PERCENT, MOST_PERCENT = 1.0, 99.9999999


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Raises `ValueError`, which says what to change, for a percentage that leaves no budget or promises nothing."""

    percent: float

    def __post_init__(self) -> None:
        if not LEAST_PERCENT <= self.percent <= MOST_PERCENT:
            raise ValueError(
                f"The objective is {self.percent} %: give one from {LEAST_PERCENT:g} to {MOST_PERCENT}, such as 99.9. "
                "Of 100 % nothing may be lost, ever, so there is no budget"
            )

    @property
    def said(self) -> str:
        return f"{self.percent:.10g} %"

    def budget(self, known_us: int, lost_us: int) -> "Budget":
        return Budget(allowed_us=int(self._missing() * max(0, known_us)), spent_us=max(0, lost_us))

    def spent_at(self, ratio: float) -> float:
        """How much of a budget is spent where this was reached."""
        return max(0.0, 1 - ratio) / float(self._missing())

    def _missing(self) -> Fraction:
        return (100 - Fraction(str(self.percent))) / 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Partition time, in microseconds."""

    allowed_us: int
    spent_us: int

    @property
    def left_us(self) -> int:
        """Negative where more was lost than was allowed."""
        return self.allowed_us - self.spent_us

    @property
    def spent_share(self) -> float | None:
        """Of what is allowed: above 1 where more was lost. None: nothing is known, so nothing is allowed."""
        return self.spent_us / self.allowed_us if self.allowed_us else None
