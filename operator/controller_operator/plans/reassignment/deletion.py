"""The deletion of a PartitionReassignment: the fate of its move and of its finalizer.

Only a running move has a finalizer. Partitions that still move because of it return to their original replicas. A
partition that another tool has since moved elsewhere is left to that tool, and a finished one stays. Brokers are asked to
end the copying of replicas to the log directories of the spec, so a replica stays in its present one. The object's last
status shows the outcome, and the finalizer of an ended run is released. A namespace that is being deleted must not hang
on a Kafka cluster. So the finalizer is also released when the controller refuses, when a person pauses the object, and
when all of that took too long.
"""

from typing import Final

from controller_core.client.log_dirs.placing import Directories
from controller_core.model.ids import TopicPartition
from controller_core.model.metadata import ReplicaAssignment
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import format_count, list_some
from controller_operator.kafka.requests.cancellations import CancelReassignment
from controller_operator.kafka.requests.placements import ReturnReplicas
from controller_operator.plans.outcome import (
    DELETION_PATIENCE,
    Context,
    Notice,
    Plan,
    Verdict,
    conditions,
    is_overdue,
    make_release,
)
from controller_operator.plans.reassignment.copying.log_dirs import (
    find_open_directories,
    find_refused_directories,
    follow_directories,
)
from controller_operator.plans.reassignment.rows import (
    ENDED,
    Rows,
    count_steps,
    judge_lost_row,
    key,
    list_shown_rows,
    present_rows,
    rows_before,
)
from controller_operator.plans.reassignment.waiting import describe_obstacles
from controller_operator.resources.common import FINALIZER
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import (
    MovingPartition,
    PartitionReassignment,
    PartitionReassignmentStatus,
    ReassignmentPhase,
    ReassignmentStep,
)

_RETRY_S: Final = 5.0
_STAYS: Final = "has its replicas, but brokers no longer copy them to their log directories"


def plan_deletion(move: PartitionReassignment, view: Snapshot, context: Context) -> Plan[PartitionReassignmentStatus]:
    """Return the plan for an object that is being deleted."""
    if FINALIZER not in move.metadata.finalizers:
        return Plan(status=move.status)
    if move.is_paused:
        return make_release(move.status, "ReassignmentLeft", "the move goes on, because this object is paused")
    rows = follow_directories(move, present_rows(move, view), context)
    running = [key(row) for row in rows if _is_ours(move, row, view)]
    trouble = next((reply.trouble for reply in context.cancellations if reply.trouble), None)
    if not context.is_view_fresh and (trouble is None or not running):
        return Plan(status=move.status, needs_fresh_view=True)
    if not running:
        if returning := _list_returning(move, rows, view, context):
            return _return(move, rows, returning, context)
        return _finish(move, [_end_row(row, view) for row in rows], context)
    refused = [f"{tp}: {said}" for reply in context.cancellations for tp, said in reply.refused]
    if refused:
        message = f"the controller does not cancel the move: {list_some(refused)}"
        return _give_up(move, rows, Reason.REQUEST_REFUSED, message, context)
    if is_overdue(move.metadata, context.now) and (context.cancellations or view.controller is None):
        message = f"{list_some(running)} still move, {DELETION_PATIENCE} after this object was deleted"
        return _give_up(move, rows, Reason.PARTITIONS_FAILED, message, context)
    return _ask(move, rows, running, view, context, trouble)


def _list_returning(move: PartitionReassignment, rows: Rows, view: Snapshot, context: Context) -> Directories:
    """Return the directories to which replicas may be copied because of this object, as far as their brokers have not
    ended that in this reconciliation. A broker that is not registered cannot be asked, and goes on when it returns."""
    if not move.status.is_under_way:
        return {}
    ended = {each for step in context.done if isinstance(step, ReturnReplicas) for each in step.directories}
    return {
        replica: path
        for replica, path in find_open_directories(move, rows).items()
        if replica not in ended and replica.broker in view.brokers
    }


def _return(
    move: PartitionReassignment, rows: Rows, returning: Directories, context: Context
) -> Plan[PartitionReassignmentStatus]:
    """Ask brokers once in a reconciliation, and give up when that has failed for too long."""
    if not context.placements:
        message = f"ending the copying of {format_count(len(returning), 'replica')} to other log directories"
        verdict = Verdict.make_working(Reason.PROGRESSING, message)
        status = _status(move, move.status.phase, rows, verdict, context)
        return Plan(status=status, steps=(ReturnReplicas(directories=returning),), look_again_in_s=_RETRY_S)
    troubles = describe_obstacles(find_refused_directories(context))
    message = f"replicas may still be copied to other log directories: {troubles}"
    if is_overdue(move.metadata, context.now):
        return _give_up(move, rows, Reason.PARTITIONS_FAILED, message, context)
    verdict = Verdict.make_working(Reason.BROKERS_UNAVAILABLE, message)
    return Plan(status=_status(move, move.status.phase, rows, verdict, context), look_again_in_s=_RETRY_S)


def _is_ours(move: PartitionReassignment, row: MovingPartition, view: Snapshot) -> bool:
    """Return True if the partition moves because of this object: its replicas are those of the status."""
    tp = key(row)
    assignment = view.assignment_of(tp)
    is_over = row.step in ENDED or tp.topic in view.deleting
    if assignment is None or is_over or not move.status.is_under_way:
        return False
    if assignment.is_being_reassigned:
        is_same_origin = tp not in rows_before(move) or set(assignment.origin) == set(row.original_replicas)
        return assignment.target == row.target_replicas and is_same_origin
    return view.reassignment is not None and view.reassignment.partitions.get(tp) == row.target_replicas


def _end_row(row: MovingPartition, view: Snapshot) -> MovingPartition:
    """Return the final row of a partition that this object no longer moves."""
    if row.step in ENDED:
        return row
    assignment = view.assignment_of(key(row))
    if assignment == ReplicaAssignment(replicas=row.target_replicas):  # otherwise the row would have ended
        return row.model_copy(update={"step": ReassignmentStep.CANCELLED, "message": _STAYS})
    is_moving = assignment is not None and assignment.is_being_reassigned
    if assignment is None or is_moving or set(assignment.replicas) != set(row.original_replicas):
        return judge_lost_row(row, view)
    return row.model_copy(update={"step": ReassignmentStep.CANCELLED})


def _ask(
    move: PartitionReassignment,
    rows: Rows,
    running: list[TopicPartition],
    view: Snapshot,
    context: Context,
    trouble: str | None,
) -> Plan[PartitionReassignmentStatus]:
    if trouble is not None:
        verdict = Verdict.make_working(Reason.BROKERS_UNAVAILABLE, f"the controller could not be asked: {trouble}")
    elif view.controller is None:
        verdict = Verdict.make_working(
            Reason.NO_CONTROLLER, "the cluster has no controller, so nobody can cancel the move"
        )
    else:
        message = f"cancelling the moves of {len(running)} partitions, because this object is being deleted"
        verdict = Verdict.make_working(Reason.PROGRESSING, message)
    is_asked = bool(context.cancellations) or view.controller is None
    steps = () if is_asked else (CancelReassignment(partitions=tuple(running)),)
    status = _status(move, move.status.phase, rows, verdict, context)
    return Plan(status=status, steps=steps, look_again_in_s=_RETRY_S)


def _finish(move: PartitionReassignment, rows: Rows, context: Context) -> Plan[PartitionReassignmentStatus]:
    counts = count_steps(rows)
    staying = sum(row.message == _STAYS for row in rows)
    message = (
        f"{counts.cancelled - staying} of {counts.total} partitions have their original replicas,"
        f" {counts.done} had moved already, {counts.failed} failed"
    )
    message += f", {staying} have replicas outside of their log directories" if staying else ""
    status = _status(move, ReassignmentPhase.CANCELLED, rows, Verdict.make_cancelled(message), context)
    return Plan(status=status, notices=(Notice(reason="ReassignmentCancelled", message=message),))


def _give_up(
    move: PartitionReassignment, rows: Rows, reason: Reason, message: str, context: Context
) -> Plan[PartitionReassignmentStatus]:
    status = _status(move, ReassignmentPhase.FAILED, rows, Verdict.make_failed(reason, message), context)
    notice = Notice(reason="CancellationFailed", message=message, is_warning=True, is_leftover=True)
    return Plan(status=status, notices=(notice,))


def _status(
    move: PartitionReassignment, phase: ReassignmentPhase | None, rows: Rows, verdict: Verdict, context: Context
) -> PartitionReassignmentStatus:
    return move.status.model_copy(
        update={
            "observed_generation": move.metadata.generation,
            "conditions": conditions(verdict, move.status, move.metadata, context.now),
            "phase": phase,
            "completion_time": context.now if phase is not None and phase.is_final else None,
            "counts": count_steps(rows),
            "partitions": list_shown_rows(rows),
            **dict.fromkeys(move.status.momentary),
        }
    )
