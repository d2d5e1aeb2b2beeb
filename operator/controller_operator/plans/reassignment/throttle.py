"""The throttle of a move: no move begins before it is set, and no object ends before it is removed.

These steps wrap the plan of the move. A throttle is recorded in the status before it is set, and stays there until it
is removed. So an operator that finds the record completes the work of another one, and an object that never had a
throttle needs no removal. Kontroller also ends a throttle with its moves, in case no operator runs. The operator always
does it, because Kafka's own controllers know nothing of throttles, and nobody else ends the throttle of a move that
never began. If a throttle cannot be set or removed, the steps that depend on it wait. The object says why, and the
operator retries.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.snapshot import ControllerKind, Snapshot
from controller_core.model.throttles import Move
from controller_operator.kafka.actions import SubmitReassignment
from controller_operator.kafka.throttle_steps import RemoveThrottle, SetThrottle, ThrottleReply
from controller_operator.plans.outcome import (
    Context,
    FinalizerWish,
    Notice,
    Plan,
    Verdict,
    conditions,
    is_overdue,
)
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import (
    PartitionReassignment,
    PartitionReassignmentStatus,
    ReassignmentPhase,
    ThrottleStatus,
    read_rate,
)

_RETRY_S: Final = 5.0
Targets = Mapping[TopicPartition, tuple[BrokerId, ...]]
MovePlan = Plan[PartitionReassignmentStatus]


def add_throttle(
    move: PartitionReassignment, plan: MovePlan, targets: Targets, view: Snapshot, context: Context
) -> MovePlan:
    """Return the plan of a move, with the steps that its throttle needs first."""
    if plan.needs_fresh_view and not context.is_view_fresh:
        return plan
    known = _find_known(move, context)
    if _is_over(plan):
        return _plan_end(move, plan, known, targets, view, context)
    if move.metadata.deletion_timestamp is not None:
        return _record(plan, known)
    wanted = read_rate(move.spec.throttle)
    if wanted is not None:
        return _plan_limit(move, plan, targets, view, context, known, wanted)
    if known is None:
        return _record(plan, known)
    return _add_step(move, plan, known, RemoveThrottle(owner=owner(move)), context)


def owner(move: PartitionReassignment) -> str:
    """Return the owner's name of the throttle. Another object of the same name has another one."""
    return f"{move.metadata.full_name}/{move.metadata.uid}"


def _find_known(move: PartitionReassignment, context: Context) -> ThrottleStatus | None:
    """Return the throttle in the status, updated by the steps that were done since."""
    known = move.status.throttle
    for step in context.done:
        if isinstance(step, SetThrottle):
            known = ThrottleStatus(bytes_per_second=step.bytes_per_second, is_set=True)
        elif isinstance(step, RemoveThrottle):
            known = None
    return known


def _is_over(plan: MovePlan) -> bool:
    phase = plan.status.phase
    return plan.finalizer is FinalizerWish.RELEASE or (phase is not None and phase.is_final)


def _plan_end(
    move: PartitionReassignment,
    plan: MovePlan,
    known: ThrottleStatus | None,
    targets: Targets,
    view: Snapshot,
    context: Context,
) -> MovePlan:
    """Plan the removal first. The object's end is planned and reported after it.

    A move that continues without its object keeps its throttle if the controller will end it."""
    if known is None:
        return _record(plan, None)
    is_given_up = move.metadata.deletion_timestamp is not None and plan.status.phase is ReassignmentPhase.FAILED
    is_left = plan.finalizer is FinalizerWish.RELEASE or is_given_up
    is_ended_later = view.controller is not None and view.controller.kind is ControllerKind.KONTROLLER
    if is_left and is_ended_later and any(_is_moving(tp, targets, view) for tp in targets):
        message = "the limit stays until the move ends: the controller then removes it"
        notice = Notice(reason="ThrottleLeft", message=message, is_warning=True)
        return replace(_record(plan, known), notices=(*plan.notices, notice))
    trouble = _trouble(context)
    if trouble is not None and is_overdue(move.metadata, context.now):
        notice = Notice(reason="ThrottleLeft", message=f"the limit stays: {trouble.trouble}", is_warning=True)
        return replace(_record(plan, known), notices=(*plan.notices, notice))
    before: MovePlan = Plan(status=move.status)
    return _add_step(move, before, known, RemoveThrottle(owner=owner(move)), context)


def _plan_limit(
    move: PartitionReassignment,
    plan: MovePlan,
    targets: Targets,
    view: Snapshot,
    context: Context,
    known: ThrottleStatus | None,
    wanted: int,
) -> MovePlan:
    """Hold the request back until the throttle is set in this same reconciliation: an older one may be gone by now.

    While nothing of the object moves it has no throttle, because that would only slow the moves of others."""
    asked = {tp for step in plan.steps if isinstance(step, SubmitReassignment) for tp in step.partitions}
    moves = _moves(targets, asked, view)
    if not moves:
        # The controller may yet carry out a request without an answer, so the throttle must stay until that is known.
        may_begin_late = any(reply.trouble for reply in context.submissions)
        if known is None or may_begin_late:
            return _record(plan, known)
        return _add_step(move, plan, known, RemoveThrottle(owner=owner(move)), context)
    if known == ThrottleStatus(bytes_per_second=wanted, is_set=True) and _is_set_for(asked, context):
        return _record(plan, known)
    step = SetThrottle(owner=owner(move), moves=moves, bytes_per_second=wanted)
    others = tuple(each for each in plan.steps if not isinstance(each, SubmitReassignment))
    return _add_step(move, replace(plan, steps=others), _make_pending(known, wanted), step, context)


def _is_set_for(asked: set[TopicPartition], context: Context) -> bool:
    """Return True if the throttle was set for all partitions to request, and no request was made since."""
    steps = (step for step in reversed(context.done) if isinstance(step, SetThrottle | SubmitReassignment))
    last = next(steps, None)
    return not asked or (isinstance(last, SetThrottle) and asked <= last.moves.keys())


def _make_pending(known: ThrottleStatus | None, wanted: int) -> ThrottleStatus:
    """Return the throttle as the status shows it while it is being set."""
    is_set = known is not None and known.is_set and known.bytes_per_second == wanted
    return ThrottleStatus(bytes_per_second=wanted, is_set=is_set)


def _moves(targets: Targets, asked: set[TopicPartition], view: Snapshot) -> dict[TopicPartition, Move]:
    """Return the moves that are about to be requested, and those of the object that run."""
    moves = {}
    for tp, target in targets.items():
        assignment = view.assignment_of(tp)
        if assignment is None or tp.topic in view.deleting:
            continue
        if tp in asked or _is_moving(tp, targets, view):
            moves[tp] = Move(origin=assignment.origin, target=target)
    return moves


def _is_moving(tp: TopicPartition, targets: Targets, view: Snapshot) -> bool:
    """Return True if the partition moves, or is about to move, to the replicas that the object wants."""
    assignment = view.assignment_of(tp)
    is_requested = view.reassignment is not None and view.reassignment.partitions.get(tp) == targets[tp]
    is_begun = assignment is not None and assignment.is_being_reassigned and assignment.target == targets[tp]
    return is_requested or is_begun


def _record(plan: MovePlan, known: ThrottleStatus | None) -> MovePlan:
    return replace(plan, status=plan.status.model_copy(update={"throttle": known}))


def _add_step(
    move: PartitionReassignment,
    plan: MovePlan,
    known: ThrottleStatus | None,
    step: SetThrottle | RemoveThrottle,
    context: Context,
) -> MovePlan:
    """Return the plan with one more step and its record, or the reason why the step failed in this reconciliation."""
    trouble = _trouble(context)
    if trouble is None:
        return replace(_record(plan, known), steps=(*plan.steps, step), is_progress=False)
    said = f"its limit cannot be {'set' if isinstance(step, SetThrottle) else 'removed'}: {trouble.trouble}"
    is_for_a_person = trouble.reason is Reason.TOO_LARGE
    verdict = (Verdict.make_stalled if is_for_a_person else Verdict.make_working)(trouble.reason, said)
    told = {"throttle": known, "conditions": conditions(verdict, move.status, move.metadata, context.now)}
    status = plan.status.model_copy(update=told)
    return replace(plan, status=status, look_again_in_s=_RETRY_S, is_progress=False)


def _trouble(context: Context) -> ThrottleReply | None:
    """Return the trouble in this reconciliation, if the last answer was one."""
    last = context.throttles[-1] if context.throttles else None
    return last if last is not None and last.trouble is not None else None
