"""The data that a move still has to copy, the rate of copying, and the estimated end.

Only complete readings count, because a sum with a gap would be wrong. The rate is the decrease of the bytes left, so
producers' writes are subtracted, and a move that falls behind them has no estimated end. The rate covers half a minute,
because brokers copy in bursts, and only partitions in both readings, because a partition that is gone was not copied.
Figures are rounded to the digits that matter to a person.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from controller_core.client.log_dirs.copy_sizes import Reading
from controller_core.client.log_dirs.log_sizes import Copies, Copy
from controller_core.model.ids import NO_LEADER
from controller_operator.plans.reassignment.rows import Rows, key
from controller_operator.plans.timing.durations import LONGEST, format_duration
from controller_operator.resources.reassignment import MoveProgress, ReassignmentStep

WINDOW_S: Final = 35.0
"""Seconds for which a reading counts. Older ones say nothing about the present rate."""
_MOST_BYTES: Final = 2**63 - 1
_LEFT_DIGITS: Final = 3
_RATE_DIGITS: Final = 2
_ABANDONED: Final = tuple(step for step in ReassignmentStep if step.is_abandoned)


def copies(rows: Rows, *, is_suspended: bool) -> Copies:
    """Return the copies of a move that was requested. Waiting partitions are included unless the move is suspended."""
    left_out = (*_ABANDONED, ReassignmentStep.WAITING) if is_suspended else _ABANDONED
    return {
        key(row): Copy(
            leader=NO_LEADER if row.leader is None else row.leader,
            to=()
            if row.step is ReassignmentStep.DONE
            else tuple(broker for broker in row.target_replicas if broker not in row.isr),
            has_begun=row.step is not ReassignmentStep.WAITING,
        )
        for row in rows
        if row.step not in left_out
    }


def add_latest(readings: Sequence[Reading], latest: Reading) -> tuple[Reading, ...]:
    """Return the readings of the last half a minute, in order."""
    return (*(each for each in readings if 0 < latest.at_s - each.at_s <= WINDOW_S), latest)


def progress(readings: Sequence[Reading], now: datetime) -> MoveProgress | None:
    """Return the progress by the readings, the last one being new; None if it is not known."""
    if not readings or not readings[-1].is_complete or readings[-1].total_bytes > _MOST_BYTES:
        return None
    complete = [each for each in readings if each.is_complete]
    left = complete[-1].total_bytes
    rate = _bytes_per_second(complete[0], complete[-1])
    time_left = _time_left(left, rate)
    return MoveProgress(
        bytes_left=round_bytes(left),
        bytes_per_second=None if rate is None else _round(rate, _RATE_DIGITS),
        time_left=None if time_left is None else format_duration(time_left),
        estimated_completion_time=None if time_left is None else _whole_minute(now + time_left),
    )


def _bytes_per_second(first: Reading, last: Reading) -> int | None:
    elapsed_s = last.at_s - first.at_s
    if elapsed_s <= 0:
        return None
    in_both = first.bytes_left.keys() & last.bytes_left.keys()
    copied = sum(first.bytes_left[each] - last.bytes_left[each] for each in in_both)
    return max(0, int(copied / elapsed_s))


def _time_left(left: int, rate: int | None) -> timedelta | None:
    if not left or not rate or left / rate > LONGEST.total_seconds():
        return None
    return timedelta(seconds=left / rate)


def round_bytes(left: int) -> int:
    """Return bytes left as a person needs them."""
    return _round(left, _LEFT_DIGITS)


def _round(number: int, digits: int) -> int:
    """Return the number rounded to so many significant digits."""
    unit: int = 10 ** max(0, len(str(number)) - digits)
    return (number + unit // 2) // unit * unit


def _whole_minute(moment: datetime) -> datetime:
    """Return the next full minute."""
    return (moment + timedelta(seconds=59)).replace(second=0, microsecond=0)
