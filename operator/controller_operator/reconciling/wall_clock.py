"""The time of day, for what is written down for people and what is due at a time: deletions, ends of lives, schedules."""

from collections.abc import Callable
from datetime import UTC, datetime

Now = Callable[[], datetime]
"""The present moment, in UTC."""


def utc_now() -> datetime:
    """The machine's clock, in UTC."""
    return datetime.now(UTC)
