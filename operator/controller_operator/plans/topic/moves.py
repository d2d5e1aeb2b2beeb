"""Moves of an existing topic's replicas, by a PartitionReassignment that the topic owns.

The name of the PartitionReassignment follows from its moves, so repeated attempts make one object. While a move of the
topic runs, no other one begins; otherwise the finished partitions would make the rest look like a new move. Several
moves in sequence do what is too much for one.
If a move would give a partition replicas that the spec no longer wants, it is cancelled: deleting its object rolls back
its unfinished part (`plans/reassignment/deletion`). Then the next move is planned from the present replicas. A move
whose unfinished part the spec still wants goes on, even if other parts of the spec have changed. If that is the
throttle, it gets the new one.
"""

from dataclasses import replace
from hashlib import sha256
from typing import Final

from controller_core.model.snapshot import TopicSnapshot
from controller_core.model.topics.placement import NotEnoughBrokers
from controller_operator.kafka.write_limits import Targets
from controller_operator.plans.outcome import CancelMove, ForgetMove, StartMove, Step, Verdict
from controller_operator.plans.owned_moves import find_limit
from controller_operator.plans.placement.removal import explain_closed
from controller_operator.plans.topic.case import Case, Finding, Moves
from controller_operator.plans.topic.creation import unknown_brokers
from controller_operator.plans.topic.differences import Differences, move_targets
from controller_operator.resources.approval import Approval
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.reassignment import (
    PartitionReassignment,
    PartitionTarget,
    ReassignmentPhase,
    read_rate,
)
from controller_operator.resources.schema import MAX_PARTITIONS
from controller_operator.resources.topic import KafkaTopic, KafkaTopicSpec, TopicReassignment

_LONGEST_PREFIX: Final = 200


def plan_moves(case: Case, topic: TopicSnapshot, found: Differences) -> tuple[Verdict, tuple[Step, ...]]:
    """Return the steps for replicas that are not where the spec says and should be moved there."""
    resource, view, moves = case.resource, case.view, case.around.moves
    if running := list_unfinished(moves):
        return _while_running(running, list_unwanted(resource, topic, moves))
    if topic.is_being_reassigned:
        return Verdict.make_working(Reason.WAITING_FOR_OTHER_REASSIGNMENT, "replicas of the topic move already"), ()
    if (refusal := unknown_brokers(resource, view)) is not None:
        return refusal, ()
    try:
        targets = move_targets(resource.spec, topic, view, found)
    except NotEnoughBrokers as error:
        return Verdict.make_working(Reason.NOT_ENOUGH_BROKERS, f"{error}{explain_closed(view)}"), ()
    first = case.context.limits.choose_fitting_targets(targets, view, most=MAX_PARTITIONS)
    return _move(resource, _name(resource, topic, first), first, moves)


def limit_move(finding: Finding, case: Case) -> Finding:
    """Return the finding with the throttle of the spec for the move that runs, and with the record of it.

    A move without a record was begun by an older operator, so the throttle that it has counts as that of the spec."""
    running, rate, given = list_unfinished(case.around.moves), _find_rate(case.resource.spec), case.status.reassignment
    started = [step.name for step in finding.steps if isinstance(step, StartMove)]
    name = min(running or started, default=None)
    if name is None:
        return finding
    if given is None or given.name != name:
        return _note_move(finding, TopicReassignment(name=name, bytes_per_second=rate))
    if name not in running or any(isinstance(step, CancelMove) and step.name == name for step in finding.steps):
        # A move that is begun again may exist already, with the throttle on record.
        return _note_move(finding, given)
    if limit := find_limit(running[name], rate, given.bytes_per_second):
        return replace(_note_move(finding, given), steps=(limit, *finding.steps))
    return _note_move(finding, TopicReassignment(name=name, bytes_per_second=rate))


def _note_move(finding: Finding, move: TopicReassignment) -> Finding:
    return replace(finding, identity={**finding.identity, "reassignment": move})


def list_unfinished(moves: Moves) -> Moves:
    """Return the moves that have not ended."""
    return {name: move for name, move in moves.items() if move.ending is None}


def explain_waits(moves: Moves) -> str:
    """Return the reasons of moves that make no progress, as words after the topic's own; empty if all make progress."""
    said = {name: move.status.condition(ConditionType.READY) for name, move in list_unfinished(moves).items()}
    return "".join(
        f"; PartitionReassignment {name}: {ready.message}"
        for name, ready in said.items()
        if ready is not None and ready.reason is not Reason.PROGRESSING
    )


def list_unwanted(resource: KafkaTopic, topic: TopicSnapshot, moves: Moves) -> Moves:
    """Return the unfinished moves that would give a partition replicas that the spec does not want."""
    return {
        name: move
        for name, move in list_unfinished(moves).items()
        if any(not _is_wanted(target, resource.spec) for target in _list_unfinished(move, topic))
    }


def _list_unfinished(move: PartitionReassignment, topic: TopicSnapshot) -> list[PartitionTarget]:
    """Return the unfinished targets of a move."""
    ended = {row.partition for row in move.status.partitions if row.topic == topic.name and row.step.is_final}

    def has_ended(target: PartitionTarget) -> bool:
        live = topic.partitions.get(target.partition)
        is_there = live is not None and not live.is_being_reassigned and live.replicas == target.replicas
        return is_there or target.partition in ended

    return [target for target in move.targets if target.topic == topic.name and not has_ended(target)]


def _is_wanted(target: PartitionTarget, spec: KafkaTopicSpec) -> bool:
    """Return True if the spec allows these replicas: with a replication factor, any replicas of that number."""
    if spec.replica_assignment is None:
        return len(target.replicas) == spec.replication_factor
    is_named = target.partition < len(spec.replica_assignment)
    return not is_named or spec.replica_assignment[target.partition] == target.replicas


def _while_running(running: Moves, unwanted: Moves) -> tuple[Verdict, tuple[Step, ...]]:
    """Wait for the running moves, and cancel those that the spec does not want."""
    steps = tuple(CancelMove(name=name) for name, move in unwanted.items() if move.metadata.deletion_timestamp is None)
    name = next(iter(unwanted or running))
    if running[name].metadata.deletion_timestamp is not None:
        message = f"PartitionReassignment {name} is being cancelled: its unfinished part is rolled back first"
    elif unwanted:
        message = f"PartitionReassignment {name} is cancelled, because the spec now asks for other replicas"
    else:
        message = f"PartitionReassignment {name} moves replicas{explain_waits(running)}"
    return Verdict.make_working(Reason.PROGRESSING, message), steps


def _move(resource: KafkaTopic, name: str, targets: Targets, moves: Moves) -> tuple[Verdict, tuple[Step, ...]]:
    earlier = moves.get(name)
    if earlier is None:
        message = f"moving replicas of {len(targets)} partitions with PartitionReassignment {name}"
        return Verdict.make_working(Reason.PROGRESSING, message), (_start(resource, name, targets),)
    ready = earlier.status.condition(ConditionType.READY)
    is_superseded = ready is not None and ready.reason is Reason.SUPERSEDED
    if earlier.status.phase is ReassignmentPhase.COMPLETED or is_superseded:
        message = f"PartitionReassignment {name} has made this move before: it is deleted, and the move is made again"
        return Verdict.make_working(Reason.PROGRESSING, message), (ForgetMove(name=name),)
    message = f"PartitionReassignment {name} ended as {earlier.status.phase}: delete it to try again before it expires"
    return Verdict.make_stalled(Reason.PARTITIONS_FAILED, message), ()


def _start(resource: KafkaTopic, name: str, targets: Targets) -> StartMove:
    how = resource.spec.reassignment
    return StartMove(
        name=name,
        partitions=tuple(targets.items()),
        bytes_per_second=_find_rate(resource.spec),
        max_concurrent_partitions=how.max_concurrent_partitions if how is not None else None,
        needs_approval=resource.spec.approval is Approval.REQUIRED,
    )


def _find_rate(spec: KafkaTopicSpec) -> int | None:
    return read_rate(spec.reassignment.throttle) if spec.reassignment is not None else None


def _name(resource: KafkaTopic, topic: TopicSnapshot, targets: Targets) -> str:
    moves = [(tp.partition, topic.partitions[tp.partition].target, replicas) for tp, replicas in targets.items()]
    # The present replicas are part of the name, so the same target from another state is another move.
    identity = f"{resource.status.topic_id} {sorted(moves)}"
    return f"{resource.metadata.name[:_LONGEST_PREFIX].rstrip('.-')}-{sha256(identity.encode()).hexdigest()[:10]}"
