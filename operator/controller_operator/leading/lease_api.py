"""The seam to the Lease of one group of operator processes. The implementation is `kubernetes_lease`."""

from typing import Protocol

from controller_operator.leading.lease import Claim, Lease


class LeaseApi(Protocol):
    """One Lease. Every method raises `ApiError`s, also if no answer comes within the given time."""

    async def read(self, timeout_s: float) -> Lease | None:
        """Return the newest state; None if the Lease does not exist."""
        ...

    async def create(self, claim: Claim, timeout_s: float) -> Lease:
        """Create the Lease. Raises `ObjectChanged` if it exists already."""
        ...

    async def write(self, known: Lease, claim: Claim, timeout_s: float) -> Lease:
        """Write a claim into the known version of the Lease.

        Raises `ObjectChanged` if it has another version by now, and `ObjectGone` if it is gone."""
        ...
