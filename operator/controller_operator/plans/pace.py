"""How often what is changed elsewhere is put right.

A single change is put right at once. Where the same thing is changed again and again, somebody else wants something else,
and two that never tire would write for ever: each write wakes all brokers. So the corrections are counted in the object's
status, and from the fourth one on each waits twice as long as the one before, up to five minutes. What was left alone for
ten minutes begins anew, and so does a changed spec, as that is no correction.
"""

from datetime import datetime, timedelta
from typing import Final

from controller_operator.plans.outcome import Notice
from controller_operator.resources.common import DriftCorrections

AT_ONCE: Final = 3
"""So many corrections in a row wait for nothing."""
FIRST_PAUSE: Final = timedelta(seconds=2)
LONGEST_PAUSE: Final = timedelta(minutes=5)
CALM: Final = timedelta(minutes=10)
"""After a correction that held for so long the next one is the first."""


def due(before: DriftCorrections | None, now: datetime) -> datetime | None:
    """When the next correction may be made; None where it may be made now."""
    if before is None or before.count < AT_ONCE or now - before.last_time >= CALM:
        return None
    pause = FIRST_PAUSE * (1 << min(before.count - AT_ONCE, 16))
    at = before.last_time + min(pause, LONGEST_PAUSE)
    return at if at > now else None


def counted(before: DriftCorrections | None, now: datetime) -> DriftCorrections:
    """What is on record of the corrections, with one that is made now."""
    if before is None or now - before.last_time >= CALM:
        return DriftCorrections(count=1, first_time=now, last_time=now)
    return DriftCorrections(count=before.count + 1, first_time=before.first_time or before.last_time, last_time=now)


def contested_notice(before: DriftCorrections, message: str) -> Notice:
    """The event about a correction that waits, because the ones before were all taken back."""
    waits = before.count - AT_ONCE + 1
    return Notice(reason="DriftContested", message=message, is_warning=True, series=before.series, count=waits)
