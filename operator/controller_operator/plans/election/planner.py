"""PreferredElection: runs once (`run`), or on a schedule, whose runs and the status between them are decided here.

`nextRunTime` in the status is the only memory: it is due when its time has come, even if the operator was away then. It
changes in the same write that records the intent of the run, so no restart repeats a run. A run proceeds like an
election without a schedule. The next one does not begin before it has ended, and runs that fall due during it are
skipped.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from controller_core.model.snapshot import Counts, Snapshot, sum_counts
from controller_operator.plans.election.rows import scope
from controller_operator.plans.election.run import plan_run
from controller_operator.plans.outcome import Context, Plan, Verdict, conditions, plan_paused
from controller_operator.plans.timing.run_times import InvalidSchedule, RunTimes, run_times
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.election import (
    ElectionCounts,
    ElectionPhase,
    PreferredElection,
    PreferredElectionStatus,
    RunResult,
)

_LONGEST_PAUSE_S: Final = 60.0
"""Timers do not notice when the clock is set, so the clock is read at least this often."""
_OF_THE_RUN: Final = ("start_time", "completion_time", "counts", "partitions")
_OF_THE_SCHEDULE: Final = ("next_run_time", "last_run_time", "imbalance_percent")
_NO_RUN: Final[dict[str, Any]] = {
    "phase": ElectionPhase.PENDING,
    **dict.fromkeys(("start_time", "completion_time", "counts")),
    "partitions": (),
}


def decide(
    election: PreferredElection, view: Snapshot, context: Context, around: None = None
) -> Plan[PreferredElectionStatus]:
    """Return the decision about an election that has not ended. No other object matters for it."""
    if election.is_paused:
        return plan_paused(election, context)
    is_running = election.status.phase is ElectionPhase.RUNNING
    if election.metadata.deletion_timestamp is not None and not is_running:
        return Plan(status=election.status)  # taken back: another finalizer may hold it for long, and it must not begin
    if election.spec.schedule is None:
        return plan_run(election, view, context)
    return _plan_scheduled(election, view, context)


def _plan_scheduled(election: PreferredElection, view: Snapshot, context: Context) -> Plan[PreferredElectionStatus]:
    """Return the plan for an election with a schedule."""
    spec, status = election.spec, election.status
    try:
        times = run_times(spec.schedule or "", spec.time_zone)
        due_at = times.next_run(status.next_run_time, status.last_run_time, context.now)
    except InvalidSchedule as error:
        return _plan_idle(election, Verdict.make_stalled(Reason.INVALID_SCHEDULE, str(error)), context)
    if status.phase is ElectionPhase.RUNNING:
        return _follow(election, plan_run(election, view, context), times, context)
    if spec.suspend:
        return _plan_idle(election, Verdict.make_suspended(), context, phase=ElectionPhase.SUSPENDED)
    if due_at > context.now:
        return _await(election, due_at, context)
    if view.controller is None:
        verdict = Verdict.make_working(Reason.NO_CONTROLLER, "a run is due, and the cluster has no controller")
        return _plan_idle(election, verdict, context, next_run_time=due_at)
    return _begin(election, view, times, due_at, context)


def imbalance(election: PreferredElection, view: Snapshot) -> Counts:
    """Return the counts of the election's partitions; its `non_preferred_leader` of `partitions` are out of balance."""
    spec = election.spec
    if spec.all_partitions:
        return view.counts
    if spec.topics is not None:
        return sum_counts(view.topics[name].counts for name in spec.topics if name in view.topics)
    wrong = total = 0
    for partition in scope(election, view):
        assignment, state = view.assignment_of(partition), view.state_of(partition)
        total += assignment is not None
        leader = state.leader_and_isr.leader if state else None
        wrong += assignment is not None and leader is not None and leader not in (-1, assignment.replicas[0])
    return Counts(partitions=total, non_preferred_leader=wrong)


def _begin(
    election: PreferredElection, view: Snapshot, times: RunTimes, due_at: datetime, context: Context
) -> Plan[PreferredElectionStatus]:
    counts = imbalance(election, view)
    percent = 100 * counts.non_preferred_leader // max(1, counts.partitions)
    begun: dict[str, Any] = {
        "last_run_time": context.now,
        "next_run_time": times.find_next(context.now),
        "imbalance_percent": percent,
        "last_run_result": None,
    }
    if percent < (election.spec.imbalance_threshold_percent or 0):
        skipped: dict[str, Any] = {
            **begun,
            "counts": ElectionCounts(total=counts.partitions),
            "partitions": (),
            "start_time": context.now,
            "completion_time": context.now,
            "last_run_result": RunResult.BALANCED,
        }
        return _await(_update_status(election, **skipped), begun["next_run_time"], context)
    run = plan_run(_update_status(election, **_NO_RUN), view, context)
    if run.status.phase is ElectionPhase.PENDING:
        ready = run.status.condition(ConditionType.READY)
        why = Verdict.make_working(ready.reason, ready.message) if ready else Verdict.make_first()
        return replace(_plan_idle(election, why, context, next_run_time=due_at), needs_fresh_view=run.needs_fresh_view)
    return _follow(_update_status(election, **begun), run, times, context)


def _follow(
    election: PreferredElection, run: Plan[PreferredElectionStatus], times: RunTimes, context: Context
) -> Plan[PreferredElectionStatus]:
    """Return the plan of a run as this kind shows it: ready while it runs, and not ended with its run."""
    known = election.status
    if run.status.phase is ElectionPhase.RUNNING:
        status = run.status.model_copy(update={name: getattr(known, name) for name in _OF_THE_SCHEDULE})
        ready = status.condition(ConditionType.READY)
        if ready is not None and ready.reason is Reason.PROGRESSING:
            verdict = Verdict.make_good(ready.reason, ready.message)
            said = conditions(verdict, known, election.metadata, context.now)
            status = status.model_copy(update={"conditions": said})
        return replace(run, status=status)
    has_failed = run.status.counts is not None and run.status.counts.failed > 0
    result = RunResult.FAILED if has_failed else RunResult.COMPLETED
    outcome = {name: getattr(run.status, name) for name in _OF_THE_RUN}
    ahead = known.next_run_time if known.next_run_time and known.next_run_time > context.now else None
    due_at = times.next_run(ahead, known.last_run_time, context.now)
    idle = _await(_update_status(election, **outcome, last_run_result=result), due_at, context)
    is_news = result is RunResult.FAILED or (run.status.counts is not None and run.status.counts.elected > 0)
    notices = tuple(replace(each, occurrence=str(run.status.start_time)) for each in run.notices) if is_news else ()
    return replace(idle, notices=notices, needs_fresh_view=run.needs_fresh_view)


def _await(election: PreferredElection, due_at: datetime, context: Context) -> Plan[PreferredElectionStatus]:
    left_s = (due_at - context.now).total_seconds()
    said = f"the next run is due at {due_at:%Y-%m-%dT%H:%M:%SZ}{_last_run(election.status)}"
    plan = _plan_idle(election, Verdict.make_good(Reason.SCHEDULED, said), context, next_run_time=due_at)
    return replace(plan, look_again_in_s=min(max(left_s, 1.0), _LONGEST_PAUSE_S))


def _last_run(status: PreferredElectionStatus) -> str:
    counts = status.counts
    if counts is None or status.last_run_result is None:
        return ""
    if status.last_run_result is RunResult.BALANCED:
        return f"; nothing was elected, because {status.imbalance_percent}% of the leaders were not the preferred ones"
    results = f"{counts.elected} elected, {counts.not_needed} not needed, {counts.failed} failed"
    if counts.preferred_unavailable:
        results += (
            f", {counts.preferred_unavailable} unavailable, because the preferred broker is not alive or not in sync"
        )
    return f"; the last run: {results}"


def _plan_idle(
    election: PreferredElection,
    verdict: Verdict,
    context: Context,
    *,
    phase: ElectionPhase = ElectionPhase.SCHEDULED,
    next_run_time: datetime | None = None,
) -> Plan[PreferredElectionStatus]:
    """Return the status between two runs. The results of the last run stay."""
    return Plan(
        status=election.status.model_copy(
            update={
                "observed_generation": election.metadata.generation,
                "conditions": conditions(verdict, election.status, election.metadata, context.now),
                "phase": phase,
                "next_run_time": next_run_time,
            }
        )
    )


def _update_status(election: PreferredElection, **status: Any) -> PreferredElection:
    return election.model_copy(update={"status": election.status.model_copy(update=status)})
