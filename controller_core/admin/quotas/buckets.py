"""The token buckets of clients that request changes. Like in a Kafka broker, they are in this process's memory.

Clients choose their ids, so the number of buckets is bounded, and keys are hashes instead of names. A bucket that was
not charged for an hour is dropped, even if it is in debt, as Kafka drops its sensors. If there are too many, the bucket
with the oldest charge is dropped. A client without a bucket starts with a full one.
"""

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from controller_core.model.quotas.entities import Entity
from controller_core.model.quotas.token_bucket import Limit, TokenBucket, make_full_bucket

MOST_BUCKETS: Final = 10_000
IDLE_MS: Final = 3_600_000.0
_DIGEST_BYTES: Final = 16


class Buckets:
    """Token buckets by the entities that share them. `monotonic_ms` is a clock that never runs backwards."""

    def __init__(self, monotonic_ms: Callable[[], float]) -> None:
        self._monotonic_ms = monotonic_ms
        self._charged: OrderedDict[bytes, TokenBucket] = OrderedDict()
        """Ordered by the last charge, oldest first."""

    def __len__(self) -> int:
        return len(self._charged)

    def now(self, sharing: Entity, limit: Limit) -> TokenBucket:
        """Return the bucket as it is now."""
        now_ms = self._monotonic_ms()
        self._forget_idle(now_ms)
        bucket = self._charged.get(_key(sharing))
        return make_full_bucket(limit, now_ms) if bucket is None else bucket.fill(limit, now_ms)

    def keep(self, sharing: Entity, charged: TokenBucket) -> None:
        """Store a bucket that was charged now."""
        key = _key(sharing)
        self._charged[key] = charged
        self._charged.move_to_end(key)
        if len(self._charged) > MOST_BUCKETS:
            self._charged.popitem(last=False)

    def _forget_idle(self, now_ms: float) -> None:
        while self._charged:
            key, oldest = next(iter(self._charged.items()))
            if now_ms - oldest.at_ms <= IDLE_MS:
                return
            del self._charged[key]


def _key(sharing: Entity) -> bytes:
    """Return the key of a bucket. Encoded names are never empty and contain no "/"."""
    return blake2b(f"{sharing.user or ''}/{sharing.client_id or ''}".encode(), digest_size=_DIGEST_BYTES).digest()
