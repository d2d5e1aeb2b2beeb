"""Amounts by day, as columns. Two amounts of one unit are drawn below each other on the same scale."""

from collections.abc import Mapping
from datetime import date, timedelta

from markupsafe import Markup

from kontroller.history.reports import words
from kontroller.history.reports.period import DAY, EPOCH, Grid
from kontroller.history.reports.plots.axes import TimeAxis
from kontroller.history.reports.plots.svg import LEFT, box, group, line, picture, text

HEIGHT, GAP = 60, 26


def columns_by_day(amounts: Mapping[str, Mapping[date, int]], grid: Grid, *, name: str) -> Markup:
    """Draw the amounts. `amounts`: microseconds by day, for each row's name. `grid`: pieces of whole days."""
    axis = TimeAxis(began_us=grid.began_us, ended_us=grid.ended_us)
    sums = {row: _sums(days, grid) for row, days in amounts.items()}
    most = max((max(values) for values in sums.values()), default=0)
    marks, y = [], 18.0
    for row, values in sums.items():
        marks.append(_row(row, values, most, grid, axis, y))
        y += HEIGHT + GAP
    bottom = y - GAP
    return picture(bottom + 22, axis.draw(8, bottom), *marks, label=name)


def _sums(days: Mapping[date, int], grid: Grid) -> list[int]:
    values = [0] * grid.count
    for day, amount in days.items():
        began = (day - EPOCH.date()) // timedelta(days=1) * DAY
        index = (began - grid.began_us) // grid.width_us
        if 0 <= index < grid.count:
            values[index] += amount
    return values


def _row(name: str, values: list[int], most: int, grid: Grid, axis: TimeAxis, y: float) -> Markup:
    base = y + HEIGHT
    marks = [
        text(name, LEFT - 8, base - 4, "label end"),
        text(f"{words.duration(sum(values) / 1e6)} in total", LEFT - 8, base - 19, "label end strong"),
        line(axis.left, base, axis.right, base, "axis"),
    ]
    for index, value in enumerate(values):
        if not value:
            continue
        began, ended = grid.edges(index)
        x, height = axis.x(began), max(1.5, HEIGHT * value / most)
        tip = f"{name}, {words.format_span(began, ended)}: {words.duration(value / 1e6)}"
        marks.append(box(x, base - height, max(1.0, axis.x(ended) - x - 1), height, "column", tip))
        if value == max(values):
            marks.append(text(words.duration(value / 1e6), min(x, axis.right - 70), base - height - 4, "tick"))
    return group(*marks)
