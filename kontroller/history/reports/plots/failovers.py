"""The duration of failovers: each as a dot over time on a logarithmic scale, with a histogram of all beside it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kontroller.history.reports import words
from kontroller.history.reports.plots.axes import TimeAxis
from kontroller.history.reports.plots.svg import LEFT, RIGHT, WIDTH, box, dot, group, line, link_to_row, picture, text

TOP, HEIGHT, BESIDE = 10, 220, 150
BINS_PER_DECADE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    at_us: int
    median_seconds: float | None
    max_seconds: float
    is_whole: bool
    """True if each partition found a leader."""
    tip: str
    row: str = ""
    """The id of its row in the page's table."""


def failovers(dots: Sequence[Dot], bins: Mapping[int, int], began_us: int, ended_us: int) -> Markup:
    """Draw the failovers. `bins`: the number of failovers from 10 ** (bin / 4) seconds up to the next bin."""
    axis = TimeAxis(began_us=began_us, ended_us=ended_us, right=WIDTH - RIGHT - BESIDE - 16)
    times = [seconds for one in dots for seconds in (one.median_seconds, one.max_seconds) if seconds]
    seen = [*bins, *(bin_of(seconds) for seconds in times)] or [0]
    lowest, highest = min(seen) - 1, max(max(seen) + 2, min(seen) + 3)

    def y(exponent: float) -> float:
        return TOP + HEIGHT * (highest - exponent) / (highest - lowest)

    def y_of(seconds: float | None) -> float:
        return y(min(highest, max(lowest, 4 * math.log10(max(seconds or 0, 1e-6)))))

    marks = [axis.draw(TOP, TOP + HEIGHT)]
    for seconds in _round_times(lowest, highest):
        marks.append(line(axis.left, y_of(seconds), WIDTH - RIGHT, y_of(seconds), "grid"))
        marks.append(text(words.duration(seconds), LEFT - 8, y_of(seconds) + 4, "tick end"))
    marks.append(_histogram(bins, y))
    for one in dots:
        x, drawn = axis.x(one.at_us), []
        if one.median_seconds is not None:
            drawn.append(line(x, y_of(one.median_seconds), x, y_of(one.max_seconds), "whisker"))
        drawn.append(dot(x, y_of(one.max_seconds), 4.5, "failover" if one.is_whole else "failover open", one.tip))
        marks.append(link_to_row(one.row, *drawn))
    return picture(TOP + HEIGHT + 24, *marks, label="Duration of failovers over time, with a histogram")


def _round_times(lowest: int, highest: int) -> list[float]:
    """Return powers of ten between these bins; if they are few, also twice and five times them."""
    factors = (1, 2, 5) if highest - lowest <= 2 * BINS_PER_DECADE else (1,)
    first, last = lowest // BINS_PER_DECADE, highest // BINS_PER_DECADE
    times = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
    return [seconds for seconds in times if lowest <= BINS_PER_DECADE * math.log10(seconds) <= highest]


def _histogram(bins: Mapping[int, int], y: Callable[[float], float]) -> Markup:
    left, most = WIDTH - RIGHT - BESIDE, max(bins.values(), default=1)
    marks = [line(left, TOP, left, TOP + HEIGHT, "axis")]
    for exponent, count in sorted(bins.items()):
        top, bottom = y(exponent + 1), y(exponent)
        low, high = 10 ** (exponent / 4), 10 ** ((exponent + 1) / 4)
        tip = f"{words.format_count(count, 'failover')} of {words.duration(low)} to {words.duration(high)}"
        width = max(2.0, (BESIDE - 40) * count / most)
        marks.append(box(left + 1, top + 0.5, width, max(1.0, bottom - top - 1), "column", tip))
        marks.append(text(f"{count:,}", left + width + 5, (top + bottom) / 2 + 4, "tick"))
    return group(*marks)


def bin_of(seconds: float | None) -> int:
    return math.floor(BINS_PER_DECADE * math.log10(max(seconds or 0, 1e-6)))
