"""The time axis of most pictures, with ticks at round times."""

from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup

from kontroller.history.reports import words
from kontroller.history.reports.period import DAY, HOUR, MINUTE, SECOND, micros, moment_of
from kontroller.history.reports.plots.svg import LEFT, RIGHT, WIDTH, group, line, text

MILLI = 1000
STEPS = (
    *(n * MILLI for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7)),
)
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 600)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    began_us: int
    ended_us: int
    left: float = LEFT
    right: float = WIDTH - RIGHT

    def x(self, at_us: int) -> float:
        """Return the position of a time. Times outside are drawn at the edge."""
        at_us = min(max(at_us, self.began_us), self.ended_us)
        return self.left + (self.right - self.left) * (at_us - self.began_us) / (self.ended_us - self.began_us)

    def ticks(self) -> tuple[tuple[int, str], ...]:
        """Return the ticks in order, twelve at most."""
        span = self.ended_us - self.began_us
        most = max(2, int((self.right - self.left) / 96))
        step = next((step for step in STEPS if span / step <= most), None)
        if step is None:
            return self._months(most)
        first = -(-self.began_us // step)
        times = [index * step for index in range(first, self.ended_us // step + 1)]
        return tuple((at, _label(at, step, is_first=index == 0)) for index, at in enumerate(times))

    def _months(self, most: int) -> tuple[tuple[int, str], ...]:
        """Return ticks at the first days of months, or of years."""
        began, ended = moment_of(self.began_us), moment_of(self.ended_us)
        first, last = began.year * 12 + began.month - 1, ended.year * 12 + ended.month - 1
        step = next((step for step in MONTHS if (last - first) / step <= most - 1), MONTHS[-1])
        made: list[tuple[int, str]] = []
        for month in range(-(-first // step) * step, last + 1, step):
            at_us = micros(datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC))
            if at_us >= self.began_us:
                year = f" {month // 12}" if not made or month % 12 == 0 else ""
                made.append((at_us, words.MONTHS[month % 12] + year))
        return tuple(made)

    def draw(self, top: float, bottom: float) -> Markup:
        """Draw grid lines from `top` to `bottom`, and labels in the 18 units below."""
        marks: list[Markup] = []
        for at, label in self.ticks():
            x = self.x(at)
            marks.append(line(x, top, x, bottom, "grid"))
            end = " end" if x > self.right - 40 else " middle"
            marks.append(text(label, min(x, self.right), bottom + 14, f"tick{end}"))
        return group(*marks)


def _label(at_us: int, step: int, *, is_first: bool) -> str:
    """Return the day at midnight, otherwise the time of day as precisely as the step needs."""
    if step >= DAY or at_us % DAY == 0:
        return words.day_of(at_us, with_year=step >= DAY and is_first)
    return words.clock(at_us, step)
