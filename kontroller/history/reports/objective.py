"""An objective of availability, and its error budget: the time that may be lost, and the part of it that is spent.

An objective of 99.9 % allows partitions to be without a leader for a thousandth of their known time. Unknown time
neither adds to the budget nor spends it.
"""

from dataclasses import dataclass
from fractions import Fraction

LEAST_PERCENT, MOST_PERCENT = 1.0, 99.9999999


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """An objective in percent. Raises `ValueError` with advice for a percentage that leaves no budget or promises
    nothing."""

    percent: float

    def __post_init__(self) -> None:
        if not LEAST_PERCENT <= self.percent <= MOST_PERCENT:
            raise ValueError(
                f"The objective is {self.percent} %: give one from {LEAST_PERCENT:g} to {MOST_PERCENT}, such as 99.9. "
                "100 % leaves no budget"
            )

    @property
    def said(self) -> str:
        return f"{self.percent:.10g} %"

    def budget(self, known_us: int, lost_us: int) -> "Budget":
        return Budget(allowed_us=int(self.allowance * max(0, known_us)), spent_us=max(0, lost_us))

    def compute_spent_share(self, ratio: float) -> float:
        """Return the spent part of the budget at this availability."""
        return max(0.0, 1 - ratio) / float(self.allowance)

    @property
    def allowance(self) -> Fraction:
        """The part of the time that may be lost."""
        return (100 - Fraction(str(self.percent))) / 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A budget of partition time, in microseconds."""

    allowed_us: int
    spent_us: int

    @property
    def left_us(self) -> int:
        """The rest of the budget, negative if it is overspent."""
        return self.allowed_us - self.spent_us

    @property
    def spent_share(self) -> float | None:
        """The spent part of the budget, above 1 if it is overspent. None if nothing is known, because then nothing is
        allowed."""
        return self.spent_us / self.allowed_us if self.allowed_us else None
