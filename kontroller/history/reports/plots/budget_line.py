"""The rest of an error budget over time: a line, and a hatched band down to the rest if all unknown time was down."""

from dataclasses import dataclass
from fractions import Fraction

from markupsafe import Markup

from kontroller.history.reports import words
from kontroller.history.reports.period import DAY
from kontroller.history.reports.plots.axes import TimeAxis
from kontroller.history.reports.plots.svg import LEFT, RIGHT, WIDTH, group, line, picture, tag, text
from kontroller.history.reports.service_levels import Pieces

TOP, HEIGHT = 10, 120
POINT = 2
"""The width of a point."""
NARROW, NARROW_LEFT = 362, 48
"""The width of a picture on a phone."""
LOWEST = -1.0
"""Budgets that are overspent by more are drawn at the edge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The rest of the budget, as a part of it: 1 if nothing is spent, negative if it is overspent."""

    at_us: int
    most: float
    least: float


def budget_line(pieces: Pieces, allowance: Fraction, *, name: str) -> Markup:
    """Draw the rest of the budget since the end of the first window, once for wide and once for narrow screens."""
    wide, narrow = (_draw_line(pieces, allowance, width, name) for width in (WIDTH, NARROW))
    return tag("div", wide, class_="wide") + tag("div", narrow, class_="narrow")


def _draw_line(pieces: Pieces, allowance: Fraction, width: int, name: str) -> Markup:
    left, right = (LEFT, width - RIGHT) if width == WIDTH else (NARROW_LEFT, width - 4)
    points = list_points(pieces, allowance, most=(right - left) // POINT)
    began_us = pieces.ended_us - (len(pieces.amounts) - pieces.in_window) * pieces.width_us
    axis = TimeAxis(began_us=min(began_us, pieces.ended_us - DAY), ended_us=pieces.ended_us, left=left, right=right)
    bottom = min(0.0, *(max(LOWEST, point.least) for point in points)) if points else 0.0

    def y(rest: float) -> float:
        return TOP + HEIGHT * (1 - max(bottom, min(1.0, rest))) / (1 - bottom)

    marks = [axis.draw(TOP, TOP + HEIGHT)]
    marks += [_level(axis, y(part), label) for part, label in ((1.0, "100 %"), (0.5, "50 %"), (0.0, "0 %"))]
    if bottom < 0:
        marks.append(_level(axis, y(bottom), f"-{words.format_spent(-bottom)}"))
    if points:
        marks.append(
            _draw(points, axis, y(0.0), [y(point.most) for point in points], [y(point.least) for point in points])
        )
    label = f"Rest of the error budget of {name} over time"
    return picture(TOP + HEIGHT + 22, *marks, label=label, width=width)


def list_points(pieces: Pieces, allowance: Fraction, *, most: int) -> list[Point]:
    """Return at most so many points. Several pieces are drawn as the one with the least rest."""
    found = []
    for at_us, amount in list(pieces.sum_windows())[pieces.in_window - 1 :]:
        if (spent := amount.compute_spent(allowance)) is not None:
            found.append(Point(at_us=at_us, most=float(1 - spent[0]), least=float(1 - spent[1])))
    size = -(-len(found) // most)
    groups = (found[index : index + size] for index in range(0, len(found), max(1, size)))
    return [min(its, key=lambda point: (point.most, point.least)) for its in groups]


def _level(axis: TimeAxis, y: float, label: str) -> Markup:
    class_ = "axis" if label == "0 %" else "grid"
    return group(line(axis.left, y, axis.right, y, class_), text(label, axis.left - 8, y + 4, "tick end"))


def _draw(points: list[Point], axis: TimeAxis, zero: float, most: list[float], least: list[float]) -> Markup:
    xs = [axis.x(point.at_us) for point in points]
    upper = [f"{x:.1f},{y:.1f}" for x, y in zip(xs, most, strict=True)]
    lower = [f"{x:.1f},{y:.1f}" for x, y in zip(xs, least, strict=True)]
    overspent = [f"{x:.1f},{max(y, zero):.1f}" for x, y in zip(xs, most, strict=True)]
    ends = [f"{xs[-1]:.1f},{zero:.1f}", f"{xs[0]:.1f},{zero:.1f}"]
    now = points[-1]
    rest = f"{words.moment(now.at_us)}: {_say(now.most)}"
    rest += "" if now.most == now.least else f"; if all unknown time was down, {_say(now.least)}"
    shapes = [tag("polygon", points=" ".join([*overspent, *ends]), class_="overspent")] if max(most) > zero else []
    if upper != lower:
        tip = tag("title", "unknown time may have been down")
        shapes.append(tag("polygon", tip, points=" ".join([*upper, *reversed(lower)]), class_="unsure"))
    return group(*shapes, tag("polyline", tag("title", rest), points=" ".join(upper), class_="rest-line"))


def _say(rest: float) -> str:
    return f"{words.format_spent(1 - rest)} spent"
