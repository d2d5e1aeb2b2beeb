"""The state machines of seed 000, line by line: what may follow what, and that everything else is refused by name."""

import itertools

import pytest

from controller_core.model.ids import BrokerId, PartitionId, PartitionReplica, TopicName, TopicPartition
from controller_core.model.transitions import (
    PARTITION_TRANSITIONS,
    REPLICA_TRANSITIONS,
    IllegalTransition,
    PartitionStatus,
    ReplicaStatus,
    sort_partitions,
    sort_replicas,
)

PARTITION = TopicPartition(TopicName("orders"), PartitionId(3))
REPLICA = PartitionReplica(PARTITION, BrokerId(2))

SPECIFIED_FOR_PARTITIONS = {
    ("NonExistentPartition", "NewPartition"),
    ("NewPartition", "OnlinePartition"),
    ("OnlinePartition", "OnlinePartition"),
    ("OfflinePartition", "OnlinePartition"),
    ("NewPartition", "OfflinePartition"),
    ("OnlinePartition", "OfflinePartition"),
    ("OfflinePartition", "NonExistentPartition"),
}
SPECIFIED_FOR_REPLICAS = {
    ("NonExistentReplica", "NewReplica"),
    ("NewReplica", "OnlineReplica"),
    ("OnlineReplica", "OnlineReplica"),
    ("OfflineReplica", "OnlineReplica"),
    ("NewReplica", "OfflineReplica"),
    ("OnlineReplica", "OfflineReplica"),
    ("OfflineReplica", "NonExistentReplica"),
}
EVERY_PARTITION_TRANSITION = list(itertools.product(PartitionStatus, repeat=2))
EVERY_REPLICA_TRANSITION = list(itertools.product(ReplicaStatus, repeat=2))


def test_the_tables_are_those_of_the_specification() -> None:
    partitions = {(before.value, after.value) for before, all_ in PARTITION_TRANSITIONS.items() for after in all_}
    replicas = {(before.value, after.value) for before, all_ in REPLICA_TRANSITIONS.items() for after in all_}
    assert (partitions, replicas) == (SPECIFIED_FOR_PARTITIONS, SPECIFIED_FOR_REPLICAS)


@pytest.mark.parametrize(("current", "wanted"), EVERY_PARTITION_TRANSITION)
def test_a_partition_makes_the_specified_transitions_and_no_other(
    current: PartitionStatus, wanted: PartitionStatus
) -> None:
    legal, illegal = sort_partitions([PARTITION], wanted, {PARTITION: current})
    if (current.value, wanted.value) in SPECIFIED_FOR_PARTITIONS:
        assert (legal, illegal) == ([PARTITION], [])
    else:
        assert legal == []
        assert illegal == [IllegalTransition(subject=PARTITION, current=current, wanted=wanted)]
        assert str(illegal[0]) == f"orders-3 may not go from {current.value} to {wanted.value}"


@pytest.mark.parametrize(("current", "wanted"), EVERY_REPLICA_TRANSITION)
def test_a_replica_makes_the_specified_transitions_and_no_other(current: ReplicaStatus, wanted: ReplicaStatus) -> None:
    legal, illegal = sort_replicas([REPLICA], wanted, {REPLICA: current})
    if (current.value, wanted.value) in SPECIFIED_FOR_REPLICAS:
        assert (legal, illegal) == ([REPLICA], [])
    else:
        assert legal == []
        assert str(illegal[0]) == f"orders-3@2 may not go from {current.value} to {wanted.value}"


def test_what_was_never_seen_does_not_exist() -> None:
    assert sort_partitions([PARTITION], PartitionStatus.NEW, {})[0] == [PARTITION]
    assert sort_partitions([PARTITION], PartitionStatus.ONLINE, {})[0] == []
    assert sort_replicas([REPLICA], ReplicaStatus.NEW, {})[0] == [REPLICA]
    assert sort_replicas([REPLICA], ReplicaStatus.ONLINE, {})[0] == []


def test_one_refusal_holds_up_no_other_and_the_order_stays() -> None:
    partitions = [TopicPartition(TopicName("orders"), PartitionId(number)) for number in (5, 1, 4)]
    current = dict(zip(partitions, [PartitionStatus.NEW, PartitionStatus.OFFLINE, PartitionStatus.ONLINE], strict=True))
    legal, illegal = sort_partitions(partitions, PartitionStatus.OFFLINE, current)
    assert legal == [partitions[0], partitions[2]]
    assert [refused.subject for refused in illegal] == [partitions[1]]
