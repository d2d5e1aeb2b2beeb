"""When a schedule is due: the times of a cron expression in a time zone, and which of them is the next one.

Days of 23 and 25 hours are taken as Debian's cron takes them (cronsim does): what falls into the hour that is left out runs
right after it, what falls into the hour that comes twice runs once, and what runs every so many minutes or hours goes by
the time that passes.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

_FIELDS: Final = 5


class InvalidSchedule(Exception):
    """A schedule is none, or never due; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """The times of a schedule."""

    schedule: str
    zone: tzinfo = UTC

    def after(self, moment: datetime) -> datetime:
        """The first time after a moment, in UTC. Raises `InvalidSchedule`."""
        if len(self.schedule.split()) != _FIELDS:
            raise InvalidSchedule(f"schedule {self.schedule!r} has not five fields: minute, hour, day, month, weekday")
        try:
            # In an hour that comes twice the library begins with the first one, which may be over.
            for time in CronSim(self.schedule, moment.astimezone(self.zone)):
                if time.astimezone(UTC) > moment:
                    return time.astimezone(UTC)
        except (CronSimError, OverflowError) as error:
            raise InvalidSchedule(f"schedule {self.schedule!r} is no cron expression: {error}") from error
        raise InvalidSchedule(f"schedule {self.schedule!r} is never due")

    def has(self, moment: datetime) -> bool:
        """Whether a moment is one of the times."""
        return self.after(moment - timedelta(seconds=1)) == moment

    def next_run(self, recorded: datetime | None, last_run: datetime | None, now: datetime) -> datetime:
        """When the next run is due; in the past where it was missed. Raises `InvalidSchedule`.

        `recorded` is what was said before, as long as the schedule still says so. A time that has passed since then is due
        once, however many have, but none where none has since the last run. A clock that stands before the last
        run was set back: then one time is left out, so that nothing runs twice in a row, and a clock that was far ahead
        does not stop the schedule until it is there again.
        """
        known = recorded if recorded is not None and self.has(recorded) else None
        is_set_back = last_run is not None and last_run > now
        if known is not None and known <= now and (last_run is None or is_set_back or self.after(last_run) <= now):
            return known
        following = self.after(now)
        if not is_set_back:
            return following
        second = self.after(following)
        return second if known is None else min(known, second)


def run_times(schedule: str, time_zone: str | None) -> RunTimes:
    """The times of a schedule in an IANA time zone, UTC where none is named. Raises `InvalidSchedule`."""
    if time_zone is None:
        return RunTimes(schedule=schedule)
    try:
        return RunTimes(schedule=schedule, zone=ZoneInfo(time_zone))
    except (LookupError, OSError, ValueError) as error:
        raise InvalidSchedule(f"there is no time zone {time_zone!r}: name one as Europe/Berlin") from error
