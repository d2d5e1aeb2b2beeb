"""The states of the specification, the ways between them, and that there are no others."""

import itertools

import pytest

from controller_core.model.ids import BrokerId, PartitionId, PartitionReplica, TopicName, TopicPartition
from controller_core.model.transitions import (
    PARTITION_TRANSITIONS,
    REPLICA_TRANSITIONS,
    PartitionStatus,
    ReplicaStatus,
    sort_partitions,
    sort_replicas,
)

PARTITION = TopicPartition(TopicName("orders"), PartitionId(0))
REPLICA = PartitionReplica(PARTITION, BrokerId(1))

LEGAL_FOR_PARTITIONS = {
    ("NonExistentPartition", "NewPartition"),
    ("NewPartition", "OnlinePartition"),
    ("OnlinePartition", "OnlinePartition"),
    ("OfflinePartition", "OnlinePartition"),
    ("NewPartition", "OfflinePartition"),
    ("OnlinePartition", "OfflinePartition"),
    ("OfflinePartition", "NonExistentPartition"),
}
LEGAL_FOR_REPLICAS = {
    ("NonExistentReplica", "NewReplica"),
    ("NewReplica", "OnlineReplica"),
    ("OnlineReplica", "OnlineReplica"),
    ("OfflineReplica", "OnlineReplica"),
    ("NewReplica", "OfflineReplica"),
    ("OnlineReplica", "OfflineReplica"),
    ("OfflineReplica", "NonExistentReplica"),
}


def test_there_are_exactly_the_states_of_the_specification() -> None:
    assert {status.value for status in PARTITION_TRANSITIONS} == {
        name for pair in LEGAL_FOR_PARTITIONS for name in pair
    }
    assert {status.value for status in REPLICA_TRANSITIONS} == {name for pair in LEGAL_FOR_REPLICAS for name in pair}


@pytest.mark.parametrize(("current", "wanted"), list(itertools.product(PartitionStatus, PartitionStatus)))
def test_a_partition_goes_only_where_the_specification_lets_it(
    current: PartitionStatus, wanted: PartitionStatus
) -> None:
    legal, illegal = sort_partitions([PARTITION], wanted, {PARTITION: current})
    if (current.value, wanted.value) in LEGAL_FOR_PARTITIONS:
        assert (legal, illegal) == ([PARTITION], [])
    else:
        assert legal == []
        assert [str(refused) for refused in illegal] == [f"orders-0 may not go from {current.value} to {wanted.value}"]


@pytest.mark.parametrize(("current", "wanted"), list(itertools.product(ReplicaStatus, ReplicaStatus)))
def test_a_replica_goes_only_where_the_specification_lets_it(current: ReplicaStatus, wanted: ReplicaStatus) -> None:
    legal, illegal = sort_replicas([REPLICA], wanted, {REPLICA: current})
    if (current.value, wanted.value) in LEGAL_FOR_REPLICAS:
        assert (legal, illegal) == ([REPLICA], [])
    else:
        assert legal == []
        assert [str(refused) for refused in illegal] == [
            f"orders-0@1 may not go from {current.value} to {wanted.value}"
        ]


def test_one_that_is_refused_does_not_hold_up_the_others() -> None:
    other = TopicPartition(TopicName("orders"), PartitionId(1))
    statuses = {PARTITION: PartitionStatus.NEW, other: PartitionStatus.NON_EXISTENT}
    legal, illegal = sort_partitions([other, PARTITION], PartitionStatus.ONLINE, statuses)
    assert legal == [PARTITION]
    assert [refused.subject for refused in illegal] == [other]


def test_what_is_not_known_does_not_exist() -> None:
    assert sort_partitions([PARTITION], PartitionStatus.NEW, {})[0] == [PARTITION]
    assert sort_replicas([REPLICA], ReplicaStatus.NEW, {})[0] == [REPLICA]
    (refused,) = sort_replicas([REPLICA], ReplicaStatus.ONLINE, {})[1]
    assert refused.current is ReplicaStatus.NON_EXISTENT
