"""The time of the next poll: soon while something moves, later while nothing changes, and never a burden for brokers.

The cost of a poll for a broker is unknown, but its duration is known and is longer. So in the long run at most `SHARE`
of a broker's time is used, whatever the number of topics: a longer poll is followed by a longer pause, up to a quarter
of a minute. Half of the share is for polls that find nothing, or all of it while something moves; a quarter is for
configurations in turn; an eighth each for early polls after a change, and for the search of changed configurations. The
unused part of these eighths is saved for up to an hour: dozens of changes in a row are seen at once, and some of very
many later."""

from dataclasses import dataclass
from typing import Final

SHARE: Final = 0.01
"""Fraction of a broker's time."""
_SAVED_SHARE: Final = SHARE / 8
_MOST_SAVED_S: Final = 3600 * _SAVED_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The pauses between two polls, in seconds."""

    while_moving_s: float = 0.3
    usual_s: float = 0.8
    longest_quiet_s: float = 1.5
    """Longest pause while nothing changes. A change made elsewhere is seen after this time."""
    after_failure_s: float = 1.0
    longest_after_failures_s: float = 10.0
    longest_s: float = 15.0
    share: float = SHARE

    def pause_s(self, *, look_s: float, quiet_looks: int, is_moving: bool) -> float:
        """Return the pause after a poll that took `look_s`, if `quiet_looks` polls in a row have seen no change."""
        wanted_s = (
            self.while_moving_s if is_moving else min(self.longest_quiet_s, self.usual_s * 1.1 ** min(quiet_looks, 50))
        )
        share = self.share if is_moving else self.share / 2
        return max(wanted_s, min(self.longest_s, look_s * (1 / share - 1)))

    def pause_after_failures_s(self, failures: int) -> float:
        """Return the pause after so many failed polls in a row, at least one."""
        return min(self.longest_after_failures_s, self.after_failure_s * 2.0 ** min(failures - 1, 10))


class Credit:
    """A saved-up budget of broker time for polls that are not due: a fraction of the passing time."""

    def __init__(self, *, share: float = _SAVED_SHARE, most_s: float = _MOST_SAVED_S) -> None:
        self._share = share
        self._most_s = self._left_s = most_s
        self._known_at_s: float | None = None

    def is_left(self, now_s: float, *, kept: float = 0.0) -> bool:
        """Return True if some of the budget is left beyond `kept`, the fraction of the full budget that is reserved."""
        gained_s = self._share * (now_s - (self._known_at_s if self._known_at_s is not None else now_s))
        self._left_s = min(self._most_s, self._left_s + gained_s)
        self._known_at_s = now_s
        return self._left_s > kept * self._most_s

    def use(self, seconds: float) -> None:
        """Use so many seconds. This may overdraw the budget, which then has to recover."""
        self._left_s -= seconds
