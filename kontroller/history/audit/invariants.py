"""What an invariant is: a question in SQL to each row of a table, and words for people where the answer is bad.

All invariants over the same rows are asked in one pass: each row gives an array of those that it breaks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from string import Formatter
from typing import Final

from pyspark.sql import DataFrame

from kontroller.history.schemas import VIOLATIONS

_POINTER: Final = ("controller_epoch", "seq", "event_time", "source", "kind")
RECORD: Final = f"named_struct({', '.join(f'{name!r}, {name}' for name in _POINTER)})"
"""What points to a record of the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """What must hold at each of some rows.

    The rows have the columns `cluster_id`, `topic`, `partition`, `inferred`, `record` (as `RECORD`), and whatever the SQL
    below names."""

    id: str
    broken: str
    """SQL: whether the row breaks it. Null, where something is not known, is no."""
    detail: str
    """For people; what stands in braces is SQL."""
    evidence: tuple[str, ...] = ()
    """SQL: the records that prove it together with the row's own; nulls are left out. They are listed in their order."""
    broker: str = "CAST(NULL AS INT)"


def violations(rows: DataFrame, invariants: Iterable[Invariant]) -> DataFrame:
    """One row of `VIOLATIONS` for each row and invariant that it breaks."""
    broken = f"array_compact(array({', '.join(map(_violation, invariants))}))"
    found = rows.selectExpr("cluster_id", "topic", "partition", "record", "inferred", f"explode({broken}) AS broken")
    return found.select(
        "cluster_id", "broken.invariant", "topic", "partition", "broken.broker", "record.controller_epoch", "record.seq",
        "record.event_time", "broken.detail", "broken.evidence", "inferred",
    ).select(*VIOLATIONS.schema.fieldNames())  # fmt: skip


def of_kind(kind: str, invariants: Iterable[Invariant]) -> list[Invariant]:
    """The same, asked of records of one kind alone."""
    return [replace(invariant, broken=f"kind = '{kind}' AND ({invariant.broken})") for invariant in invariants]


def _violation(invariant: Invariant) -> str:
    """SQL: the violation, or null."""
    records = f"array({', '.join((*invariant.evidence, 'record'))})"
    return (
        f"IF({invariant.broken}, named_struct('invariant', '{invariant.id}', 'broker', {invariant.broker}, "
        f"'detail', {rendered(invariant.detail)}, 'evidence', array_compact(array_sort(array_distinct({records})))), NULL)"
    )


def rendered(template: str) -> str:
    """SQL: a text in which what stands in braces is SQL; nulls are shown as "none"."""
    parts = []
    for text, sql, _, _ in Formatter().parse(template):
        parts.append("'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'")
        if sql is not None:
            parts.append(f"coalesce(CAST({sql} AS STRING), 'none')")
    return f"concat({', '.join(parts)})"
