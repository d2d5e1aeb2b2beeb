"""Invariants: SQL conditions on each row of a table, and messages for people.

All invariants over the same rows are tested in one pass: each row returns an array of those that it violates.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from string import Formatter
from typing import Final

from pyspark.sql import DataFrame

from kontroller.history.schemas import ASKED_BY, VIOLATIONS

_POINTER: Final = ("controller_epoch", "seq", "event_time", "source", "kind")
_COLUMNS: Final = tuple(name for name in VIOLATIONS.schema.fieldNames() if name not in ASKED_BY)
RECORD: Final = f"named_struct({', '.join(f'{name!r}, {name}' for name in _POINTER)})"
"""A reference to a record of the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """A condition that must hold for each row.

    The rows have the columns `cluster_id`, `topic`, `partition`, `inferred`, `record` (as `RECORD`), and those that the
    SQL below uses."""

    id: str
    broken: str
    """SQL: True if the row violates the invariant. Null, for unknown values, means that it does not."""
    detail: str
    """The message. Text in braces is SQL."""
    evidence: tuple[str, ...] = ()
    """SQL: the records that prove the violation together with the row's own, in this order. Nulls are left out."""
    broker: str = "CAST(NULL AS INT)"


def violations(rows: DataFrame, invariants: Iterable[Invariant]) -> DataFrame:
    """Return a row of `VIOLATIONS`, without clients, for each row and each invariant that it violates."""
    broken = f"array_compact(array({', '.join(map(_violation, invariants))}))"
    found = rows.selectExpr("cluster_id", "topic", "partition", "record", "inferred", f"explode({broken}) AS broken")
    return found.select(
        "cluster_id", "broken.invariant", "topic", "partition", "broken.broker", "record.controller_epoch", "record.seq",
        "record.event_time", "broken.detail", "broken.evidence", "inferred",
    ).select(*_COLUMNS)  # fmt: skip


def restrict_to_kind(kind: str, invariants: Iterable[Invariant]) -> list[Invariant]:
    """Restrict the invariants to records of one kind."""
    return [replace(invariant, broken=f"kind = '{kind}' AND ({invariant.broken})") for invariant in invariants]


def _violation(invariant: Invariant) -> str:
    """SQL: the violation, or null."""
    records = f"array({', '.join((*invariant.evidence, 'record'))})"
    return (
        f"IF({invariant.broken}, named_struct('invariant', '{invariant.id}', 'broker', {invariant.broker}, "
        f"'detail', {render(invariant.detail)}, 'evidence', array_compact(array_sort(array_distinct({records})))), NULL)"
    )


def render(template: str) -> str:
    """SQL: a text in which the parts in braces are SQL. Nulls are shown as "none"."""
    parts = []
    for text, sql, _, _ in Formatter().parse(template):
        parts.append("'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'")
        if sql is not None:
            parts.append(f"coalesce(CAST({sql} AS STRING), 'none')")
    return f"concat({', '.join(parts)})"
