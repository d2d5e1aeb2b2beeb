"""The times at which a schedule is due, on days of any length and by clocks that are set."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_operator.plans.timing.run_times import InvalidSchedule, RunTimes, run_times

BERLIN = "Europe/Berlin"
HOURLY = RunTimes(schedule="0 * * * *")
DAILY = RunTimes(schedule="0 3 * * *")
STEPS_HOURS = [0, 0, 0, 0, -1, 1, -30, 30, -8760, 8760]
MINUTES = st.integers(min_value=0, max_value=3_000)
NOW = datetime(2026, 1, 15, 12, 30, tzinfo=UTC)


def times_of(schedule: str, zone: str, begin: datetime, number: int) -> list[str]:
    """The first times of a schedule, by the clock on the wall."""
    times, moment, found = run_times(schedule, zone), begin, []
    for _ in range(number):
        moment = times.find_next(moment)
        found.append(moment.astimezone(ZoneInfo(zone)).strftime("%d %H:%M %Z"))
    return found


class TestDaylightSaving:
    SPRING = datetime(2026, 3, 27, 12, tzinfo=UTC)
    """Before the change to summer time: on the 29th, 02:00 CET is 03:00 CEST."""
    AUTUMN = datetime(2026, 10, 23, 12, tzinfo=UTC)
    """Before the change from summer time: on the 25th, 03:00 CEST is 02:00 CET."""

    @pytest.mark.parametrize(
        ("schedule", "found"),
        [
            ("30 2 * * *", ["28 02:30 CET", "29 03:00 CEST", "30 02:30 CEST"]),
            ("0,30 2 * * *", ["28 02:00 CET", "28 02:30 CET", "29 03:00 CEST", "30 02:00 CEST"]),
            ("0 3 * * *", ["28 03:00 CET", "29 03:00 CEST", "30 03:00 CEST"]),
        ],
    )
    def test_what_falls_into_the_hour_that_is_left_out_runs_once_right_after_it(
        self, schedule: str, found: list[str]
    ) -> None:
        assert times_of(schedule, BERLIN, self.SPRING, len(found)) == found

    @pytest.mark.parametrize(
        ("schedule", "found"),
        [
            ("30 2 * * *", ["24 02:30 CEST", "25 02:30 CEST", "26 02:30 CET"]),
            ("0,45 2 * * *", ["24 02:00 CEST", "24 02:45 CEST", "25 02:00 CEST", "25 02:45 CEST", "26 02:00 CET"]),
        ],
    )
    def test_what_falls_into_the_hour_that_comes_twice_runs_once(self, schedule: str, found: list[str]) -> None:
        assert times_of(schedule, BERLIN, self.AUTUMN, len(found)) == found

    def test_asked_in_the_second_of_two_hours_it_names_no_time_of_the_first(self) -> None:
        second = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
        assert second.astimezone(ZoneInfo(BERLIN)).strftime("%H:%M %Z") == "02:30 CET"
        assert run_times("45 2 * * *", BERLIN).find_next(second) == datetime(2026, 10, 26, 1, 45, tzinfo=UTC)

    @pytest.mark.parametrize(("begin", "hours"), [(SPRING, 47), (AUTUMN, 49)])
    def test_what_runs_every_half_hour_goes_by_the_time_that_passes(self, begin: datetime, hours: int) -> None:
        times, moment = run_times("*/30 * * * *", BERLIN), begin
        for _ in range(2 * hours):
            assert times.find_next(moment) - moment == timedelta(minutes=30)
            moment = times.find_next(moment)

    @pytest.mark.parametrize("day", range(24, 27))
    def test_each_time_is_known_again(self, day: int) -> None:
        times = run_times("*/20 2 * * *", BERLIN)
        assert times.has(times.find_next(datetime(2026, 10, day, 0, 10, tzinfo=UTC)))


class TestWhatIsNone:
    @pytest.mark.parametrize(
        "schedule",
        [
            "",
            "* * * *",
            "* * * * * *",
            "@daily",
            "61 * * * *",
            "a b c d e",
            "0 0 30 2 *",
            "0 0 29 2 1#0",
            "*/0 * * * *",
        ],
    )
    def test_is_no_schedule(self, schedule: str) -> None:
        with pytest.raises(InvalidSchedule, match="schedule"):
            run_times(schedule, None).find_next(NOW)

    @pytest.mark.parametrize("zone", ["Mars/Olympus", "America", "../../etc/passwd", "/etc/localtime", "x" * 300, "\0"])
    def test_is_no_time_zone(self, zone: str) -> None:
        with pytest.raises(InvalidSchedule, match="time zone"):
            run_times("0 0 * * *", zone)

    def test_a_leap_day_is_a_schedule(self) -> None:
        assert run_times("0 0 29 2 *", None).find_next(NOW) == datetime(2028, 2, 29, tzinfo=UTC)


class TestTheNextRun:
    def test_is_the_first_time_after_now(self) -> None:
        assert HOURLY.next_run(None, None, NOW) == datetime(2026, 1, 15, 13, tzinfo=UTC)

    def test_that_was_missed_is_due_once_however_many_were(self) -> None:
        missed = datetime(2026, 1, 12, 3, tzinfo=UTC)
        assert HOURLY.next_run(missed, missed - timedelta(hours=1), NOW) == missed
        assert HOURLY.next_run(HOURLY.find_next(NOW), NOW, NOW) > NOW

    def test_of_another_schedule_than_before_is_one_of_the_present_schedule(self) -> None:
        missed_by_the_other = datetime(2026, 1, 15, 12, 10, tzinfo=UTC)
        assert HOURLY.next_run(missed_by_the_other, None, NOW) == datetime(2026, 1, 15, 13, tzinfo=UTC)
        often = RunTimes(schedule="*/5 * * * *")
        assert often.next_run(datetime(2026, 1, 16, tzinfo=UTC), None, NOW) == NOW + timedelta(minutes=5)

    @pytest.mark.parametrize("back", [timedelta(seconds=10), timedelta(minutes=40), timedelta(hours=5)])
    def test_is_not_the_last_one_again_where_the_clock_is_set_back(self, back: timedelta) -> None:
        last_run = datetime(2026, 1, 15, 3, 0, 5, tzinfo=UTC)
        recorded = DAILY.find_next(last_run)
        assert DAILY.next_run(recorded, last_run, last_run - back) == recorded

    def test_comes_again_in_time_after_a_clock_that_was_a_year_ahead(self) -> None:
        ran_at = NOW + timedelta(days=365)
        recorded = HOURLY.find_next(ran_at)
        healed = HOURLY.next_run(recorded, ran_at, NOW)
        assert healed == datetime(2026, 1, 15, 14, tzinfo=UTC), "one time is left out: the last run may just have been"
        later = NOW + timedelta(minutes=45)
        assert HOURLY.next_run(healed, ran_at, later) == healed

    def test_is_not_made_up_for_by_a_clock_that_jumps_to_and_fro(self) -> None:
        ran_at = NOW + timedelta(days=365)
        healed = HOURLY.next_run(HOURLY.find_next(ran_at), ran_at, NOW)
        ahead_again = ran_at + timedelta(minutes=2)
        assert HOURLY.next_run(healed, ran_at, ahead_again) > ahead_again

    @given(
        schedule=st.sampled_from(["0 * * * *", "*/7 * * * *", "30 2 * * *", "0 4,5 * * SUN", "15,45 2-3 * * *"]),
        zone=st.sampled_from([None, BERLIN, "America/St_Johns", "Australia/Lord_Howe", "Asia/Kolkata"]),
        looks=st.lists(st.tuples(MINUTES, st.sampled_from(STEPS_HOURS), st.booleans()), min_size=5, max_size=40),
    )
    def test_never_runs_twice_for_one_time_and_never_stops(
        self, schedule: str, zone: str | None, looks: list[tuple[int, int, bool]]
    ) -> None:
        """With any clock errors and late looks, there is a time of the schedule between any two runs."""
        times = run_times(schedule, zone)
        now, recorded, last_run = NOW, None, None
        for minutes, step_hours, begins_late in looks:
            now += timedelta(minutes=minutes, hours=step_hours)
            recorded = times.next_run(recorded, last_run, now)
            if recorded > now or begins_late:
                continue
            assert last_run is None or last_run > now or times.find_next(last_run) <= now
            last_run, recorded = now, times.find_next(now)
        now += timedelta(hours=1)
        recorded = times.next_run(recorded, last_run, now)
        assert recorded <= times.find_next(times.find_next(now)), "from a clock that is right it runs again soon"

    def test_before_any_run_is_right_again_when_the_clock_is(self) -> None:
        recorded = HOURLY.find_next(NOW + timedelta(days=365))
        assert HOURLY.next_run(recorded, None, NOW) == HOURLY.find_next(NOW)
