"""The progress of each partition of a reassignment: the rows of its status, and their counts.

A row follows from the cluster alone (the table of seed 000), with two exceptions: a final step never changes, and
`originalReplicas` are those from before the move.
"""

from collections.abc import Mapping
from typing import Final

from controller_core.model import reassignment as model
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_operator.plans.partition_rows import replica_fields, replica_list
from controller_operator.resources.reassignment import (
    MAX_ROW_MESSAGE,
    MovingPartition,
    PartitionReassignment,
    PartitionTarget,
    ReassignmentCounts,
    ReassignmentStep,
)
from controller_operator.resources.schema import MAX_STATUS_ENTRIES

ENDED: Final = tuple(step for step in ReassignmentStep if step.is_final)
_GONE: Final = "the topic was deleted during the move"
_STEPS: Final = {
    model.ReassignmentStep.NOT_STARTED: ReassignmentStep.WAITING,
    model.ReassignmentStep.WAITING_FOR_ISR: ReassignmentStep.CATCHING_UP,
    model.ReassignmentStep.MOVING_LEADER: ReassignmentStep.MOVING_LEADER,
    model.ReassignmentStep.REMOVING_OLD_REPLICAS: ReassignmentStep.REMOVING_REPLICAS,
    model.ReassignmentStep.COMPLETED: ReassignmentStep.DONE,
}

Rows = list[MovingPartition]


def first_rows(move: PartitionReassignment, view: Snapshot) -> Rows:
    """Return a row for every partition before any request. Nothing is final, and a missing topic may yet appear."""
    return [_row(target, view, None) for target in move.targets]


def present_rows(move: PartitionReassignment, view: Snapshot) -> Rows:
    """Return the present row of every partition of a move that was requested."""
    before = rows_before(move)
    return [_row(target, view, before.get(key(target))) for target in move.targets]


def rows_before(move: PartitionReassignment) -> Mapping[TopicPartition, MovingPartition]:
    """Return the rows of the status by partition. In a long list, finished partitions are missing."""
    return {key(row): row for row in move.status.partitions}


def key(row: MovingPartition | PartitionTarget) -> TopicPartition:
    return TopicPartition(row.topic, row.partition)


def is_unseen(tp: TopicPartition, replicas: tuple[BrokerId, ...], view: Snapshot) -> bool:
    """Return True if nothing in the cluster shows that the partition moves, or has moved, to these replicas."""
    assignment = view.assignment_of(tp)
    return assignment is not None and not _is_requested(tp, replicas, view) and assignment.target != replicas


def judge_lost_row(row: MovingPartition, view: Snapshot) -> MovingPartition:
    """Return the row of a partition that was moving, but neither moves for this object nor is at its target.

    A partition that moves away from its target has reached it. One that has its original replicas, or moves back to
    them, was cancelled. Any other one may or may not have reached its target in between."""
    assignment = view.assignment_of(key(row))
    if assignment is None or row.topic in view.deleting:
        return row.model_copy(update={"step": ReassignmentStep.FAILED, "message": _GONE})
    original, target = set(row.original_replicas), set(row.target_replicas)
    if assignment.is_being_reassigned and set(assignment.origin) == target != original:
        return row.model_copy(update={"step": ReassignmentStep.DONE})
    if set(assignment.target) == original:
        message = "was sent back to its original replicas: another tool cancelled the move"
        return row.model_copy(update={"step": ReassignmentStep.FAILED, "message": message})
    present = "moves to" if assignment.is_being_reassigned else "has"
    message = (
        "another move has replaced this one, and it is unknown whether this one had reached its target: "
        f"the partition {present} replicas {replica_list(assignment.target)} now"
    )
    return row.model_copy(update={"step": ReassignmentStep.SUPERSEDED, "message": message[:MAX_ROW_MESSAGE]})


def find_outdated(move: PartitionReassignment, view: Snapshot) -> dict[TopicPartition, str]:
    """Return the partitions that have, or move to, other replicas than the expected ones and their targets, with the
    words after their names."""
    found = {}
    for target in move.targets:
        assignment, expected = view.assignment_of(key(target)), target.expected_replicas
        if expected and assignment and assignment.target not in (expected, target.replicas):
            now, before = replica_list(assignment.target), replica_list(expected)
            found[key(target)] = f"has replicas {now} and not {before} as when its move was planned"
    return found


def fail_row(row: MovingPartition, why: str) -> MovingPartition:
    """Return the failed row of a partition that never began to move. `why`: the words after its name."""
    return row.model_copy(update={"step": ReassignmentStep.FAILED, "message": why[:MAX_ROW_MESSAGE]})


def count_steps(rows: Rows) -> ReassignmentCounts:
    """Return the counts of partitions by progress."""

    def number(*steps: ReassignmentStep) -> int:
        return sum(row.step in steps for row in rows)

    ended = number(*ENDED)
    waiting = number(ReassignmentStep.WAITING)
    return ReassignmentCounts(
        total=len(rows),
        waiting=waiting,
        moving=len(rows) - ended - waiting,
        done=number(ReassignmentStep.DONE),
        failed=number(ReassignmentStep.FAILED, ReassignmentStep.SUPERSEDED),
        cancelled=number(ReassignmentStep.CANCELLED),
    )


def rank(step: ReassignmentStep) -> int:
    """Return the rank of a step: failed first, then moving, waiting, and done last."""
    if step.is_abandoned:
        return 0
    return {ReassignmentStep.WAITING: 2, ReassignmentStep.DONE: 3}.get(step, 1)


def list_shown_rows(rows: Rows) -> tuple[MovingPartition, ...]:
    """Return the rows that a status lists, the most urgent ones first, and among equals those with a message first."""

    def urgency(row: MovingPartition) -> tuple[int, bool, str, int]:
        return rank(row.step), row.message is None, row.topic, row.partition

    return tuple(sorted(rows, key=urgency)[:MAX_STATUS_ENTRIES])


def _row(target: PartitionTarget, view: Snapshot, before: MovingPartition | None) -> MovingPartition:
    """Return the present row of one partition. A final step stays."""
    if before is not None and before.step in ENDED:
        return before
    tp = key(target)
    assignment = view.assignment_of(tp)
    if assignment is None:
        return _make_gone_row(target, before)
    state = view.state_of(tp)
    step = _STEPS[model.find_step(assignment, target.replicas, state.leader_and_isr if state else None)]
    if assignment.is_being_reassigned and assignment.target != target.replicas:
        step = ReassignmentStep.WAITING
    if step is ReassignmentStep.WAITING and _is_requested(tp, target.replicas, view):
        step = ReassignmentStep.CATCHING_UP
    return MovingPartition(
        topic=target.topic,
        partition=target.partition,
        original_replicas=before.original_replicas if before else assignment.origin,
        target_replicas=target.replicas,
        target_log_dirs=target.log_dirs or (),
        step=step,
        **replica_fields(view, tp),
    )


def _is_requested(tp: TopicPartition, replicas: tuple[BrokerId, ...], view: Snapshot) -> bool:
    return view.reassignment is not None and view.reassignment.partitions.get(tp) == replicas


def _make_gone_row(target: PartitionTarget, before: MovingPartition | None) -> MovingPartition:
    return MovingPartition(
        topic=target.topic,
        partition=target.partition,
        original_replicas=before.original_replicas if before else (),
        target_replicas=target.replicas,
        target_log_dirs=target.log_dirs or (),
        step=ReassignmentStep.FAILED if before else ReassignmentStep.WAITING,
        message=_GONE if before else "the cluster has no such partition",
    )
