"""The mutation quota of one request. A handler charges each change to it before it makes the change."""

from typing import Final, Protocol


class MutationQuota(Protocol):
    """The caller's quota, for one request."""

    def takes(self, mutations: int) -> bool:
        """Charge this number of mutations before they are made. False: they are refused and not charged."""
        ...

    def throttle_ms(self) -> int:
        """Return the time for which the caller has to delay its next request; 0 if nothing exceeded the quota."""
        ...


class _Unlimited:
    def takes(self, mutations: int) -> bool:
        """See `MutationQuota`."""
        return True

    def throttle_ms(self) -> int:
        """See `MutationQuota`."""
        return 0


UNLIMITED: Final[MutationQuota] = _Unlimited()
"""For callers without a quota."""
