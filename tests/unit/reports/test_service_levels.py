"""The budget of 28 days: burn rates, its outlook and its line, exactly, with unknown time as bounds."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kontroller.history.reports import words
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.objective import Objective
from kontroller.history.reports.period import DAY, HOUR, MINUTE, micros
from kontroller.history.reports.plots.budget_line import list_points
from kontroller.history.reports.rendering.page import page
from kontroller.history.reports.rendering.service import LASTS, describe_outlook, list_levels, service
from kontroller.history.reports.service_levels import (
    ALERTS,
    BUDGET_US,
    RECENT_US,
    WINDOWS,
    Amount,
    Level,
    Pieces,
    foresee,
    rate_burns,
)
from tests.unit.reports.facts import fleet_report, full_report
from tests.unit.reports.html import Page

END = micros(datetime(2026, 11, 29, 12, tzinfo=UTC))
THREE_NINES = Objective(percent=99.9).allowance
BUDGET = BUDGET_US // 1000
"""The lost time of one partition that spends the whole budget."""


def make_level(lost: Sequence[int] = (), unknown: Sequence[int] = (), *, days: int = 56, cluster: str = "c") -> Level:
    """Return the level of one partition. `lost`, `unknown`: microseconds of the last days, the newest one last."""
    amounts = [Amount(known_us=DAY)] * days
    for index, lost_us in enumerate(reversed(lost), 1):
        amounts[-index] = replace(amounts[-index], lost_us=lost_us)
    for index, unknown_us in enumerate(reversed(unknown), 1):
        old = amounts[-index]
        amounts[-index] = replace(old, known_us=old.known_us - unknown_us, unknown_us=unknown_us)
    whole = {us: sum(amounts[-(us // DAY) :], Amount()) for us in (BUDGET_US, RECENT_US)}
    return Level(
        cluster=cluster,
        as_of_us=END,
        began_us=END - min(days * DAY, BUDGET_US),
        windows={us: whole.get(us, Amount(known_us=us)) for us in WINDOWS},
        pieces=Pieces(ended_us=END, width_us=DAY, amounts=tuple(amounts)),
    )


def set_windows(level: Level, **windows: Amount) -> Level:
    lengths = {"min5": 5 * MINUTE, "min30": 30 * MINUTE, "h1": HOUR, "h6": 6 * HOUR, "d3": 3 * DAY}
    return replace(level, windows={**level.windows, **{lengths[name]: amount for name, amount in windows.items()}})


def test_the_alerts_are_those_of_the_workbook() -> None:
    shown = [(alert.window_us // HOUR, alert.short_us // MINUTE, float(alert.rate)) for alert in ALERTS]
    assert shown == [(1, 5, 14.4), (6, 30, 6.0), (72, 360, 1.0)]


def test_a_rate_is_too_high_from_its_limit_on_and_only_while_it_lasts() -> None:
    limit = Amount(known_us=HOUR, lost_us=HOUR * 144 // 10_000)
    burning = set_windows(make_level(), h1=limit, min5=limit)
    assert [burn.tone for burn in rate_burns(burning, THREE_NINES)] == ["bad", "good", "good"]
    assert rate_burns(burning, THREE_NINES)[0].rate == (Fraction(144, 10), Fraction(144, 10))
    less = replace(limit, lost_us=limit.lost_us - 1)
    assert rate_burns(set_windows(burning, h1=less), THREE_NINES)[0].tone == "good"
    over = set_windows(burning, min5=Amount(known_us=5 * MINUTE))
    assert rate_burns(over, THREE_NINES)[0].tone == "good"


def test_unknown_time_is_neither_an_alert_nor_good() -> None:
    silent = Amount(known_us=HOUR // 2, unknown_us=HOUR // 2)
    burn = rate_burns(set_windows(make_level(), h1=silent, min5=silent), THREE_NINES)[0]
    assert (burn.rate, burn.tone) == ((Fraction(0), Fraction(500)), "unknown")
    nothing = set_windows(make_level(), h1=Amount(), min5=Amount())
    assert rate_burns(nothing, THREE_NINES)[0].rate is None
    assert rate_burns(nothing, THREE_NINES)[0].tone == "unknown"


def test_a_budget_that_is_used_up_says_since_when() -> None:
    outlook = foresee(make_level(lost=(BUDGET // 2, BUDGET, 0, 0)), THREE_NINES, is_unknown_down=False)
    assert outlook is not None
    assert outlook.used_up_us == END - 3 * DAY + DAY // 2
    earlier = foresee(make_level(lost=(3 * BUDGET,) * 56), THREE_NINES, is_unknown_down=False)
    assert earlier is not None
    assert (earlier.used_up_us, earlier.is_used_up_earlier) == (END - 55 * DAY, True)


def test_a_budget_runs_out_when_the_losses_of_three_days_go_on() -> None:
    daily = BUDGET // 8
    outlook = foresee(make_level(lost=(daily, daily, daily)), THREE_NINES, is_unknown_down=False)
    assert outlook is not None
    assert outlook.runs_out_us == END + 5 * DAY


def test_old_losses_leave_the_window_before_the_budget_runs_out() -> None:
    """At a tenth of the budget a day it would last two days; the losses 27 days ago leave it tomorrow."""
    old = (8 * BUDGET // 10 - 3 * BUDGET // 100, *[0] * 24, BUDGET // 100, BUDGET // 100, BUDGET // 100)
    assert foresee(make_level(lost=old), THREE_NINES, is_unknown_down=False).runs_out_us is None  # type: ignore[union-attr]
    assert describe_outlook(make_level(lost=old), THREE_NINES) == LASTS


def test_the_outlook_names_both_bounds_if_they_differ() -> None:
    said = describe_outlook(make_level(unknown=(DAY,)), THREE_NINES)
    assert said == (f"{LASTS}; at worst, if all unknown time was down, the budget is used up since 2026-11-28 12:40")
    assert describe_outlook(replace(make_level(), pieces=None), THREE_NINES) == ""


@given(
    st.lists(st.tuples(st.integers(0, BUDGET), st.integers(0, DAY // 2)), min_size=3, max_size=56),
    st.booleans(),
)
def test_an_outlook_is_what_counting_day_by_day_gives(days: list[tuple[int, int]], is_down: bool) -> None:
    level = make_level(lost=[lost for lost, _ in days], unknown=[unknown for _, unknown in days])
    outlook = foresee(level, THREE_NINES, is_unknown_down=is_down)
    spent = [lost + unknown * is_down for lost, unknown in days]
    past = [0] * (56 - len(days)) + spent
    future = past + [Fraction(sum(past[-3:]), 3)] * 28
    is_over = [sum(future[day - 27 : day + 1]) > BUDGET for day in range(27, 84)]
    assert outlook is not None
    now = 28
    if is_over[now]:
        since = next((day for day in range(now, -1, -1) if not is_over[day]), None)
        assert outlook.used_up_us is not None
        if since is None:
            assert outlook.is_used_up_earlier
        else:
            assert END - (now - since) * DAY <= outlook.used_up_us <= END - (now - since - 1) * DAY
    else:
        until = next((day for day in range(now, 57) if is_over[day]), None)
        assert (outlook.runs_out_us is None) == (until is None)
        if until is not None and outlook.runs_out_us is not None:
            assert END + (until - now - 1) * DAY <= outlook.runs_out_us <= END + (until - now) * DAY


def test_a_young_history_is_measured_since_it_began() -> None:
    young = make_level(lost=(BUDGET // 20,) * 7, days=7)
    report = replace(full_report(), level=young, levels=(young,))
    shown = service(report)
    assert shown is not None
    assert shown.said.startswith("The history has only 7 d of the 28 days.")
    assert shown.gauges[1].value == "140 %"
    outlook = foresee(young, THREE_NINES, is_unknown_down=False)
    assert outlook is not None
    assert outlook.used_up_us == END - 6 * DAY


def test_the_line_has_few_points_and_keeps_the_worst() -> None:
    amounts = [Amount(known_us=HOUR)] * (428 * 24)
    amounts[5000] = Amount(known_us=HOUR, lost_us=HOUR // 2)
    points = list_points(Pieces(ended_us=END, width_us=HOUR, amounts=tuple(amounts)), THREE_NINES, most=430)
    assert len(points) <= 430
    assert min(point.most for point in points) == pytest.approx(1 - HOUR / 2 / BUDGET)
    assert points[-1].most == 1


def test_the_page_has_the_service_level_of_one_cluster_and_of_many() -> None:
    level = make_level(lost=(BUDGET // 2,), unknown=(DAY // 10,))
    one = Page(page(replace(full_report(), level=level, levels=(level,))))
    assert "50 % to 408 %" in one.text.split("Service level, last 28 days")[1]
    assert "Rest of the error budget" in " ".join(one.attributes("aria-label"))
    report = fleet_report(3, days=1)
    levels = tuple(make_level(lost=(lost,), cluster=f"c{lost}") for lost in (0, 2 * BUDGET, BUDGET // 4))
    listed = list_levels(replace(report, level=level, levels=levels), Limits())
    assert [row["cluster_id"] for row in listed.rows] == [f"c{2 * BUDGET}", f"c{BUDGET // 4}", "c0"]
    assert [row["spent"] for row in listed.rows] == [2, 0.25, 0]
    text = Page(page(replace(report, level=level, levels=levels))).sections["service"]
    assert "the budget is used up since 2026-11-29 00:00" in text


def test_without_an_objective_there_is_availability_alone() -> None:
    level = make_level(lost=(BUDGET,))
    shown = service(replace(full_report(), level=level, levels=(level,), objective=None))
    assert shown is not None
    assert [gauge.value for gauge in shown.gauges] == ["99.900 %"]


def test_rates_are_rounded_up() -> None:
    assert [words.format_rate(rate) for rate in (0, 0.01, 14.4, 14.41, 1239.2)] == ["0", "0.1", "14.4", "14.5", "1,240"]
