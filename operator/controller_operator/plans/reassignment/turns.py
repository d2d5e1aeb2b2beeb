"""The turns of a move's partitions: those to request next, and those that were requested already.

`maxConcurrentPartitions` limits how many move at a time: whenever some are done, as many others are requested. A
partition counts as requested from the moment at which it was seen moving. Until then it is `Waiting`, and requesting it
again is harmless, because the cluster shows nothing of an earlier request. The list of a status is bounded, so failed
rows could push moving ones out of it. Therefore only as many partitions begin as have room in the list, and none if
failed rows fill it.
"""

from collections.abc import Mapping
from itertools import islice

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.actions import SubmitReassignment
from controller_operator.kafka.requests.placements import PlaceReplicas
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.reassignment.rows import ENDED, Rows, key, rows_before
from controller_operator.resources.reassignment import (
    PartitionReassignment,
    PartitionReassignmentStatus,
    ReassignmentCounts,
    ReassignmentStep,
)
from controller_operator.resources.schema import MAX_STATUS_ENTRIES

Targets = Mapping[TopicPartition, tuple[BrokerId, ...]]


def find_requested(move: PartitionReassignment, unseen: Targets, context: Context) -> set[TopicPartition]:
    """Return the partitions that are known to have been requested although the cluster shows nothing of them.

    They were requested just now, or were seen moving earlier."""
    submitted = {tp for step in context.done if isinstance(step, SubmitReassignment) for tp in step.partitions}
    before, counts = rows_before(move), move.status.counts
    are_all_asked_for = counts is not None and (counts.waiting == 0 or _count_abandoned(counts) >= MAX_STATUS_ENTRIES)

    def is_asked_for(tp: TopicPartition) -> bool:
        row = before.get(tp)
        return are_all_asked_for if row is None else row.step is not ReassignmentStep.WAITING

    return {tp for tp in unseen if tp in submitted or are_all_asked_for or is_asked_for(tp)}


def apply_requests(
    move: PartitionReassignment, plan: Plan[PartitionReassignmentStatus]
) -> PartitionReassignment | None:
    """Return the object as it will be after the requests of the plan; None if the plan makes no request."""
    asked = {
        tp for step in plan.steps if isinstance(step, SubmitReassignment | PlaceReplicas) for tp in step.partitions
    }
    if not asked:
        return None
    begun = {"step": ReassignmentStep.CATCHING_UP}
    rows = [row.model_copy(update=begun) if key(row) in asked else row for row in plan.status.partitions]
    return move.model_copy(update={"status": plan.status.model_copy(update={"partitions": tuple(rows)})})


def next_in_turn(move: PartitionReassignment, free: Targets, rows: Rows) -> Targets:
    """Return the free partitions to request now, in the order of the spec; none while the maximum number moves."""
    most = move.spec.max_concurrent_partitions
    if most is None:
        return free
    failed = sum(row.step.is_abandoned for row in rows)
    moving = sum(row.step not in (*ENDED, ReassignmentStep.WAITING) for row in rows)
    # Rows that the status has no room for would be requested again, so no more begin than the list can show.
    room = min(most, MAX_STATUS_ENTRIES - failed) - moving
    return dict(islice(free.items(), max(0, room)))


def is_own_request(targets: Targets, view: Snapshot) -> bool:
    """Return True if the controller's present request is one for this move."""
    requested = view.reassignment.partitions if view.reassignment else {}
    return any(targets.get(tp) == replicas for tp, replicas in requested.items())


def is_moving_elsewhere(tp: TopicPartition, replicas: tuple[BrokerId, ...], view: Snapshot) -> bool:
    """Return True if the partition moves to other replicas, or somebody has requested that."""
    requested = view.reassignment.partitions.get(tp, replicas) if view.reassignment else replicas
    assignment = view.assignment_of(tp)
    is_begun = assignment is not None and assignment.is_being_reassigned and assignment.target != replicas
    return is_begun or requested != replicas


def _count_abandoned(counts: ReassignmentCounts) -> int:
    return counts.failed + counts.cancelled
