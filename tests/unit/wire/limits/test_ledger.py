"""The places and the memory of connections: the room held back for known callers and brokers, and before a login."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from controller_core.wire.limits.ledger import (
    HANDSHAKE_BYTES,
    PLAIN_BYTES,
    RELAY_BYTES,
    TLS_BYTES,
    Ledger,
    NoRoom,
    Place,
    Standing,
)
from controller_core.wire.limits.listener_limits import ListenerLimits
from controller_core.wire.limits.memory import OWN_BYTES, connections_bytes, fit_to_memory, memory_limit

STRANGER, KNOWN, BROKER = Standing


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Closed:
    """The connections that lost their places."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def watch(self, place: Place, name: str) -> Place:
        place.close = lambda: self.names.append(name)
        return place


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_ledger(clock: Clock) -> Callable[..., Ledger]:
    return lambda **limits: Ledger(ListenerLimits(**limits), now_s=clock)


def fill(ledger: Ledger, standing: Standing, **how: Any) -> int:
    """Return the number of connections from different addresses that find a place."""
    for number in range(1_000):
        try:
            ledger.enter(f"10.{standing}.{number // 250}.{number % 250}", standing, **how)
        except NoRoom:
            return number
    raise AssertionError("there is no limit")


def test_strangers_leave_room_for_the_known_and_these_for_brokers(make_ledger: Callable[..., Ledger]) -> None:
    ledger = make_ledger(max_connections=16)
    assert [fill(ledger, each) for each in (STRANGER, KNOWN, BROKER)] == [12, 2, 2]
    with pytest.raises(NoRoom, match="there are 16 connections"):
        ledger.enter("10.9.0.1", BROKER)


def test_one_address_has_so_many_connections_unless_it_is_a_brokers(make_ledger: Callable[..., Ledger]) -> None:
    ledger = make_ledger(max_connections_per_address=2)
    first, _ = (ledger.enter("10.0.0.1", KNOWN) for _ in range(2))
    with pytest.raises(NoRoom, match="the address has 2 connections"):
        ledger.enter("10.0.0.1", KNOWN)
    first.leave()
    first.leave()
    ledger.enter("10.0.0.1", KNOWN)
    assert [ledger.enter("10.0.0.2", BROKER) for _ in range(5)]


def test_memory_is_reserved_before_it_is_taken_and_all_given_back(make_ledger: Callable[..., Ledger]) -> None:
    ledger = make_ledger()
    plain, tls = ledger.enter("10.0.0.1", KNOWN), ledger.enter("10.0.0.2", KNOWN, is_tls=True)
    assert ledger.bytes == PLAIN_BYTES + TLS_BYTES + HANDSHAKE_BYTES
    tls.settle(STRANGER)
    assert ledger.bytes == PLAIN_BYTES + TLS_BYTES
    assert plain.take(RELAY_BYTES)
    plain.give_back(RELAY_BYTES)
    assert plain.take(RELAY_BYTES)
    for each in (plain, tls):
        each.leave()
    assert ledger.bytes == 0
    assert not plain.take(RELAY_BYTES), "a closed connection takes nothing"


def test_connections_are_refused_if_their_memory_is_taken(make_ledger: Callable[..., Ledger]) -> None:
    ledger = make_ledger(connections_bytes=16 * PLAIN_BYTES)
    assert [fill(ledger, each) for each in (STRANGER, KNOWN, BROKER)] == [12, 2, 2]
    with pytest.raises(NoRoom, match="the connections have 1 MiB of memory"):
        ledger.enter("10.9.0.1", BROKER)


def test_a_relay_is_refused_if_its_memory_is_taken(make_ledger: Callable[..., Ledger]) -> None:
    ledger = make_ledger(connections_bytes=2 * PLAIN_BYTES + RELAY_BYTES)
    first, second = (ledger.enter("10.0.0.1", BROKER) for _ in range(2))
    assert first.take(RELAY_BYTES)
    assert not second.take(RELAY_BYTES)


def test_who_is_not_known_after_the_handshake_needs_the_room_of_strangers(make_ledger: Callable[..., Ledger]) -> None:
    ledger = make_ledger(max_connections=16)
    assert fill(ledger, STRANGER) == 12
    administrator, stranger = (ledger.enter(f"10.9.0.{number}", STRANGER, is_tls=True) for number in range(2))
    administrator.settle(KNOWN)
    with pytest.raises(NoRoom, match="there are 14 connections"):
        stranger.settle(STRANGER)


def test_a_greedy_address_loses_places_to_those_that_have_fewer(make_ledger: Callable[..., Ledger]) -> None:
    ledger, closed = make_ledger(max_unauthenticated_connections=8), Closed()
    for number in range(7):
        closed.watch(ledger.enter("10.0.0.1", STRANGER, logs_in=True), f"greedy {number}")
    for number in range(3):
        closed.watch(ledger.enter(f"10.0.1.{number}", STRANGER, logs_in=True), f"modest {number}")
    assert closed.names == ["greedy 0", "greedy 1", "greedy 2"]


def test_who_takes_its_time_before_a_login_loses_its_place_to_a_new_one(
    make_ledger: Callable[..., Ledger], clock: Clock
) -> None:
    ledger, closed = make_ledger(max_unauthenticated_connections=8, unauthenticated_grace_ms=1_000), Closed()
    for number in range(7):
        closed.watch(ledger.enter(f"10.0.0.{number}", STRANGER, logs_in=True), f"slow {number}")
    with pytest.raises(NoRoom, match="there are 7 connections before a login"):
        ledger.enter("10.0.1.1", STRANGER, logs_in=True)
    clock.now_s = 1.0
    ledger.enter("10.0.1.1", STRANGER, logs_in=True)
    assert closed.names == ["slow 0"]


def test_an_address_displaces_only_its_own_connections_beyond_its_limit(
    make_ledger: Callable[..., Ledger], clock: Clock
) -> None:
    ledger, closed = make_ledger(max_unauthenticated_connections_per_address=2), Closed()
    for address in ("10.0.0.1", "10.0.0.2", "10.0.0.2"):
        closed.watch(ledger.enter(address, STRANGER, logs_in=True), address)
    with pytest.raises(NoRoom, match="the address has 2 connections before a login"):
        ledger.enter("10.0.0.2", STRANGER, logs_in=True)
    clock.now_s = 1.0
    ledger.enter("10.0.0.2", STRANGER, logs_in=True)
    assert closed.names == ["10.0.0.2"]


def test_brokers_keep_their_places_before_a_login_and_have_some_of_their_own(
    make_ledger: Callable[..., Ledger], clock: Clock
) -> None:
    ledger, closed = make_ledger(max_unauthenticated_connections=8, unauthenticated_grace_ms=0), Closed()
    for number in range(8):
        closed.watch(ledger.enter("10.0.0.1", BROKER, logs_in=True), f"broker {number}")
    with pytest.raises(NoRoom):
        ledger.enter("10.0.1.1", STRANGER, logs_in=True)
    assert closed.names == []


def test_who_has_logged_in_takes_no_place_of_others(make_ledger: Callable[..., Ledger]) -> None:
    ledger = make_ledger(max_unauthenticated_connections_per_address=1)
    for _ in range(5):
        ledger.enter("10.0.0.1", STRANGER, logs_in=True).settle(KNOWN)


def test_connections_have_what_the_containers_memory_leaves_them() -> None:
    limits = ListenerLimits(max_connections=5_000, connections_bytes=connections_bytes(5_000, 256))
    requests = limits.brokers_bytes + limits.administrators_bytes + limits.strangers_bytes
    assert fit_to_memory(limits, None) == fit_to_memory(limits, 1 << 30) == limits
    with capture_logs() as logged:
        small = fit_to_memory(limits, 512 << 20)
    assert small.connections_bytes == (512 << 20) - OWN_BYTES - requests
    (line,) = logged
    assert (line["memory_mib"], line["needed_mib"], line["left_for_connections_mib"]) == (512, 985, 192)
    assert fit_to_memory(limits, 64 << 20).connections_bytes == 8 << 20, "some connections always find room"


@pytest.mark.parametrize(
    ("text", "expected"), [("1073741824\n", 1 << 30), ("max\n", None), ("9223372036854771712\n", None)]
)
def test_the_containers_limit_is_read(tmp_path: Path, text: str, expected: int | None) -> None:
    file = tmp_path / "memory.max"
    file.write_text(text)
    assert memory_limit((tmp_path / "missing", file)) == expected
    assert memory_limit((tmp_path / "missing",)) is None
