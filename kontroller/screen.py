"""Text as kubectl prints it: a heading, and columns that are as wide as what is in them."""

from collections.abc import Iterable, Sequence
from typing import Final

_MOST: Final = 160
"""Characters of one cell: a message may be long."""


def printable(value: object, *, most: int | None = _MOST) -> str:
    """A value in one cell: nothing that a terminal would take for a command, and `-` for nothing. What is longer than
    `most` is cut; names are not to be, as two that are cut may look alike."""
    text = "" if value is None else " ".join("".join(c if c.isprintable() else " " for c in str(value)).split())
    return (text if most is None or len(text) <= most else f"{text[: most - 3]}...") or "-"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, most: int | None = _MOST) -> list[str]:
    """The lines of a table; none where it has no rows. See `printable` for `most`."""
    cells = [[printable(value, most=most) for value in row] for row in rows]
    if not cells:
        return []
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    return ["   ".join(map(str.ljust, row, widths)).rstrip() for row in (heads, *cells)]


def section(title: str, lines: Sequence[str], *, total: int | None = None, shown: int | None = None) -> list[str]:
    """A table below a title, with a line about what is not shown; nothing where there are no lines."""
    if not lines:
        return []
    more = [f"... and {total - shown} more"] if total is not None and shown is not None and total > shown else []
    return ["", f"{title}:", *lines, *more]
