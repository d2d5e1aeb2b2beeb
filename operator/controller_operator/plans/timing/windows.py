"""The present state of windows: the recurring times in which moves may begin.

This follows from the clock alone, and no state depends on it. If the clock is wrong, moves start early or late by that
amount.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controller_operator.plans.timing.run_times import InvalidSchedule, run_times
from controller_operator.resources.reassignment import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The present state of the windows."""

    is_open: bool
    changes_at: datetime | None = None
    """The next opening; or, while a window is open, the time until which that is sure. None: it never changes."""
    trouble: str | None = None
    """The reason why no opening is known."""


def find_opening(windows: Sequence[Window], now: datetime, field: str) -> Opening:
    """Return the present state of the windows in a field of a spec; without windows, moves may always begin.

    If an opening cannot be computed, nothing begins."""
    if not windows:
        return Opening(is_open=True)
    times = []
    for number, window in enumerate(windows, start=1):
        try:
            times.append(_find_opening(window, now))
        except InvalidSchedule as error:
            return Opening(is_open=False, trouble=f"window {number} of {field}: {error}")
    closing = [closes_at for opens_at, closes_at in times if opens_at <= now]
    if closing:
        return Opening(is_open=True, changes_at=max(closing))
    return Opening(is_open=False, changes_at=min(opens_at for opens_at, _ in times))


def _find_opening(window: Window, now: datetime) -> tuple[datetime, datetime]:
    """Return the opening and the closing of the first occurrence that is not over. Raises `InvalidSchedule`."""
    duration = timedelta(minutes=window.duration_minutes)
    opens_at = run_times(window.schedule, window.time_zone).find_next(now - duration)
    return opens_at, opens_at + duration
