"""Idempotent producers: a repeated batch is not appended again, and a gap in the sequence is refused."""

import pytest
from kio.schema.errors import ErrorCode

from replica_broker.log.config import TimestampType
from replica_broker.log.errors import InvalidProducerEpoch, InvalidRecord, OutOfOrderSequence
from replica_broker.log.log import Log
from simulation.replicas.disk import SimulatedDisk
from tests.unit.replica_broker.log.batches import EPOCH, NOW_MS, ManualClock, batch
from tests.unit.replica_broker.log.logs import all_bytes, offsets, open_log

LARGEST = 2**31 - 1


def make_batch(sequence: int, *values: bytes, epoch: int = 0, producer_id: int = 7) -> bytes:
    return batch(*(values or (b"x",)), producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def append(log: Log, sequence: int, *values: bytes, epoch: int = 0, producer_id: int = 7) -> tuple[int, int, bool]:
    done = log.append_as_leader(make_batch(sequence, *values, epoch=epoch, producer_id=producer_id), EPOCH, NOW_MS)
    return done.first_offset, done.last_offset, done.is_duplicate


def test_one_of_the_last_five_batches_is_answered_as_it_was_then() -> None:
    log = open_log(SimulatedDisk())
    for sequence in range(0, 12, 2):
        append(log, sequence, b"a", b"b")
    assert append(log, 2, b"a", b"b") == (2, 3, True)
    assert append(log, 10, b"a", b"b") == (10, 11, True)
    with pytest.raises(OutOfOrderSequence, match="12 is the next") as raised:
        append(log, 0, b"a", b"b")
    assert raised.value.error_code is ErrorCode.out_of_order_sequence_number
    assert log.log_end_offset == 12


def test_a_duplicate_keeps_the_time_that_the_broker_gave_it() -> None:
    log = open_log(SimulatedDisk(), message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    append(log, 0)
    again = log.append_as_leader(make_batch(0), EPOCH, NOW_MS + 5)
    assert (again.is_duplicate, again.log_append_time_ms) == (True, NOW_MS)


def test_a_sequence_that_leaves_something_out_is_refused() -> None:
    log = open_log(SimulatedDisk())
    append(log, 0)
    for sequence in (2, LARGEST):
        with pytest.raises(OutOfOrderSequence):
            append(log, sequence)
    assert append(log, 1) == (1, 1, False)
    assert append(log, 9, producer_id=8) == (2, 2, False), "nothing is known of that one"


def test_sequences_begin_at_0_again_behind_the_largest() -> None:
    log = open_log(SimulatedDisk())
    append(log, LARGEST - 1)
    append(log, LARGEST, b"a", b"b")
    assert append(log, LARGEST, b"a", b"b") == (1, 2, True)
    assert append(log, 1) == (3, 3, False)


def test_a_producer_of_an_earlier_epoch_is_fenced_and_a_later_one_begins_at_0() -> None:
    log = open_log(SimulatedDisk())
    append(log, 0, epoch=4)
    with pytest.raises(InvalidProducerEpoch) as raised:
        append(log, 1, epoch=3)
    assert raised.value.error_code is ErrorCode.invalid_producer_epoch
    with pytest.raises(OutOfOrderSequence):
        append(log, 1, epoch=5)
    assert append(log, 0, epoch=5) == (1, 1, False)
    with pytest.raises(InvalidProducerEpoch):
        append(log, 0, epoch=4)


def test_a_producer_without_a_sequence_makes_no_sense() -> None:
    log = open_log(SimulatedDisk())
    with pytest.raises(InvalidRecord):
        append(log, -1)


@pytest.mark.parametrize("is_clean", [False, True])
def test_what_is_known_of_producers_is_found_again_in_the_log(is_clean: bool) -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    for sequence in range(9):
        append(log, sequence)
    log.close()
    again = open_log(disk, is_clean=is_clean)
    assert append(again, 8) == (8, 8, True)
    with pytest.raises(OutOfOrderSequence):
        append(again, 7)
    assert append(again, 9) == (9, 9, False)


def test_a_follower_learns_them_of_what_it_fetches_and_never_refuses() -> None:
    leader, follower = open_log(SimulatedDisk()), open_log(SimulatedDisk())
    for sequence in (0, 1, 2):
        append(leader, sequence)
    leader.restart_at(3)
    append(leader, 7, epoch=2)
    follower.restart_at(3)
    follower.append_as_follower(all_bytes(leader))
    assert append(follower, 7, epoch=2) == (3, 3, True)
    assert append(follower, 8, epoch=2) == (4, 4, False)


def test_what_was_cut_was_never_written() -> None:
    log = open_log(SimulatedDisk())
    for sequence in range(6):
        append(log, sequence)
    append(log, 0, producer_id=8)
    log.truncate_to(3)
    with pytest.raises(OutOfOrderSequence, match="3 is the next"):
        append(log, 5)
    assert append(log, 3) == (3, 3, False)
    assert append(log, 5, producer_id=8) == (4, 4, False)
    assert offsets(log) == [(number, number) for number in range(5)]


@pytest.mark.parametrize("is_reopened", [False, True])
def test_a_producer_that_wrote_nothing_for_long_is_forgotten(is_reopened: bool) -> None:
    disk, clock = SimulatedDisk(), ManualClock()
    log = open_log(disk, clock, producer_id_expiration_ms=1000, retention_ms=None)
    append(log, 0)
    clock.time_ms += 1000
    log.delete_old_segments(clock.now_ms(), 1)
    with pytest.raises(OutOfOrderSequence):
        append(log, 5)
    clock.time_ms += 1
    if is_reopened:
        log.close()
        log = open_log(disk, clock, producer_id_expiration_ms=1000)
    else:
        log.delete_old_segments(clock.now_ms(), 1)
    assert append(log, 5) == (1, 1, False)
