"""Partitions as a status shows them: bounded lists, unhealthy ones first, with complete counts."""

from collections.abc import Iterable
from typing import Any

from controller_core.model.ids import BrokerId, LeaderEpoch, TopicPartition
from controller_core.model.snapshot import Counts, Snapshot, TopicSnapshot
from controller_operator.resources.common import PartitionCounts, PartitionStatus
from controller_operator.resources.schema import MAX_STATUS_ENTRIES


def replica_fields(view: Snapshot, partition: TopicPartition) -> dict[str, Any]:
    """Return AR, ISR, leader and leader epoch of a partition as fields of a `PartitionStatus`; empty if it is gone."""
    assignment, state = view.assignment_of(partition), view.state_of(partition)
    if assignment is None:
        return {}
    leadership = state.leader_and_isr if state else None
    return {
        "replicas": assignment.replicas,
        "isr": leadership.isr if leadership else (),
        "leader": leadership.leader if leadership else BrokerId(-1),
        "leader_epoch": leadership.leader_epoch if leadership else LeaderEpoch(-1),
    }


def topic_rows(view: Snapshot, topic: TopicSnapshot) -> tuple[PartitionStatus, ...]:
    """Return the partitions of a topic, at most 500 of them, those that need attention first."""
    rows = (
        PartitionStatus(topic=topic.name, partition=number, **replica_fields(view, TopicPartition(topic.name, number)))
        for number in topic.partitions
    )
    return tuple(sorted(rows, key=lambda row: (not _needs_attention(row), row.partition))[:MAX_STATUS_ENTRIES])


def partition_counts(counts: Counts) -> PartitionCounts:
    """Return the counts of a view as a status shows them."""
    return PartitionCounts(**count_fields(counts))


def count_fields(counts: Counts) -> dict[str, int]:
    return {
        "partitions": counts.partitions,
        "online": counts.online,
        "offline": counts.offline,
        "under_replicated": counts.under_replicated,
        "under_min_isr": counts.under_min_isr,
        "non_preferred_leader": counts.non_preferred_leader,
        "reassigning": counts.reassigning,
    }


def replica_list(replicas: Iterable[int]) -> str:
    """Return replicas as a status value: [1,2,3]."""
    return f"[{','.join(map(str, replicas))}]"


def _needs_attention(row: PartitionStatus) -> bool:
    return row.leader in (None, -1) or not set(row.replicas) <= set(row.isr)
