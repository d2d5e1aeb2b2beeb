"""The states of partitions and replicas, and the legal transitions between them (seed 000).

The tables are the specification's, line by line. This module decides only if a transition may happen;
`controller.machines.partition_machine` and `replica_machine` carry it out in ZooKeeper and at the brokers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

from controller_core.model.ids import PartitionReplica, TopicPartition


class _Status(Enum):
    """Hashed by identity, because there is only one of each member, and they are looked up by the hundred thousand."""

    __hash__ = object.__hash__


class PartitionStatus(_Status):
    NON_EXISTENT = "NonExistentPartition"
    """Never created, or created and then deleted."""
    NEW = "NewPartition"
    """Replicas are assigned; there is no leader and ISR yet."""
    ONLINE = "OnlinePartition"
    """A leader was elected."""
    OFFLINE = "OfflinePartition"
    """The leader died after a successful election."""


class ReplicaStatus(_Status):
    NON_EXISTENT = "NonExistentReplica"
    """Never created, or deleted."""
    NEW = "NewReplica"
    """Created with its topic or by a reassignment; it may only be made a follower."""
    ONLINE = "OnlineReplica"
    """Started and part of the assigned replicas; it may be made to lead or to follow."""
    OFFLINE = "OfflineReplica"
    """The broker that hosts it is down, or it was sent a request to stop."""


PARTITION_TRANSITIONS: Final[Mapping[PartitionStatus, frozenset[PartitionStatus]]] = {
    PartitionStatus.NON_EXISTENT: frozenset({PartitionStatus.NEW}),
    PartitionStatus.NEW: frozenset({PartitionStatus.ONLINE, PartitionStatus.OFFLINE}),
    PartitionStatus.ONLINE: frozenset({PartitionStatus.ONLINE, PartitionStatus.OFFLINE}),
    PartitionStatus.OFFLINE: frozenset({PartitionStatus.ONLINE, PartitionStatus.NON_EXISTENT}),
}
"""From each state, the states that may follow."""

REPLICA_TRANSITIONS: Final[Mapping[ReplicaStatus, frozenset[ReplicaStatus]]] = {
    ReplicaStatus.NON_EXISTENT: frozenset({ReplicaStatus.NEW}),
    ReplicaStatus.NEW: frozenset({ReplicaStatus.ONLINE, ReplicaStatus.OFFLINE}),
    ReplicaStatus.ONLINE: frozenset({ReplicaStatus.ONLINE, ReplicaStatus.OFFLINE}),
    ReplicaStatus.OFFLINE: frozenset({ReplicaStatus.ONLINE, ReplicaStatus.NON_EXISTENT}),
}
"""From each state, the states that may follow."""

Subject = TypeVar("Subject", TopicPartition, PartitionReplica)
Status = TypeVar("Status", PartitionStatus, ReplicaStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class IllegalTransition(Generic[Subject, Status]):
    """A transition that the specification does not allow. It alone is refused; others of the same event proceed."""

    subject: Subject
    current: Status
    wanted: Status

    def __str__(self) -> str:
        return f"{self.subject} may not go from {self.current.value} to {self.wanted.value}"


def sort_partitions(
    partitions: Iterable[TopicPartition],
    wanted: PartitionStatus,
    current: Mapping[TopicPartition, PartitionStatus],
) -> tuple[list[TopicPartition], list[IllegalTransition[TopicPartition, PartitionStatus]]]:
    """Return the partitions that may go to the wanted state, in their order, and the illegal transitions of the others."""
    return _sort(partitions, wanted, current, PartitionStatus.NON_EXISTENT, PARTITION_TRANSITIONS)


def sort_replicas(
    replicas: Iterable[PartitionReplica],
    wanted: ReplicaStatus,
    current: Mapping[PartitionReplica, ReplicaStatus],
) -> tuple[list[PartitionReplica], list[IllegalTransition[PartitionReplica, ReplicaStatus]]]:
    """Return the replicas that may go to the wanted state, in their order, and the illegal transitions of the others."""
    return _sort(replicas, wanted, current, ReplicaStatus.NON_EXISTENT, REPLICA_TRANSITIONS)


def _sort(
    subjects: Iterable[Subject],
    wanted: Status,
    current: Mapping[Subject, Status],
    unknown: Status,
    transitions: Mapping[Status, frozenset[Status]],
) -> tuple[list[Subject], list[IllegalTransition[Subject, Status]]]:
    origins = {status for status, following in transitions.items() if wanted in following}
    legal: list[Subject] = []
    illegal: list[IllegalTransition[Subject, Status]] = []
    for subject in subjects:
        status = current.get(subject, unknown)
        if status in origins:
            legal.append(subject)
        else:
            illegal.append(IllegalTransition(subject=subject, current=status, wanted=wanted))
    return legal, illegal
