"""Replicas of an existing topic that should be elsewhere: a PartitionReassignment that the topic owns moves them.

Its name follows from what moves from where to where, so it is made once however often that is tried. While any move of
the topic runs no other one is begun: the partitions that are done would otherwise make the rest look like a new move.
What is too much for one move is moved by several, one after the other.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from controller_core.model.topics.placement import NotEnoughBrokers
from controller_operator.kafka.cluster_view import ClusterView, TopicView
from controller_operator.kafka.write_limits import Targets
from controller_operator.plans.outcome import Context, ForgetMove, StartMove, Step, Verdict
from controller_operator.plans.topic.creation import unknown_brokers
from controller_operator.plans.topic.differences import Differences, move_targets
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import PartitionReassignment, ReassignmentPhase
from controller_operator.resources.schema import MAX_PARTITIONS
from controller_operator.resources.topic import KafkaTopic

_LONGEST_PREFIX: Final = 200

Moves = Mapping[str, PartitionReassignment]
"""The PartitionReassignments that a topic owns, by name."""


def plan_moves(
    resource: KafkaTopic, topic: TopicView, view: ClusterView, moves: Moves, found: Differences, context: Context
) -> tuple[Verdict, tuple[Step, ...]]:
    """What to do about those replicas that are not where the spec says and are to be put there."""
    running = [name for name, move in moves.items() if move.status.phase is None or not move.status.phase.is_final]
    if running:
        return Verdict.working(Reason.PROGRESSING, f"PartitionReassignment {running[0]} moves replicas"), ()
    if topic.is_being_reassigned:
        return Verdict.working(Reason.WAITING_FOR_OTHER_REASSIGNMENT, "replicas of the topic move already"), ()
    if (refusal := unknown_brokers(resource, view)) is not None:
        return refusal, ()
    try:
        targets = move_targets(resource.spec, topic, view, found)
    except NotEnoughBrokers as error:
        return Verdict.working(Reason.NOT_ENOUGH_BROKERS, f"{error}{view.and_who_takes_none}"), ()
    first = context.limits.fitting_targets(targets, view, most=MAX_PARTITIONS)
    return _move(resource, _name(resource, topic, first), first, moves)


def _move(resource: KafkaTopic, name: str, targets: Targets, moves: Moves) -> tuple[Verdict, tuple[Step, ...]]:
    earlier = moves.get(name)
    if earlier is None:
        message = f"moving replicas of {len(targets)} partitions with PartitionReassignment {name}"
        return Verdict.working(Reason.PROGRESSING, message), (_start(resource, name, targets),)
    if earlier.status.phase is ReassignmentPhase.COMPLETED:
        message = f"replicas moved away again after PartitionReassignment {name}: moving them once more"
        return Verdict.working(Reason.PROGRESSING, message), (ForgetMove(name=name),)
    message = f"PartitionReassignment {name} ended as {earlier.status.phase}: delete it to try again before it expires"
    return Verdict.stalled(Reason.PARTITIONS_FAILED, message), ()


def _start(resource: KafkaTopic, name: str, targets: Targets) -> StartMove:
    how = resource.spec.reassignment
    return StartMove(
        name=name,
        partitions=tuple(targets.items()),
        bytes_per_second=how.throttle.bytes_per_second if how is not None and how.throttle is not None else None,
        max_concurrent_partitions=how.max_concurrent_partitions if how is not None else None,
    )


def _name(resource: KafkaTopic, topic: TopicView, targets: Targets) -> str:
    moves = [(tp.partition, topic.partitions[tp.partition].target, replicas) for tp, replicas in targets.items()]
    identity = f"{resource.status.topic_id} {sorted(moves)}"
    return f"{resource.metadata.name[:_LONGEST_PREFIX].rstrip('.-')}-{sha256(identity.encode()).hexdigest()[:10]}"
