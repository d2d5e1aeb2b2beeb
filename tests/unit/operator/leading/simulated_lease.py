"""A Lease in memory, behind the seam of the operator's election: versions, and answers that do not come."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from itertools import count

from controller_operator.kubernetes.object_api import ApiError, ApiUnavailable, ObjectChanged, ObjectGone
from controller_operator.leading.lease import Claim, Lease


@dataclass
class SimulatedLease:
    """A Lease in memory, for any number of processes."""

    lease: Lease | None = None
    refuses: ApiError | None = None
    """The error of every request."""
    loses_next_answer: bool = False
    before_next_write: Callable[[], Awaitable[object]] | None = None
    """Happens between the decision to write and the write."""
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    async def read(self, timeout_s: float) -> Lease | None:
        self._ask()
        return self.lease

    async def create(self, claim: Claim, timeout_s: float) -> Lease:
        await self._prepare_write()
        if self.lease is not None:
            raise ObjectChanged("409 it is there already")
        return self._write(Lease(uid=f"uid-{next(self._numbers)}", version="", claim=claim))

    async def write(self, known: Lease, claim: Claim, timeout_s: float) -> Lease:
        await self._prepare_write()
        if self.lease is None:
            raise ObjectGone("404 no lease")
        if (self.lease.uid, self.lease.version) != (known.uid, known.version):
            raise ObjectChanged("409 it has changed")
        return self._write(replace(self.lease, claim=claim))

    def label(self) -> None:
        """Give the Lease a new version and change nothing else, like `kubectl label`."""
        assert self.lease is not None
        self.lease = replace(self.lease, version=str(next(self._numbers)))

    async def _prepare_write(self) -> None:
        happens, self.before_next_write = self.before_next_write, None
        if happens is not None:
            await happens()
        self._ask()

    def _ask(self) -> None:
        if self.refuses is not None:
            raise self.refuses

    def _write(self, lease: Lease) -> Lease:
        self.lease = replace(lease, version=str(next(self._numbers)))
        if self.loses_next_answer:
            self.loses_next_answer = False
            raise ApiUnavailable("no answer came")
        return self.lease
