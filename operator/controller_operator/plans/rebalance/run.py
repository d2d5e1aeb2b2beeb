"""One run of a RebalancePlan: asks for a plan, waits for its approval if needed, and carries it out batch by batch.

The status holds the whole plan before anything moves. Each batch is a PartitionReassignment that the object owns. Its
name follows from the status, so a restarted operator creates it once. Without approval, the next batch is planned from a
new look; an approved plan, and that of a relief, runs as it is. Outside the windows nothing begins. A plan whose
partitions or brokers have changed is not carried out: another one is made, which needs its own approval. Replicas may
also change after the batch is created, because of other moves that it waits for. It then refuses to begin, and is deleted
before another plan is made.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import format_count, list_some
from controller_operator.plans.consent.approval import explain_missing_approval, hash_plan, remind
from controller_operator.plans.outcome import (
    CancelMove,
    Context,
    Notice,
    Plan,
    StartMove,
    Verdict,
    conditions,
)
from controller_operator.plans.owned_moves import find_limit
from controller_operator.plans.rebalance.duration import (
    compare_durations,
    describe_expected,
    estimate_seconds,
    learn_pace,
)
from controller_operator.plans.rebalance.healing import Sight
from controller_operator.plans.rebalance.looking import (
    MUST_MODES,
    FindPinned,
    Found,
    Look,
    Planned,
    find_task,
    make_look,
)
from controller_operator.plans.rebalance.speed import adapt_percent, count_out_of_sync, explain_strain, find_rate
from controller_operator.plans.timing.windows import find_opening
from controller_operator.resources.approval import Approval
from controller_operator.resources.cluster import BrokerStatus
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from controller_operator.resources.reassignment import PartitionReassignment, ReassignmentPhase, read_rate
from controller_operator.resources.rebalancing.rebalance_plan import (
    MAX_MOVES,
    MAX_SHOWN_REASSIGNMENTS,
    BrokerOutOfSync,
    OwnedReassignment,
    PlanCounts,
    PlannedMove,
    PlanPhase,
    RebalancePlan,
    RebalancePlanStatus,
)
from controller_operator.resources.schema import MAX_STATUS_ENTRIES
from controller_planner.goals import Mode

LONGEST_PAUSE_S: Final = 60.0
"""Timers do not notice when the clock is set, so the clock is read at least this often."""
_LONGEST_PREFIX: Final = 200
NO_PLAN: Final[dict[str, Any]] = {"moves": (), "batch": None, "plan_hash": None, "out_of_sync_brokers": None}
_OUTDATED: Final = frozenset({Reason.PLAN_OUTDATED, Reason.UNKNOWN_TOPIC})
"""The reasons for which a batch waits, and its plan can never be carried out."""
Moves = Mapping[str, PartitionReassignment]


def _find_no_pinned() -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The other objects that matter for a plan, and the planner's last answer about it."""

    moves: Moves = field(default_factory=dict)
    """The PartitionReassignments that it owns, by name."""
    found: Found | None = None
    find_pinned: FindPinned = _find_no_pinned
    brokers: Sequence[BrokerStatus] = ()
    """The brokers in the status of the KafkaCluster, registered or missing."""
    sight: Sight | None = None
    """The time since which the cluster has been seen without interruption; None: not seen before."""
    over: str | None = None
    """The reason why a run has no further purpose; None if it has one."""


ALONE: Final = Surroundings()


def plan_run(
    resource: RebalancePlan, view: Snapshot, context: Context, around: Surroundings
) -> Plan[RebalancePlanStatus]:
    """Return the decision about a run that has not ended."""
    if (name := resource.status.reassignment) is not None:
        noted, notices = _note_strain(resource, name, view, around)
        move, given = around.moves.get(name), resource.status.batch_bytes_per_second
        # A batch that is not seen may have been created, with the throttle on record, so the record stays then.
        if move is not None:
            if limit := find_limit(move, _find_rate(noted), given):
                return Plan(status=resource.status, steps=(limit,))
            noted = _note_rate(noted)
        return _add_notices(_follow(noted, name, view, context, around), notices)
    return _delete_abandoned(resource, context, around) or _go_on(resource, view, context, around)


def _go_on(
    resource: RebalancePlan, view: Snapshot, context: Context, around: Surroundings, notices: tuple[Notice, ...] = ()
) -> Plan[RebalancePlanStatus]:
    """Begin the next batch of the present plan, or ask for a plan.

    Loads change while a window is awaited, so without approval there is no plan before it opens."""
    if around.over is not None:
        return _add_notices(_complete(update_status(resource, **NO_PLAN), around.over, context), notices)
    if _is_used_up(resource, context.now):
        end = _complete(update_status(resource, **NO_PLAN), "the limits of spec.limits are used up", context)
        return _add_notices(end, notices)
    if resource.spec.approval is not Approval.REQUIRED and (held := _hold(resource, context)):
        return _add_notices(held, notices)
    if not resource.status.moves:
        return _add_notices(_look(resource, view, context, around), notices)
    if changes := _list_changes(resource, view):
        outdated = _make_outdated_notice(resource, "; ".join(changes))
        resource = update_status(resource, **NO_PLAN)
        return _add_notices(_look(resource, view, context, around), (*notices, outdated))
    return _add_notices(_begin(resource, view, context), notices)


def _make_outdated_notice(resource: RebalancePlan, why: str) -> Notice:
    message = f"plan {resource.status.plan_hash} is not carried out, and another one is made: {why}"
    return Notice(reason="PlanOutdated", message=message, is_warning=True, series=str(resource.status.plans))


def _delete_abandoned(
    resource: RebalancePlan, context: Context, around: Surroundings
) -> Plan[RebalancePlanStatus] | None:
    """Delete the PartitionReassignments of a dropped plan that have not begun; None if there are none.

    Nothing else is done before. Otherwise they could begin if their partitions get their earlier replicas back."""
    left = [name for name, move in around.moves.items() if move.ending is None and _is_idle(move)]
    if not left:
        return None
    message = f"deleting PartitionReassignment {list_some(left)}, because its plan is outdated"
    plan = show(resource, PlanPhase.PENDING, Verdict.make_working(Reason.PROGRESSING, message), context)
    return replace(plan, steps=tuple(CancelMove(name=name, why="its plan is outdated") for name in left))


def _look(resource: RebalancePlan, view: Snapshot, context: Context, around: Surroundings) -> Plan[RebalancePlanStatus]:
    """Ask for a plan, or take the one that was made."""
    look = make_look(resource, view, around.find_pinned)
    if isinstance(look, Verdict):
        return show(resource, PlanPhase.PENDING, look, context)
    found = around.found
    if found is None or not found.answers(look):
        message = "looking at the loads of the cluster, and planning"
        working = Verdict.make_working(Reason.PROGRESSING, message)
        return replace(show(resource, PlanPhase.PENDING, working, context), look=look)
    if found.trouble is not None:
        return replace(show(resource, PlanPhase.PENDING, found.trouble, context), look=look)
    assert found.planned is not None
    return _take(resource, found.planned, look, view, context)


def _take(
    resource: RebalancePlan, planned: Planned, look: Look, view: Snapshot, context: Context
) -> Plan[RebalancePlanStatus]:
    """Put a new plan into the status, and begin it if nothing holds it up."""
    if not planned.moves:
        said = "; ".join(planned.left_out)
        if planned.left_out and find_task(resource)[0] in MUST_MODES:
            stalled = Verdict.make_stalled(Reason.PLAN_IMPOSSIBLE, said)
            return replace(show(resource, PlanPhase.PENDING, stalled, context), look=look)
        resource = update_status(
            resource,
            plans=resource.status.plans + 1,
            **({} if resource.status.start_time else _describe(planned)),
            counts=_count(resource).model_copy(update={"moves": 0, "batches": 0, "bytes": 0}),
        )
        return _complete(resource, f"nothing is left to move{f': {said}' if said else ''}", context)
    counts: dict[str, int | None] = {
        "moves": len(planned.moves),
        "batches": max(move.batch for move in planned.moves) + 1,
        "bytes": planned.bytes,
    }
    if resource.status.start_time is None:
        rate = read_rate(resource.spec.throttle)
        counts["expected_seconds"] = estimate_seconds(planned.moves, rate, resource.status.pace_percent)
    resource = update_status(
        resource,
        plans=resource.status.plans + 1,
        **_describe(planned),
        plan_hash=_hash(planned.moves),
        moves=planned.moves,
        batch=planned.moves[0].batch,
        counts=_count(resource).model_copy(update=counts),
    )
    if changes := _list_changes(resource, view):
        message = f"the cluster has changed since the look, so another one follows: {'; '.join(changes)}"
        working = Verdict.make_working(Reason.PROGRESSING, message)
        return replace(
            show(update_status(resource, **NO_PLAN), PlanPhase.PENDING, working, context), look_again_in_s=1.0
        )
    return _begin(resource, view, context)


def _begin(resource: RebalancePlan, view: Snapshot, context: Context) -> Plan[RebalancePlanStatus]:
    """Begin the next batch, unless the object is suspended, its plan is not approved, or no window is open."""
    spec, status = resource.spec, resource.status
    if spec.suspend:
        message = "no further batch begins, because spec.suspend is true"
        return show(resource, PlanPhase.SUSPENDED, _make_held_verdict(Reason.SUSPENDED, message), context)
    due = status.plan_hash if spec.approval is Approval.REQUIRED else None
    time = describe_expected(_count(resource).expected_seconds)
    what = f"the plan of {format_count(len(status.moves), 'move')}{time}"
    if missing := explain_missing_approval(what, due, spec.approved_plan):
        reminder = remind(missing, due, status, context.now)
        plan = show(resource, PlanPhase.AWAITING_APPROVAL, missing, context)
        return replace(plan, notices=(reminder.notice,), look_again_in_s=reminder.look_again_in_s)
    if held := _hold(resource, context):
        return held
    name = _name(resource)
    others = (
        _list_out_of_sync(count_out_of_sync(view, _list_partitions(resource))) if spec.throttle is not None else None
    )
    begun = update_status(
        resource, reassignment=name, start_time=status.start_time or context.now, out_of_sync_brokers=others
    )
    return _start(_note_rate(begun), name, context)


def _hold(resource: RebalancePlan, context: Context) -> Plan[RebalancePlanStatus] | None:
    """Return the decision about a plan outside its windows; None if a batch may begin now.

    Only an approved plan is kept until a window opens."""
    present = find_opening(resource.spec.windows or (), context.now, "spec.windows")
    if present.is_open:
        return None
    if resource.spec.approval is not Approval.REQUIRED:
        resource = update_status(resource, **NO_PLAN)
    if present.changes_at is None:
        invalid = Verdict.make_stalled(Reason.INVALID_SCHEDULE, f"no batch begins: {present.trouble}")
        return show(resource, PlanPhase.SUSPENDED, invalid, context)
    message = f"no batch begins, because no window opens before {present.changes_at:%Y-%m-%dT%H:%M:%SZ}"
    plan = show(resource, PlanPhase.SUSPENDED, _make_held_verdict(Reason.OUTSIDE_WINDOW, message), context)
    status = plan.status.model_copy(update={"next_window_time": present.changes_at})
    left_s = (present.changes_at - context.now).total_seconds()
    return replace(plan, status=status, look_again_in_s=min(max(1.0, left_s), LONGEST_PAUSE_S))


def _make_held_verdict(reason: Reason, message: str) -> Verdict:
    paused = (ConditionType.PAUSED, ConditionStatus.TRUE, reason, message)
    return Verdict(ready=ConditionStatus.FALSE, reason=reason, message=message, others=(paused,))


def _start(resource: RebalancePlan, name: str, context: Context) -> Plan[RebalancePlanStatus]:
    """Create the PartitionReassignment of the batch, unless it exists."""
    spec, batch = resource.spec, _list_batch(resource)
    message = f"moving {format_count(len(batch), 'partition')} with PartitionReassignment {name}"
    plan = show(resource, PlanPhase.RUNNING, Verdict.make_working(Reason.PROGRESSING, message), context)
    step = StartMove(
        name=name,
        partitions=tuple((_partition(move), move.after) for move in batch),
        bytes_per_second=_find_rate(resource),
        max_concurrent_partitions=spec.max_concurrent_partitions,
        windows=spec.windows or (),
        expected={_partition(move): move.before for move in batch},
    )
    return replace(plan, steps=(step,))


def _follow(
    resource: RebalancePlan, name: str, view: Snapshot, context: Context, around: Surroundings
) -> Plan[RebalancePlanStatus]:
    """Follow the PartitionReassignment of the running batch."""
    move, batch = around.moves.get(name), _list_batch(resource)
    was_seen = any(each.name == name for each in resource.status.reassignments)
    arrived = [each for each in batch if _has_arrived(each, view)]
    if move is None:
        if not was_seen:
            # It was not created yet, or the operator stopped before it saw its own object. The webhook refuses to
            # create it if replicas have changed.
            if _list_changes(resource, view):
                return _go_on(update_status(resource, reassignment=None), view, context, around)
            return _start(resource, name, context)
        if len(arrived) < len(batch) and around.over is not None:
            counts = _count(resource)
            counts = counts.model_copy(update={"done": counts.done + len(arrived)})
            return _go_on(update_status(resource, reassignment=None, counts=counts), view, context, around)
        if len(arrived) < len(batch):
            remedy = "the next run goes on" if resource.is_standing else "create a new RebalancePlan to go on"
            message = f"PartitionReassignment {name} was deleted before its end; {remedy}"
            return _end(resource, PlanPhase.CANCELLED, Verdict.make_cancelled(message), context)
        return _end_batch(resource, len(batch), arrived, view, context, around)
    resource = update_status(resource, reassignments=_note(resource, move, len(batch)))
    ready = move.status.condition(ConditionType.READY)
    if ready is not None and ready.reason in _OUTDATED and _is_idle(move):
        known = "replicas had changed when its batch was to begin"
        outdated = _make_outdated_notice(resource, "; ".join(_list_changes(resource, view)) or known)
        resource = update_status(resource, reassignment=None, **NO_PLAN)
        plan = _delete_abandoned(resource, context, around) or _go_on(resource, view, context, around)
        return _add_notices(plan, (outdated,))
    if move.ending is None:
        if why := _explain_cancellation(move, batch, view, around):
            plan = show(resource, PlanPhase.RUNNING, Verdict.make_working(Reason.PROGRESSING, why), context)
            return replace(plan, steps=(CancelMove(name=name, why=why),))
        working = Verdict.make_working(Reason.PROGRESSING, _describe_run(name, move, resource))
        return replace(show(resource, PlanPhase.RUNNING, working, context), is_progress=True)
    why = f"PartitionReassignment {name} ended as {move.status.phase}{f': {ready.message}' if ready else ''}"
    done = move.status.counts.done if move.status.counts is not None else len(arrived)
    if move.status.phase is ReassignmentPhase.CANCELLED:
        return _end(resource, PlanPhase.CANCELLED, Verdict.make_cancelled(why), context)
    if not done:
        return _end(resource, PlanPhase.FAILED, Verdict.make_failed(Reason.PARTITIONS_FAILED, why), context)
    if done == len(batch):
        resource = update_status(resource, pace_percent=learn_pace(resource.status.pace_percent, batch, move))
    return _end_batch(resource, done, arrived, view, context, around)


def _is_idle(move: PartitionReassignment) -> bool:
    """Return True if nothing moves by this PartitionReassignment, and nobody is deleting it."""
    return not move.status.is_under_way and move.metadata.deletion_timestamp is None


def _note_strain(
    resource: RebalancePlan, name: str, view: Snapshot, around: Surroundings
) -> tuple[RebalancePlan, tuple[Notice, ...]]:
    """Set the lower throttle at the first sign that the running batch disturbs the cluster, and say so."""
    rows, move = resource.status.out_of_sync_brokers, around.moves.get(name)
    if rows is None or move is None:
        return resource, ()
    now = count_out_of_sync(view, _list_partitions(resource))
    if move.status.start_time is None:
        return update_status(resource, out_of_sync_brokers=_list_out_of_sync(now)), ()
    before = Counter({row.id: row.replicas for row in rows})
    if why := explain_strain(before, now, move, view, around.brokers):
        return _adapt(resource, name, why, is_strained=True)
    return update_status(resource, out_of_sync_brokers=_list_out_of_sync(before & now)), ()


def _find_rate(resource: RebalancePlan) -> int | None:
    return find_rate(resource.spec.throttle, resource.status.throttle_percent)


def _note_rate(resource: RebalancePlan) -> RebalancePlan:
    return update_status(resource, batch_bytes_per_second=_find_rate(resource))


def _list_out_of_sync(counts: Counter[BrokerId]) -> tuple[BrokerOutOfSync, ...]:
    """Return the counts as the status holds them. Brokers that are cut off count as new ones."""
    most = sorted(counts.most_common(MAX_STATUS_ENTRIES))
    return tuple(BrokerOutOfSync(id=broker, replicas=count) for broker, count in most)


def _adapt(
    resource: RebalancePlan, name: str, why: str, *, is_strained: bool | None
) -> tuple[RebalancePlan, tuple[Notice, ...]]:
    """Set the part of the spec's throttle that holds from now on. A batch changes it once."""
    before = resource.status.throttle_percent
    percent = adapt_percent(before, is_strained=is_strained)
    resource = update_status(resource, throttle_percent=percent, out_of_sync_brokers=None)
    rate = _find_rate(resource)
    if rate is None or (percent == before and not is_strained):
        return resource, ()
    running = f"PartitionReassignment {name}"
    whose = f"{running} and of the batch after it" if is_strained else f"the batch after {running}"
    message = f"the throttle of {whose} is at most {rate} bytes a second, because {why}"
    reason = "BatchesSlower" if is_strained else "BatchesFaster"
    return resource, (Notice(reason=reason, message=message, is_warning=bool(is_strained)),)


def _explain_cancellation(
    move: PartitionReassignment, batch: Sequence[PlannedMove], view: Snapshot, around: Surroundings
) -> str | None:
    """Return why a batch of a run without further purpose is cancelled; None if it goes to its end.

    Partitions that are moving go to their end, unless a broker that gets replicas is gone. If all have arrived, only
    elections of leaders are left."""
    if around.over is None or move.metadata.deletion_timestamp is not None:
        return None
    if all(_has_arrived(each, view) for each in batch):
        return None
    lost = sorted({broker for each in batch for broker in {*each.after} - {*each.before}} - view.brokers.keys())
    if lost:
        return f"brokers that get replicas are gone: {list_some(lost)}"
    return around.over if move.status.counts is None or not move.status.counts.moving else None


def _end_batch(
    resource: RebalancePlan,
    done: int,
    arrived: Sequence[PlannedMove],
    view: Snapshot,
    context: Context,
    around: Surroundings,
) -> Plan[RebalancePlanStatus]:
    """Count the results of a batch, and go on with the next one, with a new plan, or to the end."""
    status, batch, counts = resource.status, _list_batch(resource), _count(resource)
    failed = len(batch) - done
    later = sorted({each.batch for each in status.moves if each.batch > batch[0].batch})
    update = {
        "done": counts.done + done,
        "failed": counts.failed + failed,
        "bytes_copied": counts.bytes_copied + sum(each.bytes or 0 for each in (arrived if failed else batch)),
    }
    name, is_calm = status.reassignment or "", status.out_of_sync_brokers is not None
    why = "it disturbed no other partitions"
    resource, notices = _adapt(resource, name, why, is_strained=False if is_calm else None)
    resource = update_status(resource, reassignment=None, counts=counts.model_copy(update=update))
    mode = find_task(resource)[0]
    # A deleted log stays on its disk for a minute, and no broker lists it. A look in that time finds the disk smaller,
    # so it would relieve it again; and what producers write meanwhile would keep a relief from ever ending.
    is_relief = mode is Mode.RELIEVE
    if later and (is_relief or resource.spec.approval is Approval.REQUIRED):
        return _go_on(update_status(resource, batch=later[0]), view, context, around, notices)
    is_cut = len(status.moves) >= MAX_MOVES
    is_short = bool(status.left_out) if is_relief else mode in MUST_MODES
    if later or failed or is_cut or is_short:
        return _go_on(update_status(resource, **NO_PLAN), view, context, around, notices)
    return _complete(resource, "the plan is carried out", context)


def _complete(resource: RebalancePlan, how: str, context: Context) -> Plan[RebalancePlanStatus]:
    counts = _count(resource)
    failed = f", and {counts.failed} failed" if counts.failed else ""
    time = compare_durations(counts.expected_seconds, resource.status.start_time, context.now)
    message = f"{how}; {format_count(counts.done, 'partition')} moved{failed}{time}"
    return _end(resource, PlanPhase.COMPLETED, Verdict.make_completed(message), context)


def _end(resource: RebalancePlan, phase: PlanPhase, verdict: Verdict, context: Context) -> Plan[RebalancePlanStatus]:
    resource = update_status(resource, reassignment=None, completion_time=context.now, out_of_sync_brokers=None)
    notice = Notice(reason=f"Plan{phase}", message=verdict.message, is_warning=phase is not PlanPhase.COMPLETED)
    return replace(show(resource, phase, verdict, context), notices=(notice,))


def show(resource: RebalancePlan, phase: PlanPhase, verdict: Verdict, context: Context) -> Plan[RebalancePlanStatus]:
    """Return the plan that shows a verdict. Everything else in the status stays."""
    said = conditions(verdict, resource.status, resource.metadata, context.now)
    update = {
        "observed_generation": resource.metadata.generation,
        "conditions": said,
        "phase": phase,
        "next_window_time": None,
    }
    return Plan(status=resource.status.model_copy(update=update))


def _add_notices(plan: Plan[RebalancePlanStatus], notices: tuple[Notice, ...]) -> Plan[RebalancePlanStatus]:
    return replace(plan, notices=(*notices, *plan.notices)) if notices else plan


def update_status(resource: RebalancePlan, **status: Any) -> RebalancePlan:
    return resource.model_copy(update={"status": resource.status.model_copy(update=status)})


def _count(resource: RebalancePlan) -> PlanCounts:
    return resource.status.counts or PlanCounts()


def _is_used_up(resource: RebalancePlan, now: datetime) -> bool:
    """Return True if the limits allow nothing more."""
    limits, counts, began = resource.spec.limits, _count(resource), resource.status.start_time
    if limits is None:
        return False
    if limits.max_minutes is not None and began is not None and now - began >= timedelta(minutes=limits.max_minutes):
        return True
    return (limits.max_moves is not None and counts.done >= limits.max_moves) or (
        limits.max_bytes is not None and counts.bytes_copied >= limits.max_bytes
    )


def _list_changes(resource: RebalancePlan, view: Snapshot) -> list[str]:
    """Return why the rest of the plan is not one for the present cluster and spec; empty if it is."""
    status, limits, counts = resource.status, resource.spec.limits, _count(resource)
    left = [each for each in status.moves if each.batch >= (status.batch or 0)]
    at = {move: view.assignment_of(_partition(move)) for move in left}
    gone = [_partition(move) for move, now in at.items() if now is None]
    elsewhere = [_partition(move) for move, now in at.items() if now is not None and now.target != move.before]
    takers = view.brokers.keys() - view.closed
    missing = sorted({broker for move in left for broker in {*move.after} - {*move.before} if broker not in takers})
    words = [
        f"partitions are deleted: {list_some(gone)}" if gone else "",
        f"partitions have other replicas: {list_some(elsewhere)}" if elsewhere else "",
        f"brokers are down or take no replicas: {list_some(missing)}" if missing else "",
    ]
    if limits is not None:
        copies = counts.bytes_copied + sum(each.bytes or 0 for each in left)
        is_over = (limits.max_moves is not None and counts.done + len(left) > limits.max_moves) or (
            limits.max_bytes is not None and copies > limits.max_bytes
        )
        words.append("it exceeds spec.limits" if is_over else "")
    return [each for each in words if each]


def _has_arrived(move: PlannedMove, view: Snapshot) -> bool:
    now = view.assignment_of(_partition(move))
    return now is not None and now.target == move.after and now.replicas == move.after


def _describe(planned: Planned) -> dict[str, Any]:
    """Return the fields of the status that describe a plan."""
    return {
        "look_time": planned.look_time,
        "snapshot_hash": planned.snapshot_hash,
        "resources": planned.resources,
        "unknown": planned.unknown,
        "left_out": planned.left_out,
    }


def _describe_run(name: str, move: PartitionReassignment, resource: RebalancePlan) -> str:
    """Return the words about a running batch, without numbers that change with each partition."""
    batch, batches = (resource.status.batch or 0) + 1, _count(resource).batches
    what = f"PartitionReassignment {name} moves batch {batch} of {batches}"
    if move.metadata.deletion_timestamp is not None:
        return f"{what}, and is being cancelled: its unfinished part is rolled back first"
    ready = move.status.condition(ConditionType.READY)
    return what if ready is None or ready.reason is Reason.PROGRESSING else f"{what}; it says: {ready.message}"


def _note(resource: RebalancePlan, move: PartitionReassignment, total: int) -> tuple[OwnedReassignment, ...]:
    """Return the list of PartitionReassignments with the present state of one."""
    done = move.status.counts.done if move.status.counts is not None else 0
    row = OwnedReassignment(name=move.metadata.name, phase=move.status.phase, total=total, done=done)
    others = [each for each in resource.status.reassignments if each.name != row.name]
    return (*others, row)[-MAX_SHOWN_REASSIGNMENTS:]


def _list_batch(resource: RebalancePlan) -> list[PlannedMove]:
    return [each for each in resource.status.moves if each.batch == resource.status.batch]


def _list_partitions(resource: RebalancePlan) -> set[TopicPartition]:
    return {_partition(each) for each in resource.status.moves}


def _partition(move: PlannedMove) -> TopicPartition:
    return TopicPartition(move.topic, move.partition)


def _hash(moves: Sequence[PlannedMove]) -> str:
    return hash_plan([(each.topic, each.partition, [*each.before], [*each.after], each.batch) for each in moves])


def _name(resource: RebalancePlan) -> str:
    """Return the name of the PartitionReassignment of the next batch: the same whenever it is asked for."""
    about, status = resource.metadata, resource.status
    identity = sha256(f"{about.uid} {status.plan_hash}".encode()).hexdigest()[:10]
    return f"{about.name[:_LONGEST_PREFIX].rstrip('.-')}-{status.plans}-{status.batch}-{identity}"
