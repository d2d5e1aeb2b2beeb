"""Counts of partitions by condition, updated with each change, because monitoring asks every few seconds.

The cost of a lookup depends on the number of brokers, not of partitions. `ClusterState` starts to count at the first
lookup, so a standby, which nobody asks, counts nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, Literal

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.metadata import PartitionState, ReplicaAssignment


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCounts:
    """Counts of partitions."""

    total: int
    offline: int
    """Without a live leader."""
    under_replicated: int
    """With a replica that is not in the ISR. Replicas that a reassignment adds do not count."""
    not_led_by_preferred: int
    """With another leader than the first assigned replica, or with none."""


class PartitionTally:
    """Counts of the partitions that were counted in and not out again. Equal partitions are counted together.

    `failed` has the replicas in failed log directories, by broker, as they are when a partition is counted.
    """

    def __init__(self, failed: Mapping[BrokerId, Set[TopicPartition]]) -> None:
        self._failed: Final = failed
        self._total = 0
        self._never_led = 0
        self._under_replicated = 0
        self._led: Counter[BrokerId] = Counter()
        """By leader, including -1 (none) and brokers that are gone."""
        self._led_on_failed: Counter[BrokerId] = Counter()
        """Those of them whose leader's replica is in a failed log directory."""
        self._by_preferred: Counter[BrokerId | None] = Counter()
        """The partitions that ever had a leader, by their preferred replica."""
        self._missed: defaultdict[BrokerId | None, dict[TopicPartition, None]] = defaultdict(dict)
        """Those of them that another replica leads, or none."""

    def count_in(
        self, partitions: Sequence[TopicPartition], assignment: ReplicaAssignment, state: PartitionState | None
    ) -> None:
        """Count partitions of this kind. Those without a state never had a leader: they count as offline only."""
        self._count(partitions, assignment, state, 1)
        if state is not None and state.leader_and_isr.leader != assignment.preferred:
            self._missed[assignment.preferred].update(dict.fromkeys(partitions))

    def count_out(
        self, partitions: Sequence[TopicPartition], assignment: ReplicaAssignment, state: PartitionState | None
    ) -> None:
        """Remove partitions of this kind from the counts. They must have been counted in as the same kind."""
        self._count(partitions, assignment, state, -1)
        if state is not None and state.leader_and_isr.leader != assignment.preferred:
            missed = self._missed[assignment.preferred]
            for partition in partitions:
                del missed[partition]

    def _count(
        self,
        partitions: Sequence[TopicPartition],
        assignment: ReplicaAssignment,
        state: PartitionState | None,
        sign: Literal[1, -1],
    ) -> None:
        number = sign * len(partitions)
        self._total += number
        if state is None:
            self._never_led += number
            return
        leader, isr = state.leader_and_isr.leader, state.leader_and_isr.isr
        self._led[leader] += number
        if failed := self._failed.get(leader):
            self._led_on_failed[leader] += sign * sum(partition in failed for partition in partitions)
        if not set(assignment.origin).issubset(isr):
            self._under_replicated += number
        self._by_preferred[assignment.preferred] += number

    def set_led_on_failed(self, broker: BrokerId, number: int) -> None:
        """Set the number of partitions whose leader is the broker's replica in a failed log directory."""
        self._led_on_failed[broker] = number

    def counts(self, live: Set[BrokerId]) -> PartitionCounts:
        """Return the counts if these brokers can lead."""
        led_by_the_dead = sum(number for leader, number in self._led.items() if leader not in live)
        led_on_failed = sum(number for leader, number in self._led_on_failed.items() if leader in live)
        return PartitionCounts(
            total=self._total,
            offline=self._never_led + led_by_the_dead + led_on_failed,
            under_replicated=self._under_replicated,
            not_led_by_preferred=sum(map(len, self._missed.values())),
        )

    def count_led_by(self, broker: BrokerId) -> int:
        """Return the number of partitions that a broker leads."""
        return self._led[broker]

    def count_by_preferred(self) -> Counter[BrokerId]:
        """Return the number of partitions that each broker should lead, among those that ever had a leader."""
        return Counter({broker: number for broker, number in self._by_preferred.items() if broker is not None})

    def find_missed(self) -> Mapping[BrokerId, Set[TopicPartition]]:
        """Return those of them that the broker does not lead."""
        return {broker: missed.keys() for broker, missed in self._missed.items() if broker is not None and missed}
