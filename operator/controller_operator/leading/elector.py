"""Leader election over a Kubernetes Lease: acquires, renews and releases it, and stops in time.

Safety rests on durations alone, each measured by one clock that also counts while the machine sleeps. A leader trusts
its lease for `renew_deadline_s` from the moment at which it *sent* its last successful renewal. The others wait for the
longer `duration_s` from the moment at which they *saw* it. So the leader has stopped before another one begins, even if
machine clocks differ or the leader itself was suspended: every write calls `require` first.
A process that loses its lease exits, because it cannot know which of its plans still hold. A graceful exit releases the
lease, so that nobody waits.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

import structlog

from controller_operator.kubernetes.object_api import ApiError, ApiRefused, ObjectChanged, ObjectGone
from controller_operator.leading.leadership import NotLeading
from controller_operator.leading.lease import NOBODY, Lease, make_first_claim, release_claim, renew_claim, take_over
from controller_operator.leading.lease_api import LeaseApi

_log = structlog.get_logger(__name__)


def boot_time_s() -> float:
    """Return the seconds since the machine's start, including sleep."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """The durations of the election."""

    duration_s: int = 15
    """Seconds for which the others respect a lease that is not renewed."""

    @property
    def renew_deadline_s(self) -> float:
        """Seconds for which the holder trusts a renewal."""
        return 0.6 * self.duration_s

    @property
    def pause_s(self) -> float:
        """Seconds between two renewals, and at most between two attempts of a waiting process."""
        return 0.15 * self.duration_s

    @property
    def pause_after_failure_s(self) -> float:
        return 0.05 * self.duration_s

    @property
    def answer_s(self) -> float:
        """Seconds that a request may take. Several fit in before the deadline."""
        return 0.15 * self.duration_s


@dataclass(frozen=True, slots=True)
class _Seen:
    """A version of a Lease with a holder, or (None) its absence, and the time since which nothing newer was seen.

    The version counts, not the written times, because a holder with a stopped clock is alive all the same."""

    version: str | None
    patience_s: float
    since_s: float


class Elector:
    """A process that wants to lead. Call `acquire`, then `keep`, and `release` at the end. A `Leadership`."""

    def __init__(
        self,
        api: LeaseApi,
        identity: str,
        times: LeaseTimes,
        *,
        now: Callable[[], datetime],
        clock_s: Callable[[], float] = boot_time_s,
    ) -> None:
        """`identity` must be unique among the living processes; `now` is written for people only."""
        self._api = api
        self._identity = identity
        self._times = times
        self._clock_s = clock_s
        self._now = now
        self._seen: _Seen | None = None
        self._lease: Lease | None = None
        self._held_until_s = 0.0
        self._error: ApiError | None = None
        """The error of the last attempt."""

    @property
    def trouble(self) -> str | None:
        """The reason why the Lease cannot be read or written; None if it can."""
        return f"the Lease cannot be read or written: {self._error}" if self._error else None

    @property
    def is_leading(self) -> bool:
        return self._clock_s() < self._held_until_s

    @property
    def lease_uid(self) -> str:
        if self._lease is None:
            raise NotLeading("this process has not led yet")
        return self._lease.uid

    def require(self) -> None:
        if not self.is_leading:
            raise NotLeading("the lease was not renewed in time: another operator may be at work")

    async def confirm(self) -> None:
        try:
            while not await self.renew():
                self.require()
        except ApiError as error:
            raise NotLeading(f"the API server does not say whether the lease is still ours: {error}") from error

    async def acquire(self) -> None:
        """Wait until this process leads. Raises `ApiRefused` if rights are missing."""
        _log.info("waiting for the lease", identity=self._identity)
        while not await self._attempt(self.try_to_acquire):
            if isinstance(self._error, ApiRefused):
                raise self._error
            await asyncio.sleep(self._find_pause_s())
        _log.info("leading", identity=self._identity)

    async def keep(self) -> None:
        """Keep renewing. Raises `NotLeading` as soon as the lease is lost, or may be."""
        is_renewed = True
        while True:
            await asyncio.sleep(self._times.pause_s if is_renewed else self._times.pause_after_failure_s)
            self.require()
            is_renewed = await self._attempt(self.renew)

    async def release(self) -> None:
        """Release the lease if this process still has it. Its work must have ended before."""
        if self._lease is None or not self.is_leading:
            return
        claim = release_claim(self._lease.claim, self._now())
        self._held_until_s = 0.0
        try:
            await self._api.write(self._lease, claim, self._times.answer_s)
        except ApiError as error:
            _log.warning("the lease was not given back: the next operator waits for its end", error=str(error))

    async def try_to_acquire(self) -> bool:
        """Make one attempt. Raises `ApiError`s."""
        lease = await self._api.read(self._times.answer_s)
        if not self._may_take(lease):
            return False
        sent_at_s = self._clock_s()
        if lease is None:
            claim = make_first_claim(self._identity, self._times.duration_s, self._now())
            written = await self._api.create(claim, self._times.answer_s)
        else:
            claim = take_over(lease.claim, self._identity, self._times.duration_s, self._now())
            written = await self._api.write(lease, claim, self._times.answer_s)
        self._hold(written, sent_at_s)
        return True

    async def renew(self) -> bool:
        """Renew once. Raises `NotLeading` if somebody else has the lease, and `ApiError`s."""
        assert self._lease is not None, "renewed before it was acquired"
        sent_at_s = self._clock_s()
        claim = renew_claim(self._lease.claim, self._now())
        try:
            written = await self._api.write(self._lease, claim, self._times.answer_s)
        except ObjectGone as error:
            raise self._lose("the Lease was deleted: another operator may be at work") from error
        except ObjectChanged:
            self._lease = await self._read_own_lease(self._lease)
            return False
        self._hold(written, sent_at_s)
        return True

    def _may_take(self, lease: Lease | None) -> bool:
        """Return True if nobody else has the lease.

        A process that never saw the Lease takes a missing one at once. If it saw the Lease before, it waits, because
        the holder may not have noticed the deletion yet."""
        if lease is None and self._seen is None:
            return True
        if lease is not None and lease.claim.holder in (NOBODY, self._identity):
            return True
        version = lease.version if lease else None
        if self._seen is None or self._seen.version != version:
            patience_s = max(self._times.duration_s, lease.claim.patience_s if lease else 0)
            self._seen = _Seen(version, patience_s, self._clock_s())
        return self._clock_s() - self._seen.since_s >= self._seen.patience_s

    def _find_pause_s(self) -> float:
        """Return the seconds until an attempt can succeed, within the limits of the pause."""
        if self._seen is None or self._error:
            return self._times.pause_s
        left_s = self._seen.since_s + self._seen.patience_s - self._clock_s()
        return min(max(left_s, self._times.pause_after_failure_s), self._times.pause_s)

    def _hold(self, lease: Lease, sent_at_s: float) -> None:
        self._lease = lease
        # Counted from the sending, because the others count from a later moment: when they see the renewal.
        self._held_until_s = sent_at_s + self._times.renew_deadline_s

    def _lose(self, why: str) -> NotLeading:
        self._held_until_s = 0.0
        return NotLeading(why)

    async def _read_own_lease(self, known: Lease) -> Lease:
        """Return the present lease if this process still has it: somebody labelled it, or a renewal's answer was lost.

        Raises `NotLeading`, and `ApiError`s."""
        lease = await self._api.read(self._times.answer_s)
        if lease is None or lease.uid != known.uid:
            raise self._lose("the Lease was deleted: another operator may be at work")
        if (lease.claim.holder, lease.claim.transitions) != (self._identity, known.claim.transitions):
            raise self._lose(f"{lease.claim.holder or 'nobody'} has the lease now")
        return lease

    async def _attempt(self, attempt: Callable[[], Awaitable[bool]]) -> bool:
        """Make an attempt. The same trouble is logged once, and a lost race is no trouble."""
        before, self._error = self._error, None
        try:
            return await attempt()
        except ObjectChanged:
            return False
        except ApiError as error:
            self._error = error
            if str(error) != str(before):
                _log.warning("no answer about the lease", error=str(error))
            return False
