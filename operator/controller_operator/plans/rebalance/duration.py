"""The time that a plan should take at its throttle, and the time that it took, which corrects the next expectation."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import mean
from typing import Final

from controller_core.model.ids import BrokerId
from controller_operator.plans.timing.durations import LONGEST, format_duration
from controller_operator.resources.reassignment import PartitionReassignment
from controller_operator.resources.rebalancing.rebalance_plan import PlannedMove

_SHORTEST_LESSON_S: Final = 60
"""Expected seconds from which on the time of a batch tells something: elections and observation take seconds, too."""
_LEAST_PACE, _MOST_PACE = 50, 1_000


def estimate_seconds(
    moves: Sequence[PlannedMove], bytes_per_second: int | None, pace_percent: int | None = None
) -> int | None:
    """Return the seconds that the copies of a plan should take; None if its rate or all sizes are unknown.

    `pace_percent` is what earlier batches took, as a percentage of the time at their rate. Batches run one after the
    other. A batch takes as long as the broker that receives most, or sends most as the preferred leader. A copy of unknown
    size counts as the mean of the others. Data that producers write meanwhile is not counted."""
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
    seconds = -(-busiest.total() * (pace_percent or 100) // (bytes_per_second * 100))
    return min(seconds, round(LONGEST.total_seconds()))


def learn_pace(before: int | None, moves: Sequence[PlannedMove], move: PartitionReassignment) -> int | None:
    """Return the real time of a batch as a percentage of the time at its rate; the one before if it tells nothing.

    In windows a batch may pause, so its time tells nothing then. Nor does it if somebody has changed the spec, such as
    the throttle, since the batch began."""
    throttle, schedule, status = move.spec.throttle, move.spec.schedule, move.status
    expected = estimate_seconds(moves, throttle.bytes_per_second) if throttle is not None else None
    has_windows = schedule is not None and bool(schedule.windows)
    is_changed = move.metadata.generation != 1
    if expected is None or expected < _SHORTEST_LESSON_S or has_windows or is_changed:
        return before
    if status.start_time is None or status.completion_time is None or status.completion_time <= status.start_time:
        return before
    took = (status.completion_time - status.start_time).total_seconds()
    return round(min(max(100 * took / expected, _LEAST_PACE), _MOST_PACE))


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
