"""The backoff of corrections of changes that were made elsewhere.

A single change is corrected at once. If the same thing changes again and again, somebody else wants another value, and
two tireless writers would write for ever: each write wakes all brokers. So the object's status counts the corrections.
From the fourth one on, each waits twice as long as the one before, up to five minutes. The count starts again after ten
minutes without a correction. A change of the spec is no correction, so it resets the count too.
"""

from datetime import datetime, timedelta
from typing import Final

from controller_operator.plans.outcome import Notice
from controller_operator.resources.common import DriftCorrections

AT_ONCE: Final = 3
"""Corrections in a row that wait for nothing."""
FIRST_PAUSE: Final = timedelta(seconds=2)
LONGEST_PAUSE: Final = timedelta(minutes=5)
CALM: Final = timedelta(minutes=10)
"""Time without a correction after which the count starts again."""


def find_due_time(before: DriftCorrections | None, now: datetime) -> datetime | None:
    """Return the time of the next correction; None if it may be made now."""
    if before is None or before.count < AT_ONCE or not _is_recent(before, now):
        return None
    pause = FIRST_PAUSE * (1 << min(before.count - AT_ONCE, 16))
    at = before.last_time + min(pause, LONGEST_PAUSE)
    return at if at > now else None


def count_correction(before: DriftCorrections | None, now: datetime) -> DriftCorrections:
    """Return the record of the corrections, including one that is made now."""
    if before is None or not _is_recent(before, now):
        return DriftCorrections(count=1, first_time=now, last_time=now)
    return DriftCorrections(count=before.count + 1, first_time=before.first_time or before.last_time, last_time=now)


def _is_recent(before: DriftCorrections, now: datetime) -> bool:
    """Return True if the corrections go on. A time in the future is that of a clock that was wrong, so it counts as long
    ago."""
    return timedelta(0) <= now - before.last_time < CALM


def make_contested_notice(before: DriftCorrections, message: str) -> Notice:
    """Return the event about a correction that waits because the earlier ones were all reverted."""
    waits = before.count - AT_ONCE + 1
    return Notice(reason="DriftContested", message=message, is_warning=True, series=before.series, count=waits)
