"""The times at which partitions may begin to move: while one of the object's windows is open; without windows, always."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from controller_operator.plans.outcome import Plan
from controller_operator.plans.timing.windows import Opening, find_opening
from controller_operator.resources.reassignment import MoveSchedule, PartitionReassignmentStatus

_SOONEST_S: Final = 1.0


def find_present(schedule: MoveSchedule | None, now: datetime) -> Opening:
    """Return the present state of a move's windows."""
    return find_opening(schedule.windows if schedule is not None else (), now, "spec.schedule")


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
