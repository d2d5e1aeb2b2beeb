"""Rate-limited log lines about the errors of others: one line per subject and interval, and a limited number in all.

One address has a part of that number, so that one stranger with many errors leaves room for lines about others."""

import time
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, Final

INTERVAL_S: Final = 60.0
MOST_SUBJECTS: Final = 1_000
"""Strangers choose the number of subjects: with IPv6 one machine has more addresses than a log has room for."""
MOST_OF_AN_ADDRESS: Final = 50


class Complaints:
    """Remembers the subjects of the lines within the last interval."""

    def __init__(self, log: Any, *, interval_s: float = INTERVAL_S) -> None:
        self._log = log
        self._interval_s = interval_s
        self._logged: dict[Hashable, tuple[float, str | None]] = {}
        """The time in seconds and the address of each line, the oldest first."""
        self._of_addresses: Counter[str | None] = Counter()

    def warn(self, about: Hashable, event: str, *, address: str | None = None, **values: object) -> bool:
        """Log a warning, unless there was a line about its subject within the interval, or about too many others.
        Return True if it was logged. Name the address whose errors these are, if there is one."""
        return self._log_once(about, self._log.warning, event, address, values)

    def inform(self, about: Hashable, event: str, *, address: str | None = None, **values: object) -> bool:
        """Do the same with an event that is usual."""
        return self._log_once(about, self._log.info, event, address, values)

    def _log_once(
        self, about: Hashable, write: Any, event: str, address: str | None, values: Mapping[str, object]
    ) -> bool:
        now_s = time.monotonic()
        self._forget_until(now_s - self._interval_s)
        if about in self._logged or len(self._logged) >= MOST_SUBJECTS:
            return False
        if address is not None:
            if self._of_addresses[address] >= MOST_OF_AN_ADDRESS:
                return False
            values = {"address": address, **values}
        self._logged[about] = now_s, address
        self._of_addresses[address] += 1
        write(event, **values)
        return True

    def _forget_until(self, end_s: float) -> None:
        while self._logged:
            about, (logged_s, address) = next(iter(self._logged.items()))
            if logged_s > end_s:
                return
            del self._logged[about]
            self._of_addresses[address] -= 1
            if not self._of_addresses[address]:
                del self._of_addresses[address]
