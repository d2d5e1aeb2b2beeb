"""How a process comes to lead, keeps leading, and stops in time: over a Lease of Kubernetes.

Safety rests on durations alone, each measured by one clock that also counts while the machine sleeps. A leader trusts its
lease for `renew_deadline_s` from the moment at which it *sent* its last successful renewal; the others wait for
`duration_s`, which is longer, from the moment at which they *saw* it. So the leader has stopped before another begins,
whatever the clocks of the machines say, and also where it was stopped itself: every write asks `require` first.

A process that has lost its lease ends, as it cannot know what of its plans still holds. One that ends in good order gives
the lease back, so that nobody waits.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

import structlog

from controller_operator.kubernetes.object_api import ApiError, ApiRefused, ObjectChanged, ObjectGone
from controller_operator.leading.leadership import NotLeading
from controller_operator.leading.lease import NOBODY, Lease, first_claim, given_back, renewed, taken
from controller_operator.leading.lease_api import LeaseApi

_log = structlog.get_logger(__name__)


def boot_time_s() -> float:
    """Seconds since the machine was started, those included in which it slept."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """How long what may take."""

    duration_s: int = 15
    """For how long the others leave a lease alone that is not renewed."""

    @property
    def renew_deadline_s(self) -> float:
        """For how long the holder trusts a renewal."""
        return 0.6 * self.duration_s

    @property
    def pause_s(self) -> float:
        """Between two renewals, and at most between two looks of those that wait."""
        return 0.15 * self.duration_s

    @property
    def pause_after_failure_s(self) -> float:
        return 0.05 * self.duration_s

    @property
    def answer_s(self) -> float:
        """How long a request may take: several fit in before the deadline."""
        return 0.15 * self.duration_s


@dataclass(frozen=True, slots=True)
class _Seen:
    """A version of a Lease that somebody holds, or (None) its absence, and since when there is nothing newer.

    The version, not what is written there: a holder whose clock stands still lives all the same."""

    version: str | None
    patience_s: float
    since_s: float


class Elector:
    """One process that wants to lead: `acquire`, then `keep`, and `release` at the end. A `Leadership`."""

    def __init__(
        self,
        api: LeaseApi,
        identity: str,
        times: LeaseTimes,
        *,
        now: Callable[[], datetime],
        clock_s: Callable[[], float] = boot_time_s,
    ) -> None:
        """`identity` is that of no other process that may live at the same time; `now` is written for people alone."""
        self._api = api
        self._identity = identity
        self._times = times
        self._clock_s = clock_s
        self._now = now
        self._seen: _Seen | None = None
        self._lease: Lease | None = None
        self._held_until_s = 0.0
        self._error: ApiError | None = None
        """What the last attempt met."""

    @property
    def trouble(self) -> str | None:
        """Why the Lease cannot be read or written; None where it can."""
        return f"the Lease cannot be read or written: {self._error}" if self._error else None

    @property
    def is_leading(self) -> bool:
        return self._clock_s() < self._held_until_s

    @property
    def lease_uid(self) -> str:
        """See `Leadership`."""
        if self._lease is None:
            raise NotLeading("this process has not led yet")
        return self._lease.uid

    def require(self) -> None:
        """See `Leadership`."""
        if not self.is_leading:
            raise NotLeading("the lease was not renewed in time: another operator may be at work")

    async def confirm(self) -> None:
        """See `Leadership`."""
        try:
            while not await self.renew():
                self.require()
        except ApiError as error:
            raise NotLeading(f"the API server does not say whether the lease is still ours: {error}") from error

    async def acquire(self) -> None:
        """Waits until this process leads. Raises `ApiRefused` where the rights for that are missing."""
        _log.info("waiting for the lease", identity=self._identity)
        while not await self._attempted(self.try_to_acquire):
            if isinstance(self._error, ApiRefused):
                raise self._error
            await asyncio.sleep(self._until_next_attempt_s())
        _log.info("leading", identity=self._identity)

    async def keep(self) -> None:
        """Keeps renewing. Raises `NotLeading` as soon as the lease is lost, or may be."""
        is_renewed = True
        while True:
            await asyncio.sleep(self._times.pause_s if is_renewed else self._times.pause_after_failure_s)
            self.require()
            is_renewed = await self._attempted(self.renew)

    async def release(self) -> None:
        """Gives the lease back, where this process still has it. Its work must have ended before."""
        if self._lease is None or not self.is_leading:
            return
        claim = given_back(self._lease.claim, self._now())
        self._held_until_s = 0.0
        try:
            await self._api.write(self._lease, claim, self._times.answer_s)
        except ApiError as error:
            _log.warning("the lease was not given back: the next operator waits for its end", error=str(error))

    async def try_to_acquire(self) -> bool:
        """One attempt. Raises `ApiError`s."""
        lease = await self._api.read(self._times.answer_s)
        if not self._may_take(lease):
            return False
        sent_at_s = self._clock_s()
        if lease is None:
            claim = first_claim(self._identity, self._times.duration_s, self._now())
            written = await self._api.create(claim, self._times.answer_s)
        else:
            claim = taken(lease.claim, self._identity, self._times.duration_s, self._now())
            written = await self._api.write(lease, claim, self._times.answer_s)
        self._holds(written, sent_at_s)
        return True

    async def renew(self) -> bool:
        """One renewal. Raises `NotLeading` where somebody else has the lease, and `ApiError`s."""
        assert self._lease is not None, "renewed before it was acquired"
        sent_at_s = self._clock_s()
        claim = renewed(self._lease.claim, self._now())
        try:
            written = await self._api.write(self._lease, claim, self._times.answer_s)
        except ObjectGone as error:
            raise self._lost("the Lease was deleted: another operator may be at work") from error
        except ObjectChanged:
            self._lease = await self._still_ours(self._lease)
            return False
        self._holds(written, sent_at_s)
        return True

    def _may_take(self, lease: Lease | None) -> bool:
        """Whether nobody else has the lease.

        Who has just begun takes at once what is not there. Who saw it there before waits, as its holder need not have
        noticed yet that it is gone."""
        if lease is None and self._seen is None:
            return True
        if lease is not None and lease.claim.holder in (NOBODY, self._identity):
            return True
        version = lease.version if lease else None
        if self._seen is None or self._seen.version != version:
            patience_s = max(self._times.duration_s, lease.claim.patience_s if lease else 0)
            self._seen = _Seen(version, patience_s, self._clock_s())
        return self._clock_s() - self._seen.since_s >= self._seen.patience_s

    def _until_next_attempt_s(self) -> float:
        """Until an attempt can succeed, where that is soon."""
        if self._seen is None or self._error:
            return self._times.pause_s
        left_s = self._seen.since_s + self._seen.patience_s - self._clock_s()
        return min(max(left_s, self._times.pause_after_failure_s), self._times.pause_s)

    def _holds(self, lease: Lease, sent_at_s: float) -> None:
        self._lease = lease
        self._held_until_s = sent_at_s + self._times.renew_deadline_s

    def _lost(self, why: str) -> NotLeading:
        self._held_until_s = 0.0
        return NotLeading(why)

    async def _still_ours(self, known: Lease) -> Lease:
        """The lease as it is now, where this process still has it: somebody has labelled it, or the answer to a renewal was
        lost. Raises `NotLeading`, and `ApiError`s."""
        lease = await self._api.read(self._times.answer_s)
        if lease is None or lease.uid != known.uid:
            raise self._lost("the Lease was deleted: another operator may be at work")
        if (lease.claim.holder, lease.claim.transitions) != (self._identity, known.claim.transitions):
            raise self._lost(f"{lease.claim.holder or 'nobody'} has the lease now")
        return lease

    async def _attempted(self, attempt: Callable[[], Awaitable[bool]]) -> bool:
        """Makes an attempt; the same trouble is logged once, and a lost race is none."""
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
