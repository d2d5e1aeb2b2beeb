"""A Lease of Kubernetes and its possible changes, as pure functions.

No clock is compared with another one: the times in a lease are for people. A process that wants to take it measures
with its own clock for how long it was not renewed.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

NOBODY: Final = ""
_TRANSITIONS_MAX: Final = (1 << 31) - 1
_LONGEST_DURATION_S: Final = 300
"""Limit of the duration. A longer one is a mistake, which would make the others wait as long as it says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The content of a lease."""

    holder: str
    """The process that holds it; `NOBODY` after a release."""
    duration_s: int
    """Seconds for which others respect it after a renewal."""
    acquired_at: datetime
    renewed_at: datetime
    transitions: int
    """Number of changes of the holder."""

    @property
    def patience_s(self) -> int:
        """Seconds without a renewal after which it may be taken."""
        return min(self.duration_s, _LONGEST_DURATION_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A lease as it was read."""

    uid: str
    version: str
    claim: Claim


def make_first_claim(holder: str, duration_s: int, now: datetime) -> Claim:
    """Return the first holder's claim."""
    return Claim(holder=holder, duration_s=duration_s, acquired_at=now, renewed_at=now, transitions=0)


def take_over(before: Claim, holder: str, duration_s: int, now: datetime) -> Claim:
    """Return the next holder's claim."""
    # The API server refuses more than an int32.
    transitions = before.transitions + 1 if before.transitions < _TRANSITIONS_MAX else 0
    return replace(make_first_claim(holder, duration_s, now), transitions=transitions)


def renew_claim(claim: Claim, now: datetime) -> Claim:
    """Return the renewed claim."""
    return replace(claim, renewed_at=now)


def release_claim(claim: Claim, now: datetime) -> Claim:
    """Return the released claim, so that the next holder need not wait."""
    return replace(claim, holder=NOBODY, renewed_at=now)
