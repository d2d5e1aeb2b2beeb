"""The quota of one request, for those who answer it: they charge what they are about to change, and go on or do not."""

from typing import Final, Protocol


class MutationQuota(Protocol):
    """That of who asks, for one request."""

    def takes(self, mutations: int) -> bool:
        """Charges so many mutations, before they are made; False: they are refused, and not charged."""
        ...

    def throttle_ms(self) -> int:
        """How long whoever asks is to wait with his next request, from now on; 0 where nothing has exceeded the quota."""
        ...


class _Unlimited:
    def takes(self, mutations: int) -> bool:
        """See `MutationQuota`."""
        return True

    def throttle_ms(self) -> int:
        """See `MutationQuota`."""
        return 0


UNLIMITED: Final[MutationQuota] = _Unlimited()
"""That of who has none."""
