"""Who of a partition's replicas is alive, asked for very many partitions at one moment.

`ClusterState` answers it for one partition. Thousands of partitions have few different assignments, and nearly always no
log directory has failed: here each assignment is answered once.
"""

from collections.abc import Set

from controller_core.controller.state.cluster_state import ClusterState
from controller_core.model.ids import BrokerId, TopicPartition


class Liveness:
    """The assigned replicas that are on the given brokers and in a sound log directory. Good until the next `await`."""

    def __init__(self, state: ClusterState, brokers: Set[BrokerId]) -> None:
        self._state = state
        self._brokers = frozenset(brokers)
        self._of_assignment: dict[tuple[BrokerId, ...], frozenset[BrokerId]] = {}

    def __call__(self, partition: TopicPartition) -> Set[BrokerId]:
        replicas = self._state.topics[partition.topic].partitions[partition.partition].replicas
        alive = self._of_assignment.get(replicas)
        if alive is None:
            alive = self._of_assignment[replicas] = self._brokers.intersection(replicas)
        if self._state.failed_replicas:
            return {broker for broker in alive if self._state.is_served_by(partition, broker)}
        return alive
