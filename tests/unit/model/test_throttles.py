"""The entries that throttles put into configurations. All of them are removed later, and no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    Claim,
    Move,
    Throttle,
    adjust_config,
    combine_throttles,
)


def move(origin: list[int], target: list[int]) -> Move:
    return Move(origin=tuple(map(BrokerId, origin)), target=tuple(map(BrokerId, target)))


def throttle(rate: int, **moves: Move) -> Throttle:
    by_partition = {TopicPartition(TopicName(topic), PartitionId(0)): found for topic, found in moves.items()}
    return Throttle(bytes_per_second=rate, moves=by_partition)


def test_leaders_are_throttled_for_all_from_before_and_followers_for_those_that_are_added() -> None:
    assert combine_throttles([throttle(1000, orders=move([1, 2], [2, 3]))]) == {
        "brokers/1": {LEADER_RATE: ("1000",), FOLLOWER_RATE: ("1000",)},
        "brokers/2": {LEADER_RATE: ("1000",), FOLLOWER_RATE: ("1000",)},
        "brokers/3": {LEADER_RATE: ("1000",), FOLLOWER_RATE: ("1000",)},
        "topics/orders": {LEADER_REPLICAS: ("0:1", "0:2"), FOLLOWER_REPLICAS: ("0:3",)},
    }


def test_a_broker_that_several_owners_throttle_has_the_smallest_of_their_rates() -> None:
    wanted = combine_throttles(
        [throttle(500, a=move([1], [2])), throttle(100, b=move([2], [3])), throttle(900, c=move([1], [3]))]
    )
    assert [wanted[f"brokers/{broker}"][LEADER_RATE] for broker in (1, 2, 3)] == [("500",), ("100",), ("100",)]


WANTED = {LEADER_RATE: ("100",), LEADER_REPLICAS: ("0:1", "0:2")}


@pytest.mark.parametrize(
    ("config", "after"),
    [
        ({}, {LEADER_RATE: "100", LEADER_REPLICAS: "0:1,0:2"}),
        ({"retention.ms": "7"}, {"retention.ms": "7", LEADER_RATE: "100", LEADER_REPLICAS: "0:1,0:2"}),
        ({LEADER_RATE: "55"}, {LEADER_RATE: "55", LEADER_REPLICAS: "0:1,0:2"}),
        ({LEADER_REPLICAS: "*"}, {LEADER_RATE: "100", LEADER_REPLICAS: "*"}),
        ({LEADER_REPLICAS: "5:5, 0:2"}, {LEADER_RATE: "100", LEADER_REPLICAS: "5:5, 0:2,0:1"}),
        ({LEADER_REPLICAS: ""}, {LEADER_RATE: "100", LEADER_REPLICAS: "0:1,0:2"}),
    ],
)
def test_what_others_have_set_stays_and_is_all_that_stays(config: dict[str, str], after: dict[str, str]) -> None:
    found, claims = adjust_config(config, {}, WANTED)
    assert found == after
    assert adjust_config(found, claims, WANTED) == (found, claims), "what is as it should be is left alone"
    assert adjust_config(found, claims, {}) == (config, {})


def test_another_rate_takes_the_place_of_ours() -> None:
    found, claims = adjust_config({}, {}, {LEADER_RATE: ("100",)})
    assert adjust_config(found, claims, {LEADER_RATE: ("200",)})[0] == {LEADER_RATE: "200"}


@pytest.mark.parametrize("value", ["5", "*"])
def test_what_somebody_overwrites_is_theirs(value: str) -> None:
    setting = LEADER_RATE if value == "5" else LEADER_REPLICAS
    _, claims = adjust_config({}, {}, WANTED)
    assert adjust_config({setting: value}, {setting: claims[setting]}, {}) == ({setting: value}, {})


def test_what_somebody_removed_is_set_again_where_it_is_still_wanted() -> None:
    found, claims = adjust_config({}, {}, WANTED)
    assert adjust_config({}, claims, WANTED) == (found, claims)
    assert adjust_config({}, claims, {}) == ({}, {})


OURS = st.lists(st.sampled_from(["0:1", "0:2", "1:1", "1:2"]), unique=True, max_size=4).map(tuple)
THEIRS = st.lists(st.sampled_from(["7:1", "7:2", "8:1"]), unique=True, max_size=3).map(",".join)
SETTINGS = st.sampled_from([LEADER_REPLICAS, FOLLOWER_REPLICAS])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ours"), SETTINGS, OURS),
        st.tuples(st.just("our rate"), st.sampled_from([LEADER_RATE, FOLLOWER_RATE]), st.sampled_from(["100", "200"])),
        st.tuples(st.just("theirs"), SETTINGS, THEIRS),
        st.tuples(st.just("their rate"), st.sampled_from([LEADER_RATE, FOLLOWER_RATE]), st.sampled_from(["1", "2"])),
        st.tuples(st.just("nothing of theirs"), st.sampled_from([LEADER_RATE, FOLLOWER_RATE]), st.none()),
    ),
    max_size=12,
)


def add_theirs(config: dict[str, str], setting: str, entries: str) -> dict[str, str]:
    """Replace the entries of another tool in a list that may hold some of ours."""
    kept = [entry for entry in config.get(setting, "").split(",") if entry.startswith(("0:", "1:"))]
    return {**config, setting: ",".join([*(entries.split(",") if entries else []), *kept])}


@given(STEPS)
def test_others_have_exactly_what_they_set_when_ours_is_removed(steps: list[tuple[str, str, object]]) -> None:
    config: dict[str, str] = {}
    theirs: dict[str, str] = {}
    claims: dict[str, Claim] = {}
    wanted: dict[str, tuple[str, ...]] = {}
    for kind, setting, value in steps:
        if kind in ("ours", "our rate"):
            wanted[setting] = value if isinstance(value, tuple) else (str(value),)
            config, claims = adjust_config(config, claims, wanted)
        elif kind == "theirs":
            config = add_theirs(config, setting, str(value))
            theirs[setting] = str(value)
        elif kind == "their rate":
            config[setting] = theirs[setting] = str(value)
        elif setting in theirs:
            del config[setting], theirs[setting]
    config, claims = adjust_config(config, claims, {})
    assert claims == {}
    assert {name: sorted(value.split(",")) for name, value in config.items() if value} == {
        name: sorted(value.split(",")) for name, value in theirs.items() if value
    }
