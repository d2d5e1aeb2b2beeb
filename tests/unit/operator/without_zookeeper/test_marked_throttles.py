"""With concurrent changes and deaths of operators, limits hold, go with their moves, and leave the settings of others.

A small model checker goes through all histories: in any order operators look and write, die between any two of these
and start again, and somebody else changes something at any moment.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import pytest

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    Move,
    Throttle,
)
from controller_core.wire.requests.configs import ConfigChange, Operation
from controller_operator.kafka.marked_throttles import (
    Changes,
    Configs,
    ListTooLongError,
    changes_to_remove,
    changes_to_set,
    entries_in,
)
from tests.unit.operator.without_zookeeper.dynamic_configs import DynamicConfigs

A, B = "shop/move-orders/1", "bank/move.more/2"
T = TypeVar("T")
Act = Callable[[DynamicConfigs], Changes]
Disturb = Callable[[DynamicConfigs], None]


def tp(topic: str, number: int) -> TopicPartition:
    return TopicPartition(TopicName(topic), PartitionId(number))


def move(origin: list[int], target: list[int]) -> Move:
    return Move(origin=tuple(map(BrokerId, origin)), target=tuple(map(BrokerId, target)))


OF_A = {tp("orders", 0): move([1], [3]), tp("orders", 10): move([1, 2], [2, 3])}
OF_B = {tp("orders", 1): move([2], [3]), tp("bills", 0): move([1], [2])}
SAME = {tp("orders", 0): move([3], [2])}
"""A partition of the first, which the second one moves on."""


def sets(owner: str, moves: dict[TopicPartition, Move], rate: int) -> Act:
    topics = sorted({each.topic for each in moves})
    throttle = Throttle(bytes_per_second=rate, moves=moves)
    return lambda configs: changes_to_set(owner, throttle, configs.show(*topics))


def removes(owner: str, moves: dict[TopicPartition, Move]) -> Act:
    topics = sorted({each.topic for each in moves})
    return lambda configs: changes_to_remove(owner, moves.keys(), configs.show(*topics))


def apply_acts(configs: DynamicConfigs, *acts: Act) -> DynamicConfigs:
    """Return the configurations after all of these acts, one after the other."""
    configs = configs.copy()
    for act in acts:
        for _ in range(10):
            changes = act(configs)
            if not changes:
                break
            configs.change(changes)
        else:
            raise AssertionError("it comes to no end")
    return configs


def fresh(**defaults: str) -> DynamicConfigs:
    return DynamicConfigs("orders", "bills", defaults=defaults)


def replicas(configs: DynamicConfigs, topic: str, name: str) -> list[str]:
    """Return the entries of a list as Kafka reads them."""
    items = [item for item in configs.topics[topic].get(name, "").split(",") if item]
    return sorted(f"{int(partition)}:{broker}" for partition, _, broker in (item.partition(":") for item in items))


def rates(configs: DynamicConfigs) -> list[int | None]:
    """Return the rates as Kafka reads them."""
    return [int(configs.defaults[name]) if name in configs.defaults else None for name in (LEADER_RATE, FOLLOWER_RATE)]


class TestAlone:
    def test_a_limit_is_set_changed_and_removed(self) -> None:
        limited = apply_acts(fresh(), sets(A, OF_A, 5000))
        assert rates(limited) == [5000, 5000]
        assert limited.topics == {
            "orders": {LEADER_REPLICAS: "00:1,010:1,010:2", FOLLOWER_REPLICAS: "00:3,010:3"},
            "bills": {},
        }
        assert [(each.owner, each.bytes_per_second) for each in entries_in(limited.defaults)] == [(A, 5000)]
        other = apply_acts(limited, sets(A, OF_A, 700))
        assert (rates(other), other.topics) == ([700, 700], limited.topics)
        assert [each.bytes_per_second for each in entries_in(other.defaults)] == [700]
        assert apply_acts(other, removes(A, OF_A)) == fresh()

    def test_what_is_as_it_should_be_is_not_written(self) -> None:
        limited = apply_acts(fresh(), sets(A, OF_A, 5000))
        assert not sets(A, OF_A, 5000)(limited)
        assert not removes(B, OF_B)(limited)
        assert not removes(A, OF_A)(fresh())

    def test_the_rate_is_there_before_any_replica_is_named_and_goes_after_the_last(self) -> None:
        first = sets(A, OF_A, 5000)(fresh())
        assert set(first) == {None}
        limited = apply_acts(fresh(), sets(A, OF_A, 5000))
        assert set(removes(A, OF_A)(limited)) == {"orders"}

    def test_moves_that_are_over_are_limited_no_more_by_the_next_look_at_their_partitions(self) -> None:
        limited = apply_acts(fresh(), sets(A, OF_A, 5000))
        elsewhere = OF_A | {tp("orders", 0): move([1], [2])}
        assert replicas(apply_acts(limited, sets(A, elsewhere, 5000)), "orders", FOLLOWER_REPLICAS) == ["0:2", "10:3"]

    def test_a_topic_that_is_gone_needs_nothing_and_one_of_its_name_has_nothing(self) -> None:
        limited = apply_acts(fresh(), sets(B, OF_B, 5000))
        del limited.topics["bills"]
        assert not sets(B, OF_B, 5000)(limited)
        limited.topics["bills"] = {}
        assert apply_acts(limited, removes(B, OF_B)) == fresh()

    def test_what_has_no_room_is_refused_before_anything_is_written(self) -> None:
        many = {tp("orders", number): move([1, 2, 3], [4, 5, 6]) for number in range(2_000)}
        with pytest.raises(
            ListTooLongError, match=r"leader\.replication\.throttled\.replicas of topic orders .* 32767"
        ):
            sets(A, many, 5000)(fresh())
        fitting = {each: many[each] for each in list(many)[:1_000]}
        assert apply_acts(apply_acts(fresh(), sets(A, fitting, 5000)), removes(A, fitting)) == fresh()


class TestBesideOthers:
    def test_a_rate_that_somebody_has_set_stays_whatever_it_says(self) -> None:
        for theirs in ("5000", "7", "0"):
            before = fresh(**{LEADER_RATE: theirs})
            limited = apply_acts(before, sets(A, OF_A, 5000))
            assert (limited.defaults[LEADER_RATE], limited.defaults[FOLLOWER_RATE]) == (theirs, "05000")
            assert apply_acts(limited, removes(A, OF_A)) == before

    def test_one_that_is_set_while_ours_holds_is_theirs_from_then_on(self) -> None:
        limited = apply_acts(fresh(), sets(A, OF_A, 5000))
        limited.defaults[LEADER_RATE] = "5000"
        assert not sets(A, OF_A, 5000)(limited)
        assert apply_acts(limited, removes(A, OF_A)) == fresh(**{LEADER_RATE: "5000"})

    def test_replicas_that_somebody_has_named_stay_also_where_they_are_the_same(self) -> None:
        before = fresh()
        before.topics["orders"] = {LEADER_REPLICAS: "0:1,9:9", FOLLOWER_REPLICAS: "*"}
        limited = apply_acts(before, sets(A, OF_A, 5000))
        assert limited.topics["orders"] == {LEADER_REPLICAS: "0:1,9:9,00:1,010:1,010:2", FOLLOWER_REPLICAS: "*"}
        assert apply_acts(limited, removes(A, OF_A)) == before

    def test_all_replicas_that_somebody_names_while_ours_are_there_need_nothing_added(self) -> None:
        limited = apply_acts(fresh(), sets(A, OF_A, 5000))
        limited.topics["orders"][LEADER_REPLICAS] = "*"
        assert not sets(A, OF_A, 5000)(limited)
        assert apply_acts(limited, removes(A, OF_A)).topics["orders"] == {LEADER_REPLICAS: "*"}

    def test_settings_of_others_are_no_entries(self) -> None:
        assert (
            entries_in(["log.retention.ms", "kontroller.throttle", "kontroller.throttle.0.5.x", "kontroller.x.1.5.y"])
            == ()
        )

    def test_the_lowest_of_several_limits_holds_as_long_as_it_is_there(self) -> None:
        both = apply_acts(fresh(), sets(A, OF_A, 5000), sets(B, OF_B, 700))
        assert rates(both) == [700, 700]
        assert rates(apply_acts(both, removes(B, OF_B))) == [5000, 5000]
        assert rates(apply_acts(both, removes(A, OF_A))) == [700, 700]

    def test_each_leaves_the_others_replicas_also_of_the_same_partition(self) -> None:
        both = apply_acts(fresh(), sets(A, OF_A, 5000), sets(B, SAME, 700))
        assert (
            apply_acts(both, removes(A, OF_A)).topics
            == apply_acts(fresh(), sets(A, OF_A, 5000), sets(B, SAME, 700), removes(A, OF_A)).topics
        )
        assert replicas(apply_acts(both, removes(A, OF_A)), "orders", FOLLOWER_REPLICAS) == ["0:2"]
        assert apply_acts(both, removes(B, SAME)) == apply_acts(fresh(), sets(A, OF_A, 5000))

    def test_what_was_written_late_for_one_that_is_gone_is_removed_like_any_other(self) -> None:
        late = sets(A, OF_A, 300)(fresh())
        limited = apply_acts(fresh(), sets(A, OF_A, 5000))
        limited.change(late)
        assert rates(apply_acts(limited, sets(A, OF_A, 5000))) == [5000, 5000]
        assert apply_acts(limited, removes(A, OF_A)) == fresh()


@dataclass(frozen=True)
class State:
    """The configurations, and the changes that each operator has decided and not written yet. None: it looks next."""

    configs: DynamicConfigs
    pending: tuple[Changes | None, ...]
    done: tuple[bool, ...]
    disturbances: int

    def key(self) -> object:
        pending = tuple(None if each is None else str(each) for each in self.pending)
        return self.configs, pending, self.done, self.disturbances


def ends(configs: DynamicConfigs, acts: list[Act], disturb: Disturb | None = None) -> Iterator[DynamicConfigs]:
    """Return all possible configurations when every operator has seen that nothing is left to do.

    An operator that dies has decided nothing; it starts again with a look. An empty list is removed at the moment of
    the look, because Kafka has no condition for that.
    """
    start = State(configs, (None,) * len(acts), (False,) * len(acts), 1 if disturb else 0)
    known, open_states = {start.key()}, [start]
    while open_states:
        state = open_states.pop()
        if all(state.done) and not state.disturbances:
            yield state.configs
            continue
        for after in find_following(state, acts, disturb):
            if after.key() not in known:
                known.add(after.key())
                open_states.append(after)


def find_following(state: State, acts: list[Act], disturb: Disturb | None) -> Iterator[State]:
    if state.disturbances and disturb is not None:
        disturbed = state.configs.copy()
        disturb(disturbed)
        yield replace(state, configs=disturbed, disturbances=0)
    for at, act in enumerate(acts):
        pending = state.pending[at]
        if pending is not None:
            written = state.configs.copy()
            written.change(pending)
            yield replace(state, configs=written, pending=replace_at(state.pending, at, None))
            yield replace(state, pending=replace_at(state.pending, at, None))  # it dies
        elif not state.done[at]:
            changes = act(state.configs)
            # Removing an empty list is one step with the look, because Kafka offers no condition for it.
            if changes and all(is_tidying(topic, each) for topic, changed in changes.items() for each in changed):
                tidied = state.configs.copy()
                tidied.change(changes)
                yield replace(state, configs=tidied)
            elif changes:
                yield replace(state, pending=replace_at(state.pending, at, changes))
            else:
                yield replace(state, done=replace_at(state.done, at, True))


def replace_at(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*values[:at], value, *values[at + 1 :])


def is_tidying(topic: TopicName | None, change: ConfigChange) -> bool:
    return topic is not None and change.operation is Operation.DELETE


class TestWhateverHappens:
    def test_two_are_limited_at_once(self) -> None:
        for end in ends(fresh(), [sets(A, OF_A, 5000), sets(B, OF_B, 700)]):
            assert rates(end) == [700, 700]
            assert replicas(end, "orders", LEADER_REPLICAS) == ["0:1", "10:1", "10:2", "1:2"]
            assert replicas(end, "orders", FOLLOWER_REPLICAS) == ["0:3", "10:3", "1:3"]
            assert sorted(each.owner for each in entries_in(end.defaults)) == [B, A]
            assert apply_acts(end, removes(A, OF_A), removes(B, OF_B)) == fresh()

    def test_one_begins_while_another_ends_also_of_the_same_partition(self) -> None:
        before = apply_acts(fresh(), sets(A, OF_A, 500))
        for moves in (OF_B, SAME):
            expected = apply_acts(fresh(), sets(B, moves, 700))
            for end in ends(before, [removes(A, OF_A), sets(B, moves, 700)]):
                assert rates(end) == [700, 700]
                for topic in ("orders", "bills"):
                    for name in (LEADER_REPLICAS, FOLLOWER_REPLICAS):
                        assert replicas(end, topic, name) == replicas(expected, topic, name)
                assert apply_acts(end, removes(B, moves)) == fresh()

    def test_two_end_at_once(self) -> None:
        before = apply_acts(fresh(), sets(A, OF_A, 5000), sets(B, OF_B, 700))
        assert list(ends(before, [removes(A, OF_A), removes(B, OF_B)])) == [fresh()]

    def test_one_changes_while_another_ends(self) -> None:
        before = apply_acts(fresh(), sets(A, OF_A, 5000), sets(B, OF_B, 700))
        for end in ends(before, [sets(A, OF_A, 900), removes(B, OF_B)]):
            assert end == apply_acts(fresh(), sets(A, OF_A, 900))

    @pytest.mark.parametrize("disturb", ["rate", "all replicas", "topic", "list", "their replica"])
    def test_somebody_changes_something_meanwhile(self, disturb: str) -> None:
        def act(configs: DynamicConfigs) -> None:
            orders = configs.topics["orders"]
            match disturb:
                case "rate":
                    configs.defaults[LEADER_RATE] = "123"
                case "all replicas":
                    orders[FOLLOWER_REPLICAS] = "*"
                case "topic":
                    configs.topics["orders"] = {}  # deleted, and created again
                case "list":
                    orders.pop(LEADER_REPLICAS, None)
                case "their replica":
                    orders[LEADER_REPLICAS] = f"{orders.get(LEADER_REPLICAS, '')},0:1".removeprefix(",")

        for set_first in ends(fresh(), [sets(A, OF_A, 5000)], act):
            over = apply_acts(set_first, removes(A, OF_A))
            expected = fresh()
            if disturb in ("rate", "all replicas", "their replica"):
                act(expected)
            assert over in (expected, fresh() if disturb == "rate" else expected)
        for over in ends(apply_acts(fresh(), sets(A, OF_A, 5000)), [removes(A, OF_A)], act):
            assert not entries_in(over.defaults)
            assert "0:1" in over.topics["orders"].get(LEADER_REPLICAS, "") or disturb != "their replica"


def test_what_is_added_and_what_is_taken_away_come_one_after_the_other() -> None:
    limited = apply_acts(fresh(), sets(A, OF_A, 5000))
    elsewhere = OF_A | {tp("orders", 0): move([1], [2])}
    first = sets(A, elsewhere, 5000)(limited)
    assert [each.operation for changed in first.values() for each in changed] == [Operation.APPEND]


def test_nothing_is_known_of_no_configurations() -> None:
    assert changes_to_remove(A, OF_A.keys(), Configs()) == {}
