"""Rows over time in equal pieces: availability of topics, and heat maps of brokers. Equal neighbours are one shape."""

from collections.abc import Callable, Sequence
from itertools import groupby

from markupsafe import Markup

from kontroller.history.reports import words
from kontroller.history.reports.facts import Heat, HeatRow, Strip, Uptime
from kontroller.history.reports.period import Grid
from kontroller.history.reports.plots.axes import TimeAxis
from kontroller.history.reports.plots.scales import (
    availability_class,
    draw_min_isr_mark,
    level_class,
    nines_digit,
    uptime_tip,
)
from kontroller.history.reports.plots.svg import LABEL, LEFT, box, group, link_to_row, picture, text

ROW, BAR, TOP = 20, 16, 4


def strips(rows: Sequence[Strip], grid: Grid, *, links: Sequence[str]) -> Markup:
    """Draw the strips. `links`: for each the id of the page's row with details; "" for none."""
    axis = _axis(grid)
    marks = [
        link_to_row(link, _strip(row, grid, axis, TOP + index * ROW))
        for index, (row, link) in enumerate(zip(rows, links, strict=True))
    ]
    bottom = TOP + len(rows) * ROW
    return picture(bottom + 22, axis.draw(TOP, bottom), *marks, label="Availability over time, the worst topics")


def _strip(row: Strip, grid: Grid, axis: TimeAxis, y: float) -> Markup:
    marks = [text(words.shorten(row.label, LABEL), LEFT - 8, y + 12, "label end", row.label)]
    # Neighbours without lost time, or without known time, are merged. Each other cell has figures of its own.
    runs = groupby(enumerate(row.cells), key=lambda cell: _run_key(cell[0], cell[1]))
    for _, cells in runs:
        run = list(cells)
        total = sum((cell for _, cell in run), Uptime())
        class_ = availability_class(total)
        if class_ == "none":
            continue
        began, ended = grid.edges(run[0][0])[0], grid.edges(run[-1][0])[1]
        x, end = axis.x(began), axis.x(ended)
        tip = f"{row.label}, {words.format_span(began, ended)}: {uptime_tip(total)}"
        marks.append(box(x, y, max(1.0, end - x - 0.6), BAR, f"cell {class_}", tip))
        marks += draw_min_isr_mark(total, x, y, max(1.0, end - x - 0.6), BAR)
        if total.known_us and total.unknown_us:
            marks.append(box(x, y, max(1.0, (end - x) * total.unknown_share), BAR, "veil"))
        digit = nines_digit(total)
        if digit and end - x >= 8:
            marks.append(text(digit, (x + end) / 2, y + 12, f"digit on-{class_}"))
    return group(*marks)


def _run_key(index: int, uptime: Uptime) -> tuple[str, int]:
    class_ = availability_class(uptime)
    is_quiet = class_ in {"u", "none"} or (class_ == "a0" and not uptime.under_us and not uptime.unknown_us)
    return class_, -1 if is_quiet else index


def heat(
    rows: Heat, grid: Grid, *, top: float, name: str, written: Callable[[float], str], links: Sequence[str]
) -> Markup:
    """Draw a heat map. `top`: the amount of the strongest colour. `written`: formats an amount. `links`: as for
    `strips`."""
    axis = _axis(grid)
    marks = [
        link_to_row(link, _heat_row(row, grid, axis, TOP + index * ROW, top, written))
        for index, (row, link) in enumerate(zip(rows.rows, links, strict=True))
    ]
    bottom = TOP + len(rows.rows) * ROW
    return picture(bottom + 22, axis.draw(TOP, bottom), *marks, label=name)


def _heat_row(
    row: HeatRow, grid: Grid, axis: TimeAxis, y: float, top: float, written: Callable[[float], str]
) -> Markup:
    marks = [text(words.shorten(row.label, LABEL), LEFT - 8, y + 12, "label end", row.label)]
    classes = [("u" if value is None else level_class(value, top), value) for value in row.values]
    for class_, cells in groupby(enumerate(classes), key=lambda cell: cell[1][0]):
        run = list(cells)
        began, ended = grid.edges(run[0][0])[0], grid.edges(run[-1][0])[1]
        values = [value for _, (_, value) in run if value is not None]
        said = "unknown" if not values else written(min(values))
        if values and written(max(values)) != said:
            said += f" to {written(max(values))}"
        x, end = axis.x(began), axis.x(ended)
        tip = f"{row.label}, {words.format_span(began, ended)}: {said}"
        marks.append(box(x, y, max(1.0, end - x - 0.6), BAR, f"cell {class_}", tip))
    return group(*marks)


def _axis(grid: Grid) -> TimeAxis:
    return TimeAxis(began_us=grid.began_us, ended_us=grid.ended_us)
