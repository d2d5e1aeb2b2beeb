"""Bars in rows over time, such as the controllers and the reassignments."""

from collections.abc import Sequence

from markupsafe import Markup

from kontroller.history.reports import words
from kontroller.history.reports.facts import Bar, Lane
from kontroller.history.reports.plots.axes import TimeAxis
from kontroller.history.reports.plots.svg import LABEL, LEFT, box, group, line, link_to_row, picture, text

ROW, BAR, TOP = 22, 14, 4
LETTER = 6.6


def lanes(rows: Sequence[Lane], began_us: int, ended_us: int, *, name: str) -> Markup:
    axis = TimeAxis(began_us=began_us, ended_us=ended_us)
    bottom = TOP + len(rows) * ROW
    drawn = [lane(row, axis, TOP + index * ROW) for index, row in enumerate(rows)]
    return picture(bottom + 22, axis.draw(TOP, bottom), *drawn, label=name)


def lane(row: Lane, axis: TimeAxis, y: float) -> Markup:
    return group(
        text(words.shorten(row.label, LABEL), LEFT - 8, y + 12, "label end", row.label),
        line(axis.left, y + BAR / 2 + 1, axis.right, y + BAR / 2 + 1, "absent"),
        *(bar(one, axis, y, beside=len(row.bars) == 1) for one in row.bars),
    )


def bar(one: Bar, axis: TimeAxis, y: float, *, beside: bool = False) -> Markup:
    """Draw a bar, with its label inside if it fits, otherwise beside it if `beside` is set.

    A bar is at least two pixels wide, so that short states stay visible."""
    x = axis.x(one.began_us)
    width = max(2.0, axis.x(one.ended_us) - x)
    x = min(x, axis.right - width)
    marks = [box(x, y + 1, width, BAR, f"bar {one.state}", one.tip, radius=2)]
    needed = len(one.label) * LETTER + 8
    if one.label and needed <= width:
        marks.append(text(one.label, x + 5, y + 12, f"inside in-{one.state}"))
    elif one.label and beside and x + width + needed <= axis.right:
        marks.append(text(one.label, x + width + 5, y + 12, "inside beside"))
    elif one.label and beside:
        marks.append(text(one.label, x - 5, y + 12, "inside beside end"))
    return link_to_row(one.row, *marks)
