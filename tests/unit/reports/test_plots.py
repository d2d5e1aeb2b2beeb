"""Pictures keep within their frame, and their labels off one another."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kontroller.history.reports.facts import Step, Uptime
from kontroller.history.reports.period import DAY, HOUR, MINUTE, SECOND
from kontroller.history.reports.plots import timeline
from kontroller.history.reports.plots.axes import TimeAxis
from kontroller.history.reports.plots.failovers import Dot, failovers
from kontroller.history.reports.plots.scales import availability_class, level_class, nines_digit
from kontroller.history.reports.plots.svg import WIDTH, tag

BEGAN = 20_000 * DAY
LETTER = 6.5


@given(st.integers(0, DAY), st.integers(1000, 9000 * DAY))
def test_the_labels_of_a_time_axis_do_not_touch(offset: int, length: int) -> None:
    axis = TimeAxis(began_us=BEGAN + offset, ended_us=BEGAN + offset + length)
    ticks = axis.ticks()
    assert len(ticks) <= 12
    places = [axis.x(at) for at, _ in ticks]
    assert all(axis.left <= x <= axis.right for x in places)
    for (x, (_, label)), (next_x, (_, next_label)) in itertools.pairwise(zip(places, ticks, strict=True)):
        assert next_x - x > (len(label) + len(next_label)) / 2 * LETTER or next_x > axis.right - 40


@given(st.lists(st.floats(0, WIDTH), max_size=12).map(sorted))
def test_marks_at_the_same_time_stand_above_one_another(xs: list[float]) -> None:
    rows = timeline.mark_rows(xs)
    assert all(0 <= row < timeline.MARK_ROWS for row in rows)
    for row in set(rows):
        places = [x for x, its in zip(xs, rows, strict=True) if its == row]
        crowded = sum(1 for x in xs if any(abs(x - other) < timeline.MARK for other in xs))
        if crowded <= timeline.MARK_ROWS:
            assert all(b - a >= timeline.MARK for a, b in itertools.pairwise(places))


def test_a_peak_that_is_shorter_than_a_pixel_is_drawn() -> None:
    axis = TimeAxis(began_us=BEGAN, ended_us=BEGAN + HOUR)
    drawn = timeline.area("without a leader", (Step(at_us=BEGAN + MINUTE, peak=40, value=0),), "leaderless", axis, 10)
    points = re.search(r'points="([^"]*)"', drawn)
    assert points
    heights = [float(point.split(",")[1]) for point in points[1].split()]
    assert min(heights) == 10
    assert heights[-2] == 10 + timeline.AREA
    assert "at most 40" in drawn


@pytest.mark.parametrize(
    ("leaderless", "class_", "digit"),
    [(0, "a0", ""), (1, "a1", "5"), (20, "a2", "3"), (200, "a3", "2"), (5000, "a4", "1"), (50_000, "a5", "0")],
)
def test_worse_is_louder_and_has_fewer_nines(leaderless: int, class_: str, digit: str) -> None:
    uptime = Uptime(known_us=100_000, leaderless_us=leaderless)
    assert (availability_class(uptime), nines_digit(uptime)) == (class_, digit)


def test_unknown_is_a_class_of_its_own() -> None:
    assert availability_class(Uptime(unknown_us=5)) == "u"
    assert availability_class(Uptime()) == "none"


def test_amounts_have_seven_levels() -> None:
    assert [level_class(value, 6) for value in (0, 0.1, 1, 1.1, 5.9, 6, 60)] == [
        "h0",
        "h1",
        "h1",
        "h2",
        "h6",
        "h6",
        "h6",
    ]


@given(st.lists(st.floats(0, 1e7), max_size=20))
def test_failovers_of_any_length_lie_within_the_picture(seconds: list[float]) -> None:
    dots = [
        Dot(at_us=BEGAN + index * SECOND, median_seconds=value / 2, max_seconds=value, is_whole=True, tip="")
        for index, value in enumerate(seconds)
    ]
    drawn = failovers(dots, {}, BEGAN, BEGAN + DAY)
    height = float(re.search(r'viewBox="0 0 \d+ (\d+)"', drawn)[1])  # type: ignore[index]  # a picture has one
    assert all(0 <= float(y) <= height for y in re.findall(r'(?:cy|y1|y2)="([^"]*)"', drawn))


def test_text_and_attributes_are_escaped() -> None:
    made = tag("text", "<b>&", tag("title", "'\""), class_='"><script>')
    assert made == '<text class="&#34;&gt;&lt;script&gt;">&lt;b&gt;&amp;<title>&#39;&#34;</title></text>'
