"""Rate-limited log lines about the errors of others: one line per subject and interval."""

import time
from collections.abc import Hashable
from typing import Any, Final

INTERVAL_S: Final = 60.0
_MOST: Final = 1_000


class Complaints:
    """Remembers the last line about each subject. If there are too many subjects, the oldest are forgotten."""

    def __init__(self, log: Any, *, interval_s: float = INTERVAL_S) -> None:
        self._log = log
        self._interval_s = interval_s
        self._last_s: dict[Hashable, float] = {}

    def warn(self, about: Hashable, event: str, **values: object) -> bool:
        """Log the event, unless it was logged about the same subject within the interval. Return True if it was."""
        now_s = time.monotonic()
        last_s = self._last_s.get(about)
        if last_s is not None and now_s - last_s < self._interval_s:
            return False
        self._last_s.pop(about, None)
        self._last_s[about] = now_s
        if len(self._last_s) > _MOST:
            del self._last_s[next(iter(self._last_s))]
        self._log.warning(event, **values)
        return True
