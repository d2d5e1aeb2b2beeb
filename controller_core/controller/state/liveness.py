"""The live replicas of very many partitions at one moment.

`ClusterState` has the same lookup for one partition. Thousands of partitions have few different assignments, and
usually no log directory has failed, so here each assignment is computed once.
"""

from collections.abc import Set

from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.model.ids import BrokerId, TopicPartition


class Liveness:
    """The assigned replicas on the given brokers, in a sound log directory. Valid until the next `await`."""

    def __init__(self, state: ReadOnlyState, brokers: Set[BrokerId]) -> None:
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
