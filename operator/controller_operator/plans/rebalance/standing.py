"""A RebalancePlan that never ends: begins a run when one is due, and decides about the status between runs.

The status is the only memory. The write that begins a run also records the time of the next one, so no restart repeats
a run. A run proceeds like that of a plan that runs once (`run`). No run begins before the one before it has ended; only
a plan that still waits for its approval gives way to a new look.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from controller_core.model.snapshot import Snapshot
from controller_operator.plans.outcome import Context, Plan, Verdict, conditions
from controller_operator.plans.rebalance.run import (
    LONGEST_PAUSE_S,
    NO_PLAN,
    Surroundings,
    plan_run,
    show,
    update_status,
)
from controller_operator.plans.timing.run_times import InvalidSchedule, run_times
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from controller_operator.resources.rebalancing.rebalance_plan import (
    PlanCounts,
    PlanPhase,
    PlanResult,
    RebalancePlan,
    RebalancePlanStatus,
)

_RESULTS: Final[Mapping[PlanPhase, PlanResult]] = {
    PlanPhase.COMPLETED: PlanResult.COMPLETED,
    PlanPhase.FAILED: PlanResult.FAILED,
    PlanPhase.CANCELLED: PlanResult.CANCELLED,
}
_NEW_RUN: Final[dict[str, Any]] = {
    **NO_PLAN,
    **dict.fromkeys(("reassignment", "start_time", "completion_time", "counts", "last_run_result", "last_run_message")),
    "phase": PlanPhase.PENDING,
}
_LONGEST_MESSAGE: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
    """The time of the next run."""

    at: datetime | None = None
    """None: unknown."""
    following: datetime | None = None
    """The time of the run after one that begins now."""
    trouble: Verdict | None = None

    def is_past(self, now: datetime) -> bool:
        return self.at is not None and self.at <= now


def plan_standing(
    resource: RebalancePlan, view: Snapshot, context: Context, around: Surroundings
) -> Plan[RebalancePlanStatus]:
    """Return the decision about a plan that never ends."""
    status, due = resource.status, _find_due(resource, context)
    if status.has_open_run:
        gives_way = status.phase is PlanPhase.AWAITING_APPROVAL and not resource.spec.suspend
        if gives_way and due.is_past(context.now):
            message = f"plan {status.plan_hash} was not approved before the next run"
            resource = _end_run(resource, PlanResult.NOT_APPROVED, message)
            return _begin(resource, view, due, context, around)
        return _follow(resource, plan_run(resource, view, context, around), context)
    if resource.spec.suspend:
        return _show_between(resource, _make_suspended_verdict(), context, phase=PlanPhase.SUSPENDED)
    if due.is_past(context.now):
        return _begin(resource, view, due, context, around)
    return _await(resource, due, context)


def _find_due(resource: RebalancePlan, context: Context) -> _Due:
    """Return the time of the next run. A time that was missed is past; one that falls into a run is skipped."""
    spec, status = resource.spec, resource.status
    try:
        times = run_times(spec.schedule or "", spec.time_zone)
        at = times.next_run(status.next_run_time, status.last_run_time, context.now)
        return _Due(at=at, following=times.find_next(context.now))
    except InvalidSchedule as error:
        return _Due(trouble=Verdict.make_stalled(Reason.INVALID_SCHEDULE, str(error)))


def _begin(
    resource: RebalancePlan, view: Snapshot, due: _Due, context: Context, around: Surroundings
) -> Plan[RebalancePlanStatus]:
    begun = update_status(resource, **_NEW_RUN, last_run_time=context.now, next_run_time=due.following)
    return _follow(begun, plan_run(begun, view, context, around), context)


def _follow(resource: RebalancePlan, run: Plan[RebalancePlanStatus], context: Context) -> Plan[RebalancePlanStatus]:
    """Return the plan of a run as this kind shows it: ready while it goes on, and not ended with its run."""
    ready, phase = run.status.condition(ConditionType.READY), run.status.phase
    if phase is None or not phase.is_final:
        due = _find_due(resource, context)
        update: dict[str, Any] = {}
        if due.is_past(context.now) and phase is not PlanPhase.AWAITING_APPROVAL:
            update["next_run_time"] = due.following
        if ready is not None and ready.reason is Reason.PROGRESSING:
            good = Verdict.make_good(ready.reason, ready.message)
            update["conditions"] = conditions(good, resource.status, resource.metadata, context.now)
        soonest_s = min(run.look_again_in_s or LONGEST_PAUSE_S, LONGEST_PAUSE_S)
        return replace(run, status=run.status.model_copy(update=update), look_again_in_s=soonest_s)
    counts = run.status.counts or PlanCounts()
    result = _RESULTS[phase]
    if result is PlanResult.COMPLETED and not counts.done and not counts.failed:
        result = PlanResult.NOTHING_TO_MOVE
    ended = resource.model_copy(update={"status": run.status})
    ended = _end_run(ended, result, ready.message if ready is not None else "")
    due = _find_due(ended, context)
    if due.is_past(context.now):
        due = replace(due, at=due.following)
    notices = tuple(replace(each, occurrence=str(run.status.last_run_time)) for each in run.notices)
    is_news = result is not PlanResult.NOTHING_TO_MOVE
    return replace(_await(ended, due, context), notices=notices if is_news else ())


def _end_run(resource: RebalancePlan, result: PlanResult, message: str) -> RebalancePlan:
    return update_status(resource, last_run_result=result, last_run_message=message[:_LONGEST_MESSAGE])


def _await(resource: RebalancePlan, due: _Due, context: Context) -> Plan[RebalancePlanStatus]:
    if due.at is None:
        return _show_between(resource, due.trouble or Verdict.make_first(), context)
    status = resource.status
    last = f"; the last run: {status.last_run_result}: {status.last_run_message}" if status.last_run_result else ""
    good = Verdict.make_good(Reason.SCHEDULED, f"the next run is due at {due.at:%Y-%m-%dT%H:%M:%SZ}{last}")
    left_s = (due.at - context.now).total_seconds()
    plan = _show_between(resource, good, context, next_run_time=due.at)
    return replace(plan, look_again_in_s=min(max(left_s, 1.0), LONGEST_PAUSE_S))


def _make_suspended_verdict() -> Verdict:
    message = "no run begins, because spec.suspend is true"
    paused = (ConditionType.PAUSED, ConditionStatus.TRUE, Reason.SUSPENDED, message)
    return Verdict(ready=ConditionStatus.TRUE, reason=Reason.SUSPENDED, message=message, others=(paused,))


def _show_between(
    resource: RebalancePlan,
    verdict: Verdict,
    context: Context,
    *,
    phase: PlanPhase = PlanPhase.SCHEDULED,
    next_run_time: datetime | None = None,
) -> Plan[RebalancePlanStatus]:
    """Return the status between two runs. The results of the last run stay."""
    return show(update_status(resource, next_run_time=next_run_time), phase, verdict, context)
