"""The time of day, for times that people read and for due times: deletions, times to live, schedules."""

from collections.abc import Callable
from datetime import UTC, datetime

Now = Callable[[], datetime]
"""Returns the present moment, in UTC."""


def utc_now() -> datetime:
    """Return the time of the machine's clock, in UTC."""
    return datetime.now(UTC)
