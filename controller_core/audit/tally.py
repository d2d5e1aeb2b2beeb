"""Bounds the records of requests that changed nothing: the first of each caller in a minute is recorded, the others are
counted."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from controller_core.audit.record import AuditRecord, Outcome

_MOST_CALLERS: Final = 1_000
_MOST_KINDS: Final = 20
_OTHERS: Final = "<others>"
_MOST_OPEN: Final = 60
"""Requests with an unknown end of a caller in a minute that are recorded, because they may have changed something."""


@dataclass(slots=True)
class RefusalTally:
    """The refused requests of one minute, by principal and address.

    If there are too many callers, or kinds of requests of one, the further ones are counted together.
    """

    _seen: dict[tuple[str, str], Counter[tuple[str, str, str]]] = field(default_factory=dict)
    """For each caller the number of requests by API, outcome and error that are not recorded."""
    _open: Counter[tuple[str, str]] = field(default_factory=Counter)
    """For each caller the number of recorded requests whose end is unknown."""

    def is_recorded(self, record: AuditRecord) -> bool:
        """Return True if the record is the first of its caller. Otherwise count it."""
        caller = (record.principal, record.address)
        if record.outcome is Outcome.UNKNOWN and self._open[caller] < _MOST_OPEN and len(self._open) <= _MOST_CALLERS:
            self._open[caller] += 1
            return True
        kind = (record.api, record.outcome.value, record.error)
        if caller not in self._seen:
            if len(self._seen) < _MOST_CALLERS:
                self._seen[caller] = Counter()
                return True
            caller = (_OTHERS, _OTHERS)
        counts = self._seen.setdefault(caller, Counter())
        if kind not in counts and len(counts) >= _MOST_KINDS:
            kind = (_OTHERS, record.outcome.value, _OTHERS)
        counts[kind] += record.count
        return False

    def take_sums(self, like: AuditRecord) -> Iterator[AuditRecord]:
        """Yield a record for each caller, API and error with its count, and begin the next minute.

        `like` has the time and the source.
        """
        seen, self._seen = self._seen, {}
        self._open.clear()
        for (principal, address), counts in seen.items():
            for (api, outcome, error), count in counts.items():
                yield replace(
                    like,
                    principal=principal,
                    address=address,
                    api=api,
                    outcome=Outcome(outcome),
                    error=error,
                    message="more requests like an earlier one, counted for a minute",
                    count=count,
                )
