"""Copies that do not progress are found by the sizes of replicas over five minutes. Unknown sizes prove nothing."""

from collections.abc import Iterable, Mapping

from controller_core.client.log_dirs.copy_sizes import Reading, take_reading
from controller_core.client.log_dirs.log_sizes import Copy, LogSizes
from controller_core.model.ids import BrokerId, PartitionId, TopicPartition
from controller_operator.kafka.stalls import NO_STALLS, Stalls
from controller_operator.plans.reassignment.copying.stalls import (
    NOTHING_READ,
    STALLED_AFTER_S,
    find_stalls,
    remember,
)
from tests.unit.operator.clusters import ORDERS

FIRST, SECOND = (TopicPartition(ORDERS, PartitionId(number)) for number in (0, 1))
LEADER, NEW, OTHER = BrokerId(1), BrokerId(4), BrokerId(5)
COPIES = {FIRST: Copy(leader=LEADER, to=(NEW,)), SECOND: Copy(leader=LEADER, to=(NEW, OTHER))}


def read(
    at_s: float,
    leader: tuple[int, int] = (1000, 1000),
    new: tuple[int, int] | None = (0, 0),
    other: int = 0,
    *,
    failed: Iterable[BrokerId] = (),
) -> Reading:
    """Return the brokers' answers about two partitions. None: the first new broker names no replica."""
    sizes: dict[BrokerId, Mapping[TopicPartition, int]] = {
        LEADER: {FIRST: leader[0], SECOND: leader[1]},
        NEW: {} if new is None else {FIRST: new[0], SECOND: new[1]},
        OTHER: {SECOND: other},
    }
    answers = {each: LogSizes(bytes_of=of, are_all_seen=each not in failed) for each, of in sizes.items()}
    return take_reading(COPIES, answers, at_s)


def stalls(*readings: Reading, is_limited: bool = False) -> Stalls:
    history = NOTHING_READ
    for each in readings:
        history = remember(history, each)
    return find_stalls(history, is_limited=is_limited)


def test_a_replica_that_has_not_grown_for_five_minutes_is_idle() -> None:
    growing = [read(at_s, new=(0, int(at_s)), other=int(at_s)) for at_s in (0.0, 150.0, STALLED_AFTER_S)]
    assert stalls(*growing) == Stalls(idle={FIRST: (NEW,)})
    assert stalls(*growing[:2]) == NO_STALLS


def test_under_a_limit_a_replica_is_idle_only_if_its_broker_copies_nothing() -> None:
    busy = [read(at_s, new=(0, int(at_s)), other=0) for at_s in (0.0, 150.0, STALLED_AFTER_S)]
    assert stalls(*busy, is_limited=True) == Stalls(idle={SECOND: (OTHER,)})


def test_growth_begins_the_five_minutes_again() -> None:
    assert stalls(read(0.0), read(200.0, new=(1, 1), other=1), read(STALLED_AFTER_S, new=(1, 1), other=1)) == NO_STALLS


def test_a_broker_that_does_not_answer_is_not_called_idle_until_it_says_so() -> None:
    silent = take_reading(COPIES, {}, STALLED_AFTER_S)
    assert stalls(read(0.0), silent) == NO_STALLS
    assert stalls(read(0.0), silent, read(400.0)).idle == {FIRST: (NEW,), SECOND: (NEW, OTHER)}


def test_a_replica_that_waits_for_its_turn_is_not_idle() -> None:
    waiting = {FIRST: Copy(leader=LEADER, to=(NEW,), has_begun=False)}
    answers = {each: LogSizes(bytes_of={FIRST: 0}, are_all_seen=True) for each in (LEADER, NEW)}
    assert stalls(take_reading(waiting, answers, 0.0), take_reading(waiting, answers, 900.0)) == NO_STALLS


def test_a_replica_that_a_failed_directory_hides_twice_in_a_row_is_named() -> None:
    hidden = [read(at_s, new=None, failed=(NEW,)) for at_s in (0.0, 10.0)]
    assert stalls(*hidden) == Stalls(on_failed_directories={FIRST: (NEW,), SECOND: (NEW,)})
    assert stalls(hidden[0]) == NO_STALLS
    assert stalls(*hidden, read(20.0, failed=(NEW,))) == NO_STALLS


def write_faster(seconds: int) -> list[Reading]:
    """Producers write 20 bytes a second to each partition, and each replica gets 10."""
    return [
        read(float(at_s), leader=(1000 + 20 * at_s,) * 2, new=(10 * at_s,) * 2, other=10 * at_s)
        for at_s in range(0, seconds + 1, 10)
    ]


def test_a_move_falls_behind_if_in_five_minutes_no_less_is_left() -> None:
    assert stalls(*write_faster(300)) == Stalls(falls_behind=True)
    assert stalls(*write_faster(290)) == NO_STALLS


def test_a_move_that_gains_again_does_not_fall_behind() -> None:
    behind = write_faster(300)
    caught_up = read(310.0, leader=(7000, 7000), new=(6900, 6900), other=6900)
    assert stalls(*behind, caught_up) == NO_STALLS


def test_what_waits_for_its_turn_may_grow_without_the_move_falling_behind() -> None:
    copies = {FIRST: COPIES[FIRST], SECOND: Copy(leader=LEADER, to=(NEW,), has_begun=False)}
    readings = [
        take_reading(
            copies,
            {
                LEADER: LogSizes(bytes_of={FIRST: 9000, SECOND: 100 * at_s}, are_all_seen=True),
                NEW: LogSizes(bytes_of={FIRST: 10 * at_s}, are_all_seen=True),
            },
            float(at_s),
        )
        for at_s in range(0, 400, 10)
    ]
    assert stalls(*readings) == NO_STALLS


def test_a_gap_in_the_readings_begins_the_five_minutes_again() -> None:
    readings = write_faster(300)
    readings[15] = take_reading(COPIES, {}, 150.0)
    assert stalls(*readings).falls_behind is False
