"""The timeline of an episode: brokers and controllers as bars, partitions in need as areas, decisions as numbers."""

from collections.abc import Sequence

from markupsafe import Markup

from kontroller.history.reports import words
from kontroller.history.reports.facts import Episode, Lane, Mark, Step
from kontroller.history.reports.plots import lanes
from kontroller.history.reports.plots.axes import TimeAxis
from kontroller.history.reports.plots.svg import LEFT, box, dot, group, line, link_to_row, picture, tag, text

AREA, GAP, MARK, MARK_ROWS = 46, 12, 18, 3


def timeline(episode: Episode, began_us: int, ended_us: int, *, rows_of: str) -> Markup:
    """Draw an episode. The numbers are those of `episode.marks`, from 1; each links to the row `ROWS_OF-NUMBER`."""
    axis = TimeAxis(began_us=began_us, ended_us=ended_us)
    heights = mark_rows([axis.x(mark.at_us) for mark in episode.marks])
    top = 4 + MARK * (max(heights, default=0) + 1)
    y = top + 4
    rows = [Lane(label="controller", bars=episode.controllers), *episode.brokers]
    drawn = []
    for row in rows:
        drawn.append(lanes.lane(row, axis, y))
        y += lanes.ROW
    for name, steps, class_ in (
        ("without a leader", episode.leaderless, "leaderless"),
        ("under min ISR", episode.under, "under"),
    ):
        y += GAP
        drawn.append(area(name, steps, class_, axis, y))
        y += AREA
    bottom = y + 6
    hatched = [
        box(
            axis.x(gap.began_us),
            top,
            max(2.0, axis.x(gap.ended_us) - axis.x(gap.began_us)),
            bottom - top,
            "unknown-area",
            f"unknown, {words.format_span(gap.began_us, gap.ended_us)}: {gap.reason}",
        )
        for gap in episode.unknowns
    ]
    numbers = [
        number(index + 1, mark, axis, 4 + MARK * heights[index] + MARK / 2, bottom, row=f"{rows_of}-{index + 1}")
        for index, mark in enumerate(episode.marks)
    ]
    label = f"Timeline of {episode.cluster}, {words.format_span(began_us, ended_us)}"
    return picture(bottom + 22, axis.draw(top, bottom), *hatched, *drawn, *numbers, label=label)


def mark_rows(xs: Sequence[float]) -> tuple[int, ...]:
    """Return the row of each mark, from the lowest (0), so that marks do not overlap. After `MARK_ROWS` rows they
    may."""
    ends = [-100.0] * MARK_ROWS
    rows: list[int] = []
    for x in xs:
        row = next(
            (row for row, end in enumerate(ends) if x - end >= MARK), min(range(MARK_ROWS), key=ends.__getitem__)
        )
        ends[row] = x
        rows.append(row)
    lowest_last = max(rows, default=0)
    return tuple(lowest_last - row for row in rows)


def number(index: int, mark: Mark, axis: TimeAxis, y: float, bottom: float, *, row: str) -> Markup:
    x = axis.x(mark.at_us)
    class_ = "unclean" if mark.unclean else "event"
    tip = f"{index}: {words.moment(mark.at_us)} {mark.cause}, {words.format_count(mark.partitions, 'partition')}"
    tip += f": {mark.places}" if mark.places else ""
    return link_to_row(
        row,
        line(x, y, x, bottom, f"mark {class_}"),
        dot(x, y, 8, f"mark-dot {class_}", tip),
        text(str(index), x, y + 4, f"digit on-{class_}"),
    )


def area(name: str, steps: Sequence[Step], class_: str, axis: TimeAxis, y: float) -> Markup:
    """Draw the number of partitions over time. Changes within a pixel are drawn as their maximum."""
    most = max((step.peak for step in steps), default=0)
    base = y + AREA
    if not most:
        return group(
            text(name, LEFT - 8, base - 4, "label end"),
            text("none", LEFT - 8, base - 19, "tick end"),
            line(axis.left, base, axis.right, base, "axis"),
        )

    def height(count: int) -> float:
        return base - count * AREA / most

    points, value = [f"{axis.x(steps[0].at_us):.1f},{base:.1f}"], 0
    for step in steps:
        x = axis.x(step.at_us)
        points.append(f"{x:.1f},{height(value):.1f}")
        points.append(f"{x:.1f},{height(step.peak):.1f}")
        if step.peak != step.value:
            points.append(f"{x + 1.2:.1f},{height(step.peak):.1f}")
            points.append(f"{x + 1.2:.1f},{height(step.value):.1f}")
        value = step.value
    points += [f"{axis.right:.1f},{height(value):.1f}", f"{axis.right:.1f},{base:.1f}"]
    shape = tag("polygon", tag("title", f"{name}: {most:,} at most"), points=" ".join(points), class_=f"area {class_}")
    return group(
        text(name, LEFT - 8, base - 4, "label end"),
        text(f"at most {most:,}", LEFT - 8, base - 19, "label end strong"),
        line(axis.left, y, axis.right, y, "grid"),
        shape,
        line(axis.left, base, axis.right, base, "axis"),
    )
