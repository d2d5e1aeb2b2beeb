"""When to look at a cluster again: soon while something moves, ever later while nothing changes, and never so often that
brokers have much to do with it.

What a look costs a broker is not known; how long it took is, and that is longer than the broker works on it.
So of a broker's time no more than `SHARE` is used in the long run, however many topics there are: a look that takes longer
is followed by a longer pause, up to a quarter of a minute. Half of it is for looks that find nothing, and all of it while
something moves; a quarter for configurations in their turn; and an eighth each for looks that come sooner because something
has changed, and for the search of configurations that have. What nobody needs of these two is saved up for an hour: dozens
of changes in a row are seen at once, and of very many some later.
"""

from dataclasses import dataclass
from typing import Final

SHARE: Final = 0.01
"""Of a broker's time."""
_SAVED_SHARE: Final = SHARE / 8
_MOST_SAVED_S: Final = 3600 * _SAVED_SHARE


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
        share = self.share if is_moving else self.share / 2
        return max(wanted_s, min(self.longest_s, look_s * (1 / share - 1)))

    def after_failures_s(self, failures: int) -> float:
        """After so many looks in a row that failed, at least one."""
        return min(self.longest_after_failures_s, self.after_failure_s * 2.0 ** min(failures - 1, 10))


class Credit:
    """Time of a broker that may be used now and then beside looks that are due: a share of all that goes by, saved up."""

    def __init__(self, *, share: float = _SAVED_SHARE, most_s: float = _MOST_SAVED_S) -> None:
        self._share = share
        self._most_s = self._left_s = most_s
        self._known_at_s: float | None = None

    def is_left(self, now_s: float, *, kept: float = 0.0) -> bool:
        """Whether anything may be used now, beside the part of what can be saved that is `kept` for something else."""
        gained_s = self._share * (now_s - (self._known_at_s if self._known_at_s is not None else now_s))
        self._left_s = min(self._most_s, self._left_s + gained_s)
        self._known_at_s = now_s
        return self._left_s > kept * self._most_s

    def use(self, seconds: float) -> None:
        """So much was used; it may be more than was left, and is given back before there is any again."""
        self._left_s -= seconds
