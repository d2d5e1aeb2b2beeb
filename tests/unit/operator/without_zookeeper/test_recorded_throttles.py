"""With concurrent changes and deaths of operators, limits hold, go with their moves, and leave the settings of others.

A small model checker goes through all histories: in any order operators look and write, die between any two of these
and start again, and somebody else changes something at any moment.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest

from controller_core.client.reassigning.throttle_configs import Changes, ListTooLongError
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.throttles import (
    ALL_BROKERS,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    Move,
    Record,
    Throttle,
)
from controller_core.wire.requests.configs import Operation
from controller_core.zk.codecs import encode_record
from controller_operator.kafka.recorded_throttles import end_throttle, find_next_write, list_entities, set_throttle
from tests.unit.operator.without_zookeeper.dynamic_configs import DynamicConfigs

A, B = "shop/move-orders/1", "bank/move.more/2"
T = TypeVar("T")


@dataclass(frozen=True)
class Limited:
    """The configurations of a cluster, and the record beside it."""

    configs: DynamicConfigs
    record: Record = field(default_factory=Record)

    @property
    def topics(self) -> dict[str, dict[str, str]]:
        return self.configs.topics

    @property
    def defaults(self) -> dict[str, str]:
        return self.configs.defaults

    def change(self, write: Record | Changes, known: Record) -> "Limited":
        """Return it after a write. The record is replaced only if it is the known one."""
        if isinstance(write, Record):
            return replace(self, record=write) if self.record == known else self
        changed = self.configs.copy()
        changed.change(write)
        return replace(self, configs=changed)

    def disturb(self, disturb: "Disturb") -> "Limited":
        disturbed = self.configs.copy()
        disturb(disturbed)
        return replace(self, configs=disturbed)

    def key(self) -> object:
        return self.configs, encode_record(self.record)


Act = Callable[[Limited], Record | Changes | None]
Disturb = Callable[[DynamicConfigs], None]


def tp(topic: str, number: int) -> TopicPartition:
    return TopicPartition(TopicName(topic), PartitionId(number))


def move(origin: list[int], target: list[int]) -> Move:
    return Move(origin=tuple(map(BrokerId, origin)), target=tuple(map(BrokerId, target)))


OF_A = {tp("orders", 0): move([1], [3]), tp("orders", 10): move([1, 2], [2, 3])}
OF_B = {tp("orders", 1): move([2], [3]), tp("bills", 0): move([1], [2])}
SAME = {tp("orders", 0): move([3], [2])}
"""A partition of the first, which the second one moves on."""


def _act(limited: Limited, throttles: dict[str, Throttle]) -> Record | Changes | None:
    shown = limited.configs.show(list_entities(limited.record, throttles))
    return find_next_write(limited.record, throttles, shown)


def sets(owner: str, moves: dict[TopicPartition, Move], rate: int) -> Act:
    throttle = Throttle(bytes_per_second=rate, moves=moves)
    return lambda limited: _act(limited, set_throttle(limited.record.throttles, owner, throttle))


def removes(owner: str) -> Act:
    return lambda limited: _act(limited, end_throttle(limited.record.throttles, owner))


def apply_acts(limited: Limited, *acts: Act) -> Limited:
    """Return the state after all of these acts, one after the other."""
    for act in acts:
        for _ in range(10):
            write = act(limited)
            if write is None:
                break
            limited = limited.change(write, limited.record)
        else:
            raise AssertionError("it comes to no end")
    return limited


def owners(limited: Limited) -> list[str]:
    return sorted(limited.record.throttles)


def fresh(**defaults: str) -> Limited:
    return Limited(DynamicConfigs("orders", "bills", defaults=defaults))


def replicas(limited: Limited, topic: str, name: str) -> list[str]:
    """Return the entries of a list."""
    return sorted(item for item in limited.topics[topic].get(name, "").split(",") if item)


def lists(limited: Limited) -> list[list[str]]:
    return [
        replicas(limited, topic, name) for topic in ("orders", "bills") for name in (LEADER_REPLICAS, FOLLOWER_REPLICAS)
    ]


def rates(limited: Limited) -> list[str | None]:
    return [limited.defaults.get(name) for name in (LEADER_RATE, FOLLOWER_RATE)]


class TestAlone:
    def test_a_limit_is_set_changed_and_removed(self) -> None:
        limited = apply_acts(fresh(), sets(A, OF_A, 5000))
        assert rates(limited) == ["5000", "5000"]
        assert limited.topics == {
            "orders": {LEADER_REPLICAS: "0:1,10:1,10:2", FOLLOWER_REPLICAS: "0:3,10:3"},
            "bills": {},
        }
        assert owners(limited) == [A]
        other = apply_acts(limited, sets(A, OF_A, 700))
        assert (rates(other), other.topics) == (["700", "700"], limited.topics)
        assert other.record.throttles[A].bytes_per_second == 700
        assert apply_acts(other, removes(A)) == fresh()

    def test_what_is_as_it_should_be_is_not_written(self) -> None:
        limited = apply_acts(fresh(), sets(A, OF_A, 5000))
        assert not sets(A, OF_A, 5000)(limited)
        assert not removes(B)(limited)
        assert not removes(A)(fresh())

    def test_the_record_names_a_value_before_kafka_has_it_and_until_it_has_it_no_more(self) -> None:
        first = sets(A, OF_A, 5000)(fresh())
        assert isinstance(first, Record)
        assert first.claims["topics/orders"][FOLLOWER_REPLICAS].values == ("0:3", "10:3")
        limited = apply_acts(fresh(), sets(A, OF_A, 5000))
        over = removes(A)(limited)
        assert isinstance(over, Record)
        assert (over.claims, over.throttles[A].moves) == (first.claims, dict.fromkeys(OF_A, move([], [])))
        assert not isinstance(removes(A)(limited.change(over, limited.record)), Record)

    def test_while_a_rate_changes_the_old_one_and_the_new_one_are_ours(self) -> None:
        limited = apply_acts(fresh(), sets(A, OF_A, 5000))
        change = sets(A, OF_A, 700)(limited)
        assert isinstance(change, Record)
        assert change.claims[ALL_BROKERS][LEADER_RATE].values == ("5000", "700")
        died = limited.change(change, limited.record)
        assert rates(died) == ["5000", "5000"]
        assert apply_acts(died, removes(A)) == fresh()

    def test_moves_that_are_over_are_limited_no_more_by_the_next_look_at_their_partitions(self) -> None:
        limited = apply_acts(fresh(), sets(A, OF_A, 5000))
        elsewhere = OF_A | {tp("orders", 0): move([1], [2])}
        assert replicas(apply_acts(limited, sets(A, elsewhere, 5000)), "orders", FOLLOWER_REPLICAS) == ["0:2", "10:3"]

    def test_a_topic_that_is_gone_needs_nothing_and_one_of_its_name_has_nothing(self) -> None:
        limited = apply_acts(fresh(), sets(B, OF_B, 5000))
        del limited.topics["bills"]
        assert "bills" not in apply_acts(limited, sets(B, OF_B, 5000)).topics
        limited.topics["bills"] = {}
        assert apply_acts(limited, removes(B)) == fresh()

    def test_what_has_no_room_is_refused_before_anything_is_written(self) -> None:
        many = {tp("orders", number): move([1, 2, 3], [4, 5, 6]) for number in range(2_000)}
        with pytest.raises(
            ListTooLongError, match=r"leader\.replication\.throttled\.replicas of topic orders .* 32767"
        ):
            sets(A, many, 5000)(fresh())
        fitting = {each: many[each] for each in list(many)[:1_000]}
        assert apply_acts(apply_acts(fresh(), sets(A, fitting, 5000)), removes(A)) == fresh()


class TestBesideOthers:
    def test_a_rate_that_somebody_has_set_stays_whatever_it_says(self) -> None:
        for theirs in ("5000", "7", "0"):
            before = fresh(**{LEADER_RATE: theirs})
            limited = apply_acts(before, sets(A, OF_A, 5000))
            assert (limited.defaults[LEADER_RATE], limited.defaults[FOLLOWER_RATE]) == (theirs, "5000")
            assert apply_acts(limited, removes(A)) == before

    def test_one_that_is_set_while_ours_holds_is_theirs_from_then_on(self) -> None:
        limited = apply_acts(fresh(), sets(A, OF_A, 5000))
        limited.defaults[LEADER_RATE] = "50"
        assert rates(apply_acts(limited, sets(A, OF_A, 5000))) == ["50", "5000"]
        assert apply_acts(limited, removes(A)) == fresh(**{LEADER_RATE: "50"})

    def test_replicas_that_somebody_has_named_stay_also_where_they_are_the_same(self) -> None:
        before = fresh()
        before.topics["orders"] = {LEADER_REPLICAS: "0:1,9:9", FOLLOWER_REPLICAS: "*"}
        limited = apply_acts(before, sets(A, OF_A, 5000))
        assert limited.topics["orders"] == {LEADER_REPLICAS: "0:1,9:9,10:1,10:2", FOLLOWER_REPLICAS: "*"}
        assert apply_acts(limited, removes(A)) == before

    def test_all_replicas_that_somebody_names_while_ours_are_there_need_nothing_added(self) -> None:
        limited = apply_acts(fresh(), sets(A, OF_A, 5000))
        limited.topics["orders"][LEADER_REPLICAS] = "*"
        assert apply_acts(limited, sets(A, OF_A, 5000)).topics["orders"][LEADER_REPLICAS] == "*"
        assert apply_acts(limited, removes(A)).topics["orders"] == {LEADER_REPLICAS: "*"}

    def test_the_lowest_of_several_limits_holds_as_long_as_it_is_there(self) -> None:
        both = apply_acts(fresh(), sets(A, OF_A, 5000), sets(B, OF_B, 700))
        assert rates(both) == ["700", "700"]
        assert rates(apply_acts(both, removes(B))) == ["5000", "5000"]
        assert rates(apply_acts(both, removes(A))) == ["700", "700"]

    def test_each_leaves_the_others_replicas_also_of_the_same_partition(self) -> None:
        both = apply_acts(fresh(), sets(A, OF_A, 5000), sets(B, SAME, 700))
        assert (
            apply_acts(both, removes(A)).topics
            == apply_acts(fresh(), sets(A, OF_A, 5000), sets(B, SAME, 700), removes(A)).topics
        )
        assert replicas(apply_acts(both, removes(A)), "orders", FOLLOWER_REPLICAS) == ["0:2"]
        assert apply_acts(both, removes(B)) == apply_acts(fresh(), sets(A, OF_A, 5000))


@dataclass(frozen=True)
class State:
    """A cluster, and the write that each operator has decided and not made yet, with the record that it knew then.

    None: the operator looks next."""

    limited: Limited
    pending: tuple[tuple[Record | Changes, Record] | None, ...]
    done: tuple[bool, ...]
    disturbances: int
    at_work: int | None = None
    """The operator that has begun and neither ended nor died, if they work one after the other."""

    def key(self) -> object:
        pending = tuple(None if each is None else str(each) for each in self.pending)
        return self.limited.key(), pending, self.done, self.disturbances, self.at_work


def ends(
    limited: Limited, acts: list[Act], disturb: Disturb | None = None, *, at_once: bool = True
) -> Iterator[Limited]:
    """Return all possible states when every operator has seen that nothing is left to do. They work at once, or one
    after the other as those of one Lease do.

    An operator that dies has decided nothing; it starts again with a look. An empty list is removed at the moment of
    the look, because Kafka has no condition for that.
    """
    start = State(limited, (None,) * len(acts), (False,) * len(acts), 1 if disturb else 0)
    known, open_states = {start.key()}, [start]
    while open_states:
        state = open_states.pop()
        if all(state.done) and not state.disturbances:
            yield state.limited
            continue
        for after in find_following(state, acts, disturb, at_once=at_once):
            if after.key() not in known:
                known.add(after.key())
                open_states.append(after)


def find_following(state: State, acts: list[Act], disturb: Disturb | None, *, at_once: bool) -> Iterator[State]:
    if state.disturbances and disturb is not None:
        yield replace(state, limited=state.limited.disturb(disturb), disturbances=0)
    for at, act in enumerate(acts):
        if state.at_work not in (None, at):
            continue
        pending = state.pending[at]
        if pending is not None:
            written = replace(
                state, limited=state.limited.change(*pending), pending=replace_at(state.pending, at, None)
            )
            yield written
            yield replace(written, at_work=None)  # it dies after the write
            yield replace(state, pending=replace_at(state.pending, at, None), at_work=None)  # it dies before it
        elif not state.done[at]:
            write = act(state.limited)
            if write is None:
                yield replace(state, done=replace_at(state.done, at, True), at_work=None)
            elif is_tidying(write):
                # Removing an empty list is one step with the look, because Kafka offers no condition for it.
                yield replace(state, limited=state.limited.change(write, state.limited.record))
            else:
                decided = replace_at(state.pending, at, (write, state.limited.record))
                yield replace(state, pending=decided, at_work=None if at_once else at)


def replace_at(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*values[:at], value, *values[at + 1 :])


def is_tidying(write: Record | Changes) -> bool:
    if isinstance(write, Record):
        return False
    changes = [(entity, change.operation) for entity, changed in write.items() for change in changed]
    return all(entity != ALL_BROKERS and operation is Operation.DELETE for entity, operation in changes)


class TestWhateverHappens:
    def test_two_are_limited_at_once(self) -> None:
        for end in ends(fresh(), [sets(A, OF_A, 5000), sets(B, OF_B, 700)]):
            assert rates(end) == ["700", "700"]
            assert replicas(end, "orders", LEADER_REPLICAS) == ["0:1", "10:1", "10:2", "1:2"]
            assert replicas(end, "orders", FOLLOWER_REPLICAS) == ["0:3", "10:3", "1:3"]
            assert owners(end) == [B, A]
            assert apply_acts(end, removes(A), removes(B)) == fresh()

    def test_one_begins_while_another_ends_also_of_the_same_partition(self) -> None:
        before = apply_acts(fresh(), sets(A, OF_A, 500))
        for moves in (OF_B, SAME):
            expected = apply_acts(fresh(), sets(B, moves, 700))
            for end in ends(before, [removes(A), sets(B, moves, 700)]):
                assert rates(end) == ["700", "700"]
                assert lists(end) == lists(expected)
                assert apply_acts(end, removes(B)) == fresh()

    def test_two_end_at_once(self) -> None:
        before = apply_acts(fresh(), sets(A, OF_A, 5000), sets(B, OF_B, 700))
        assert list(ends(before, [removes(A), removes(B)], at_once=False)) == [fresh()]
        for end in ends(before, [removes(A), removes(B)]):
            assert (lists(end), end.record) == (lists(fresh()), Record())

    def test_one_changes_while_another_ends(self) -> None:
        before = apply_acts(fresh(), sets(A, OF_A, 5000), sets(B, OF_B, 700))
        expected = apply_acts(fresh(), sets(A, OF_A, 900))
        for end in ends(before, [sets(A, OF_A, 900), removes(B)], at_once=False):
            assert end == expected
        for end in ends(before, [sets(A, OF_A, 900), removes(B)]):
            assert (lists(end), owners(end)) == (lists(expected), [A])

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

        theirs = fresh() if disturb in ("topic", "list") else fresh().disturb(act)
        for set_first in ends(fresh(), [sets(A, OF_A, 5000)], act):
            assert apply_acts(set_first, removes(A)) in (theirs, fresh())
        for over in ends(apply_acts(fresh(), sets(A, OF_A, 5000)), [removes(A)], act):
            assert over in (theirs, fresh())


def test_what_is_added_and_what_is_taken_away_come_one_after_the_other() -> None:
    limited = apply_acts(fresh(), sets(A, OF_A, 5000))
    elsewhere = OF_A | {tp("orders", 0): move([1], [2])}
    recorded = sets(A, elsewhere, 5000)(limited)
    assert isinstance(recorded, Record)
    first = sets(A, elsewhere, 5000)(limited.change(recorded, limited.record))
    assert first is not None
    assert not isinstance(first, Record)
    assert [each.operation for changed in first.values() for each in changed] == [Operation.APPEND]
