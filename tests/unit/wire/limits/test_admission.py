"""The limit of connections, and the places that are reserved for brokers and for the controller's own connections."""

import pytest

from controller_core.wire.limits.admission import (
    MOST_CONNECTIONS,
    Admission,
    connections_within,
    http_connections_within,
)


def test_strangers_leave_room_for_brokers() -> None:
    admission = Admission(most=16, most_of_an_address=100)
    refusals = [admission.admit(f"10.0.0.{number}", is_broker=False) for number in range(16)]
    assert [why is None for why in refusals] == [True] * 14 + [False] * 2
    assert [admission.admit("10.1.0.1", is_broker=True) for _ in range(2)] == [None, None]
    assert admission.admit("10.1.0.1", is_broker=True) == "there are 16 connections"


def test_one_address_has_so_many_connections_unless_it_is_a_brokers() -> None:
    admission = Admission(most=100, most_of_an_address=2)
    assert [admission.admit("10.0.0.1", is_broker=False) for _ in range(2)] == [None, None]
    assert admission.admit("10.0.0.1", is_broker=False) == "the address has 2 connections"
    assert admission.admit("10.0.0.2", is_broker=False) is None
    assert [admission.admit("10.1.0.1", is_broker=True) for _ in range(5)] == [None] * 5


def test_who_leaves_makes_room() -> None:
    admission = Admission(most=8, most_of_an_address=1)
    for _ in range(20):
        assert admission.admit("10.0.0.1", is_broker=False) is None
        admission.leave("10.0.0.1")


@pytest.mark.parametrize(
    ("descriptors", "expected"), [(256, 80), (1024, 320), (4096, 1420), (20_000, 9372), (1_048_576, MOST_CONNECTIONS)]
)
def test_connections_of_all_ports_leave_descriptors_for_our_own(descriptors: int, expected: int) -> None:
    assert connections_within(descriptors) == expected
    others = 2 * connections_within(descriptors) + http_connections_within(descriptors)
    assert descriptors - others >= min(1000, descriptors // 4)
