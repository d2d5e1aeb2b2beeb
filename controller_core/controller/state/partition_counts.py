"""How many partitions are not as they should be: what monitoring asks every few seconds, of all partitions, in one pass.

Nobody else has a turn meanwhile, so it is quick: whether an ISR lacks a replica is answered once for all that are alike.
"""

from dataclasses import dataclass

from controller_core.controller.state.cluster_state import ClusterState
from controller_core.model.ids import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCounts:
    """Counts of partitions."""

    total: int
    offline: int
    """Without a live leader."""
    under_replicated: int
    """With a replica that is not in the ISR; those that a reassignment adds do not count."""
    not_led_by_preferred: int
    """Led by another than their first assigned replica, or by nobody."""


def partition_counts(state: ClusterState) -> PartitionCounts:
    """Counts all partitions; one that was never led is offline, and nothing else."""
    total = offline = under_replicated = not_led_by_preferred = 0
    states, brokers, failed = state.states, state.brokers, state.failed_replicas
    lacks_replica: dict[tuple[int, tuple[BrokerId, ...]], bool] = {}
    for topic in state.topics.values():
        total += len(topic.known)
        assignments = topic.partitions
        for number, partition in topic.known.items():
            known = states.get(partition)
            if known is None:
                offline += 1
                continue
            leadership, assignment = known.leader_and_isr, assignments[number]
            leader, isr = leadership.leader, leadership.isr
            if leader not in brokers or (failed and not state.is_served_by(partition, leader)):
                offline += 1
            if leader != assignment.preferred:
                not_led_by_preferred += 1
            alike = id(assignment), isr  # an assignment is shared by all partitions that have the same
            lacks = lacks_replica.get(alike)
            if lacks is None:
                lacks = lacks_replica[alike] = not set(assignment.origin) <= set(isr)
            under_replicated += lacks
    return PartitionCounts(
        total=total,
        offline=offline,
        under_replicated=under_replicated,
        not_led_by_preferred=not_led_by_preferred,
    )
