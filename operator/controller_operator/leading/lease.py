"""A Lease as Kubernetes keeps it, and what may be made of it: pure decisions about values.

Nobody's clock is compared with another's: the times in a lease are for people. Whoever wants to take it watches with a
clock of its own for how long it has not been renewed.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

NOBODY: Final = ""
_TRANSITIONS_MAX: Final = (1 << 31) - 1
_LONGEST_DURATION_S: Final = 300
"""More is nobody's intent; a lease that says so would be waited for as long as nobody looks at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is written in a lease."""

    holder: str
    """The process that holds it; `NOBODY` where it was given back."""
    duration_s: int
    """For how long it is left alone after a renewal."""
    acquired_at: datetime
    renewed_at: datetime
    transitions: int
    """How often it has had another holder."""

    @property
    def patience_s(self) -> int:
        """How long it must be seen without a renewal before it may be taken."""
        return min(self.duration_s, _LONGEST_DURATION_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lease as it was read."""

    uid: str
    version: str
    claim: Claim


def first_claim(holder: str, duration_s: int, now: datetime) -> Claim:
    """What the first holder writes."""
    return Claim(holder=holder, duration_s=duration_s, acquired_at=now, renewed_at=now, transitions=0)


def taken(before: Claim, holder: str, duration_s: int, now: datetime) -> Claim:
    """What the next holder writes."""
    transitions = before.transitions + 1 if before.transitions < _TRANSITIONS_MAX else 0
    return replace(first_claim(holder, duration_s, now), transitions=transitions)


def renewed(claim: Claim, now: datetime) -> Claim:
    """What the holder writes to keep it."""
    return replace(claim, renewed_at=now)


def given_back(claim: Claim, now: datetime) -> Claim:
    """What the holder writes that has come to its end: the next one need not wait."""
    return replace(claim, holder=NOBODY, renewed_at=now)
