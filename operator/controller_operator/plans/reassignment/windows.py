"""The times at which partitions may begin to move: while one of the object's windows is open; without windows, always.

This follows from the clock alone, and no state depends on it. If the clock is wrong, moves start early or late by that
amount.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from controller_operator.plans.outcome import Plan
from controller_operator.plans.run_times import InvalidSchedule, run_times
from controller_operator.resources.reassignment import MoveSchedule, PartitionReassignmentStatus, Window

_SOONEST_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The present state of the windows."""

    is_open: bool
    changes_at: datetime | None = None
    """The next opening; or, while a window is open, the time until which that is sure. None: it never changes."""
    trouble: str | None = None
    """The reason why no opening is known."""


def find_opening(schedule: MoveSchedule | None, now: datetime) -> Opening:
    """Return the present state of the windows. If an opening cannot be computed, nothing begins."""
    if schedule is None:
        return Opening(is_open=True)
    times = []
    for number, window in enumerate(schedule.windows, start=1):
        try:
            times.append(_find_opening(window, now))
        except InvalidSchedule as error:
            return Opening(is_open=False, trouble=f"window {number} of spec.schedule: {error}")
    closing = [closes_at for opens_at, closes_at in times if opens_at <= now]
    if closing:
        return Opening(is_open=True, changes_at=max(closing))
    return Opening(is_open=False, changes_at=min(opens_at for opens_at, _ in times))


def add_timing(
    plan: Plan[PartitionReassignmentStatus], present: Opening, now: datetime
) -> Plan[PartitionReassignmentStatus]:
    """Return the plan of a move, limited by the present window or the wait for the next one."""
    phase, counts = plan.status.phase, plan.status.counts
    is_over = phase is not None and phase.is_final
    if present.changes_at is None or is_over or counts is None or not counts.waiting:
        return plan
    left_s = max(_SOONEST_S, (present.changes_at - now).total_seconds())
    if present.is_open:
        soonest_s = min(left_s, plan.look_again_in_s or left_s)
        return replace(plan, look_again_in_s=soonest_s, not_after=present.changes_at)
    status = plan.status.model_copy(update={"next_window_time": present.changes_at})
    return replace(plan, status=status, look_again_in_s=left_s)


def _find_opening(window: Window, now: datetime) -> tuple[datetime, datetime]:
    """Return the opening and the closing of the first occurrence that is not over. Raises `InvalidSchedule`."""
    duration = timedelta(minutes=window.duration_minutes)
    opens_at = run_times(window.schedule, window.time_zone).find_next(now - duration)
    return opens_at, opens_at + duration
