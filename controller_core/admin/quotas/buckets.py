"""The buckets of those who have asked for changes: in the memory of this process, as a broker of Kafka has its own.

Clients choose their ids, so it is bounded how many are remembered, and names do not stay in memory. Who was charged nothing
for an hour is forgotten, with what he owes, as Kafka forgets his sensors; and who was charged nothing for longest where
there are too many. Whoever is not remembered has a full bucket.
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
    """By who shares them. `monotonic_ms`: a clock that never runs backwards."""

    def __init__(
        self, monotonic_ms: Callable[[], float], *, most: int = MOST_BUCKETS, idle_ms: float = IDLE_MS
    ) -> None:
        self._monotonic_ms = monotonic_ms
        self._most = most
        self._idle_ms = idle_ms
        self._charged: OrderedDict[bytes, TokenBucket] = OrderedDict()
        """The one that was charged last is the last one."""

    def __len__(self) -> int:
        return len(self._charged)

    def now(self, sharing: Entity, limit: Limit) -> TokenBucket:
        """The bucket as it is now."""
        now_ms = self._monotonic_ms()
        self._forget_idle(now_ms)
        bucket = self._charged.get(_key(sharing))
        return make_full_bucket(limit, now_ms) if bucket is None else bucket.fill(limit, now_ms)

    def keep(self, sharing: Entity, charged: TokenBucket) -> None:
        """Remembers a bucket that was charged now."""
        key = _key(sharing)
        self._charged[key] = charged
        self._charged.move_to_end(key)
        if len(self._charged) > self._most:
            self._charged.popitem(last=False)

    def _forget_idle(self, now_ms: float) -> None:
        while self._charged:
            key, oldest = next(iter(self._charged.items()))
            if now_ms - oldest.at_ms <= self._idle_ms:
                return
            del self._charged[key]


def _key(sharing: Entity) -> bytes:
    """No name that is encoded has a "/", and none is empty."""
    return blake2b(f"{sharing.user or ''}/{sharing.client_id or ''}".encode(), digest_size=_DIGEST_BYTES).digest()
