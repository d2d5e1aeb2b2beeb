"""The quota of one request: charges the client's bucket, and remembers the throttle time (`MutationQuota`)."""

from collections.abc import Callable
from dataclasses import dataclass, field

from controller_core.admin.quotas.buckets import Buckets
from controller_core.admin.quotas.zk_quotas import Quota
from controller_core.model.quotas.token_bucket import charge_bucket


@dataclass(slots=True, kw_only=True)
class RequestQuota:
    """`on_exceeded` is called once with the throttle time in milliseconds if the request exceeds the quota."""

    quota: Quota
    buckets: Buckets
    is_strict: bool
    monotonic_ms: Callable[[], float]
    on_exceeded: Callable[[int], None]
    _throttle_ms: int | None = field(default=None, init=False)
    _since_ms: float = field(default=0.0, init=False)

    def takes(self, mutations: int) -> bool:
        """See `MutationQuota`."""
        limit, sharing = self.quota.limit, self.quota.sharing
        charge = charge_bucket(self.buckets.now(sharing, limit), mutations, limit, is_strict=self.is_strict)
        if not charge.is_refused:
            self.buckets.keep(sharing, charge.bucket)
        if charge.throttle_ms is not None:
            if self._throttle_ms is None:
                self.on_exceeded(charge.throttle_ms)
            self._throttle_ms, self._since_ms = charge.throttle_ms, self.monotonic_ms()
        return not charge.is_refused

    def throttle_ms(self) -> int:
        """See `MutationQuota`. The time since the charge is subtracted, because the client has already waited for
        it."""
        if self._throttle_ms is None:
            return 0
        return max(0, self._throttle_ms - int(self.monotonic_ms() - self._since_ms))
