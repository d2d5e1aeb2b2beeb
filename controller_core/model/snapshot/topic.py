"""One topic of a snapshot, and the counts of its partitions."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from controller_core.model.ids import NO_LEADER, BrokerId, PartitionId, TopicName, TopicPartition, TopicVersion
from controller_core.model.metadata import PartitionState, ReplicaAssignment, TopicAssignment
from controller_core.model.topics.config_keys import MIN_INSYNC_REPLICAS

_NUMBER: Final = re.compile(r"[0-9]{1,9}")


def read_min_isr(config: Mapping[str, str], default: int) -> int:
    """Return the number in a configuration, or the default if it has none."""
    configured = config.get(MIN_INSYNC_REPLICAS, "")
    return int(configured) if _NUMBER.fullmatch(configured) else default


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The number of partitions, and of those that need attention."""

    partitions: int = 0
    offline: int = 0
    never_led: int = 0
    """The part of `offline` that never had a leader. Partitions of a new topic have none for a moment."""
    under_replicated: int = 0
    under_min_isr: int = 0
    non_preferred_leader: int = 0
    reassigning: int = 0

    @property
    def online(self) -> int:
        return self.partitions - self.offline

    @property
    def lost_leader(self) -> int:
        """Partitions that had a leader and have none now."""
        return self.offline - self.never_led

    @property
    def lost_replicas(self) -> int:
        """Under-replicated partitions that had a leader: those of a new topic have no ISR for a moment."""
        return max(0, self.under_replicated - self.never_led)

    def __add__(self, other: "Counts") -> "Counts":
        return self._add_times(other, 1)

    def __sub__(self, other: "Counts") -> "Counts":
        return self._add_times(other, -1)

    def _add_times(self, other: "Counts", times: int) -> "Counts":
        return Counts(
            partitions=self.partitions + times * other.partitions,
            offline=self.offline + times * other.offline,
            never_led=self.never_led + times * other.never_led,
            under_replicated=self.under_replicated + times * other.under_replicated,
            under_min_isr=self.under_min_isr + times * other.under_min_isr,
            non_preferred_leader=self.non_preferred_leader + times * other.non_preferred_leader,
            reassigning=self.reassigning + times * other.reassigning,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSnapshot:
    """One partition: its replicas, and its leadership."""

    partition: TopicPartition
    assignment: ReplicaAssignment
    state: PartitionState | None
    """None if it has no leader yet, because the controller has not handled it."""

    @property
    def replicas(self) -> tuple[BrokerId, ...]:
        return self.assignment.replicas

    @property
    def leader(self) -> BrokerId | None:
        """None if it has no leader."""
        return self.state.leader_and_isr.leader if self.state and self.state.leader_and_isr.has_leader else None

    @property
    def isr(self) -> tuple[BrokerId, ...]:
        return self.state.leader_and_isr.isr if self.state else ()


@dataclass(frozen=True, kw_only=True)
class TopicSnapshot:
    """One topic: its assignment and configuration with the versions that guard a write of them, and its partitions."""

    name: TopicName
    assignment: TopicAssignment
    version: TopicVersion
    config: Mapping[str, str] = field(default_factory=dict)
    config_version: TopicVersion | None = None
    """None if the topic has no znode for its configuration."""
    is_config_known: bool = True
    """False if the configuration cannot be read, because a right is missing or its znode is malformed. It seems to be
    empty then."""
    states: Mapping[PartitionId, PartitionState] = field(default_factory=dict)
    """A partition without an entry has no leader yet, because the controller has not handled it."""
    default_min_isr: int = 1

    @property
    def partitions(self) -> Mapping[PartitionId, ReplicaAssignment]:
        return self.assignment.partitions

    @property
    def is_being_reassigned(self) -> bool:
        return self.counts.reassigning > 0

    @property
    def awaits_first_leaders(self) -> bool:
        """True if no partition has lost its leader: all partitions without a leader never had one."""
        return self.counts.offline > 0 and self.counts.offline == self.counts.never_led

    @property
    def min_isr(self) -> int:
        return read_min_isr(self.config, self.default_min_isr)

    def list_partitions(self) -> Iterator[PartitionSnapshot]:
        """Yield the partitions."""
        for number, assignment in self.partitions.items():
            yield PartitionSnapshot(
                partition=TopicPartition(self.name, number), assignment=assignment, state=self.states.get(number)
            )

    @cached_property
    def counts(self) -> Counts:
        return count_partitions(self)

    @cached_property
    def holders(self) -> frozenset[BrokerId]:
        """The brokers with replicas of the topic."""
        return frozenset(broker for assignment in self.partitions.values() for broker in assignment.replicas)


def count_partitions(topic: TopicSnapshot) -> Counts:
    """Return the counts of the partitions of one topic.

    A partition is offline if it has no leader. It is under-replicated if its ISR lacks one of the replicas that it
    should have (not counting those that a reassignment still adds). It counts as led by a non-preferred replica only if
    it has a leader. The leader's required ISR size is at most the number of assigned replicas, including those being
    added.
    """
    offline = never_led = under_replicated = under_min_isr = not_preferred = reassigning = 0
    for partition, assignment in topic.partitions.items():
        state = topic.states.get(partition)
        isr = state.leader_and_isr.isr if state else ()
        leader = state.leader_and_isr.leader if state else NO_LEADER
        is_moving = assignment.is_being_reassigned
        wanted = assignment.origin if is_moving else assignment.replicas
        reassigning += is_moving
        offline += leader == NO_LEADER
        never_led += state is None
        under_replicated += not set(wanted) <= set(isr)
        under_min_isr += len(isr) < min(topic.min_isr, len(assignment.replicas))
        not_preferred += leader not in (NO_LEADER, *assignment.replicas[:1])
    return Counts(
        partitions=len(topic.partitions),
        offline=offline,
        never_led=never_led,
        under_replicated=under_replicated,
        under_min_isr=under_min_isr,
        non_preferred_leader=not_preferred,
        reassigning=reassigning,
    )


def sum_counts(counts: Iterable[Counts]) -> Counts:
    """Return the sum of the counts of several topics."""
    return sum(counts, start=Counts())
