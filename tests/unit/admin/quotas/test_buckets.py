"""The buckets that are remembered, and for how long."""

import pytest

from controller_core.admin.quotas.buckets import IDLE_MS, MOST_BUCKETS, Buckets
from controller_core.model.quotas.entities import Entity
from controller_core.model.quotas.token_bucket import Limit, charge_bucket

LIMIT = Limit(rate_per_s=1e-6, burst=1.1e-5)
"""A rate so low that hardly any debt is paid within an hour."""


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0.0

    def __call__(self) -> float:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


def charge(buckets: Buckets, who: Entity) -> None:
    buckets.keep(who, charge_bucket(buckets.now(who, LIMIT), 1, LIMIT, is_strict=False).bucket)


def owes(buckets: Buckets, who: Entity) -> bool:
    return buckets.now(who, LIMIT).is_exhausted


def client(name: str) -> Entity:
    return Entity(None, name)


def test_who_was_not_charged_owes_nothing_and_is_not_remembered(clock: Clock) -> None:
    buckets = Buckets(clock)
    assert not owes(buckets, client("app"))
    assert len(buckets) == 0


def test_a_user_and_a_client_of_one_name_owe_each_his_own(clock: Clock) -> None:
    buckets = Buckets(clock)
    charge(buckets, Entity("x", None))
    assert [owes(buckets, who) for who in (Entity("x", None), Entity(None, "x"), Entity("x", "x"))] == [
        True,
        False,
        False,
    ]


def test_who_was_charged_nothing_for_an_hour_is_forgotten(clock: Clock) -> None:
    buckets = Buckets(clock)
    charge(buckets, client("early"))
    clock.now_ms = IDLE_MS / 2
    charge(buckets, client("late"))
    clock.now_ms = IDLE_MS
    assert owes(buckets, client("early"))
    clock.now_ms = IDLE_MS + 1
    assert not owes(buckets, client("early"))
    assert owes(buckets, client("late"))
    assert len(buckets) == 1


def test_who_is_charged_again_and_again_is_not(clock: Clock) -> None:
    buckets = Buckets(clock)
    for hour in range(5):
        clock.now_ms = hour * IDLE_MS
        charge(buckets, client("busy"))
    assert buckets.now(client("busy"), LIMIT).tokens < -4


def test_no_more_are_remembered_than_there_is_room_for(clock: Clock) -> None:
    buckets = Buckets(clock)
    charge(buckets, client("first"))
    for number in range(MOST_BUCKETS):
        clock.now_ms += 1
        charge(buckets, client(f"client-{number}"))
        if number == MOST_BUCKETS // 2:
            charge(buckets, client("first"))
    assert len(buckets) == MOST_BUCKETS
    assert owes(buckets, client("first")), "those that were charged nothing for longest are forgotten"
    assert not owes(buckets, client("client-0"))


def test_a_clock_that_jumps_ahead_forgets_and_one_that_stands_still_does_not(clock: Clock) -> None:
    buckets = Buckets(clock)
    charge(buckets, client("app"))
    assert owes(buckets, client("app"))
    clock.now_ms = 1e15
    assert not owes(buckets, client("app"))


def test_names_of_any_length_take_the_same_room(clock: Clock) -> None:
    buckets = Buckets(clock)
    charge(buckets, client("x" * 100_000))
    assert {len(key) for key in buckets._charged} == {16}
