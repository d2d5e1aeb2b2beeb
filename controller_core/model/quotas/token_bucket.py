"""What is left of a quota: a bucket of tokens, one for each partition that is created or deleted (Kafka's `TokenBucket`).

It fills at the rate of the quota up to its burst. Whoever asks for a change takes as many tokens as it has mutations,
and may take more than there are: the bucket is in debt then, and *exhausted* until it has filled up to nothing again. A
strict quota refuses what is asked of an exhausted bucket. A permissive one, for clients that do not know the error,
refuses nothing and makes them wait.

Times are milliseconds of a clock that never runs backwards.
"""

from dataclasses import dataclass, replace
from math import floor
from typing import Final

MOST_PER_S: Final = 1e15
"""A rate that is above this is taken for this one: more than anybody can ask for, and all sums stay exact enough."""
LONGEST_THROTTLE_MS: Final = (1 << 31) - 1
"""What the protocol can carry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How fast a bucket fills, and how much it holds."""

    rate_per_s: float
    """From 0 to `MOST_PER_S`."""
    burst: float

    @property
    def is_none(self) -> bool:
        """Whether nobody is ever limited by it."""
        return self.rate_per_s >= MOST_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBucket:
    """The tokens that there were at a time; below 0 in debt."""

    tokens: float
    at_ms: float

    @property
    def is_exhausted(self) -> bool:
        return self.tokens < 0

    def filled(self, limit: Limit, now_ms: float) -> "TokenBucket":
        """The bucket as it is now. The limit may be another one than before: the present one counts."""
        elapsed_s = max(0.0, now_ms - self.at_ms) / 1000
        return TokenBucket(tokens=min(limit.burst, self.tokens + limit.rate_per_s * elapsed_s), at_ms=now_ms)

    def throttle_ms(self, limit: Limit) -> int:
        """How long it takes until the bucket is exhausted no more."""
        if not self.is_exhausted:
            return 0
        if limit.rate_per_s <= 0:
            return LONGEST_THROTTLE_MS
        return floor(min(-self.tokens / limit.rate_per_s * 1000, LONGEST_THROTTLE_MS) + 0.5)


def full(limit: Limit, now_ms: float) -> TokenBucket:
    """The bucket of somebody who has not asked for anything yet."""
    return TokenBucket(tokens=limit.burst, at_ms=now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What became of something that was asked for."""

    bucket: TokenBucket
    is_refused: bool
    throttle_ms: int | None
    """How long who asked is to wait, where he exceeded his quota."""


def charged(bucket: TokenBucket, mutations: int, limit: Limit, *, is_strict: bool) -> Charge:
    """Takes the tokens of so many mutations from a bucket as it is now, or refuses."""
    if is_strict and bucket.is_exhausted:
        return Charge(bucket=bucket, is_refused=True, throttle_ms=bucket.throttle_ms(limit))
    after = replace(bucket, tokens=bucket.tokens - mutations)
    is_exceeded = not is_strict and after.is_exhausted
    return Charge(bucket=after, is_refused=False, throttle_ms=after.throttle_ms(limit) if is_exceeded else None)
