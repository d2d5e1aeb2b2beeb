"""Detects changes by the growth of the controllers' log beyond its idle pace.

No broker reports configurations as cheaply as topics, so they are not all read at each poll. But every change is a
record in the log, whose end a broker reports. An idle active controller writes a record twice a second
(`metadata.max.idle.interval.ms`). So the lead of the log over its idle pace stays within one record while nothing
changes, and each change raises the lead for good, by one record at least.

A pause of the writer lowers the lead for good, so the baseline is the lowest lead since the last change. A controller
with another idle pace seems to change something always, or never: users of this class need another way in addition."""

from typing import Final

_IDLE_S: Final = 0.5
"""Seconds between records of an idle controller, unless its properties set another interval."""
_LATE: Final = 0.4
"""Fraction of a record that a broker's delay may hide."""


class LogGrowth:
    """The growth of one cluster's log."""

    def __init__(self) -> None:
        self._floor: float | None = None
        """The lowest lead of the log over its pace, in records, including all reported changes."""

    def is_of_changes(self, position: int, now_s: float) -> bool:
        """Return True if the log, whose end is `position`, indicates a change since the last time that this was
        True."""
        ahead = position - now_s / _IDLE_S
        floor = ahead if self._floor is None else self._floor
        is_of_changes = ahead - floor >= 1 + _LATE
        # Count rather too few records as reported than one too many, which would hide the next change.
        self._floor = floor + max(1, int(ahead - floor - 1)) if is_of_changes else min(floor, ahead)
        return is_of_changes
