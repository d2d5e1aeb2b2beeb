"""New replicas are spread over brokers and racks, and the same question has the same answer."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import BrokerId, PartitionId, TopicName
from controller_core.model.topics.placement import NotEnoughBrokers, Racks, place_partitions, resize_replicas

ORDERS = TopicName("orders")


def partitions(first: int, last: int) -> list[PartitionId]:
    return [PartitionId(number) for number in range(first, last)]


def brokers(count: int, racks: int = 0) -> Racks:
    return {BrokerId(n): f"rack-{n % racks}" if racks else None for n in range(1, count + 1)}


topologies = st.builds(brokers, st.integers(1, 12), st.integers(0, 4))


@given(topologies, st.integers(1, 12), st.integers(1, 40))
def test_replicas_of_a_partition_are_on_different_live_brokers(live: Racks, factor: int, count: int) -> None:
    if factor > len(live):
        with pytest.raises(NotEnoughBrokers):
            place_partitions(ORDERS, partitions(0, count), factor, live)
        return
    for replicas in place_partitions(ORDERS, partitions(0, count), factor, live).values():
        assert len(set(replicas)) == factor
        assert set(replicas) <= set(live)


@given(topologies, st.integers(1, 12), st.integers(1, 40))
def test_no_rack_has_a_second_replica_before_every_rack_has_one(live: Racks, factor: int, count: int) -> None:
    factor = min(factor, len(live))
    racks = set(live.values())
    for replicas in place_partitions(ORDERS, partitions(0, count), factor, live).values():
        used = {live[replica] for replica in replicas}
        assert None in racks or len(used) == min(factor, len(racks))


@given(topologies, st.integers(1, 6))
def test_leaders_are_spread_evenly(live: Racks, rounds: int) -> None:
    placed = place_partitions(ORDERS, partitions(0, rounds * len(live)), 1, live)
    assert set(Counter(replicas[0] for replicas in placed.values()).values()) == {rounds}


@given(topologies, st.integers(1, 20), st.integers(1, 20))
def test_a_topic_that_grows_continues_the_pattern_it_was_created_with(live: Racks, before: int, added: int) -> None:
    factor = min(3, len(live))
    at_once = place_partitions(ORDERS, partitions(0, before + added), factor, live)
    created = place_partitions(ORDERS, partitions(0, before), factor, live)
    grown = place_partitions(ORDERS, partitions(before, before + added), factor, live)
    assert {**created, **grown} == at_once


def test_topics_begin_at_different_brokers() -> None:
    starts = {
        place_partitions(TopicName(f"topic-{n}"), partitions(0, 1), 1, brokers(6))[PartitionId(0)] for n in range(50)
    }
    assert len(starts) == 6


def test_followers_are_not_always_the_same_brokers_for_one_leader() -> None:
    placed = place_partitions(ORDERS, partitions(0, 30), 2, brokers(6))
    followers_of_one = {replicas[1] for replicas in placed.values() if replicas[0] == 1}
    assert len(followers_of_one) > 1


@pytest.mark.parametrize(
    ("replicas", "factor", "expected"),
    [((1, 2, 3), 2, (1, 2)), ((1, 2), 3, (1, 2, 3)), ((9, 2, 3), 2, (2, 3)), ((2, 1), 2, (2, 1))],
)
def test_resizing_keeps_the_order_and_drops_dead_replicas_first(
    replicas: tuple[int, ...], factor: int, expected: tuple[int, ...]
) -> None:
    live = {BrokerId(n): None for n in (1, 2, 3)}
    assert resize_replicas([BrokerId(r) for r in replicas], factor, live, {}) == expected


def test_an_added_replica_goes_to_a_new_rack_and_there_to_the_least_loaded_broker() -> None:
    live = {BrokerId(1): "a", BrokerId(2): "a", BrokerId(3): "b", BrokerId(4): "b"}
    assert resize_replicas([BrokerId(1)], 2, live, {BrokerId(3): 5, BrokerId(4): 1}) == (1, 4)


@pytest.mark.parametrize(
    ("replicas", "factor", "expected"),
    [((1, 2), 3, (1, 2, 4)), ((3, 1), 3, (3, 1, 2)), ((3, 1, 2), 2, (1, 2)), ((3, 1), 2, (3, 1))],
    ids=["goes elsewhere", "is kept", "goes first", "stays as it is"],
)
def test_a_closed_broker_gets_no_replica_and_keeps_those_that_need_not_go(
    replicas: tuple[int, ...], factor: int, expected: tuple[int, ...]
) -> None:
    closed = {BrokerId(3)}
    assert resize_replicas([BrokerId(r) for r in replicas], factor, brokers(4), {}, closed=closed) == expected


def test_the_rack_of_a_replica_on_a_closed_broker_is_taken() -> None:
    live = {BrokerId(1): "a", BrokerId(2): "a", BrokerId(3): "b", BrokerId(4): "b"}
    assert resize_replicas([BrokerId(1)], 2, live, {BrokerId(3): 5}, closed={BrokerId(1)}) == (1, 4)


def test_too_few_brokers_that_are_not_closed_are_said() -> None:
    with pytest.raises(NotEnoughBrokers, match="there are 2"):
        resize_replicas([BrokerId(1)], 3, brokers(3), {}, closed={BrokerId(3)})


def test_resizing_beyond_the_brokers_says_how_many_there_are() -> None:
    with pytest.raises(NotEnoughBrokers, match="there are 2"):
        resize_replicas([BrokerId(1)], 3, brokers(2), {})


@pytest.mark.parametrize("brokers", [1, 2, 3, 7, 30])
@pytest.mark.parametrize("racks", [None, 3], ids=["no racks", "three racks"])
def test_a_partition_has_the_same_place_alone_and_among_many(brokers: int, racks: int | None) -> None:
    live = {BrokerId(n): None if racks is None else f"rack-{n % racks}" for n in range(brokers)}
    numbers = [PartitionId(n) for n in range(3 * brokers * brokers)]
    factor = min(3, brokers)
    together = place_partitions(TopicName("wide"), numbers, factor, live)
    alone = {n: place_partitions(TopicName("wide"), [n], factor, live)[n] for n in numbers[:: 1 + brokers // 3]}
    assert {n: together[n] for n in alone} == alone
