"""Rate-limited log lines about the errors of others: one line per subject and interval, and a limited number in all."""

import time
from collections.abc import Hashable, Mapping
from typing import Any, Final

INTERVAL_S: Final = 60.0
MOST_SUBJECTS: Final = 1_000
"""Strangers choose the number of subjects: with IPv6 one machine has more addresses than a log has room for."""


class Complaints:
    """Remembers the subjects of the lines within the last interval."""

    def __init__(self, log: Any, *, interval_s: float = INTERVAL_S) -> None:
        self._log = log
        self._interval_s = interval_s
        self._logged_s: dict[Hashable, float] = {}  # the oldest first

    def warn(self, about: Hashable, event: str, **values: object) -> bool:
        """Log a warning, unless there was a line about its subject within the interval, or about too many others.
        Return True if it was logged."""
        return self._log_once(about, self._log.warning, event, values)

    def inform(self, about: Hashable, event: str, **values: object) -> bool:
        """Do the same with an event that is usual."""
        return self._log_once(about, self._log.info, event, values)

    def _log_once(self, about: Hashable, write: Any, event: str, values: Mapping[str, object]) -> bool:
        now_s = time.monotonic()
        while self._logged_s and now_s - next(iter(self._logged_s.values())) >= self._interval_s:
            del self._logged_s[next(iter(self._logged_s))]
        if about in self._logged_s or len(self._logged_s) >= MOST_SUBJECTS:
            return False
        self._logged_s[about] = now_s
        write(event, **values)
        return True
