"""Losses of brokers for `kontroller plan --backtest`: where they come from, and their consequences as text and JSON.

They come from a JSON file, from the table `broker_intervals` that `kontroller history report` writes, or are each
broker, each rack and random pairs."""

import codecs
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from controller_core.model.wording import list_some, name_all
from controller_planner.loads import Floats, LoadSnapshot
from controller_planner.losses import FIGURES, Loss, backtest, list_losses, make_result
from controller_planner.plan import Plan
from kontroller.planning.tables import format_taken
from kontroller.screen import format_table

_MOST: Final = 100_000
_MOST_BYTES: Final = 64 * 1024 * 1024
_PARQUET: Final = b"PAR1"
_FORMS: Final = '[[1, 2], {"brokers": [3], "times": 2}]'
_HEADS: Final = (
    "LOST", "TIMES", "LEADERLESS", "BELOW MIN ISR", "ONE REPLICA", "LEADERS TO ONE", "BYTES IN TO ONE"
)  # fmt: skip

_Ids = Annotated[list[Annotated[int, Field(strict=True)]], Field(min_length=1)]


def _is_text(found: pa.DataType) -> bool:
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found))


def _is_time(found: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(found) or pa.types.is_integer(found))


_COLUMNS: Final[Mapping[str, tuple[str, Callable[[pa.DataType], bool]]]] = {
    "cluster_id": ("a text", _is_text),
    "broker": ("an integer", pa.types.is_integer),
    "began": ("a time", _is_time),
    "ended": ("a time", _is_time),
}
"""The columns of a table of losses, with what each has, in words and as a check of its type."""


class UnusableLossesError(ValueError):
    """Losses that cannot be read, or are not of this cluster. The message says what to change."""


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    brokers: _Ids
    times: int = Field(default=1, ge=1, le=1_000_000, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _accept_brokers_alone(cls, value: Any) -> Any:
        return {"brokers": value} if isinstance(value, list) else value


_FILE: Final = TypeAdapter(Annotated[list[_Entry], Field(max_length=_MOST)])


def read_losses(given: str, snapshot: LoadSnapshot, seed: int) -> tuple[Loss, ...]:
    """Return the losses of a file, or those of a number of random pairs. Raises `UnusableLossesError`."""
    if given.isascii() and given.isdigit():
        given = given.lstrip("0") or "0"
        if len(given) > len(str(_MOST)) or int(given) > _MOST:
            raise UnusableLossesError(f"{given} pairs are too many: give at most {_MOST}")
        return list_losses(snapshot, int(given), seed)
    return read_losses_of_file(given, snapshot)


def read_losses_of_file(path: str, snapshot: LoadSnapshot) -> tuple[Loss, ...]:
    """Return the losses of a list or of a history. Raises `UnusableLossesError`."""
    try:
        with Path(path).open("rb") as file:
            is_table = file.read(len(_PARQUET)) == _PARQUET
        return _read_table(path, snapshot) if is_table else _read_list(path, snapshot)
    except (OSError, pa.ArrowException) as error:
        raise UnusableLossesError(f"{path} cannot be read: {error}; give a file of losses") from error


def _read_list(path: str, snapshot: LoadSnapshot) -> tuple[Loss, ...]:
    try:
        with Path(path).open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise UnusableLossesError(f"{path} has more than {_MOST_BYTES} bytes: give fewer losses")
        found = _FILE.validate_json(text.removeprefix(codecs.BOM_UTF8))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UnusableLossesError(
            f"{path} is no list of losses such as {_FORMS}: {f'{where}: ' if where else ''}{first['msg']}"
        ) from error
    if unknown := sorted({broker for each in found for broker in each.brokers} - set(snapshot.brokers.ids.tolist())):
        raise UnusableLossesError(f"{path}: the cluster has no {name_all('broker', unknown)}")
    return tuple(Loss(brokers=tuple(sorted(set(each.brokers))), times=each.times) for each in found)


def _read_table(path: str, snapshot: LoadSnapshot) -> tuple[Loss, ...]:
    table = pq.read_table(path)
    if missing := [name for name in _COLUMNS if name not in table.column_names]:
        raise UnusableLossesError(
            f"{path} has no column {missing[0]}: give the broker_intervals.parquet of `kontroller history report`"
        )
    for name, (kind, fits) in _COLUMNS.items():
        if not fits(table[name].type):
            raise UnusableLossesError(f"{path}: column {name} has {table[name].type}, not {kind}")
    clusters = set(table["cluster_id"].to_pylist())
    if snapshot.cluster_id not in clusters:
        known = list_some(sorted(map(str, clusters))) or "none"
        raise UnusableLossesError(f"{path} knows nothing of cluster {snapshot.cluster_id}; its clusters are: {known}")
    here = set(snapshot.brokers.ids.tolist())
    rows = zip(*(_read_column(table, name) for name in _COLUMNS), strict=True)
    return find_losses(row[1:] for row in rows if row[0] == snapshot.cluster_id and row[1] in here and None not in row)


def _read_column(table: pa.Table, name: str) -> list[Any]:
    """Return the values of a column; times are microseconds."""
    column = table[name]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us")).cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def find_losses(intervals: Iterable[tuple[int, int, int]]) -> tuple[Loss, ...]:
    """Return the largest sets of brokers that were gone at the same time, and how often each was.

    An interval is a broker with the beginning and the end of a registration. A broker is gone between two of its
    intervals, and after its last one while others go on."""
    present = defaultdict[int, list[tuple[int, int]]](list)
    for broker, began, ended in intervals:
        present[broker].append((began, ended))
    last = max((ended for spans in present.values() for _, ended in spans), default=0)
    changes: list[tuple[int, bool, int]] = []
    for broker, spans in present.items():
        spans.sort()
        reached = spans[0][1]
        for began, ended in [*spans[1:], (last, last)]:
            if began > reached:
                changes += [(reached, True, broker), (began, False, broker)]
            reached = max(reached, ended)
    gone, has_grown, sets = set[int](), False, Counter[tuple[int, ...]]()
    for _, leaves, broker in sorted(changes):  # Those that return at a moment come before those that leave.
        if leaves:
            gone.add(broker)
        else:
            sets[tuple(sorted(gone))] += has_grown
            gone.remove(broker)
        has_grown = leaves
    return tuple(Loss(brokers=brokers, times=times) for brokers, times in sorted((+sets).items()))


def make_backtest_document(plan: Plan, losses: Sequence[Loss]) -> dict[str, Any]:
    """Return the backtest before and after a plan for programs. An unknown number is null."""
    without, before, after = _play(plan, losses)
    return {
        "cluster": plan.snapshot.cluster_id,
        "snapshot": plan.snapshot_hash,
        "plan": plan.compute_hash(),
        "mode": plan.goals.mode.value,
        "withoutLoss": _make_figures(*without),
        "losses": [
            {"brokers": list(loss.brokers), "times": loss.times, **_make_figures(*rows)}
            for loss, *rows in zip(losses, before, after, strict=True)
        ],
    }


def format_backtest(plan: Plan, losses: Sequence[Loss], most: int) -> Iterator[str]:
    """Yield the lines of a backtest before and after a plan, with the worst losses first."""
    without, before, after = _play(plan, losses)
    yield (
        f"Losses before and after plan {plan.compute_hash()[:12]} ({plan.goals.mode}) of snapshot"
        f" {plan.snapshot_hash[:12]}, {format_taken(plan)}"
    )
    worst = np.nan_to_num(np.maximum(before, after))
    shown = np.lexsort(-worst.T[::-1])[:most].tolist()
    rows = [("none", None, *_format_figures(*without))]
    rows += [
        (", ".join(map(str, losses[at].brokers)), losses[at].times, *_format_figures(before[at], after[at]))
        for at in shown
    ]
    yield from ("", *format_table(_HEADS, rows, most=None))
    if len(losses) > most:
        yield f"... and {len(losses) - most} more"
    yield ""
    for column, state in enumerate(("without a leader", "below min.insync.replicas")):
        counts = (int((each[:, column] > 0).sum()) for each in (before, after))
        yield f"{{}} -> {{}} of {len(losses)} losses leave partitions {state}".format(*counts)


def _play(plan: Plan, losses: Sequence[Loss]) -> tuple[tuple[Floats, Floats], Floats, Floats]:
    """Return the figures without a loss, before and after the plan, and those of each loss before and after it."""
    before, after = (backtest(each, [Loss(brokers=()), *losses]) for each in (plan.snapshot, make_result(plan)))
    return (before[0], after[0]), before[1:], after[1:]


def _make_figures(before: Floats, after: Floats) -> dict[str, dict[str, float | None]]:
    return {
        name: {
            figure: None if np.isnan(value) else round(value, 4) if figure.endswith("Share") else int(value)
            for figure, value in zip(FIGURES, values.tolist(), strict=True)
        }
        for name, values in (("before", before), ("after", after))
    }


def _format_figures(before: Floats, after: Floats) -> Iterator[str]:
    """Yield a cell for each figure: `3 -> 0`, or one number if both are the same."""
    for figure, *values in zip(FIGURES, before.tolist(), after.tolist(), strict=True):
        texts = [
            "?" if np.isnan(each) else f"{each:.0%}" if figure.endswith("Share") else f"{each:.0f}" for each in values
        ]
        yield " -> ".join(dict.fromkeys(texts))
