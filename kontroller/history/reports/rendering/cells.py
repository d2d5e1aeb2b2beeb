"""The cells of a table: the text of a value, and its key for sorting."""

from dataclasses import dataclass

from kontroller.history.reports import words
from kontroller.history.reports.facts import Column, Listed, Value
from kontroller.history.reports.period import is_moment

RIGHT_ALIGNED = {"id", "count", "seconds", "ratio", "share", "spent", "rate"}
TELLING = {
    "leaderless": "without a leader",
    "under_min_isr": "under min ISR",
}
"""Words of the tables that the page shows as other words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    text: str
    sort: str
    class_: str
    instant: str = ""
    """The machine-readable form of a time."""
    lines: tuple[str, ...] = ()


def cells(listed: Listed, columns: tuple[Column, ...]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(tuple(cell(row[column.field], column) for column in columns) for row in listed.rows)


def cell(value: Value, column: Column) -> Cell:
    class_ = "n" if column.kind in RIGHT_ALIGNED else "t" if column.kind == "time" else ""
    if value is None:
        return Cell(text=words.NO_VALUE, sort="", class_=class_)
    lines = tuple(str(item) for item in value) if isinstance(value, tuple) and column.kind == "lines" else ()
    sort = repr(value) if isinstance(value, int | float) else ""
    at_us = int(value) if column.kind == "time" and isinstance(value, int | float) else None
    instant = words.instant(at_us) if at_us is not None and is_moment(at_us) else ""
    return Cell(text=_format(value, column), sort=sort, class_=class_, instant=instant, lines=lines)


def _format(value: Value, column: Column) -> str:
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        value = value or words.NO_VALUE
        return TELLING.get(value, value) if column.field == "problem" else value
    if value is None:
        return words.NO_VALUE
    if column.kind == "id":
        return str(value) if value >= 0 else "none"
    if column.kind == "seconds":
        return words.duration(float(value))
    if column.kind == "time":
        return words.moment(int(value))
    if column.kind == "ratio":
        return words.percent(float(value))
    if column.kind == "spent":
        return words.format_spent(float(value))
    if column.kind == "rate":
        return words.format_rate(float(value))
    return words.share(float(value)) if column.kind == "share" else words.number(value)
