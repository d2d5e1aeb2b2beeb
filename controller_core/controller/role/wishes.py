"""The wishes of people and other processes for a role that this process could take.

- It was handed over to Kafka's brokers, and is left to them. If none of them takes it within `VACANT_MS`, this process
  takes it after all, so that the cluster does not stay without a controller.
- This process shares the role (`--no-exclusive`). It takes it if nobody has it, or if it is asked to.
- Another process was asked to take it, or is hot while this one is cold. That process gets a short head start, and no
  more, because it may be hindered itself.
- Brokers keep winning the role, because our processes or their sessions end. Each change of the controller costs the
  cluster something, so the role is left to brokers exponentially longer.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from controller_core.controller.role.hindrance import Hindrance
from controller_core.controller.role.presence import Presence
from controller_core.controller.role.requested_role import RequestedRole
from controller_core.controller.role.role_znode import Holder
from controller_core.model.ids import BrokerId

YIELD_MS: Final = 3000
"""The time that a process leaves the role to one that is hot, or was asked."""
VACANT_MS: Final = 10_000
"""The time that brokers may take to win a role that was handed over to them: they race for it at once."""
OFTEN_MS: Final = 60_000
AT_ONCE: Final = 2
"""The number of times in `OFTEN_MS` that the role is taken from brokers without a wait."""
FIRST_WAIT_MS: Final = 500
LONGEST_WAIT_MS: Final = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The reason to leave the role alone, and the time of the next check; None: at the next event."""

    hindrance: Hindrance
    again_in_ms: float | None = None


class Wishes:
    """Records since when wishes have been respected. All times are monotonic."""

    def __init__(self, own_id: BrokerId, presence: Presence, *, is_exclusive: bool) -> None:
        self._id = own_id
        self._presence = presence
        self._is_exclusive = is_exclusive
        self._vacant_since_ms: float | None = None
        self._yielding_since_ms: float | None = None
        self._taken_from_brokers_ms: deque[float] = deque()

    async def find_wish(
        self, holder: Holder, request: RequestedRole | None, now_ms: float, *, is_hot: bool
    ) -> Wish | None:
        """Return the wish that this process should leave the role alone, given its holder; None if there is none."""
        if request is not None and request.holder == self._id:
            return None
        if request is not None and request.holder is None:
            return self._while_handed_over(holder, now_ms)
        self._vacant_since_ms = None
        if holder is Holder.KAFKA_BROKER:
            if not self._is_exclusive:
                return Wish(hindrance=Hindrance.SHARED)
            if wait_ms := self._wait_ms(now_ms):
                return Wish(hindrance=Hindrance.TAKEN_TOO_OFTEN, again_in_ms=wait_ms)
        return await self._better_one(request, now_ms, is_hot=is_hot)

    def on_taken(self, holder: Holder, now_ms: float) -> None:
        """Record that this process took the role from its holder."""
        self.forget()
        if holder is Holder.KAFKA_BROKER:
            self._taken_from_brokers_ms.append(now_ms)

    def forget(self) -> None:
        """Stop all waits: somebody else has the role."""
        self._yielding_since_ms = self._vacant_since_ms = None

    def _while_handed_over(self, holder: Holder, now_ms: float) -> Wish | None:
        if holder is not Holder.NOBODY:
            self._vacant_since_ms = None
            return Wish(hindrance=Hindrance.HANDED_OVER)
        if self._vacant_since_ms is None:
            self._vacant_since_ms = now_ms
        left_ms = self._vacant_since_ms + VACANT_MS - now_ms
        return Wish(hindrance=Hindrance.HANDED_OVER, again_in_ms=left_ms) if left_ms > 0 else None

    async def _better_one(self, request: RequestedRole | None, now_ms: float, *, is_hot: bool) -> Wish | None:
        better: Hindrance | None = None
        if request is not None and request.holder is not None and await self._presence.is_alive(request.holder):
            better = Hindrance.OTHER_ASKED
        elif not is_hot and await self._presence.find_hot_other() is not None:
            better = Hindrance.HOT_STANDBY
        if better is None:
            return None
        if self._yielding_since_ms is None:
            self._yielding_since_ms = now_ms
        left_ms = self._yielding_since_ms + YIELD_MS - now_ms
        return Wish(hindrance=better, again_in_ms=left_ms) if left_ms > 0 else None

    def _wait_ms(self, now_ms: float) -> float:
        taken = self._taken_from_brokers_ms
        while taken and now_ms - taken[0] > OFTEN_MS + LONGEST_WAIT_MS:
            taken.popleft()
        if len(taken) < AT_ONCE:
            return 0
        wait_ms = min(FIRST_WAIT_MS << min(len(taken) - AT_ONCE, 20), LONGEST_WAIT_MS)
        return max(0.0, taken[-1] + wait_ms - now_ms)
