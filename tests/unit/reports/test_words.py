"""Numbers are written as people read them, and never better than they are."""

from datetime import UTC, datetime, timedelta

import pytest

from kontroller.history.reports import words
from kontroller.history.reports.facts import Uptime
from kontroller.history.reports.period import DAY, HOUR, MINUTE, SECOND, Grid, Period, grid_of, micros, moment_of
from kontroller.history.reports.selection.episodes.worst import quiet_us


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (None, "not known"),
        (0, "0 s"),
        (0.0002, "under 1 ms"),
        (0.0484, "48 ms"),
        (3.24, "3.2 s"),
        (59.7, "1 min"),
        (192, "3 min 12 s"),
        (3600 * 5 + 240, "5 h 4 min"),
        (86400 * 12 + 3600 * 3, "12 d 3 h"),
        (-5, "-5 s"),
    ],
)
def test_durations_have_two_units_at_most(seconds: float | None, written: str) -> None:
    assert words.duration(seconds) == written


@pytest.mark.parametrize(
    ("ratio", "written"),
    [
        (None, "not known"),
        (1.0, "100 %"),
        (0.0, "0.00 %"),
        (0.5, "50.00 %"),
        (0.9998, "99.980 %"),
        (0.99979, "99.979 %"),
        (0.999999, "99.999900 %"),
        (1 - 1e-12, "99.999999999 %"),
    ],
)
def test_ratios_are_never_rounded_up_to_all(ratio: float | None, written: str) -> None:
    assert words.percent(ratio) == written


def test_nines_are_counted_downwards() -> None:
    assert [words.nines(ratio) for ratio in (0.999, 0.9998, 1.0, None)] == [
        "3.0 nines",
        "3.6 nines",
        "no downtime",
        "not known",
    ]


def test_names_are_cut_in_the_middle_as_they_differ_at_both_ends() -> None:
    assert words.shorten("payments.eu-west.retries", 11) == "payme\u2026tries"
    assert words.shorten("orders", 11) == "orders"


def test_spans_name_a_day_once() -> None:
    began = micros(datetime(2026, 11, 20, 2, 13, 4, tzinfo=UTC))
    assert words.format_span(began, began + 3 * MINUTE) == "2026-11-20 02:13:04 to 02:16:04"
    midnight = micros(datetime(2026, 11, 20, tzinfo=UTC))
    assert words.format_span(midnight, midnight + DAY) == "2026-11-20"
    assert words.format_span(midnight, midnight + 2 * DAY) == "2026-11-20 to 2026-11-21"


@pytest.mark.parametrize("length", [SECOND, 7 * MINUTE, HOUR + 1, DAY, 9 * DAY, 400 * DAY, 7300 * DAY])
@pytest.mark.parametrize("offset", [0, 1, 13 * MINUTE])
def test_a_grid_covers_its_period_in_few_pieces(length: int, offset: int) -> None:
    began = micros(datetime(2026, 11, 20, tzinfo=UTC)) + offset
    grid = grid_of(began, began + length, most=96)
    assert grid.began_us <= began
    assert grid.ended_us >= began + length
    assert 1 <= grid.count <= 96
    assert grid.edges(0) == (grid.began_us, grid.began_us + grid.width_us)


def test_grids_are_as_fine_as_they_may_be() -> None:
    began = micros(datetime(2026, 11, 20, tzinfo=UTC))
    assert grid_of(began, began + DAY, most=96) == Grid(began_us=began, width_us=15 * MINUTE, count=96)


def test_an_empty_period_and_one_without_a_zone_are_refused() -> None:
    at = datetime(2026, 11, 20, tzinfo=UTC)
    with pytest.raises(ValueError, match="must begin before it ends"):
        Period(began=at, ended=at)
    with pytest.raises(ValueError, match="no time zone"):
        Period(began=at.replace(tzinfo=None), ended=at)


def test_the_period_before_is_as_long_and_ends_where_this_one_begins() -> None:
    at = datetime(2026, 11, 20, 2, tzinfo=UTC)
    before = Period(began=at, ended=at + timedelta(hours=3)).make_previous()
    assert before == Period(began=at - timedelta(hours=3), ended=at)
    assert Period(began=datetime(1970, 1, 2, tzinfo=UTC), ended=at).make_previous() is None


@pytest.mark.parametrize(
    ("length", "quiet"),
    [(MINUTE, 5 * SECOND), (HOUR, 36 * SECOND), (DAY, 10 * MINUTE), (400 * DAY, 10 * MINUTE)],
)
def test_episodes_of_a_short_period_lie_closer_together(length: int, quiet: int) -> None:
    began = 20_000 * DAY
    assert quiet_us(Period(began=moment_of(began), ended=moment_of(began + length))) == quiet


@pytest.mark.parametrize(
    ("share", "written"), [(None, "not known"), (0.0, "0 %"), (0.004, "under 1 %"), (0.341, "35 %"), (12.4, "1,240 %")]
)
def test_what_is_spent_of_a_budget_is_rounded_up(share: float | None, written: str) -> None:
    assert words.format_spent(share) == written


def test_bounds_are_one_percentage_if_nothing_is_unknown() -> None:
    known = Uptime(known_us=100, leaderless_us=1)
    assert words.format_bounds(known.bounds) == "99.00 %"
    assert (
        words.format_bounds(Uptime(known_us=75, unknown_us=20, silent_us=5, leaderless_us=1).bounds)
        == "74.00 % to 99.00 %"
    )
    assert words.format_bounds(Uptime(unknown_us=1).bounds) == "not known"
