"""PartitionReassignment: requests the move once, and shows every partition's progress by the table of seed 000.

`phase: Running` is the intent, and is written before the first request. A `Waiting` partition may have been requested
or not, so it is requested (again) when it is due unless the cluster shows its move. A partition that was seen moving is
never requested again. So a restart at any moment loses nothing and repeats nothing. Once a move runs, its partitions
are independent: a row of a partition that is held back or refused says why, and the others go on. Log directories of
the spec are asked for before the move of their partition is requested (`copying.log_dirs`).
"""

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Final

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.metadata import ReplicaAssignment
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import list_some
from controller_operator.kafka.actions import SubmitReassignment
from controller_operator.kafka.requests.moves import Refusal, RefusalKind
from controller_operator.kafka.requests.placements import PlaceReplicas
from controller_operator.plans.consent.budget import NO_ALLOWANCES, Allowances
from controller_operator.plans.outcome import (
    Context,
    FinalizerWish,
    Notice,
    Plan,
    Step,
    Verdict,
    conditions,
    plan_paused,
    ready_reason,
)
from controller_operator.plans.placement.leaders import describe_leaders, elect_new_first, plan_election
from controller_operator.plans.placement.pins import FindPins, find_no_pins, refuse_pinned, warn_of_overruled
from controller_operator.plans.placement.removal import refuse_targets
from controller_operator.plans.reassignment.approval import add_plan_hash, find_missing_approval
from controller_operator.plans.reassignment.copying.log_dirs import (
    find_again,
    find_first_requests,
    find_misplaced,
    find_open_directories,
    find_refused_directories,
    follow_directories,
    list_unfinished,
    refuse_directories,
)
from controller_operator.plans.reassignment.copying.progress import copies
from controller_operator.plans.reassignment.deletion import plan_deletion
from controller_operator.plans.reassignment.drain_plan import plan_drain
from controller_operator.plans.reassignment.holding import find_closed_window, find_hold, find_suspension
from controller_operator.plans.reassignment.rows import (
    ENDED,
    Rows,
    count_steps,
    fail_row,
    find_outdated,
    first_rows,
    is_unseen,
    judge_lost_row,
    key,
    list_shown_rows,
    present_rows,
    rows_before,
)
from controller_operator.plans.reassignment.stuck import find_stuck, stuck_notices
from controller_operator.plans.reassignment.throttle import add_throttle
from controller_operator.plans.reassignment.turns import (
    Targets,
    apply_requests,
    find_requested,
    is_own_request,
    next_in_turn,
)
from controller_operator.plans.reassignment.waiting import (
    Obstacles,
    Others,
    add_messages,
    describe_obstacles,
    find_no_others,
    find_obstacles,
    find_refused,
    find_soonest,
    make_verdict,
    wait,
)
from controller_operator.plans.reassignment.windows import add_timing, find_present
from controller_operator.plans.timing.windows import Opening
from controller_operator.resources.common import FINALIZER
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.reassignment import (
    MovingPartition,
    PartitionReassignment,
    PartitionReassignmentStatus,
    ReassignmentPhase,
    ReassignmentStep,
)

_RETRY_S: Final = 5.0
_PINNED_RETRY_S: Final = 10.0
_ASKED_IN_VAIN: Final = (Reason.BROKERS_UNAVAILABLE, Reason.REQUEST_REFUSED, Reason.UNKNOWN_TOPIC)
_BEFORE_IT_BEGINS: Final = (
    ReassignmentPhase.PENDING,
    ReassignmentPhase.AWAITING_APPROVAL,
    ReassignmentPhase.SUSPENDED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The other objects that matter for a move."""

    others: Others = find_no_others
    """Finds the moves that it may have to wait for."""
    find_pins: FindPins = find_no_pins
    """Finds the KafkaTopics that may move the replicas back."""
    allowances: Allowances = NO_ALLOWANCES


ALONE: Final = Surroundings()


def decide(
    move: PartitionReassignment, view: Snapshot, context: Context, around: Surroundings = ALONE
) -> Plan[PartitionReassignmentStatus]:
    """Return the decision about a move that has not ended: the next requests, and the progress of each partition.

    Its memory is the move as it is after the requests: no status and no cluster shows those until they are answered."""
    if move.is_paused and move.metadata.deletion_timestamp is None:
        # Their places are read for the preview of the next steps.
        return replace(plan_paused(move, context), directories=move.directories)
    plan = _plan_with_limit(move, view, context, around)
    return replace(plan, memory=apply_requests(move, plan))


def _plan_with_limit(
    move: PartitionReassignment, view: Snapshot, context: Context, around: Surroundings
) -> Plan[PartitionReassignmentStatus]:
    if move.spec.drain_brokers is not None and not move.status.is_under_way:
        planned = plan_drain(move, view)
        if isinstance(planned, Verdict):
            return _plan(move, ReassignmentPhase.PENDING, first_rows(move, view), planned, context)
        move = planned
    targets = _targets(move)
    is_new = not move.status.is_under_way and move.metadata.deletion_timestamp is None
    if is_new and (pinned := refuse_pinned(move, _find_missing(targets, view), view, around.find_pins)):
        plan = _plan(move, ReassignmentPhase.PENDING, first_rows(move, view), pinned, context)
        return replace(plan, look_again_in_s=_PINNED_RETRY_S)
    plan = add_throttle(move, _plan_move(move, targets, view, context, around), targets, view, context)
    overruled = warn_of_overruled(move, view, around.find_pins) if is_new and plan.status.is_under_way else ()
    return replace(plan, notices=(*plan.notices, *overruled))


def _plan_move(
    move: PartitionReassignment, targets: Targets, view: Snapshot, context: Context, around: Surroundings
) -> Plan[PartitionReassignmentStatus]:
    if move.metadata.deletion_timestamp is not None:
        return plan_deletion(move, view, context)
    present = find_present(move.spec.schedule, context.now)
    plan = _follow if move.status.is_under_way else _begin
    return add_timing(plan(move, targets, view, context, around, present), present, context.now)


def _begin(
    move: PartitionReassignment,
    targets: Targets,
    view: Snapshot,
    context: Context,
    around: Surroundings,
    present: Opening,
) -> Plan[PartitionReassignmentStatus]:
    """Plan a move that was not requested yet: check if it is possible, needed, and free of obstacles."""
    others, allowances = around.others, around.allowances
    rows = first_rows(move, view)
    refusal = _refusal(targets, view) or refuse_directories(move.directories, context.places)
    refusal = refusal or allowances.refuse_replicas(targets, view) or _refuse_outdated(move, view)
    misplaced = find_misplaced(move.directories, context.places)
    missing = _find_missing(targets, view)
    wanted = {} if refusal else {tp: to for tp, to in targets.items() if tp in missing or tp in misplaced}
    rows = [_await_directories(row) if key(row) in misplaced else row for row in rows]
    if not wanted and not refusal:
        rows = [row.model_copy(update={"step": ReassignmentStep.DONE}) for row in rows]
        return _finish(move, rows, context)
    move = add_plan_hash(move, wanted, view)
    if suspension := find_suspension(move, rows):
        return _plan(move, ReassignmentPhase.SUSPENDED, rows, suspension, context)
    if approval := find_missing_approval(move, wanted):
        return _plan(move, ReassignmentPhase.AWAITING_APPROVAL, rows, approval, context)
    held_up = {} if refusal else find_obstacles(wanted, view, others, misplaced)
    rows = add_messages(rows, held_up)
    free = {tp: replicas for tp, replicas in wanted.items() if tp not in held_up}
    batch = next_in_turn(move, free or wanted, [])
    # Trouble that a window does not solve is reported before the window opens.
    if trouble := refusal or _too_large(batch, view, context):
        return _plan(move, ReassignmentPhase.PENDING, rows, trouble, context)
    if pause := find_closed_window(rows, present):
        return _plan(move, ReassignmentPhase.SUSPENDED, rows, pause, context)
    obstacle = wait(view, context, others) or (None if free else make_verdict(held_up))
    if obstacle is not None:
        plan = _plan(move, ReassignmentPhase.PENDING, rows, obstacle, context)
        return replace(plan, look_again_in_s=find_soonest(held_up))
    if delay := allowances.delay_move():
        return replace(_plan(move, ReassignmentPhase.PENDING, rows, delay, context), look_again_in_s=_RETRY_S)
    return _plan(
        move,
        ReassignmentPhase.RUNNING,
        rows,
        _make_asking_verdict(batch),
        context,
        _make_requests(move, batch, view, context),
    )


def _await_directories(row: MovingPartition) -> MovingPartition:
    """Return the row of a partition that has its replicas, but not in their log directories."""
    is_there = row.step is ReassignmentStep.DONE
    return row.model_copy(update={"step": ReassignmentStep.WAITING}) if is_there else row


def _make_requests(move: PartitionReassignment, batch: Targets, view: Snapshot, context: Context) -> tuple[Step, ...]:
    """Return the requests for partitions that are to begin: log directories first, and the moves after the answers."""
    if directories := find_first_requests(move, batch, context):
        return (PlaceReplicas(directories=directories),)
    moves = _find_missing(batch, view)
    return (SubmitReassignment(partitions=moves),) if moves else ()


def _follow(
    move: PartitionReassignment,
    targets: Targets,
    view: Snapshot,
    context: Context,
    around: Surroundings,
    present: Opening,
) -> Plan[PartitionReassignmentStatus]:
    """Plan a move that was requested, or was about to be."""
    others = around.others
    rows = present_rows(move, view)
    ended = {key(row) for row in rows if row.step in ENDED}
    unseen = {tp: replicas for tp, replicas in targets.items() if tp not in ended and is_unseen(tp, replicas, view)}
    asked = find_requested(move, unseen, context)
    rows = [judge_lost_row(row, view) if key(row) in asked else row for row in rows]
    outdated = {tp: why for tp, why in find_outdated(move, view).items() if tp in unseen.keys() - asked}
    rows = [fail_row(row, outdated[key(row)]) if key(row) in outdated else row for row in rows]
    rows = follow_directories(move, rows, context)
    directed = {replica.topic_partition for replica in move.directories if view.assignment_of(replica.topic_partition)}
    misplaced = {key(row) for row in rows if row.step is ReassignmentStep.WAITING} & directed
    due = (unseen.keys() - asked - outdated.keys()) | misplaced
    waiting = {tp: replicas for tp, replicas in targets.items() if tp in due}
    refusals = _refusals(waiting, context)
    unplaced = find_refused_directories(context)
    held_up = {
        **find_refused(refusals),
        **{tp: each for tp, each in unplaced.items() if tp in waiting},
        **find_obstacles(waiting, view, others, directed),
    }
    rows = [_judge_row(row, refusals.get(key(row)), held_up) for row in rows]
    stalled = find_stuck(move, rows, view, context.stalls, list_unfinished(move, rows, context.places))
    stuck = {**stalled, **{tp: each for tp, each in unplaced.items() if tp not in waiting}}
    rows = add_messages(rows, stuck)
    free = {tp: replicas for tp, replicas in waiting.items() if tp not in held_up and tp not in refusals}
    trouble = next((reply.trouble for reply in context.submissions if reply.trouble), None)
    needs_fresh_view = _has_new_failure(move, rows) and not context.is_view_fresh
    pause = find_hold(move, rows, present)
    # The znode holds one request at a time, and this one is still in it.
    is_by_own_znode = not context.can_ask_controller and is_own_request(targets, view)
    batch = {} if pause or trouble or is_by_own_znode else next_in_turn(move, free, rows)
    if batch and not needs_fresh_view:
        return _ask_again(move, add_messages(rows, held_up), batch, view, context, others)
    if again := find_again(move, rows, context):
        verdict = _on_their_way(rows, held_up, stuck, trouble)
        return _plan(move, _phase(pause), rows, verdict, context, (PlaceReplicas(directories=again),))
    if all(row.step in ENDED for row in rows):
        if not needs_fresh_view and (election := elect_new_first(rows, view, context)):
            verdict, can_ask = plan_election(election, view, context)
            plan = _plan(move, ReassignmentPhase.RUNNING, rows, verdict, context, (election,) if can_ask else ())
            return replace(plan, look_again_in_s=None if can_ask else _RETRY_S)
        leaders = describe_leaders(rows, view, context)
        outdated = find_outdated(move, view)
        return _finish(move, rows, context, leaders, outdated, needs_fresh_view=needs_fresh_view)
    phase = _phase(pause)
    verdict = pause or _on_their_way(rows, held_up, stuck, trouble)
    notices = stuck_notices(move, stalled, context.now)
    plan = _plan(
        move, phase, add_messages(rows, held_up), verdict, context, notices=notices, needs_fresh_view=needs_fresh_view
    )
    if not pause:
        soonest_s = find_soonest({**stuck, **held_up})
        plan = replace(plan, look_again_in_s=soonest_s or (_RETRY_S if trouble or refusals else None))
    # The first sight of a moving partition fulfils an intent, and must be on record before anything else happens.
    return replace(plan, is_progress=phase is move.status.phase and _is_known(move, plan.status, context))


def _phase(pause: Verdict | None) -> ReassignmentPhase:
    return ReassignmentPhase.SUSPENDED if pause else ReassignmentPhase.RUNNING


def _refusals(waiting: Targets, context: Context) -> dict[TopicPartition, Refusal]:
    """Return the controller's refusals in this reconciliation, without those of moves that the cluster shows."""
    said = {tp: each for reply in context.submissions for tp, each in reply.refused.items()}
    return {tp: each for tp, each in said.items() if tp in waiting}


def _judge_row(row: MovingPartition, refusal: Refusal | None, held_up: Obstacles) -> MovingPartition:
    """Return the row as failed if its move is impossible, unless the cluster shows a cause that time may remove."""
    if refusal is None or refusal.kind is not RefusalKind.IMPOSSIBLE or key(row) in held_up:
        return row
    return fail_row(row, f"was refused by the controller: {refusal.said}")


def _is_known(move: PartitionReassignment, status: PartitionReassignmentStatus, context: Context) -> bool:
    """Return True if the stored status covers all requested partitions, or they were requested just now."""
    if any(isinstance(step, SubmitReassignment | PlaceReplicas) for step in context.done):
        return True
    before, now = move.status.counts, status.counts
    return before is not None and now is not None and before.waiting == now.waiting


def _make_asking_verdict(batch: Targets) -> Verdict:
    return Verdict.make_working(Reason.PROGRESSING, f"asking for the move of {len(batch)} partitions")


def _on_their_way(rows: Rows, held_up: Obstacles, stuck: Obstacles, trouble: str | None) -> Verdict:
    counts = count_steps(rows)
    if held_up and not counts.moving and not trouble:
        return make_verdict(held_up)
    free = counts.waiting - len(held_up)
    words = [f"{counts.moving} of {len(rows)} partitions are on their way"]
    words[0] += f", {free} wait for their turn" if free else ""
    words += [describe_obstacles(each) for each in (stuck, held_up) if each]
    reason = next(iter(stuck.values())).reason if stuck else Reason.PROGRESSING
    if trouble:
        reason = Reason.BROKERS_UNAVAILABLE
        words.append(f"the controller could not be asked: {trouble}")
    return Verdict.make_working(reason, "; ".join(words))


def _has_new_failure(move: PartitionReassignment, rows: Rows) -> bool:
    before = rows_before(move)
    return any(key(row) not in before or before[key(row)].step is not row.step for row in rows if row.step.is_abandoned)


def _ask_again(
    move: PartitionReassignment, rows: Rows, batch: Targets, view: Snapshot, context: Context, others: Others
) -> Plan[PartitionReassignmentStatus]:
    """Repeat the request for partitions whose intent is on record and whose move the cluster does not show.

    The view may be outdated by a moment, so a fresh one is read before the request is repeated.
    """
    verdict = _too_large(batch, view, context) or wait(view, context, others)
    if verdict is not None:
        return _plan(move, ReassignmentPhase.RUNNING, rows, verdict, context)
    before = rows_before(move)
    rows = [_keep_message(row, before.get(key(row))) if key(row) in batch else row for row in rows]
    verdict = _last_refusal(move) or _make_asking_verdict(batch)
    steps = _make_requests(move, batch, view, context) if context.is_view_fresh else ()
    return _plan(
        move, ReassignmentPhase.RUNNING, rows, verdict, context, steps, needs_fresh_view=not context.is_view_fresh
    )


def _last_refusal(move: PartitionReassignment) -> Verdict | None:
    """Return the verdict after the last failed request. It stays until the next answer."""
    ready = move.status.condition(ConditionType.READY)
    reason = ready_reason(move.status)
    return Verdict.make_working(reason, ready.message) if ready and reason in _ASKED_IN_VAIN else None


def _keep_message(row: MovingPartition, before: MovingPartition | None) -> MovingPartition:
    return row.model_copy(update={"message": before.message}) if before is not None else row


def _finish(
    move: PartitionReassignment,
    rows: Rows,
    context: Context,
    leaders: str = "",
    outdated: Container[TopicPartition] = (),
    *,
    needs_fresh_view: bool = False,
) -> Plan[PartitionReassignmentStatus]:
    failed = [row for row in rows if row.step is ReassignmentStep.FAILED]
    superseded = [row for row in rows if row.step is ReassignmentStep.SUPERSEDED]
    if superseded and not failed:
        message = (
            f"other moves have replaced those of {len(superseded)} of {len(rows)} partitions, and it is unknown whether "
            f"these had reached their target: {list_some(map(key, superseded))}"
        )
        phase, verdict = ReassignmentPhase.FAILED, Verdict.make_failed(Reason.SUPERSEDED, message)
        notice = Notice(reason="ReassignmentSuperseded", message=message, is_warning=True)
    elif failed:
        is_gone = any(not row.replicas for row in failed)
        reason = Reason.TOPIC_DELETED_DURING_MOVE if is_gone else Reason.PARTITIONS_FAILED
        if not any(row.step is ReassignmentStep.DONE for row in rows) and any(key(row) in outdated for row in failed):
            reason = Reason.PLAN_OUTDATED
        names = list_some(map(key, failed))
        message = f"{len(failed)} of {len(rows)} partitions did not reach their target: {names}"
        phase, verdict = ReassignmentPhase.FAILED, Verdict.make_failed(reason, message)
        notice = Notice(reason="ReassignmentFailed", message=message, is_warning=True)
    else:
        where = " in their log directories" if move.directories else ""
        message = f"all {len(rows)} partitions have the replicas of the spec{where}{leaders}"
        phase, verdict = ReassignmentPhase.COMPLETED, Verdict.make_completed(message)
        notice = Notice(reason="ReassignmentCompleted", message=message)
    return _plan(move, phase, rows, verdict, context, notices=(notice,), needs_fresh_view=needs_fresh_view)


def _plan(
    move: PartitionReassignment,
    phase: ReassignmentPhase,
    rows: Rows,
    verdict: Verdict,
    context: Context,
    steps: tuple[Step, ...] = (),
    *,
    notices: tuple[Notice, ...] = (),
    needs_fresh_view: bool = False,
) -> Plan[PartitionReassignmentStatus]:
    has_begun = phase not in _BEFORE_IT_BEGINS
    status = PartitionReassignmentStatus(
        observed_generation=move.metadata.generation,
        conditions=conditions(verdict, move.status, move.metadata, context.now),
        phase=phase,
        start_time=move.status.start_time or (context.now if has_begun else None),
        completion_time=context.now if phase.is_final else None,
        counts=count_steps(rows),
        plan=move.status.plan,
        plan_hash=move.status.plan_hash,
        partitions=list_shown_rows(rows),
    )
    is_running = status.is_under_way
    return Plan(
        status=status.model_copy(update={"progress": context.progress}) if is_running else status,
        copies=copies(rows, is_suspended=phase is ReassignmentPhase.SUSPENDED) if is_running else None,
        directories=find_open_directories(move, rows),
        steps=steps,
        finalizer=_finalizer(move, phase),
        notices=notices,
        look_again_in_s=move.spec.ttl_seconds_after_finished if phase.is_final else None,
        needs_fresh_view=needs_fresh_view,
    )


def _finalizer(move: PartitionReassignment, phase: ReassignmentPhase) -> FinalizerWish:
    """Return the finalizer: deleting the object of a running move cancels it. It is released when the run has ended."""
    is_needed = phase is ReassignmentPhase.RUNNING and FINALIZER not in move.metadata.finalizers
    return FinalizerWish.HOLD if is_needed else FinalizerWish.KEEP_AS_IS


def _targets(move: PartitionReassignment) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    return {TopicPartition(each.topic, each.partition): each.replicas for each in move.targets}


def _find_missing(targets: Targets, view: Snapshot) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    return {
        tp: replicas
        for tp, replicas in targets.items()
        if view.assignment_of(tp) != ReplicaAssignment(replicas=replicas)
    }


def _refusal(asked: Targets, view: Snapshot) -> Verdict | None:
    """Return why the move cannot be requested in the present cluster; None if it can."""
    unknown_topics = sorted({tp.topic for tp in asked if tp.topic not in view.topics})
    if unknown_topics:
        return Verdict.make_working(Reason.UNKNOWN_TOPIC, f"the cluster has no topic {list_some(unknown_topics)}")
    deleting = sorted({tp.topic for tp in asked if tp.topic in view.deleting})
    if deleting:
        return Verdict.make_working(Reason.TOPIC_BEING_DELETED, f"{list_some(deleting)} is being deleted")
    unknown = [tp for tp in asked if view.assignment_of(tp) is None]
    if unknown:
        return Verdict.make_working(Reason.UNKNOWN_PARTITION, f"the topics have no partition {list_some(unknown)}")
    duplicates = [tp for tp, replicas in asked.items() if len(set(replicas)) != len(replicas)]
    if duplicates:
        return Verdict.make_stalled(
            Reason.DUPLICATE_REPLICAS, f"{list_some(duplicates)} name a broker twice: name each broker once"
        )
    brokers = sorted({broker for replicas in asked.values() for broker in replicas} - set(view.brokers))
    if brokers:
        return Verdict.make_working(
            Reason.UNKNOWN_BROKER, f"broker {list_some(brokers)} is not registered: start it, or choose another one"
        )
    return refuse_targets(asked, view)


def _refuse_outdated(move: PartitionReassignment, view: Snapshot) -> Verdict | None:
    """Return why a move must not begin that was planned for other replicas; None for any other."""
    outdated = find_outdated(move, view)
    if not outdated:
        return None
    words = list_some(f"{tp} {why}" for tp, why in outdated.items())
    message = f"{words}: make a new plan (kontroller plan), and apply that instead of this one"
    return Verdict.make_stalled(Reason.PLAN_OUTDATED, message)


def _too_large(wanted: Targets, view: Snapshot, context: Context) -> Verdict | None:
    why = context.limits.why_no_reassignment(wanted, view, is_by_znode=not context.can_ask_controller)
    message = f"one request cannot contain the move of {len(wanted)} partitions: {why}"
    return Verdict.make_stalled(Reason.TOO_LARGE, message) if why else None
