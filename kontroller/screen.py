"""Tables in the style of kubectl: a heading, and columns as wide as their content. Durations in words."""

from collections.abc import Iterable, Sequence
from typing import Final

_MOST: Final = 160
"""Characters of one cell. A message may be long."""


def format_cell(value: object, *, most: int | None = _MOST) -> str:
    """Return a value as the text of one cell, without control characters, and `-` for nothing.

    A text longer than `most` is cut. Names must not be cut (`most=None`), because two cut names may look alike."""
    text = "" if value is None else " ".join("".join(c if c.isprintable() else " " for c in str(value)).split())
    return (text if most is None or len(text) <= most else f"{text[: most - 3]}...") or "-"


def format_ids(brokers: Sequence[int]) -> str:
    """Return ids as the text of one cell."""
    return ",".join(map(str, brokers))


def format_table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, most: int | None = _MOST) -> list[str]:
    """Return the lines of a table, or none if it has no rows. See `format_cell` for `most`."""
    cells = [[format_cell(value, most=most) for value in row] for row in rows]
    if not cells:
        return []
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    return ["   ".join(map(str.ljust, row, widths)).rstrip() for row in (heads, *cells)]


def format_section(
    title: str, lines: Sequence[str], *, total: int | None = None, shown: int | None = None
) -> list[str]:
    """Return a table below a title, with a line that counts the rows not shown; nothing if there are no lines."""
    if not lines:
        return []
    more = [f"... and {total - shown} more"] if total is not None and shown is not None and total > shown else []
    return ["", f"{title}:", *lines, *more]


def format_duration(seconds: float) -> str:
    """Return a duration by its two largest units, such as `3 h 20 min`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
