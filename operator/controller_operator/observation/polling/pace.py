"""When to look at a cluster again: soon while something moves, ever later while nothing changes, and never so often that
brokers have much to do with it.

What a look costs a broker is not known; how long it took is, and that is longer than the broker works on it.
So of a broker's time no more than `SHARE` is used, however many topics there are: a look that takes longer is followed
by a longer pause, up to a quarter of a minute.
"""

from dataclasses import dataclass
from typing import Final

SHARE: Final = 0.01
"""Of a broker's time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The pauses between two looks, in seconds."""

    while_moving_s: float = 0.3
    usual_s: float = 0.8
    longest_quiet_s: float = 1.5
    """While nothing changes; what was changed elsewhere is seen after so long."""
    after_failure_s: float = 1.0
    longest_after_failures_s: float = 10.0
    longest_s: float = 15.0
    share: float = SHARE

    def pause_s(self, *, look_s: float, quiet_looks: int, is_moving: bool) -> float:
        """After a look that took so long, when so many looks have seen no change."""
        wanted_s = (
            self.while_moving_s if is_moving else min(self.longest_quiet_s, self.usual_s * 1.1 ** min(quiet_looks, 50))
        )
        return max(wanted_s, min(self.longest_s, look_s * (1 / self.share - 1)))

    def after_failures_s(self, failures: int) -> float:
        """After so many looks in a row that failed, at least one."""
        return min(self.longest_after_failures_s, self.after_failure_s * 2.0 ** min(failures - 1, 10))
