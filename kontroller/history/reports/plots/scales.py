"""Classes of availability and of amounts, as colours of increasing strength, in light and dark mode.

The lightness alone distinguishes them, so readers need no colour vision. Cells show a digit as well if it matters.
"""

import math

from markupsafe import Markup

from kontroller.history.reports import words
from kontroller.history.reports.facts import Uptime
from kontroller.history.reports.plots.svg import box, tag, text

BOUNDS = (1.0, 0.9999, 0.999, 0.99, 0.9)
NAMES = ("100 %", "99.99 % or more", "99.9 % or more", "99 % or more", "90 % or more", "below 90 %")
LEVELS = 7
UNDER_HEIGHT = 4


def availability_class(uptime: Uptime) -> str:
    """Return `a0` (100 %) to `a5`, `u` if nothing is known, or `none` if there were no partitions."""
    if uptime.availability is None:
        return "u" if uptime.unknown_us > 0 else "none"
    return ratio_class(uptime.availability)


def ratio_class(ratio: float) -> str:
    """Return `a0` (100 %) to `a5`."""
    return f"a{next((index for index, bound in enumerate(BOUNDS) if ratio >= bound), len(BOUNDS))}"


def nines_digit(uptime: Uptime) -> str:
    return ratio_digit(uptime.availability)


def ratio_digit(ratio: float | None) -> str:
    """Return the digit of a cell: the number of whole nines, or "" if no time was lost or nothing is known."""
    if ratio is None or ratio >= 1:
        return ""
    return str(min(9, math.floor(-math.log10(1 - ratio) + 1e-9)))


def level_class(value: float, top: float) -> str:
    """Return `h0` for nothing, otherwise `h1` to `h6` in equal steps up to `top`."""
    if value <= 0 or top <= 0:
        return "h0"
    return f"h{min(LEVELS - 1, max(1, math.ceil(value / top * (LEVELS - 1) - 1e-9)))}"


def draw_min_isr_mark(uptime: Uptime, x: float, y: float, width: float, height: float) -> list[Markup]:
    """Return a bar for the foot of a cell that always had a leader but was under min ISR for some time."""
    if not uptime.under_us or uptime.leaderless_us:
        return []
    return [box(x, y + height - UNDER_HEIGHT, width, UNDER_HEIGHT, "under-mark")]


def uptime_tip(uptime: Uptime) -> str:
    if uptime.availability is None:
        return "unknown: no history" if uptime.unknown_us else "no partitions"
    parts = [f"{words.format_bounds(uptime.bounds)} available"]
    if uptime.leaderless_us:
        parts.append(f"{words.duration(uptime.leaderless_us / 1e6)} without a leader")
    if uptime.under_us:
        parts.append(f"{words.duration(uptime.under_us / 1e6)} under min ISR")
    if uptime.unknown_us:
        parts.append(f"{words.share(uptime.unknown_share)} unknown")
    return ", ".join(parts)


def availability_legend() -> Markup:
    keys = [(f"a{index}", name, digit) for index, (name, digit) in enumerate(zip(NAMES, " 43210", strict=True))]
    return _legend(
        [*keys, ("under-mark", "led, but under min ISR", ""), ("u", "unknown", "")],
        "Availability; the digit is the number of nines",
    )


def level_legend(top: float, unit: str) -> Markup:
    bounds = [f"up to {_short(top * level / (LEVELS - 1))}{unit}" for level in range(1, LEVELS)]
    keys = [("h0", "none", ""), *((f"h{level}", bounds[level - 1], "") for level in range(1, LEVELS))]
    return _legend([*keys[:-1], (keys[-1][0], f"more, to {_short(top)}{unit}", ""), ("u", "unknown", "")], "Amounts")


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _legend(keys: list[tuple[str, str, str]], label: str) -> Markup:
    """Return a list that wraps where the screen ends. `keys`: a class, its name and its digit."""
    return tag("ul", *(_key(*key) for key in keys), class_="legend", aria_label=label)


def _key(class_: str, name: str, digit: str) -> Markup:
    if class_ == "under-mark":
        marks = [box(0, 0, 16, 16, "cell a0", radius=2), box(0, 16 - UNDER_HEIGHT, 16, UNDER_HEIGHT, class_)]
    else:
        marks = [box(0, 0, 16, 16, f"cell {class_}", radius=2)]
    if digit.strip():
        marks.append(text(digit, 8, 12, f"digit on-{class_}"))
    return tag("li", tag("svg", *marks, width=16, height=16, aria_hidden="true"), name)
