"""The seam to the Lease of one group of operator processes. The real thing is `kubernetes_lease`."""

from typing import Protocol

from controller_operator.leading.lease import Claim, Lease


class LeaseApi(Protocol):
    """One Lease. Every method raises `ApiError`s, also where no answer comes within the time that is given."""

    async def read(self, timeout_s: float) -> Lease | None:
        """The newest state; None where there is no such Lease."""
        ...

    async def create(self, claim: Claim, timeout_s: float) -> Lease:
        """Raises `ObjectChanged` where there is one already."""
        ...

    async def write(self, known: Lease, claim: Claim, timeout_s: float) -> Lease:
        """Writes a claim into the Lease as it is known.

        Raises `ObjectChanged` where it is not as it was known any more, and `ObjectGone` where it is gone."""
        ...
