"""Replicas on the controller's own id, which brokers place there because their metadata lists it as a broker."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import BrokerId, PartitionId
from controller_core.model.metadata import ReplicaAssignment
from controller_core.model.placement_repair import without_phantom
from tests.unit.model.strategies import BROKERS, replica_lists

PHANTOM = BrokerId(1000)
P0, P1, P2 = (PartitionId(number) for number in range(3))


def ids(numbers: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(number) for number in numbers)


def assigned(*replicas: int, adding: Iterable[int] = (), removing: Iterable[int] = ()) -> ReplicaAssignment:
    return ReplicaAssignment(replicas=ids(replicas), adding=ids(adding), removing=ids(removing))


@pytest.mark.parametrize(
    ("replicas", "live", "load", "expected"),
    [
        ([1000, 1], [1, 2, 3], {2: 5, 3: 4}, [3, 1]),
        ([1, 1000], [1, 2, 3], {2: 4, 3: 4}, [1, 2]),
        ([1, 1000, 2], [1, 2], {}, [1, 2]),
        ([1000], [2], {}, [2]),
        ([1000], [], {}, [1000]),
        ([1, 1000], [], {}, [1]),
        ([1, 2], [1, 2, 3], {}, [1, 2]),
    ],
    ids=["least loaded", "smallest id", "nobody free", "alone", "alone and nobody live", "nobody live", "sound"],
)
def test_the_phantom_gives_way_to_the_live_broker_with_the_fewest_replicas(
    replicas: list[int], live: list[int], load: dict[int, int], expected: list[int]
) -> None:
    repaired = without_phantom(
        {P0: assigned(*replicas)}, PHANTOM, set(ids(live)), {BrokerId(b): n for b, n in load.items()}
    )
    assert repaired == {P0: assigned(*expected)}


def test_what_one_partition_gets_counts_for_the_next() -> None:
    partitions = {P0: assigned(1000, 1), P1: assigned(1000, 1), P2: assigned(1000, 1)}
    repaired = without_phantom(partitions, PHANTOM, set(ids([1, 2, 3, 4])), {})
    assert sorted(assignment.replicas[0] for assignment in repaired.values()) == [2, 3, 4]


def test_a_running_reassignment_to_the_phantom_is_mended_in_all_three_lists() -> None:
    running = assigned(1000, 2, 1, adding=[1000], removing=[1])
    assert without_phantom({P0: running}, PHANTOM, set(ids([1, 2, 3])), {}) == {
        P0: assigned(3, 2, 1, adding=[3], removing=[1])
    }


@given(
    st.dictionaries(
        st.integers(0, 5).map(PartitionId),
        replica_lists().flatmap(lambda replicas: st.permutations((*replicas, PHANTOM)) | st.just(replicas).map(list)),
        min_size=1,
    ),
    st.frozensets(st.sampled_from(BROKERS)),
)
def test_a_repaired_assignment_keeps_the_others_in_their_places_and_names_nobody_twice(
    replicas: dict[PartitionId, list[BrokerId]], live: frozenset[BrokerId]
) -> None:
    partitions = {partition: ReplicaAssignment(replicas=tuple(brokers)) for partition, brokers in replicas.items()}
    for partition, repaired in without_phantom(partitions, PHANTOM, live, {}).items():
        before = partitions[partition].replicas
        assert PHANTOM not in repaired.replicas
        assert len(set(repaired.replicas)) == len(repaired.replicas)
        assert [b for b in repaired.replicas if b in before] == [b for b in before if b != PHANTOM]
        assert set(repaired.replicas) - set(before) <= live
