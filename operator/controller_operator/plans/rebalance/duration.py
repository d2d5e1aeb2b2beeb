"""The time that a plan should take at its throttle, and the time that it took."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import mean

from controller_core.model.ids import BrokerId
from controller_operator.plans.timing.durations import LONGEST, format_duration
from controller_operator.resources.rebalancing.rebalance_plan import PlannedMove


def estimate_seconds(moves: Sequence[PlannedMove], bytes_per_second: int | None) -> int | None:
    """Return the seconds that the copies of a plan should take; None if its rate or all sizes are unknown.

    Batches run one after the other. A batch takes as long as the broker that receives most, or sends most as the
    preferred leader. A copy of unknown size counts as the mean of the others. Data that producers write meanwhile is not
    counted."""
    copies = [(each, len({*each.after} - {*each.before})) for each in moves]
    sizes = [each.bytes / count for each, count in copies if count and each.bytes is not None]
    if bytes_per_second is None or (not sizes and any(count for _, count in copies)):
        return None
    usual = mean(sizes) if sizes else 0.0
    busiest = Counter[int]()
    moved = Counter[tuple[int, str, BrokerId]]()
    for each, count in copies:
        size = round(usual if each.bytes is None else each.bytes / max(count, 1))
        for broker in {*each.after} - {*each.before}:
            moved[each.batch, "in", broker] += size
        if count:
            moved[each.batch, "out", each.before[0]] += size * count
    for (batch, _, _), amount in moved.items():
        busiest[batch] = max(busiest[batch], amount)
    return min(-(-busiest.total() // bytes_per_second), round(LONGEST.total_seconds()))


def describe_expected(expected_seconds: int | None) -> str:
    """Return words about the expected time of a plan; empty if it is unknown."""
    return f", which should take {_format(expected_seconds)}," if expected_seconds is not None else ""


def compare_durations(expected_seconds: int | None, began: datetime | None, ended: datetime) -> str:
    """Return words about the expected and the real time; empty if one of them is unknown."""
    if expected_seconds is None or began is None or ended < began:
        return ""
    return f"; expected {_format(expected_seconds)}, took {format_duration(ended - began)}"


def _format(seconds: int) -> str:
    return format_duration(timedelta(seconds=seconds))
