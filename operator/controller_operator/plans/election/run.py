"""One run of an election: requests leaders once, and shows the result for each partition.

`phase: Running` with the leaders of that moment is written before the request. A partition that its desired leader
leads afterwards counts as elected, regardless of the request's author. Any other one is requested again unless its
request is known to have been handled. Repeating a request changes nothing, so a restart is harmless.
Preferred leaders are requested in ZooKeeper, where any controller finds the request. There is no znode for unclean
elections, so the controller is asked directly (`kafka/requests/elections.py`).
"""

from typing import Final

from controller_core.model.ids import TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import format_count, list_some
from controller_operator.kafka.actions import SubmitPreferredElection
from controller_operator.kafka.requests.elections import MAX_ASKED, ElectUnclean
from controller_operator.plans.consent.approval import explain_missing_approval, hash_plan
from controller_operator.plans.election.rows import (
    Rows,
    count_results,
    fail_row,
    gives_up,
    is_unclean,
    list_shown_rows,
    present_rows,
)
from controller_operator.plans.outcome import Context, Notice, Plan, Step, Verdict, conditions
from controller_operator.resources.approval import Approval
from controller_operator.resources.conditions import Reason
from controller_operator.resources.election import (
    ElectionCounts,
    ElectionPhase,
    ElectionResult,
    ElectionType,
    PreferredElection,
    PreferredElectionStatus,
)

_RETRY_S: Final = 5.0
_EVENTS: Final = 10
"""Largest number of partitions with an event each. More of them share one event."""
_NOT_ELECTED: Final = {
    ElectionType.PREFERRED: "the controller accepted the request and did not elect the preferred replica",
    ElectionType.UNCLEAN: "the controller accepted the request, and the partition has no leader",
}


def plan_run(election: PreferredElection, view: Snapshot, context: Context) -> Plan[PreferredElectionStatus]:
    """Return the plan for a run that has not ended: the next requests, and the result for each partition.

    A scheduled run takes the cluster as it is. An election without a schedule waits for missing partitions."""
    rows = present_rows(election, view)
    is_running = election.status.phase is ElectionPhase.RUNNING
    is_once = election.spec.schedule is None
    if is_once and not is_running and (missing := _find_missing(rows, view)):
        return _plan(election, ElectionPhase.PENDING, rows, missing, context)
    pending = [row.tp for row in rows if row.result is None]
    if not pending:
        return _finish(election, rows, context)
    if not is_running:
        return _begin(election, rows, pending, view, context)
    return _follow(election, rows, pending, view, context)


def _find_missing(rows: Rows, view: Snapshot) -> Verdict | None:
    """Return why an election waits: topics and their election may be applied at once, in any order."""
    if topics := sorted({row.tp.topic for row in rows} - view.topics.keys()):
        return Verdict.make_working(Reason.UNKNOWN_TOPIC, f"the cluster has no topic {list_some(topics)}")
    without = [row.tp for row in rows if row.result is ElectionResult.FAILED]
    if missing := [tp for tp in without if view.assignment_of(tp) is None]:
        return Verdict.make_working(Reason.UNKNOWN_PARTITION, f"the cluster has no partition {list_some(missing)}")
    return None


def _begin(
    election: PreferredElection, rows: Rows, pending: list[TopicPartition], view: Snapshot, context: Context
) -> Plan[PreferredElectionStatus]:
    wait = _wait(election, view)
    if wait is not None:
        return _plan(election, ElectionPhase.PENDING, rows, wait, context)
    if election.spec.approval is Approval.REQUIRED and election.spec.election_type is ElectionType.UNCLEAN:
        due = hash_plan([(tp.topic, tp.partition, _read_isr(tp, view)) for tp in sorted(pending)])
        election = election.model_copy(update={"status": election.status.model_copy(update={"plan_hash": due})})
        what = f"the unclean election of {format_count(len(pending), 'leader')}"
        if missing := explain_missing_approval(what, due, election.spec.approved_plan):
            return _plan(election, ElectionPhase.AWAITING_APPROVAL, rows, missing, context)
    if gives_up(election, rows) and not context.is_view_fresh:
        return _look_freshly(election, rows, len(pending), context)
    return _ask(election, rows, pending, context)


def _read_isr(partition: TopicPartition, view: Snapshot) -> list[int]:
    state = view.state_of(partition)
    return [*state.leader_and_isr.isr] if state is not None else []


def _follow(
    election: PreferredElection, rows: Rows, pending: list[TopicPartition], view: Snapshot, context: Context
) -> Plan[PreferredElectionStatus]:
    if _is_asked_for(election, pending, view):
        verdict = Verdict.make_working(Reason.PROGRESSING, f"{len(pending)} of {len(rows)} elections are under way")
        return _plan(election, ElectionPhase.RUNNING, rows, verdict, context)
    trouble = next((reply.trouble for reply in context.elections if reply.trouble), None)
    if trouble is not None:
        verdict = Verdict.make_working(Reason.BROKERS_UNAVAILABLE, f"the controller could not be asked: {trouble}")
        return _plan(election, ElectionPhase.RUNNING, rows, verdict, context, look_again_in_s=_RETRY_S)
    if not context.is_view_fresh:
        return _look_freshly(election, rows, len(pending), context)
    why = _find_failures(election, context)
    rows = [fail_row(row, why[row.tp]) if row.result is None and row.tp in why else row for row in rows]
    unasked = [tp for tp in pending if tp not in why]
    if not unasked:
        return _finish(election, rows, context)
    wait = _wait(election, view)
    if wait is not None:
        return _plan(election, ElectionPhase.RUNNING, rows, wait, context)
    return _ask(election, rows, unasked, context)


def _look_freshly(
    election: PreferredElection, rows: Rows, number: int, context: Context
) -> Plan[PreferredElectionStatus]:
    """Ask for a fresh view before a partition is given up for good, because a new broker may be missing in this
    view."""
    verdict = Verdict.make_working(Reason.PROGRESSING, f"looking at {number} of {len(rows)} partitions")
    return _plan(election, ElectionPhase.RUNNING, rows, verdict, context, needs_fresh_view=True)


def _is_asked_for(election: PreferredElection, pending: list[TopicPartition], view: Snapshot) -> bool:
    """Return True if the request is in ZooKeeper and was not handled yet."""
    if election.spec.election_type is ElectionType.UNCLEAN or view.preferred_election is None:
        return False
    return not set(pending).isdisjoint(view.preferred_election.partitions)


def _find_failures(election: PreferredElection, context: Context) -> dict[TopicPartition, str]:
    """Return the partitions that were requested in this reconciliation, with the reason if it failed."""
    steps = [step for step in context.done if isinstance(step, SubmitPreferredElection | ElectUnclean)]
    asked = dict.fromkeys((tp for step in steps for tp in step.partitions), _NOT_ELECTED[election.spec.election_type])
    return asked | {tp: said for reply in context.elections for tp, said in reply.refused}


def _ask(
    election: PreferredElection, rows: Rows, wanted: list[TopicPartition], context: Context
) -> Plan[PreferredElectionStatus]:
    """Request as many of the partitions as fit one request. The next request follows when this one is handled."""
    step: SubmitPreferredElection | ElectUnclean
    if election.spec.election_type is ElectionType.UNCLEAN:
        step, what = ElectUnclean(partitions=tuple(wanted[:MAX_ASKED])), "unclean election"
    else:
        fitting = context.limits.choose_fitting(wanted, lambda chosen: SubmitPreferredElection(partitions=chosen))
        step, what = SubmitPreferredElection(partitions=fitting), "election"
    verdict = Verdict.make_working(Reason.PROGRESSING, f"asking for the {what} of {len(wanted)} leaders")
    return _plan(election, ElectionPhase.RUNNING, rows, verdict, context, (step,))


def _finish(election: PreferredElection, rows: Rows, context: Context) -> Plan[PreferredElectionStatus]:
    if gives_up(election, rows) and not context.is_view_fresh:
        return _look_freshly(election, rows, len(rows), context)
    counts = count_results(election, rows)
    lossy = [row for row in rows if is_unclean(row)]
    message = f"{counts.elected} elected, {counts.not_needed} not needed"
    if election.spec.election_type is ElectionType.UNCLEAN:
        message += f", {len(lossy)} may have lost records"
    else:
        message += f", {counts.preferred_unavailable} unavailable"
    notices = _losses(lossy)
    if unmet := _describe_unmet(election, rows, counts):
        message = f"{unmet}; {message}"
        notices += (Notice(reason="ElectionFailed", message=message, is_warning=True),)
        verdict = Verdict.make_failed(Reason.PARTITIONS_FAILED, message)
        return _plan(election, ElectionPhase.FAILED, rows, verdict, context, notices=notices)
    notices += (Notice(reason="ElectionCompleted", message=message),)
    return _plan(election, ElectionPhase.COMPLETED, rows, Verdict.make_completed(message), context, notices=notices)


def _describe_unmet(election: PreferredElection, rows: Rows, counts: ElectionCounts) -> str:
    """Return the unfulfilled part of the election, its cause and the remedy; empty if all was done."""
    said = [f"{counts.failed} of {counts.total} elections failed"] if counts.failed else []
    if counts.preferred_unavailable:
        away = [row for row in rows if row.result is ElectionResult.PREFERRED_UNAVAILABLE]
        named = list_some((f"{row.tp}: {row.message}" for row in away), most=3)
        again = "create a new election" if election.spec.schedule is None else "the next run elects them"
        said.append(
            f"{counts.preferred_unavailable} of {counts.total} leaders were not given back ({named}): start these "
            f"brokers and wait until they are in sync, then {again}"
        )
    return "; ".join(said)


def _losses(rows: Rows) -> tuple[Notice, ...]:
    """Return the events about records that unclean elections may have lost: for each partition, or one for many."""
    told = [f"{row.tp}: leader before {row.leader_before}, {row.message}" for row in rows]
    if len(told) > _EVENTS:
        named = list_some(
            f"{row.tp} (leader {row.leader_after}, ISR before {[*(row.isr_before or ())]})" for row in rows
        )
        told = [f"{len(rows)} partitions have leaders that were not in sync, and may have lost records: {named}"]
    return tuple(Notice(reason="UncleanLeaderElected", message=each, is_warning=True) for each in told)


def _plan(
    election: PreferredElection,
    phase: ElectionPhase,
    rows: Rows,
    verdict: Verdict,
    context: Context,
    steps: tuple[Step, ...] = (),
    *,
    notices: tuple[Notice, ...] = (),
    needs_fresh_view: bool = False,
    look_again_in_s: float | None = None,
) -> Plan[PreferredElectionStatus]:
    has_begun = phase not in (ElectionPhase.PENDING, ElectionPhase.AWAITING_APPROVAL)
    return Plan(
        status=PreferredElectionStatus(
            observed_generation=election.metadata.generation,
            conditions=conditions(verdict, election.status, election.metadata, context.now),
            phase=phase,
            start_time=election.status.start_time or (context.now if has_begun else None),
            completion_time=context.now if phase.is_final else None,
            counts=count_results(election, rows),
            plan_hash=election.status.plan_hash,
            partitions=list_shown_rows(rows),
        ),
        steps=steps,
        notices=notices,
        look_again_in_s=election.spec.ttl_seconds_after_finished if phase.is_final else look_again_in_s,
        needs_fresh_view=needs_fresh_view,
    )


def _wait(election: PreferredElection, view: Snapshot) -> Verdict | None:
    if view.controller is None:
        return Verdict.make_working(Reason.NO_CONTROLLER, "the cluster has no controller, so nothing would be elected")
    if view.preferred_election is not None and election.spec.election_type is ElectionType.PREFERRED:
        return Verdict.make_working(Reason.PROGRESSING, "another preferred election runs; this one begins after it")
    return None
