"""A window is open from each of its times for its duration, on days of any length."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_operator.plans.reassignment.windows import find_present
from controller_operator.plans.timing.run_times import run_times
from controller_operator.plans.timing.windows import Opening
from controller_operator.resources.reassignment import MoveSchedule

BERLIN = "Europe/Berlin"
NOW = datetime(2026, 1, 15, 12, 30, tzinfo=UTC)
NIGHTLY = {"schedule": "0 22 * * *", "durationMinutes": 120}
SCHEDULES = ["0 22 * * *", "30 2 * * *", "*/20 * * * *", "0 4,5 * * SUN", "15 3 29 2 *", "45 23 31 * *", "* * * * *"]
ZONES = [None, BERLIN, "America/St_Johns", "Australia/Lord_Howe", "Asia/Kolkata"]
YEAR_MINUTES = 366 * 24 * 60


def windows(*of_the_spec: dict[str, Any]) -> MoveSchedule:
    return MoveSchedule.model_validate({"windows": [*of_the_spec]})


def parse_time(text: str, zone: str = "UTC") -> datetime:
    """A moment by the clock on the wall; of an hour that comes twice the second one is written 02:30+."""
    wall = datetime.strptime(text.removesuffix("+"), "%Y-%m-%d %H:%M").replace(tzinfo=ZoneInfo(zone))
    return wall.replace(fold=int(text.endswith("+"))).astimezone(UTC)


def test_without_windows_it_is_always_open() -> None:
    assert find_present(None, NOW) == Opening(is_open=True)


@pytest.mark.parametrize(
    ("now", "is_open", "changes_at"),
    [
        ("2026-01-15 21:59", False, "2026-01-15 22:00"),
        ("2026-01-15 22:00", True, "2026-01-16 00:00"),
        ("2026-01-15 23:59", True, "2026-01-16 00:00"),
        ("2026-01-16 00:00", False, "2026-01-16 22:00"),
    ],
)
def test_it_opens_at_its_time_and_closes_after_its_duration(now: str, is_open: bool, changes_at: str) -> None:
    assert find_present(windows(NIGHTLY), parse_time(now)) == Opening(
        is_open=is_open, changes_at=parse_time(changes_at)
    )


def test_of_several_one_that_is_open_is_enough_and_the_next_one_counts() -> None:
    both = windows({**NIGHTLY, "timeZone": "Asia/Kolkata"}, {"schedule": "0 17 * * *", "durationMinutes": 90})
    assert find_present(both, parse_time("2026-01-15 16:00")) == Opening(
        is_open=False, changes_at=parse_time("2026-01-15 16:30")
    )
    assert find_present(both, parse_time("2026-01-15 17:30")) == Opening(
        is_open=True, changes_at=parse_time("2026-01-15 18:30")
    )


def test_one_that_is_longer_than_its_period_never_closes() -> None:
    longer = windows({"schedule": "0 * * * *", "durationMinutes": 150})
    for minutes in range(0, 48 * 60, 7):
        now = NOW + timedelta(minutes=minutes)
        present = find_present(longer, now)
        assert present.is_open
        assert present.changes_at is not None
        assert present.changes_at > now


class TestDaylightSaving:
    @pytest.mark.parametrize(
        ("schedule", "opens_at", "closes_at"),
        [
            ("30 2 * * *", "2026-03-29 03:00", "2026-03-29 04:00"),
            ("30 1 * * *", "2026-03-29 01:30", "2026-03-29 03:30"),
            ("30 2 * * *", "2026-10-25 02:30", "2026-10-25 02:30+"),
            ("30 1 * * *", "2026-10-25 01:30", "2026-10-25 02:30"),
        ],
        ids=["in the hour left out", "over the hour left out", "in the hour that comes twice", "into that hour"],
    )
    def test_an_hour_is_an_hour_of_time_that_passes(self, schedule: str, opens_at: str, closes_at: str) -> None:
        hour = windows({"schedule": schedule, "timeZone": BERLIN, "durationMinutes": 60})
        begin, end = parse_time(opens_at, BERLIN), parse_time(closes_at, BERLIN)
        assert end - begin == timedelta(hours=1)
        assert [find_present(hour, begin + timedelta(minutes=minutes)).is_open for minutes in (-1, 0, 59, 60)] == [
            False, True, True, False,
        ]  # fmt: skip


@given(
    schedule=st.sampled_from(SCHEDULES),
    zone=st.sampled_from(ZONES),
    duration=st.integers(min_value=1, max_value=26 * 60),
    minutes=st.integers(min_value=0, max_value=YEAR_MINUTES),
)
def test_it_is_open_if_and_only_if_one_of_its_times_is_no_longer_ago_than_it_lasts(
    schedule: str, zone: str | None, duration: int, minutes: int
) -> None:
    now, times = NOW + timedelta(minutes=minutes), run_times(schedule, zone)
    since = now - timedelta(minutes=duration)
    ago = next((each for back in range(duration) if times.has(each := now - timedelta(minutes=back))), None)
    present = find_present(windows({"schedule": schedule, "timeZone": zone, "durationMinutes": duration}), now)
    assert present.is_open == (ago is not None and ago > since)
    assert present.changes_at is not None
    assert present.changes_at > now
    if not present.is_open:
        assert present.changes_at == times.find_next(now)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"schedule": "0 0 31 2 *"}, "0 0 31 2 *"),
        ({"schedule": "0 0 */31 2 MON#5"}, "is never due"),
        ({"schedule": "61 * * * *"}, "no cron expression"),
        ({"timeZone": "Mars/Olympus"}, "there is no time zone 'Mars/Olympus'"),
    ],
)
def test_one_that_never_opens_lets_nothing_begin_beside_a_good_one_either(wrong: dict[str, str], said: str) -> None:
    always = {"schedule": "* * * * *", "durationMinutes": 60}
    present = find_present(windows(always, {**NIGHTLY, **wrong}), NOW)
    assert (present.is_open, present.changes_at) == (False, None)
    assert present.trouble is not None
    assert present.trouble.startswith("window 2 of spec.schedule: ")
    assert said in present.trouble
