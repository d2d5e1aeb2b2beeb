"""Replicas on the controller's own id are moved to a broker."""

from controller_core.model.ids import BrokerId, PartitionId
from controller_core.model.metadata import ReplicaAssignment
from controller_core.model.topics.placement_repair import replace_phantom

PHANTOM = BrokerId(1000)


def repair(replicas: list[list[int]], live: set[int], load: dict[int, int] | None = None) -> list[list[int]]:
    partitions = {
        PartitionId(partition): ReplicaAssignment(replicas=tuple(BrokerId(broker) for broker in brokers))
        for partition, brokers in enumerate(replicas)
    }
    loads = {BrokerId(broker): count for broker, count in (load or {}).items()}
    after = replace_phantom(partitions, PHANTOM, {BrokerId(broker) for broker in live}, loads)
    return [list(after[PartitionId(partition)].replicas) for partition in range(len(replicas))]


def test_an_assignment_without_it_stays_as_it_is() -> None:
    assert repair([[1, 2], [2, 3]], {1, 2, 3}) == [[1, 2], [2, 3]]


def test_it_is_replaced_in_its_place_by_the_broker_with_the_fewest_replicas() -> None:
    assert repair([[1000, 1], [2, 1000]], {1, 2, 3}, {3: 9}) == [[2, 1], [2, 1]]
    assert repair([[1000, 1], [2, 1000]], {1, 2, 3}, {1: 9, 2: 9}) == [[3, 1], [2, 3]]


def test_substitutes_are_spread() -> None:
    after = repair([[1000], [1000], [1000]], {1, 2, 3})
    assert sorted(broker for replicas in after for broker in replicas) == [1, 2, 3]


def test_it_is_left_out_where_every_live_broker_has_the_partition_already() -> None:
    assert repair([[1, 1000, 2]], {1, 2}) == [[1, 2]]


def test_an_assignment_never_becomes_empty() -> None:
    assert repair([[1000]], set()) == [[1000]]


def test_a_replica_that_is_being_added_is_replaced_in_every_list() -> None:
    assignment = ReplicaAssignment(replicas=(PHANTOM, BrokerId(1)), adding=(PHANTOM,), removing=(BrokerId(1),))
    after = replace_phantom({PartitionId(0): assignment}, PHANTOM, {BrokerId(1), BrokerId(2)}, {})
    assert after[PartitionId(0)] == ReplicaAssignment(
        replicas=(BrokerId(2), BrokerId(1)), adding=(BrokerId(2),), removing=(BrokerId(1),)
    )
