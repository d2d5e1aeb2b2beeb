"""Durations in words, and the longest one that is estimated."""

from datetime import timedelta
from typing import Final

LONGEST: Final = timedelta(days=365)
"""Longest time that is estimated."""
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def format_duration(time: timedelta) -> str:
    """Return a duration by its two largest units, as kubectl writes ages: `3d4h`, `12m30s`. Seconds are in tens."""
    total_s = max(10, -(-int(time.total_seconds()) // 10) * 10)
    at = next(number for number, (_, unit_s) in enumerate(_UNITS) if total_s >= unit_s)
    said = ""
    for name, unit_s in _UNITS[at : at + 2]:
        count, total_s = divmod(total_s, unit_s)
        said += f"{count}{name}" if count else ""
    return said
