"""A plan as text: brokers before and after, moves with their reasons, and everything that is unknown."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import numpy as np

from controller_core.model.wording import format_count
from controller_planner.estimate import estimate_seconds
from controller_planner.loads import Brokers
from controller_planner.plan import Plan
from controller_planner.room import find_shortages
from kontroller.screen import format_duration, format_table

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB")
_STEP: Final = 1024
_BYTES: Final = ("disk", "in", "out")
_MOST_SHORTAGES: Final = 10


def format_bytes(number: float) -> str:
    """Return bytes in the largest unit of which there is one at least, such as `1.5 GiB`."""
    for unit in _UNITS:
        if abs(number) < _STEP or unit == _UNITS[-1]:
            return f"{number:.0f} {unit}" if unit == _UNITS[0] else f"{number:.1f} {unit}"
        number /= _STEP
    raise AssertionError("the last unit ends the loop")


def format_load(name: str, load: float) -> str:
    """Return a load with its unit, such as `1.5 GiB/s`; `?` if it is unknown."""
    if np.isnan(load):
        return "?"
    if name not in _BYTES:
        return f"{load:.0f}"
    return format_bytes(load) if name == "disk" else f"{format_bytes(load)}/s"


def format_taken(plan: Plan) -> str:
    """Return the time of the snapshot."""
    return f"{datetime.fromtimestamp(plan.snapshot.taken_at_ms / 1000, tz=UTC):%F %T} UTC"


def list_shown(plan: Plan) -> list[int]:
    """Return the columns of the resources of which a load is known."""
    return [at for at in range(len(plan.resources)) if not np.isnan(plan.loads_before[:, at]).all()]


def name_state(brokers: Brokers, row: int) -> str:
    """Return `down`, `closed` (the broker takes no replicas) or `up`."""
    return "down" if not brokers.is_live[row] else "closed" if not brokers.takes_replicas[row] else "up"


def format_plan(
    plan: Plan,
    troubles: Sequence[str],
    supposed: Sequence[str],
    most_moves: int,
    bytes_per_second: float | None = None,
) -> Iterator[str]:
    """Yield the lines of a plan. `bytes_per_second` is what a broker may copy; None: no time is estimated."""
    yield (
        f"Plan {plan.compute_hash()[:12]} ({plan.goals.mode}) of snapshot {plan.snapshot_hash[:12]}, {format_taken(plan)}"
    )
    if supposed:
        yield from ("", "What if:", *(f"  {line}" for line in supposed))
    yield ""
    yield from _format_brokers(plan)
    yield ""
    if len(plan):
        yield _describe_size(plan)
        if bytes_per_second is not None:
            expected = format_duration(estimate_seconds(plan, bytes_per_second))
            yield f"expected time: {expected}, at {format_bytes(bytes_per_second)}/s for each broker"
        yield f"reasons: {_count_reasons(plan)}"
        yield from ("", *_format_moves(plan, most_moves))
    else:
        yield "nothing to move"
    for title, lines in (
        ("Unknown", [*plan.unknown, *troubles]),
        ("Left out", plan.left_out),
        ("No room for a loss after the plan", describe_shortages(plan)),
    ):
        if lines:
            yield from ("", f"{title}:", *(f"  {line}" for line in lines))


def describe_shortages(plan: Plan) -> list[str]:
    """Return a line for each loss of a broker or rack whose replicas would not fit on the disks of the others."""
    lines = [
        f"{f'rack {each.rack}' if each.rack is not None else f'broker {each.brokers[0]}'}: its replicas have"
        f" {format_bytes(each.needed_bytes)}, and the other brokers{f' of rack {each.within}' if each.within else ''} have"
        f" room for {format_bytes(each.room_bytes)}"
        for each in find_shortages(plan)
    ]
    return (
        lines
        if len(lines) <= _MOST_SHORTAGES
        else [*lines[:_MOST_SHORTAGES], f"and {len(lines) - _MOST_SHORTAGES} more"]
    )


def _describe_size(plan: Plan) -> str:
    """Return a line with the numbers of partitions, bytes and batches."""
    copied, unknown = (int(each.sum()) for each in (plan.bytes_copied != 0, np.isnan(plan.bytes_copied)))
    amount = format_bytes(plan.total_bytes) if copied > unknown or not copied else ""
    more = f"{unknown} of unknown size" if unknown else ""
    return (
        f"{format_count(len(plan), 'partition')} to change, {copied} of them copy data: "
        f"{' and '.join(filter(None, (amount, more)))} in {plan.batches} {'batch' if plan.batches == 1 else 'batches'}"
    )


def _format_brokers(plan: Plan) -> list[str]:
    brokers = plan.snapshot.brokers
    shown = list_shown(plan)
    heads = ("BROKER", "RACK", "STATE", *(plan.resources[at].upper() for at in shown))
    rows = [
        (
            int(brokers.ids[row]),
            brokers.racks[row],
            name_state(brokers, row),
            *(_format_change(plan, row, at) for at in shown),
        )
        for row in np.argsort(brokers.ids).tolist()
    ]
    return format_table(heads, rows, most=None)


def _format_change(plan: Plan, row: int, column: int) -> str:
    name = plan.resources[column]
    before, after = (format_load(name, float(loads[row, column])) for loads in (plan.loads_before, plan.loads_after))
    return before if before == after else f"{before} -> {after}"


def _count_reasons(plan: Plan) -> str:
    counts = Counter(reason.value for move in plan.iterate_moves() for reason in move.reasons)
    return ", ".join(f"{count} {reason}" for reason, count in counts.most_common()) or "none"


def _format_moves(plan: Plan, most: int) -> list[str]:
    rows: list[tuple[object, ...]] = []
    for move in plan.iterate_moves():
        if len(rows) == most:
            break
        size = "?" if move.bytes_copied is None else format_bytes(move.bytes_copied)
        why = ", ".join(each.value for each in move.reasons)
        ids = (",".join(map(str, each)) for each in (move.before, move.after))
        rows.append((move.batch, f"{move.topic}-{move.partition}", *ids, size, why))
    lines = format_table(("BATCH", "PARTITION", "BEFORE", "AFTER", "BYTES", "REASONS"), rows, most=None)
    return [*lines, f"... and {len(plan) - most} more"] if len(plan) > most > 0 else lines
