"""The run times of a schedule: the times of a cron expression in a time zone, and the next one.

Days of 23 and 25 hours are treated as in Debian's cron (by cronsim). Runs in the skipped hour run right after it, runs
in the repeated hour run once, and runs every so many minutes or hours follow the elapsed time.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

_FIELDS: Final = 5


class InvalidSchedule(Exception):
    """A schedule is invalid, or never due. The message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """The times of a schedule."""

    schedule: str
    zone: tzinfo = UTC

    def find_next(self, moment: datetime) -> datetime:
        """Return the first time after a moment, in UTC. Raises `InvalidSchedule`."""
        if len(self.schedule.split()) != _FIELDS:
            raise InvalidSchedule(f"schedule {self.schedule!r} has not five fields: minute, hour, day, month, weekday")
        try:
            # In a repeated hour the library begins with the first occurrence, which may be over.
            for time in CronSim(self.schedule, moment.astimezone(self.zone)):
                if time.astimezone(UTC) > moment:
                    return time.astimezone(UTC)
        except (CronSimError, OverflowError) as error:
            raise InvalidSchedule(f"schedule {self.schedule!r} is no cron expression: {error}") from error
        raise InvalidSchedule(f"schedule {self.schedule!r} is never due")

    def has(self, moment: datetime) -> bool:
        """Return True if a moment is one of the times."""
        # Cron times are whole minutes, so nothing lies between the second before and the moment.
        return self.find_next(moment - timedelta(seconds=1)) == moment

    def next_run(self, recorded: datetime | None, last_run: datetime | None, now: datetime) -> datetime:
        """Return the time of the next run, which is in the past if it was missed. Raises `InvalidSchedule`.

        `recorded` is the time in the status; it counts only if the schedule still includes it. Missed times are made up
        for by one run, unless a run has begun since. A clock before the last run was set back. Then one time is
        skipped, so that nothing runs twice in a row, and a clock that was far ahead does not stop the schedule until
        that time.
        """
        known = recorded if recorded is not None and self.has(recorded) else None
        is_set_back = last_run is not None and last_run > now
        if known is not None and known <= now and (last_run is None or is_set_back or self.find_next(last_run) <= now):
            return known
        following = self.find_next(now)
        if not is_set_back:
            return following
        second = self.find_next(following)
        return second if known is None else min(known, second)


def run_times(schedule: str, time_zone: str | None) -> RunTimes:
    """Return the times of a schedule in an IANA time zone; default: UTC. Raises `InvalidSchedule`."""
    if time_zone is None:
        return RunTimes(schedule=schedule)
    try:
        return RunTimes(schedule=schedule, zone=ZoneInfo(time_zone))
    except (LookupError, OSError, ValueError) as error:
        raise InvalidSchedule(f"there is no time zone {time_zone!r}: name one as Europe/Berlin") from error
