"""The moves of `drainBrokers`, planned over the present cluster.

The plan is computed again at each reconciliation until the first move begins, and the status shows it. From then on the
plan in the status is fixed, so a restarted operator continues with the same one.
"""

from controller_core.model.ids import TopicName
from controller_core.model.snapshot import Snapshot
from controller_core.model.topics.placement import NotEnoughBrokers
from controller_core.model.wording import list_some, name_all
from controller_operator.plans.outcome import Verdict
from controller_operator.plans.placement.removal import explain_closed
from controller_operator.plans.reassignment.draining import Assigned, Occupancy, drain, occupancy
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import PartitionReassignment, PartitionTarget
from controller_operator.resources.schema import MAX_PARTITIONS


def plan_drain(move: PartitionReassignment, view: Snapshot) -> PartitionReassignment | Verdict:
    """Return the object with its plan in the status, or the reason why there is none."""
    drained = move.spec.drain_brokers or ()
    occupied = occupancy(_list_assigned(view), drained)
    number = len(occupied.leaving)
    if number > MAX_PARTITIONS:  # before anything is computed: half a cluster takes a second and more
        message = f"{number} partitions have replicas on {name_all('broker', drained)}, and one object can move "
        return Verdict.make_stalled(
            Reason.TOO_LARGE, f"{message}{MAX_PARTITIONS}: drain fewer, or move some by name first"
        )
    try:
        moves = drain(occupied, view.racks, closed=view.closed)
    except NotEnoughBrokers as error:
        crowded = (
            f"topics with too many replicas for the brokers that remain: {list_some(_find_crowded(occupied, view))}"
        )
        message = f"{name_all('broker', drained)} cannot be emptied: {error}{explain_closed(view)}; {crowded}"
        return Verdict.make_working(Reason.NOT_ENOUGH_BROKERS, message)
    plan = tuple(PartitionTarget(topic=tp.topic, partition=tp.partition, replicas=to) for tp, to in moves.items())
    return move.model_copy(update={"status": move.status.model_copy(update={"plan": plan})})


def _find_crowded(occupied: Occupancy, view: Snapshot) -> list[TopicName]:
    """Return the topics with more replicas than brokers that can have them once the drained ones are empty."""
    takers = view.racks_of_takers.keys() - occupied.drained
    return sorted(
        {
            tp.topic
            for tp, replicas in occupied.leaving.items()
            if len(takers | (set(replicas) - occupied.drained)) < len(replicas)
        }
    )


def _list_assigned(view: Snapshot) -> list[Assigned]:
    """Return the replicas of every partition that is not being deleted; for a moving one, its target."""
    return [
        (topic.name, number, assignment.target)
        for topic in view.topics.values()
        if topic.name not in view.deleting
        for number, assignment in topic.assignment.partitions.items()
    ]
