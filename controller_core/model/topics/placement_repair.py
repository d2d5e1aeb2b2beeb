"""Repairing assignments that name a broker which can never host a replica: the controller's own id.

A broker that creates a topic by itself places replicas on all brokers that its metadata lists, and the controller is one
of them there without being a broker.
"""

from collections import Counter
from collections.abc import Mapping, Set

from controller_core.model.ids import BrokerId, PartitionId
from controller_core.model.metadata import ReplicaAssignment


def without_phantom(
    partitions: Mapping[PartitionId, ReplicaAssignment],
    phantom: BrokerId,
    live: Set[BrokerId],
    replicas_per_broker: Mapping[BrokerId, int],
) -> dict[PartitionId, ReplicaAssignment]:
    """The assignments with the phantom replaced by the live broker that hosts the fewest replicas.

    Where every live broker has a replica of the partition already, the phantom is left out; the order of the other
    replicas stays. A partition whose only replica is the phantom keeps it while no broker is live: an assignment is
    never empty, and the next look at the topic finds it again.
    """
    load = Counter(replicas_per_broker)
    for assignment in partitions.values():
        load.update(assignment.replicas)
    repaired: dict[PartitionId, ReplicaAssignment] = {}
    for partition, assignment in partitions.items():
        if phantom not in assignment.replicas:
            repaired[partition] = assignment
            continue
        free = [broker for broker in live if broker not in assignment.replicas]
        substitute = min(free, key=lambda broker: (load[broker], broker), default=None)
        if substitute is not None:
            load[substitute] += 1
        repaired[partition] = _substituted(assignment, phantom, substitute)
    return repaired


def _substituted(assignment: ReplicaAssignment, phantom: BrokerId, substitute: BrokerId | None) -> ReplicaAssignment:
    def mend(replicas: tuple[BrokerId, ...]) -> tuple[BrokerId, ...]:
        renamed = (substitute if replica == phantom else replica for replica in replicas)
        return tuple(replica for replica in renamed if replica is not None)

    replicas = mend(assignment.replicas)
    if not replicas:
        return assignment
    return ReplicaAssignment(replicas=replicas, adding=mend(assignment.adding), removing=mend(assignment.removing))
