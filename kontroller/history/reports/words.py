"""Numbers and times in words. Rounding never makes a figure look better than it is."""

import math
from collections.abc import Sequence

from kontroller.history.reports.period import DAY, HOUR, MINUTE, SECOND, is_moment, moment_of
from kontroller.pages.letters import visible as visible

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NOT_KNOWN = "not known"
NO_VALUE = "\u2013"


def duration(seconds: float | None) -> str:
    """Return a duration in at most two units: 48 ms, 3.2 s, 3 min 12 s, 5 h 4 min, 12 d 3 h."""
    if seconds is None:
        return NOT_KNOWN
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < 1:
        return "0 s" if seconds == 0 else "under 1 ms" if seconds < 0.001 else f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    for size, unit, smaller_size, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            first, rest = divmod(whole, size)
            second = rest // smaller_size
            return f"{first:,} {unit}" + (f" {second} {smaller}" if second else "")
    return f"{whole} s"


def percent(ratio: float | None) -> str:
    """Return a percentage, rounded down, with enough digits to distinguish it from 100 %: 99.72 %, 99.998 %."""
    if ratio is None:
        return NOT_KNOWN
    if ratio >= 1:
        return "100 %"
    missing = 1 - ratio
    digits = 2 if missing >= 0.01 else min(9, max(2, math.floor(-math.log10(missing) + 1e-9)))
    scale = 10**digits
    # The small term compensates for binary fractions: 0.29 * 100 is 28.999999999999996.
    return f"{math.floor(ratio * 100 * scale + 1e-6) / scale:.{digits}f} %"


def format_bounds(bounds: tuple[float, float] | None) -> str:
    """Return a percentage that lies between two bounds: 99.72 %, or 97.2 % to 99.72 %."""
    if bounds is None:
        return NOT_KNOWN
    least, most = map(percent, bounds)
    return least if least == most else f"{least} to {most}"


def share(ratio: float | None) -> str:
    """Return a part of a whole as a percentage with one digit: 16.7 %."""
    if ratio is None:
        return NOT_KNOWN
    return f"{ratio * 100:.1f} %" if ratio == 0 or ratio >= 0.001 else "under 0.1 %"


def format_spent(ratio: float | None) -> str:
    """Return the spent part of a budget, rounded up, so that the rest is never overstated: 34 %, 1,240 %."""
    if ratio is None:
        return NOT_KNOWN
    return f"{math.ceil(ratio * 100 - 1e-9):,} %" if ratio == 0 or ratio >= 0.01 else "under 1 %"


def format_rate(rate: float) -> str:
    """Return a burn rate, rounded up: 0, 0.4, 14.4, 1,240."""
    digits = 1 if rate < 100 else 0
    return f"{math.ceil(rate * 10**digits - 1e-9) / 10**digits:,.{digits}f}".removesuffix(".0")


def nines(ratio: float | None) -> str:
    if ratio is None:
        return NOT_KNOWN
    if ratio >= 1:
        return "no downtime"
    count = -math.log10(1 - ratio)
    return f"{math.floor(count * 10 + 1e-6) / 10:.1f} nines"


def number(value: float | None) -> str:
    if value is None:
        return NO_VALUE
    return f"{int(value):,}" if value == int(value) else f"{value:,.1f}"


def format_count(value: int, noun: str) -> str:
    """Return a number with its noun: `1 topic`, `2 topics`."""
    return f"{value:,} {noun if value == 1 else noun + 's'}"


def moment(at_us: int | None) -> str:
    """Return a time in UTC: 2026-11-20 02:13:04.120. Milliseconds are omitted if they are zero.

    A time that no calendar has is shown as no value."""
    if at_us is None or not is_moment(at_us):
        return NO_VALUE
    when = moment_of(at_us)
    millis = when.microsecond // 1000
    return f"{when:%Y-%m-%d %H:%M:%S}" + (f".{millis:03}" if millis else "")


def format_minute(at_us: int) -> str:
    """Return a time in UTC to the minute: 2026-11-20 02:13."""
    return f"{moment_of(at_us):%Y-%m-%d %H:%M}" if is_moment(at_us) else NO_VALUE


def instant(at_us: int) -> str:
    """Return a machine-readable time: 2026-11-20T02:13:04.120Z."""
    when = moment_of(at_us)
    return f"{when:%Y-%m-%dT%H:%M:%S}.{when.microsecond // 1000:03}Z"


def clock(at_us: int, step_us: int) -> str:
    """Return the time of day as precisely as the step needs: 02:13, 02:13:04, 02:13:04.120."""
    when = moment_of(at_us)
    if step_us >= MINUTE:
        return f"{when:%H:%M}"
    return f"{when:%H:%M:%S}" if step_us >= SECOND else f"{when:%H:%M:%S}.{when.microsecond // 1000:03}"


def format_span(began_us: int, ended_us: int) -> str:
    """Return a span of time. The day is written once if both ends share it."""
    began, ended = moment_of(began_us), moment_of(ended_us)
    if began_us % DAY == 0 and ended_us % DAY == 0:
        last = moment_of(ended_us - 1)
        return f"{began:%Y-%m-%d}" if began.date() == last.date() else f"{began:%Y-%m-%d} to {last:%Y-%m-%d}"
    step = MINUTE if began_us % MINUTE == 0 and ended_us % MINUTE == 0 else SECOND
    step = step if ended_us - began_us >= 10 * SECOND else 1
    first = f"{began:%Y-%m-%d} {clock(began_us, step)}"
    last_clock = clock(ended_us, step)
    return f"{first} to {last_clock}" if began.date() == ended.date() else f"{first} to {ended:%Y-%m-%d} {last_clock}"


def day_of(at_us: int, *, with_year: bool = False) -> str:
    when = moment_of(at_us)
    return f"{when.day} {MONTHS[when.month - 1]}" + (f" {when.year}" if with_year else "")


def step_name(width_us: int) -> str:
    """Return the length of a piece of a grid: `1 hour`, `15 minutes`."""
    for size, one in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second")):
        if width_us % size == 0:
            return format_count(width_us // size, one)
    return duration(width_us / SECOND)


def join_words(parts: Sequence[str]) -> str:
    """Return `a`, `a and b` or `a, b and c`."""
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)


def shorten(text: str, most: int) -> str:
    """Shorten a text in the middle, because names differ at both ends."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"
