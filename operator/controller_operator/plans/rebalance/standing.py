"""A RebalancePlan that never ends: begins a run when one is due, and decides about the status between runs.

A run is due by a schedule, or in the mode heal because of brokers that are gone or new (`healing`). The status is the
only memory. The write that begins a run also records the time of the next one, so no restart repeats a run. A run
proceeds like that of a plan that runs once (`run`). No run begins before the one before it has ended; only a plan that
still waits for its approval gives way to a new look.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from controller_core.model.snapshot import Snapshot
from controller_operator.plans.outcome import Context, Notice, Plan, Verdict, conditions
from controller_operator.plans.rebalance.healing import (
    explain_end,
    find_known_brokers,
    find_need,
    go_on_seeing,
)
from controller_operator.plans.rebalance.run import (
    LONGEST_PAUSE_S,
    NO_PLAN,
    Surroundings,
    plan_run,
    show,
    update_status,
)
from controller_operator.plans.timing.run_times import InvalidSchedule, run_times
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.rebalancing.rebalance_plan import (
    MAX_KNOWN_BROKERS,
    Healing,
    HealingRules,
    PlanCounts,
    PlanMode,
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
    "throttle_percent": None,
    "phase": PlanPhase.PENDING,
}
_LONGEST_MESSAGE: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
    """The time of the next run."""

    at: datetime | None = None
    """None: unknown, or nothing needs a run."""
    following: datetime | None = None
    """The time of the run after one that begins now."""
    trouble: Verdict | None = None
    words: str = "the next run is due"
    """The words before the time of the next run."""
    healing: Healing | None = None
    """The task of the next run, in the mode heal."""

    def is_past(self, now: datetime) -> bool:
        return self.at is not None and self.at <= now


def plan_standing(
    resource: RebalancePlan, view: Snapshot, context: Context, around: Surroundings
) -> Plan[RebalancePlanStatus]:
    """Return the decision about a plan that never ends."""
    if resource.spec.mode is not PlanMode.HEAL:
        return _plan_standing(resource, view, context, around)
    sight = go_on_seeing(around.sight, context.now)
    resource = update_status(resource, known_brokers=find_known_brokers(resource.status.known_brokers, view))
    healing, over = resource.status.healing, None
    if resource.status.has_open_run and healing is not None:
        over = explain_end(healing, find_need(resource, view, around.brokers, None, context.now), view)
    around = replace(around, sight=sight, over=over)
    return replace(_plan_standing(resource, view, context, around), memory=sight)


def _plan_standing(
    resource: RebalancePlan, view: Snapshot, context: Context, around: Surroundings
) -> Plan[RebalancePlanStatus]:
    status, due = resource.status, _find_due(resource, view, context, around)
    if status.has_open_run:
        gives_way = status.phase is PlanPhase.AWAITING_APPROVAL and not resource.spec.suspend
        if gives_way and due.following is not None and due.is_past(context.now):
            message = f"plan {status.plan_hash} was not approved before the next run"
            resource = _end_run(resource, PlanResult.NOT_APPROVED, message)
            return _begin(resource, view, due, context, around)
        return _follow(resource, plan_run(resource, view, context, around), view, context, around)
    if resource.spec.suspend:
        return _show_between(resource, Verdict.make_suspended(), context, phase=PlanPhase.SUSPENDED)
    if due.is_past(context.now):
        return _begin(resource, view, due, context, around)
    return _await(resource, due, context)


def _find_due(resource: RebalancePlan, view: Snapshot, context: Context, around: Surroundings) -> _Due:
    """Return the time of the next run. A time that was missed is past; one that falls into a run is skipped."""
    spec, status = resource.spec, resource.status
    if spec.mode is PlanMode.HEAL:
        return _find_healing(resource, view, context, around)
    try:
        times = run_times(spec.schedule or "", spec.time_zone)
        at = times.next_run(status.next_run_time, status.last_run_time, context.now)
        return _Due(at=at, following=times.find_next(context.now))
    except InvalidSchedule as error:
        return _Due(trouble=Verdict.make_stalled(Reason.INVALID_SCHEDULE, str(error)))


def _find_healing(resource: RebalancePlan, view: Snapshot, context: Context, around: Surroundings) -> _Due:
    """Return the time of the next run that heals. The same brokers are not healed again at once, whatever the result
    was."""
    need, status = find_need(resource, view, around.brokers, around.sight, context.now), resource.status
    at, ended = need.at, status.completion_time
    # An end in the future was recorded by a clock that was wrong, so it delays nothing.
    if at is not None and ended is not None and ended <= context.now and need.healing == status.healing:
        at = max(at, ended + timedelta(minutes=(resource.spec.heal or HealingRules()).after_minutes))
    return _Due(at=at, trouble=need.refusal, words=need.words, healing=need.healing)


def _begin(
    resource: RebalancePlan, view: Snapshot, due: _Due, context: Context, around: Surroundings
) -> Plan[RebalancePlanStatus]:
    update = {"last_run_time": context.now, "next_run_time": due.following, "healing": due.healing}
    begun = update_status(resource, **_NEW_RUN, **update)
    run = plan_run(begun, view, context, around)
    if due.healing is not None:
        does = "its replicas are placed on others" if due.healing.mode is PlanMode.DRAIN else "it is filled"
        told = Notice(
            reason="HealingBegins", message=f"{due.words}: {does}", is_warning=True, occurrence=str(context.now)
        )
        run = replace(run, notices=(told, *run.notices))
    return _follow(begun, run, view, context, around)


def _follow(
    resource: RebalancePlan,
    run: Plan[RebalancePlanStatus],
    view: Snapshot,
    context: Context,
    around: Surroundings,
) -> Plan[RebalancePlanStatus]:
    """Return the plan of a run as this kind shows it: ready while it goes on, and not ended with its run."""
    ready, phase = run.status.condition(ConditionType.READY), run.status.phase
    if phase is None or not phase.is_final:
        due = _find_due(resource, view, context, around)
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
    healing = run.status.healing
    if healing is not None and healing.mode is PlanMode.EXPAND and around.over is None:
        known = {*(run.status.known_brokers or ()), *healing.brokers}
        ended = update_status(ended, known_brokers=tuple(sorted(known))[:MAX_KNOWN_BROKERS])
    ended = _end_run(ended, result, ready.message if ready is not None else "")
    due = _find_due(ended, view, context, around)
    if due.following is not None and due.is_past(context.now):
        due = replace(due, at=due.following)
    notices = tuple(replace(each, occurrence=str(run.status.last_run_time)) for each in run.notices)
    is_news = result is not PlanResult.NOTHING_TO_MOVE
    between = _await(ended, due, context)
    return replace(between, notices=(*(notices if is_news else ()), *between.notices))


def _end_run(resource: RebalancePlan, result: PlanResult, message: str) -> RebalancePlan:
    return update_status(resource, last_run_result=result, last_run_message=message[:_LONGEST_MESSAGE])


def _await(resource: RebalancePlan, due: _Due, context: Context) -> Plan[RebalancePlanStatus]:
    if due.trouble is not None:
        plan = _show_between(resource, due.trouble, context)
        told = Notice(reason=due.trouble.reason, message=due.trouble.message, is_warning=True)
        return replace(plan, look_again_in_s=LONGEST_PAUSE_S, notices=(told,))
    status = resource.status
    last = f"; the last run: {status.last_run_result}: {status.last_run_message}" if status.last_run_result else ""
    if due.at is None:
        plan = _show_between(resource, Verdict.make_good(Reason.RECONCILED, f"{due.words}{last}"), context)
        return replace(plan, look_again_in_s=LONGEST_PAUSE_S)
    words = due.words if due.healing is None else f"{due.words}; a run is due"
    good = Verdict.make_good(Reason.SCHEDULED, f"{words} at {due.at:%Y-%m-%dT%H:%M:%SZ}{last}")
    left_s = (due.at - context.now).total_seconds()
    plan = _show_between(resource, good, context, next_run_time=due.at)
    return replace(plan, look_again_in_s=min(max(left_s, 1.0), LONGEST_PAUSE_S))


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
