"""The axis of time that most pictures have, with ticks at times that people would choose."""

from dataclasses import dataclass

from markupsafe import Markup

from controller_pipeline.reports import words
from controller_pipeline.reports.period import DAY, HOUR, MINUTE, SECOND, moment_of
from controller_pipeline.reports.plots.svg import LEFT, RIGHT, WIDTH, group, line, text

MILLI = 1000
STEPS = (
    *(n * MILLI for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14, 28, 91, 182, 364, 1092)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    began_us: int
    ended_us: int
    left: float = LEFT
    right: float = WIDTH - RIGHT

    def x(self, at_us: int) -> float:
        """Times outside are drawn at the edge."""
        at_us = min(max(at_us, self.began_us), self.ended_us)
        return self.left + (self.right - self.left) * (at_us - self.began_us) / (self.ended_us - self.began_us)

    def ticks(self) -> tuple[tuple[int, str], ...]:
        span = self.ended_us - self.began_us
        most = max(2, int((self.right - self.left) / 96))
        step = next((step for step in STEPS if span / step <= most), STEPS[-1])
        first = -(-self.began_us // step)
        times = [index * step for index in range(first, self.ended_us // step + 1)]
        return tuple((at, self._label(at, step, index == 0)) for index, at in enumerate(times))

    def _label(self, at_us: int, step: int, is_first: bool) -> str:
        if step >= DAY:
            return words.day_of(at_us, with_year=is_first or moment_of(at_us).timetuple().tm_yday * DAY <= step)
        if at_us % DAY == 0:
            return words.day_of(at_us)
        return words.clock(at_us, step)

    def drawn(self, top: float, bottom: float) -> Markup:
        """Grid lines from `top` to `bottom`, and labels below that: 18 more."""
        marks: list[Markup] = []
        for at, label in self.ticks():
            x = self.x(at)
            marks.append(line(x, top, x, bottom, "grid"))
            end = " end" if x > self.right - 40 else " middle"
            marks.append(text(label, min(x, self.right), bottom + 14, f"tick{end}"))
        return group(*marks)

    def day_note(self) -> str:
        """What the labels leave out: the day, where all of it is within one."""
        first, last = moment_of(self.began_us), moment_of(self.ended_us - 1)
        return f"{first:%Y-%m-%d}, UTC" if first.date() == last.date() else "UTC"
