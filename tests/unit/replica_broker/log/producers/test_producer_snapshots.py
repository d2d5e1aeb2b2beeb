"""Snapshots of producers: Kafka's bytes, one for each segment and the end, and exactly the content of the batches."""

import struct
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from controller_core.model.ids import LeaderEpoch
from controller_core.wire.crc32c import crc32c
from replica_broker.log.errors import MalformedFile, OutOfOrderSequence
from replica_broker.log.log import Log
from replica_broker.log.producers.snapshot_format import decode_snapshot, encode_snapshot
from replica_broker.log.producers.states import AppendedBatch, ProducerState, ProducerStates
from replica_broker.log.record_batches import place_batches, read_batches
from simulation.replicas.disk import SimulatedDisk
from tests.unit.replica_broker.log.batches import CONTROL, EPOCH, NOW_MS, TRANSACTIONAL, ManualClock, batch, record
from tests.unit.replica_broker.log.logs import FOLDER, all_bytes, open_log

HEX = (
    "0001 67511fbd 00000001"  # a version, a CRC, one entry
    "0000000000000007 0002 0000000b 0000000000000029 00000002 000000000000c350 00000004 0000000000000027"
)
"""A snapshot as Kafka's `ProducerStateManager` writes it."""
STATE = ProducerState(
    epoch=2,
    last_timestamp_ms=50_000,
    coordinator_epoch=4,
    transaction_first_offset=39,
    batches=deque([AppendedBatch(9, 11, 39, 41, 50_000, has_log_append_time=False)], maxlen=5),
)


def make_batch(sequence: int, producer_id: int = 7) -> bytes:
    return batch(b"x" * 40, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)


def append(log: Log, *sequences: int, producer_id: int = 7) -> None:
    for sequence in sequences:
        log.append_as_leader(make_batch(sequence, producer_id), EPOCH, NOW_MS)


def snapshots(disk: SimulatedDisk) -> list[int]:
    return [int(name.removesuffix(".snapshot")) for name in disk.list(FOLDER) if name.endswith(".snapshot")]


def segments(disk: SimulatedDisk) -> list[int]:
    return [int(name.removesuffix(".log")) for name in disk.list(FOLDER) if name.endswith(".log")]


def write_log() -> tuple[SimulatedDisk, Log]:
    """A log of ten batches of one producer, in several segments."""
    disk = SimulatedDisk()
    log = open_log(disk)
    append(log, *range(10))
    return disk, log


def test_the_bytes_are_kafkas() -> None:
    content = bytes.fromhex(HEX)
    assert encode_snapshot([(7, STATE)]) == content
    assert decode_snapshot("f", content, end_offset=42) == {7: STATE}
    assert decode_snapshot("f", encode_snapshot([]), end_offset=0) == {}


@given(st.binary(max_size=120), st.booleans())
def test_whatever_the_bytes_are_they_are_states_or_refused_in_words(entries: bytes, has_crc: bool) -> None:
    checked = struct.pack(">i", len(entries) // 46) + entries
    content = struct.pack(">hI", 1, crc32c(checked) if has_crc else 0) + checked
    with suppress(MalformedFile):
        states = decode_snapshot("f", content, end_offset=100)
        assert decode_snapshot("f", encode_snapshot(states.items()), end_offset=100) == states


@pytest.mark.parametrize("changed", [{"transaction_first_offset": 42}, {"epoch": -1}])
def test_what_cannot_be_at_its_offset_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(MalformedFile, match="producer 7 has epoch"):
        decode_snapshot("f", encode_snapshot([(7, replace(STATE, **changed))]), end_offset=42)


def test_there_is_one_for_each_segment_and_one_for_the_end() -> None:
    disk, log = write_log()
    assert snapshots(disk) == segments(disk)[1:] != []
    log.close()
    assert snapshots(disk) == [*segments(disk)[1:], 10]
    again = open_log(disk, is_clean=True)
    append(again, 10)
    again.close()
    assert snapshots(reopen(disk)) == [*segments(disk)[1:], 11], "the former end is of no segment"


def reopen(disk: SimulatedDisk) -> SimulatedDisk:
    open_log(disk, is_clean=True).close()
    return disk


def test_batches_of_several_segments_that_come_at_once_leave_the_same_snapshots() -> None:
    disk, log = write_log()
    copied = SimulatedDisk()
    follower = open_log(copied)
    follower.append_as_follower(
        b"".join(place_batches(make_batch(number), number, LeaderEpoch(3), None) for number in range(10))
    )
    for offset in snapshots(disk):
        path = FOLDER / f"{offset:020d}.snapshot"
        assert copied.read_whole(path) == disk.read_whole(path)
    assert snapshots(copied) == snapshots(disk)
    assert log.log_end_offset == follower.log_end_offset


def test_only_what_is_behind_the_latest_is_read() -> None:
    disk, log = write_log()
    log.close()
    first = FOLDER / f"{0:020d}.log"
    disk.damage(first, bytes(disk.size(first)))
    append(open_log(disk, is_clean=True), 10)


@pytest.mark.parametrize("content", [b"", b"\0\1abc", bytes(56)])
def test_one_that_is_damaged_is_removed_and_the_one_before_is_used(content: bytes) -> None:
    disk, log = write_log()
    log.close()
    disk.damage(FOLDER / f"{10:020d}.snapshot", content)
    with capture_logs() as logs:
        again = open_log(disk, is_clean=True)
    assert [entry["event"] for entry in logs] == ["producer snapshot is unusable, batches are read instead"]
    assert snapshots(disk) == segments(disk)[1:]
    with pytest.raises(OutOfOrderSequence, match="10 is the next"):
        append(again, 11)
    append(again, 10)


def test_without_any_that_can_be_used_all_batches_are_read() -> None:
    disk, log = write_log()
    log.close()
    for offset in snapshots(disk):
        disk.damage(FOLDER / f"{offset:020d}.snapshot", b"nothing")
    append(open_log(disk, is_clean=True), 10)
    assert snapshots(disk) == []


def test_none_outlives_the_batches_that_it_is_of() -> None:
    disk, log = write_log()
    log.close()
    again = open_log(disk, is_clean=True)
    again.truncate_to(4)
    assert max(snapshots(disk)) <= again.log_end_offset
    append(again, *range(again.log_end_offset, 8), producer_id=8)
    again.close()
    machine = disk.restart()
    restarted = open_log(machine, is_clean=True)
    append(restarted, 8, producer_id=8)
    with pytest.raises(OutOfOrderSequence):
        append(restarted, 9)
    restarted.restart_at(100)
    assert snapshots(machine) == []


def test_one_that_is_behind_the_end_after_an_unclean_end_is_removed() -> None:
    disk, log = write_log()
    log.close()
    last = FOLDER / f"{segments(disk)[-1]:020d}.log"
    disk.damage(last, disk.read_whole(last)[:-1])
    again = open_log(disk)
    assert again.log_end_offset == 9
    assert max(snapshots(disk)) <= 9
    append(again, 9)


def test_those_of_segments_that_are_deleted_go_with_them() -> None:
    disk, log = write_log()
    log.raise_log_start(7)
    assert snapshots(disk) == [base for base in segments(disk) if base > 0]
    log.delete_old_segments(NOW_MS + log.config.segment_ms * 2, log.log_end_offset)
    assert segments(disk) == snapshots(disk) == [10]


def test_what_is_known_of_a_producer_outlives_its_batches() -> None:
    disk, log = write_log()
    log.delete_old_segments(NOW_MS + log.config.segment_ms * 2, log.log_end_offset)
    log.close()
    clock = ManualClock()
    append(open_log(disk, clock, is_clean=True), 10)


def test_an_open_transaction_is_told_to_who_takes_the_log_over_and_an_ended_one_is_not() -> None:
    disk = SimulatedDisk()
    log = open_log(disk, segment_bytes=10_000)
    first = batch(b"x", producer_id=7, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
    log.append_as_follower(place_batches(first, 0, EPOCH, None))
    log.close()
    path = FOLDER / f"{1:020d}.snapshot"
    assert decode_snapshot("f", disk.read_whole(path), end_offset=1)[7].transaction_first_offset == 0
    again = open_log(disk, is_clean=True, producer_id_expiration_ms=-1)
    marker = record(b"\0\0\0\0\0\0", key=b"\0\0\0\1")
    ended = batch(b"", producer_id=7, producer_epoch=0, attributes=TRANSACTIONAL | CONTROL, records=marker)
    again.append_as_follower(place_batches(ended, 1, EPOCH, None))
    again.close()
    state = decode_snapshot("f", disk.read_whole(FOLDER / f"{2:020d}.snapshot"), end_offset=2)[7]
    assert (state.transaction_first_offset, state.batches[-1].last_offset) == (None, 0)


def last_batches(states: ProducerStates) -> dict[int, tuple[int, AppendedBatch]]:
    return {producer_id: (state.epoch, state.batches[-1]) for producer_id, state in states}


_steps = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 2)),
    st.tuples(st.just("append"), st.integers(0, 2)),
    st.tuples(st.just("cut"), st.integers(0, 20)),
    st.tuples(st.just("close"), st.just(0)),
    st.tuples(st.just("abandon"), st.just(0)),
    st.tuples(st.just("crash"), st.just(0)),
)


@given(st.lists(_steps, max_size=40))
def test_whatever_was_done_with_a_log_its_producers_are_those_of_its_batches(steps: list[tuple[str, int]]) -> None:
    disk = SimulatedDisk()
    log, number = open_log(disk), 0
    for kind, what in steps:
        match kind:
            case "append":
                number += 1
                sent_now = batch(b"x" * 40, producer_id=what, producer_epoch=number, base_sequence=0)
                log.append_as_leader(sent_now, EPOCH, NOW_MS)
            case "cut":
                log.truncate_to(min(what, log.log_end_offset))
            case "close":
                log.close()
                log = open_log(disk, is_clean=True, recovery_point=log.log_end_offset)
            case "abandon":
                log.abandon()
                log = open_log(disk)
            case "crash":
                disk = disk.restart()
                log = open_log(disk)
        expected = ProducerStates()
        for one in read_batches(all_bytes(log)):
            expected.learn(one)
        assert last_batches(log.producers) == last_batches(expected)
        assert all(offset <= log.log_end_offset for offset in snapshots(disk))
