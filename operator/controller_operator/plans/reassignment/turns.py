"""Whose turn it is: the partitions of a move that are asked for next, and those that were asked for already.

With `maxConcurrentPartitions` so many are under way at a time: whenever some are done, as many others are asked for. A
partition is known to have been asked for from the moment at which it was seen under way. Until then it is `Waiting`, and
asking for it is no mistake: it repeats a request of which the cluster shows nothing. The list of a status is bounded, so
the failed ones alone could fill it and push those under way out of it: what is begun at a time is so few that all of them
have room, and with only failed ones in the list nothing more is begun.
"""

from collections.abc import Mapping
from itertools import islice

from controller_core.model.ids import BrokerId, TopicPartition
from controller_operator.kafka.actions import SubmitReassignment
from controller_operator.kafka.cluster_view import ClusterView
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


def asked_for(move: PartitionReassignment, unseen: Targets, context: Context) -> set[TopicPartition]:
    """Which of the partitions, of which the cluster shows nothing, are known to have been asked for: just now, or because
    they were seen under way."""
    submitted = {tp for step in context.done if isinstance(step, SubmitReassignment) for tp in step.partitions}
    before, counts = rows_before(move), move.status.counts
    are_all_asked_for = counts is not None and (counts.waiting == 0 or _ended_badly(counts) >= MAX_STATUS_ENTRIES)

    def is_asked_for(tp: TopicPartition) -> bool:
        row = before.get(tp)
        return are_all_asked_for if row is None else row.step is not ReassignmentStep.WAITING

    return {tp for tp in unseen if tp in submitted or are_all_asked_for or is_asked_for(tp)}


def as_asked(move: PartitionReassignment, plan: Plan[PartitionReassignmentStatus]) -> PartitionReassignment | None:
    """Return the object as it will be when what the plan asks for has begun; None if the plan asks for nothing."""
    asked = {tp for step in plan.steps if isinstance(step, SubmitReassignment) for tp in step.partitions}
    if not asked:
        return None
    begun = {"step": ReassignmentStep.CATCHING_UP}
    rows = [row.model_copy(update=begun) if key(row) in asked else row for row in plan.status.partitions]
    return move.model_copy(update={"status": plan.status.model_copy(update={"partitions": tuple(rows)})})


def next_in_turn(move: PartitionReassignment, free: Targets, rows: Rows) -> Targets:
    """Those of the partitions that nothing holds back to ask for now, in the order of the spec; none while as many move
    as may."""
    most = move.spec.max_concurrent_partitions
    if most is None:
        return free
    failed = sum(row.step.is_abandoned for row in rows)
    moving = sum(row.step not in (*ENDED, ReassignmentStep.WAITING) for row in rows)
    room = min(most, MAX_STATUS_ENTRIES - failed) - moving
    return dict(islice(free.items(), max(0, room)))


def is_own_request(targets: Targets, view: ClusterView) -> bool:
    """Whether the request that the controller has at present is one for this move."""
    requested = view.reassignment.partitions if view.reassignment else {}
    return any(targets.get(tp) == replicas for tp, replicas in requested.items())


def is_moving_elsewhere(tp: TopicPartition, replicas: tuple[BrokerId, ...], view: ClusterView) -> bool:
    """Whether somebody moves the partition to other replicas, or has asked for that."""
    requested = view.reassignment.partitions.get(tp, replicas) if view.reassignment else replicas
    assignment = view.assignment_of(tp)
    is_begun = assignment is not None and assignment.is_being_reassigned and assignment.target != replicas
    return is_begun or requested != replicas


def _ended_badly(counts: ReassignmentCounts) -> int:
    return counts.failed + counts.cancelled
