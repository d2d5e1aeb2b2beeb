"""Repair of assignments that name the phantom broker: the controller's own id, which can never host a replica.

A broker that creates a topic places replicas on all brokers in its metadata, and the controller is listed there without
being a broker.
"""

from collections import Counter
from collections.abc import Mapping, Set

from controller_core.model.ids import BrokerId, PartitionId
from controller_core.model.metadata import ReplicaAssignment


def replace_phantom(
    partitions: Mapping[PartitionId, ReplicaAssignment],
    phantom: BrokerId,
    live: Set[BrokerId],
    replicas_per_broker: Mapping[BrokerId, int],
) -> dict[PartitionId, ReplicaAssignment]:
    """Return the assignments with the phantom replaced by the live broker that hosts the fewest replicas.

    If every live broker already has a replica of the partition, the phantom is left out. The order of the other
    replicas stays. While no broker is live, a partition keeps the phantom as its only replica, because an assignment is
    never empty; the next check of the topic finds it again.
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
        repaired[partition] = _substitute(assignment, phantom, substitute)
    return repaired


def _substitute(assignment: ReplicaAssignment, phantom: BrokerId, substitute: BrokerId | None) -> ReplicaAssignment:
    def mend(replicas: tuple[BrokerId, ...]) -> tuple[BrokerId, ...]:
        renamed = (substitute if replica == phantom else replica for replica in replicas)
        return tuple(replica for replica in renamed if replica is not None)

    replicas = mend(assignment.replicas)
    if not replicas:
        return assignment
    return ReplicaAssignment(replicas=replicas, adding=mend(assignment.adding), removing=mend(assignment.removing))
