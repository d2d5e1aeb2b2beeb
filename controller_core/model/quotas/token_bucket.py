"""The rest of a quota: a bucket with one token for each partition to create or delete (Kafka's `TokenBucket`).

The bucket fills at the rate of the quota up to its burst. A change takes one token for each of its mutations, and may
take more than there are. Then the bucket is in debt, and *exhausted* until it has filled up to zero again. A strict
quota refuses changes while the bucket is exhausted. A permissive quota, for clients that do not know the error, refuses
nothing and makes them wait.

Times are milliseconds of a monotonic clock.
"""

from dataclasses import dataclass, replace
from math import floor
from typing import Final

MOST_PER_S: Final = 1e15
"""Higher rates are cut to this one. It is more than anybody can ask for, and sums stay exact enough."""
LONGEST_THROTTLE_MS: Final = (1 << 31) - 1
"""The largest value that the protocol can carry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The rate at which a bucket fills, and its capacity."""

    rate_per_s: float
    """From 0 to `MOST_PER_S`."""
    burst: float

    @property
    def is_none(self) -> bool:
        """True if this never limits anybody."""
        return self.rate_per_s >= MOST_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBucket:
    """The tokens at a point in time; negative in debt."""

    tokens: float
    at_ms: float

    @property
    def is_exhausted(self) -> bool:
        return self.tokens < 0

    def fill(self, limit: Limit, now_ms: float) -> "TokenBucket":
        """Return the bucket as it is now. If the limit has changed, the new one counts for the whole time."""
        elapsed_s = max(0.0, now_ms - self.at_ms) / 1000
        return TokenBucket(tokens=min(limit.burst, self.tokens + limit.rate_per_s * elapsed_s), at_ms=now_ms)

    def throttle_ms(self, limit: Limit) -> int:
        """Return the time until the bucket is no longer exhausted."""
        if not self.is_exhausted:
            return 0
        if limit.rate_per_s <= 0:
            return LONGEST_THROTTLE_MS
        # Halves are rounded up, as Java does; Python's `round` would round them to even numbers.
        return floor(min(-self.tokens / limit.rate_per_s * 1000, LONGEST_THROTTLE_MS) + 0.5)


def make_full_bucket(limit: Limit, now_ms: float) -> TokenBucket:
    """Return the bucket of a client that has not asked for anything yet."""
    return TokenBucket(tokens=limit.burst, at_ms=now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """The outcome of charging a bucket."""

    bucket: TokenBucket
    is_refused: bool
    throttle_ms: int | None
    """The delay for the client, if it exceeded its quota."""


def charge_bucket(bucket: TokenBucket, mutations: int, limit: Limit, *, is_strict: bool) -> Charge:
    """Take tokens for the mutations from a bucket that is filled up to now, or refuse."""
    if is_strict and bucket.is_exhausted:
        return Charge(bucket=bucket, is_refused=True, throttle_ms=bucket.throttle_ms(limit))
    after = replace(bucket, tokens=bucket.tokens - mutations)
    is_exceeded = not is_strict and after.is_exhausted
    return Charge(bucket=after, is_refused=False, throttle_ms=after.throttle_ms(limit) if is_exceeded else None)
