"""The runs of records that are believed, and the places of the others."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kontroller.history.reports.period import moment_of
from kontroller.history.transforms.continuity.clock_runs import LAST_US, YEAR_US, Place, Run, most_covering, place_runs

HOUR = 3_600_000_000


def hours(*runs: tuple[float, float]) -> list[tuple[float, float, bool]]:
    """Return the places of runs that began and ended at these hours."""
    found = place_runs([Run(round(began * HOUR), round(ended * HOUR)) for began, ended in runs])
    return [(place.began_us / HOUR, place.ended_us / HOUR, place.is_believed) for place in found]


def test_runs_whose_times_are_in_order_are_all_believed() -> None:
    assert hours((0, 5), (7, 8), (8, 8), (8, 20)) == [(0, 5, True), (7, 8, True), (8, 8, True), (8, 20, True)]


def test_a_stamp_ahead_moves_nobody_else() -> None:
    assert hours((0, 5), (15, 15), (5.1, 20)) == [(0, 5, True), (5, 5, False), (5.1, 20, True)]


def test_a_boot_in_1970_moves_nobody_else_wherever_it_is_in_the_history() -> None:
    now = 56 * 365.25 * 24
    before, after, boot = (now, now + 9), (now + 9.1, now + 20), (0, 0.2)
    assert hours(before, boot, after) == [(*before, True), (now + 9, now + 9, False), (*after, True)]
    assert hours(boot, after) == [(now + 9.1, now + 9.1, False), (*after, True)]
    assert hours(before, boot) == [(*before, True), (now + 9, now + 9, False)]


def test_a_controller_that_is_ahead_and_dies_is_not_believed_where_the_next_one_lasts_longer() -> None:
    assert hours((20, 30), (10, 40)) == [(10, 10, False), (10, 40, True)]


def test_a_controller_that_is_ahead_for_half_an_hour_moves_nobody_else() -> None:
    assert hours((0, 10), (30, 30.5), (10.5, 50)) == [(0, 10, True), (10, 10, False), (10.5, 50, True)]


def test_where_a_clock_is_set_back_after_long_what_was_before_ends_where_it_goes_on() -> None:
    assert hours((0, 700), (699.9, 1000)) == [(0, 699.9, True), (699.9, 1000, True)]


def test_more_than_a_year_apart_only_the_side_is_believed_that_covers_more() -> None:
    year = YEAR_US / HOUR
    assert hours((0, 9), (year + 10, year + 20)) == [(year + 10, year + 10, False), (year + 10, year + 20, True)]
    assert hours((0, 9), (year + 9, year + 20)) == [(0, 9, True), (year + 9, year + 20, True)]


@given(
    st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)).map(lambda run: Run(run[0], sum(run))), max_size=6)
)
def test_every_place_is_a_time_that_a_calendar_has(runs: list[Run]) -> None:
    for place in place_runs(runs):
        assert moment_of(place.began_us) <= moment_of(place.ended_us)
        assert not place.is_believed or place.ended_us < LAST_US


def test_a_history_of_no_possible_time_has_none() -> None:
    assert place_runs([Run(LAST_US - 1, LAST_US), Run(2**63 - 1, 2**63 - 1)]) == [Place(0, 0, is_believed=False)] * 2


def test_nothing_has_no_places() -> None:
    assert place_runs([]) == []


RUNS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)).map(lambda run: Run(run[0], sum(run))), max_size=9)


def best_row(runs: Sequence[Run]) -> list[int]:
    """Return the best row by comparing each run with all before it. The run before it in its row is the one with the
    highest coverage until it begins, of several the latest."""
    covered: list[int] = []
    rows: list[list[int]] = []
    for number, run in enumerate(runs):
        before = [
            (covered[other] - max(0, runs[other].ended_us - run.began_us), other)
            for other in range(number)
            if runs[other].began_us < run.began_us or runs[other].ended_us <= run.began_us
        ]
        most, other = max(before, default=(0, None))
        covered.append(most + run.length_us)
        rows.append([*(rows[other] if other is not None else []), number])
    return max(zip(covered, rows, strict=True), key=lambda row: (row[0], row[1][-1]), default=(0, []))[1]


@given(RUNS)
def test_no_other_runs_cover_more(runs: list[Run]) -> None:
    assert most_covering(runs) == best_row(runs)


@given(RUNS)
def test_places_are_in_order_and_within_the_runs_that_are_believed(runs: list[Run]) -> None:
    places = place_runs(runs)
    assert [place.began_us for place in places] == sorted(place.began_us for place in places)
    assert all(place.ended_us <= after.began_us for place, after in pairwise(places))
    for run, place in zip(runs, places, strict=True):
        if place.is_believed:
            assert run.began_us == place.began_us
            assert place.ended_us <= run.ended_us
        else:
            assert place == Place(place.began_us, place.began_us, is_believed=False)


def test_a_hundred_thousand_runs_take_no_longer_than_they_must() -> None:
    runs = [Run(n * 10 % 1_000_003, n * 10 % 1_000_003 + 7) for n in range(100_000)]
    assert len(place_runs(runs)) == len(runs)
