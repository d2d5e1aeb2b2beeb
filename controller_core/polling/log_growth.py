"""Whether the controllers' log has grown by more than it grows by itself: then somebody has changed something.

What topics are set to no broker tells as cheaply as what there is of them, so that all of it is not asked for at each look.
But every change is a record in the log, whose end a broker tells. While nothing happens the active controller writes a
record to it twice a second (`metadata.max.idle.interval.ms`). So how far the log is ahead of its own pace stays within one
record as long as nobody changes anything, and a change puts it ahead for good, by one record at least.

A pause in which nothing was written puts it back for good: what counts is how far it is ahead of where it was at the least
since the last change. A controller that was given another pace is taken for one that always, or never, changes something:
who asks here needs another way beside it.
"""

from typing import Final

_IDLE_S: Final = 0.5
"""After how long a record is written while nothing happens, unless the controllers' file says otherwise."""
_LATE: Final = 0.4
"""How much of a record the time that a broker takes to hear of one may hide."""


class LogGrowth:
    """Of one cluster's log."""

    def __init__(self) -> None:
        self._floor: float | None = None
        """How many records the log is ahead of its pace at the least, with all changes that were told of."""

    def is_of_changes(self, position: int, now_s: float) -> bool:
        """Whether the log, whose end is at this position now, tells of a change since the last time that this was true."""
        ahead = position - now_s / _IDLE_S
        floor = ahead if self._floor is None else self._floor
        is_of_changes = ahead - floor >= 1 + _LATE
        # Rather too few records are taken for told of than one too many: then the next change would not be told of.
        self._floor = floor + max(1, int(ahead - floor - 1)) if is_of_changes else min(floor, ahead)
        return is_of_changes
