"""The obstacles that must end before partitions can begin to move.

A partition that somebody else moves, or whose broker is missing, holds back only itself.
A partition that no longer moves for another object waits until that object has recorded the outcome of its move,
because the cluster would not show it afterwards. Paused objects record nothing, so nobody waits for them, nor for moves
that have not begun. So no two objects wait for each other: a move that runs waits for nobody.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import list_some
from controller_operator.kafka.requests.moves import Refusal, RefusalKind
from controller_operator.plans.outcome import Context, Verdict
from controller_operator.plans.reassignment.rows import Rows, key, rows_before
from controller_operator.plans.reassignment.turns import is_moving_elsewhere
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import MAX_ROW_MESSAGE, PartitionReassignment, ReassignmentStep

Targets = Mapping[TopicPartition, tuple[BrokerId, ...]]
Others = Callable[[Collection[TopicName]], Sequence[PartitionReassignment]]
"""Returns the objects for the same Kafka cluster that have running moves of some topics, as far as they are known."""
_OUTCOME_S: Final = 1.0
"""Seconds between looks for an awaited outcome. Writing it changes nothing in the Kafka cluster, so no event tells."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why a partition does not begin to move now."""

    reason: Reason
    why: str
    """The words after the partition's name."""
    look_again_in_s: float | None = None
    """Seconds after which the obstacle may be gone without a change in the cluster."""


Obstacles = Mapping[TopicPartition, Obstacle]


def find_no_others(_topics: Collection[TopicName]) -> Sequence[PartitionReassignment]:
    """There are no others."""
    return ()


def wait(view: Snapshot, context: Context, others: Others) -> Verdict | None:
    """Return why no partition at all can be requested now; None if nothing forbids it."""
    if view.controller is None:
        return Verdict.make_working(Reason.NO_CONTROLLER, "the cluster has no controller, so nothing would begin")
    if not context.can_ask_controller and view.reassignment is not None:
        requested = view.reassignment.partitions
        names = _names(others({tp.topic for tp in requested}))
        whose = _describe_owners(name for tp in requested for name in names[tp])
        message = f"a reassignment of {len(requested)} partitions runs, {whose}; this one begins when it has ended"
        return Verdict.make_working(Reason.WAITING_FOR_OTHER_REASSIGNMENT, message)
    return None


def find_obstacles(
    wanted: Targets, view: Snapshot, others: Others, directed: Collection[TopicPartition] = ()
) -> Obstacles:
    """Return the partitions that cannot be requested in the present cluster, and their obstacles.

    `directed`: the partitions with log directories, which wait for each other object that moves them."""
    found = {}
    moving = [tp for tp, replicas in wanted.items() if is_moving_elsewhere(tp, replicas, view)]
    rivals = others({tp.topic for tp in wanted})
    names, unsaid = _names(rivals), _find_without_outcome(rivals)
    for tp, replicas in wanted.items():
        missing = sorted(set(replicas) - view.brokers.keys())
        if tp.topic in view.deleting:
            found[tp] = Obstacle(Reason.TOPIC_BEING_DELETED, "waits, because its topic is being deleted")
        elif missing:
            why = f"waits for broker {list_some(missing)}, which is not registered: start it"
            found[tp] = Obstacle(Reason.UNKNOWN_BROKER, why)
    for tp in moving:
        why = f"moves elsewhere at present, {_describe_owners(names[tp])}"
        found.setdefault(tp, Obstacle(Reason.WAITING_FOR_OTHER_REASSIGNMENT, why))
    for tp in wanted.keys() & unsaid.keys():
        assignment = view.assignment_of(tp)
        if assignment is not None and (assignment.target != wanted[tp] or tp in directed):
            why = f"has moved for {unsaid[tp]}, whose status does not show the outcome yet"
            found.setdefault(tp, Obstacle(Reason.WAITING_FOR_OTHER_REASSIGNMENT, why, _OUTCOME_S))
    return found


def find_soonest(found: Obstacles) -> float | None:
    """Return the seconds until the next look; None if only changes in the cluster matter."""
    return min((each.look_again_in_s for each in found.values() if each.look_again_in_s), default=None)


def find_refused(refusals: Mapping[TopicPartition, Refusal]) -> Obstacles:
    """Return the partitions that the controller refused and may accept later."""
    reasons = {RefusalKind.UNKNOWN: Reason.UNKNOWN_TOPIC, RefusalKind.NOT_NOW: Reason.REQUEST_REFUSED}
    return {
        tp: Obstacle(reasons[each.kind], f"was refused by the controller: {each.said}")
        for tp, each in refusals.items()
        if each.kind in reasons
    }


def add_messages(rows: Rows, found: Obstacles) -> Rows:
    """Return the rows, with their obstacles as messages."""
    return [
        row.model_copy(update={"message": found[key(row)].why[:MAX_ROW_MESSAGE]}) if key(row) in found else row
        for row in rows
    ]


def describe_obstacles(found: Obstacles) -> str:
    """Return the obstacles in words, with the partitions of each."""
    alike: defaultdict[Obstacle, list[TopicPartition]] = defaultdict(list)
    for tp, obstacle in found.items():
        alike[obstacle].append(tp)
    return "; ".join(f"{list_some(partitions)} {obstacle.why}" for obstacle, partitions in alike.items())


def make_verdict(found: Obstacles) -> Verdict:
    """Return the verdict on an object none of whose partitions can go on."""
    reason = next(iter(found.values())).reason
    return Verdict.make_working(reason, describe_obstacles(found))


def _names(others: Sequence[PartitionReassignment]) -> defaultdict[TopicPartition, list[str]]:
    """Return the names of the objects that move each partition."""
    names: defaultdict[TopicPartition, list[str]] = defaultdict(list)
    for each in others:
        for target in each.targets:
            names[key(target)].append(each.metadata.full_name)
    return names


def _find_without_outcome(others: Sequence[PartitionReassignment]) -> Mapping[TopicPartition, str]:
    """Return the partitions that move according to the objects' statuses, each with one such object."""
    return {
        tp: each.metadata.full_name
        for each in others
        if not each.is_paused
        for tp, row in rows_before(each).items()
        if row.step is not ReassignmentStep.WAITING and not row.step.is_final
    }


def _describe_owners(names: Iterable[str]) -> str:
    known = sorted(set(names))
    return f"for {list_some(known)}" if known else "not for any PartitionReassignment"
