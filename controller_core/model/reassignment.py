"""The arithmetic of a partition reassignment (seed 000): from OAR by way of OAR + RAR to RAR.

OAR are the old assigned replicas, RAR the reassigned ones. Their union is written to the topic's znode before anything
moves, and RAR alone is written last. So a new controller finds both sets there and can go on from any step.
"""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Final

from controller_core.model.ids import BrokerId
from controller_core.model.metadata import LeaderAndIsr, ReplicaAssignment

ANY_DIRECTORY: Final = "any"
"""Stands for a log directory of the broker's choice."""


class ReassignmentStep(Enum):
    """The progress of a partition's reassignment by what ZooKeeper holds: the rows of seed 000's table."""

    NOT_STARTED = "NotStarted"
    WAITING_FOR_ISR = "WaitingForIsr"
    """AR is OAR + RAR; the replicas in RAR catch up (steps 1 to 4)."""
    MOVING_LEADER = "MovingLeader"
    """All of RAR is in sync; the leader is not in RAR yet (steps 5 to 7)."""
    REMOVING_OLD_REPLICAS = "RemovingOldReplicas"
    """The leader is in RAR; OAR - RAR leave the ISR and are deleted (steps 8 and 9)."""
    COMPLETED = "Completed"
    """AR is RAR (steps 10 to 12)."""


def begin_reassignment(current: ReplicaAssignment, target: Sequence[BrokerId]) -> ReplicaAssignment:
    """Return the assignment with AR = RAR + OAR. If a reassignment is running, the new target replaces its target.

    Kafka forgets the order of OAR if the target has another order of the same replicas: 1,2,3 that goes to 3,4,2 and is
    cancelled comes back as 3,2,1. Here the order is recorded.
    """
    origin = current.origin
    replicas = (*target, *(replica for replica in origin if replica not in target))
    begun = ReplicaAssignment(
        replicas=replicas,
        adding=tuple(replica for replica in replicas if replica not in origin),
        removing=tuple(replica for replica in replicas if replica not in target),
    )
    return replace(begun, origin_order=origin) if begun.is_being_reassigned and begun.origin != origin else begun


def complete_reassignment(current: ReplicaAssignment) -> ReplicaAssignment:
    """Return the assignment with AR = RAR."""
    return ReplicaAssignment(replicas=current.target)


def find_dropped_replicas(before: ReplicaAssignment, after: ReplicaAssignment) -> tuple[BrokerId, ...]:
    """Return the replicas that the new target no longer needs. They are stopped and deleted at once (KIP-455)."""
    return tuple(replica for replica in before.replicas if replica not in after.replicas)


def all_in_sync(target: Sequence[BrokerId], leader_and_isr: LeaderAndIsr) -> bool:
    """Return True if step 4 is over: every replica in RAR has joined the ISR."""
    return set(target) <= set(leader_and_isr.isr)


def find_step(
    assignment: ReplicaAssignment, target: Sequence[BrokerId], state: LeaderAndIsr | None
) -> ReassignmentStep:
    """Return the step that a partition has reached on its way to the target."""
    if not assignment.is_being_reassigned:
        done = assignment.replicas == tuple(target)
        return ReassignmentStep.COMPLETED if done else ReassignmentStep.NOT_STARTED
    if state is None or not all_in_sync(target, state):
        return ReassignmentStep.WAITING_FOR_ISR
    if state.leader not in target:
        return ReassignmentStep.MOVING_LEADER
    return ReassignmentStep.REMOVING_OLD_REPLICAS
