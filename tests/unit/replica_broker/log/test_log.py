"""A log keeps its batches in segments, and returns them by offset and by time."""

import struct
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from controller_core.model.ids import LeaderEpoch
from controller_core.wire.crc32c import crc32c
from replica_broker.disk.disk import DiskError, DiskFull
from replica_broker.log.config import TimestampType
from replica_broker.log.errors import (
    BatchesTooLarge,
    BatchTooLarge,
    ConfigUnsupported,
    CorruptBatch,
    InvalidRecord,
    InvalidTimestamp,
    LogError,
    LogOffline,
    OffsetOutOfRange,
    TransactionsUnsupported,
    UnexpectedOffset,
    UnsupportedFormat,
)
from replica_broker.log.record_batches import Compression, read_batches
from replica_broker.log.records import read_record_times, read_records
from simulation.replicas.disk import SimulatedDisk
from tests.unit.replica_broker.log.batches import (
    CONTROL,
    EPOCH,
    LOG_APPEND_TIME,
    NOW_MS,
    TRANSACTIONAL,
    ManualClock,
    batch,
    old_message,
    record,
    replicate,
)
from tests.unit.replica_broker.log.logs import DIRECTORY, FOLDER, ORDERS_0, all_bytes, offsets, open_log


def test_a_new_log_is_empty() -> None:
    log = open_log(SimulatedDisk())
    assert log.topic_partition == ORDERS_0
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes, log.latest_epoch) == (0, 0, 0, None)
    assert log.read(0, 100, below=100) == b""
    assert log.append_as_leader(b"", EPOCH, NOW_MS).last_offset == -1


def test_a_leader_s_batches_are_placed_one_behind_the_other_and_read_as_they_were_written() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    first = log.append_as_leader(batch(b"a", b"b"), EPOCH, NOW_MS)
    second = log.append_as_leader(batch(b"c"), EPOCH, NOW_MS)
    assert (first.first_offset, first.last_offset, first.log_append_time_ms) == (0, 1, -1)
    assert (second.first_offset, second.last_offset, second.is_duplicate) == (2, 2, False)
    assert all_bytes(log) == replicate(b"a", b"b", at=0) + replicate(b"c", at=2)
    log.close()
    again = open_log(disk, is_clean=True)
    assert (again.log_end_offset, again.latest_epoch) == (3, EPOCH)
    assert all_bytes(again) == all_bytes(open_log(disk))


def test_segments_roll_by_size_and_are_named_by_the_offset_they_begin_with() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    for number in range(10):
        log.append_as_leader(batch(b"x" * 50), EPOCH, NOW_MS + number)
    assert log.segments_count == 4
    assert [name for name in disk.list(FOLDER) if name.endswith(".log")] == [
        f"{base:020d}.log" for base in (0, 3, 6, 9)
    ]
    assert offsets(log) == [(number, number) for number in range(10)]


def test_segments_roll_by_age_as_batches_tell_it_or_else_by_the_clock() -> None:
    log = open_log(SimulatedDisk(), segment_bytes=10_000, segment_ms=1000)
    for time_ms in (NOW_MS, NOW_MS + 1000, NOW_MS + 1001, NOW_MS + 1002):
        log.append_as_leader(batch(b"a", times_ms=[time_ms]), EPOCH, NOW_MS)
    assert log.segments_count == 2
    clock = ManualClock()
    timeless = open_log(SimulatedDisk(), clock, segment_bytes=10_000, segment_ms=1000)
    for now_ms in (NOW_MS, NOW_MS + 1000, NOW_MS + 1001):
        timeless.append_as_leader(batch(b"a", times_ms=[-1]), EPOCH, now_ms)
    assert timeless.segments_count == 2


def test_many_batches_of_a_leader_are_spread_over_segments() -> None:
    log = open_log(SimulatedDisk())
    data = b"".join(replicate(b"x" * 50, at=number) for number in range(12))
    appended = log.append_as_follower(data)
    assert (appended.first_offset, appended.last_offset) == (0, 11)
    assert log.segments_count == 4
    assert all_bytes(log) == data


def test_a_read_gives_whole_batches_one_at_least_and_none_that_is_not_committed() -> None:
    log = open_log(SimulatedDisk(), segment_bytes=10_000)
    data = [replicate(b"x" * 50, b"y", at=2 * number) for number in range(6)]
    log.append_as_follower(b"".join(data))
    size = len(data[0])
    assert log.read(0, 1, below=12) == data[0]
    assert log.read(1, 2 * size, below=12) == data[0] + data[1]
    assert log.read(3, 2 * size + 5, below=12) == data[1] + data[2]
    assert log.read(0, 10_000, below=8) == b"".join(data[:4])
    assert log.read(8, 10_000, below=8) == b""
    assert log.read(10, 10_000, below=8) == b""
    assert log.read(12, 10_000, below=12) == b""
    assert log.read(2, 0, below=12) == data[1]


def test_an_offset_outside_of_the_log_is_out_of_range() -> None:
    log = open_log(SimulatedDisk())
    log.append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    for offset in (-1, 2, 2**63 - 1):
        with pytest.raises(OffsetOutOfRange) as raised:
            log.read(offset, 1, below=5)
        assert raised.value.error_code is ErrorCode.offset_out_of_range


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (old_message(1), UnsupportedFormat),
        (batch(b"a")[:-1], CorruptBatch),
        (batch(b"x" * 300), BatchTooLarge),
        (batch(b"x" * 100) * 3, BatchesTooLarge),
        (batch(b"a", attributes=CONTROL), InvalidRecord),
        (
            batch(b"a", attributes=TRANSACTIONAL, producer_id=1, producer_epoch=0, base_sequence=0),
            TransactionsUnsupported,
        ),
        (batch(b"a", attributes=LOG_APPEND_TIME), InvalidTimestamp),
        (batch(b"a", b"b", count=1), InvalidRecord),
        (batch(records=b"", count=0, last_offset_delta=0), InvalidRecord),
        (batch(b"a", records=record(b"a", offset_delta=1)), InvalidRecord),
        (batch(b"a", records=record(b"a") + b"\0"), InvalidRecord),
        (batch(b"a", records=record(b"a")[:-2]), InvalidRecord),
        (batch(b"a", records=b"\xff" * 20), InvalidRecord),
        (batch(b"a", b"b", attributes=Compression.ZSTD, records=b""), InvalidRecord),
        (batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0) * 2, InvalidRecord),
        (batch(b"a", producer_id=1, producer_epoch=-1, base_sequence=0), InvalidRecord),
    ],
)
def test_a_leader_refuses_what_no_producer_may_send_and_appends_nothing(data: bytes, error: type[LogError]) -> None:
    log = open_log(SimulatedDisk(), max_message_bytes=300)
    with pytest.raises(error) as raised:
        log.append_as_leader(data, EPOCH, NOW_MS)
    assert raised.type is error
    assert (log.log_end_offset, log.size_bytes) == (0, 0)


@pytest.mark.parametrize("compression", [it for it in Compression if it])
def test_compressed_records_are_taken_as_their_batch_says(compression: Compression) -> None:
    log = open_log(SimulatedDisk())
    log.append_as_leader(batch(b"a", b"b", attributes=compression), EPOCH, NOW_MS)
    (found,) = read_batches(all_bytes(log))
    assert (found.compression, found.last_offset) == (compression, 1)


@pytest.mark.parametrize("wanted", Compression)
@pytest.mark.parametrize("sent", Compression)
def test_a_leader_compresses_records_as_the_topic_says_it(sent: Compression, wanted: Compression) -> None:
    values = [bytes([number]) * 3_000 for number in range(30)]
    log = open_log(SimulatedDisk(), compression=wanted, segment_bytes=200_000)
    times_ms = [NOW_MS + number for number in range(30)]
    log.append_as_leader(batch(*values, times_ms=times_ms, attributes=sent) * 2, EPOCH, NOW_MS)
    found = list(read_batches(all_bytes(log)))
    assert [(each.compression, each.base_offset, each.last_offset) for each in found] == [
        (wanted, 0, 29),
        (wanted, 30, 59),
    ]
    for each in found:
        body = read_records(each, all_bytes(log))
        assert [record.timestamp_ms for record in read_record_times(each, body)] == times_ms
        assert all(value in body for value in values)


def test_records_that_are_too_large_as_the_topic_compresses_them_are_refused() -> None:
    log = open_log(SimulatedDisk(), compression=Compression.NONE, max_message_bytes=1_000)
    with pytest.raises(BatchTooLarge):
        log.append_as_leader(batch(b"x" * 5_000, attributes=Compression.GZIP), EPOCH, NOW_MS)
    assert log.log_end_offset == 0


def test_a_topic_that_asks_for_what_is_not_done_here_takes_nothing_from_producers() -> None:
    log = open_log(SimulatedDisk(), unsupported="the topic's flush.ms is 5")
    with pytest.raises(ConfigUnsupported, match=r"flush\.ms is 5"):
        log.append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    log.append_as_follower(replicate(b"a", at=0))
    assert log.log_end_offset == 1


def test_a_latest_time_that_a_client_left_as_it_was_is_put_right() -> None:
    log = open_log(SimulatedDisk())
    log.append_as_leader(batch(b"a", b"b", times_ms=[NOW_MS, NOW_MS + 7], max_timestamp_ms=0), EPOCH, NOW_MS)
    (found,) = read_batches(all_bytes(log))
    assert found.max_timestamp_ms == NOW_MS + 7


def test_the_broker_says_the_time_where_the_topic_wants_it() -> None:
    log = open_log(SimulatedDisk(), message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    appended = log.append_as_leader(batch(b"a", times_ms=[5]), EPOCH, NOW_MS + 1)
    assert appended.log_append_time_ms == NOW_MS + 1
    (found,) = read_batches(all_bytes(log))
    assert (found.has_log_append_time, found.max_timestamp_ms) == (True, NOW_MS + 1)
    assert log.find_offset(NOW_MS, below=1) == (0, NOW_MS + 1)


def test_a_follower_s_batches_go_on_where_its_log_ends_and_may_leave_offsets_out() -> None:
    log = open_log(SimulatedDisk())
    log.append_as_follower(replicate(b"a", at=0))
    log.append_as_follower(replicate(b"b", at=5))
    assert log.log_end_offset == 6
    assert log.read(2, 1, below=6) == replicate(b"b", at=5)
    for data in (replicate(b"c", at=5), replicate(b"c", at=7) + replicate(b"d", at=6)):
        with pytest.raises(UnexpectedOffset):
            log.append_as_follower(data)
    assert log.log_end_offset == 6


def test_a_follower_s_empty_log_that_starts_within_a_batch_takes_the_whole_batch_and_keeps_its_start() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    log.restart_at(5)
    whole = replicate(*[b"a"] * 5, at=2)
    for unfit in (replicate(b"a", b"b", at=3), whole + replicate(b"b", at=6)):
        with pytest.raises(UnexpectedOffset):
            log.append_as_follower(unfit)
        assert (log.log_start_offset, log.log_end_offset) == (5, 5)
    log.append_as_follower(whole + replicate(b"b", at=7))
    assert (log.log_start_offset, offsets(log)) == (5, [(2, 6), (7, 7)])
    assert log.find_epoch_end(EPOCH) == (EPOCH, 8)
    with pytest.raises(UnexpectedOffset):
        log.append_as_follower(whole)
    with pytest.raises(OffsetOutOfRange):
        log.read(4, 1, below=8)
    assert offsets(open_log(disk)) == [(2, 6), (7, 7)]


def test_offsets_that_an_index_cannot_count_get_a_segment_of_their_own() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    far = 2**40
    log.append_as_follower(replicate(b"a", at=far))
    log.append_as_follower(replicate(b"b", at=2 * far))
    assert offsets(log) == [(far, far), (2 * far, 2 * far)]
    log.close()
    assert offsets(open_log(disk, is_clean=True)) == [(far, far), (2 * far, 2 * far)]


def test_a_log_is_cut_at_an_offset_or_at_the_start_of_the_batch_that_has_it() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    for _ in range(10):
        log.append_as_leader(batch(b"x" * 50, b"y"), EPOCH, NOW_MS)
    assert log.truncate_to(30) == 20
    assert log.truncate_to(18) == 18
    assert log.truncate_to(9) == 8
    assert offsets(log) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert offsets(open_log(disk)) == offsets(log)
    log.append_as_leader(batch(b"z"), EPOCH, NOW_MS)
    assert offsets(log)[-1] == (8, 8)
    assert log.truncate_to(0) == 0
    assert offsets(log) == []
    with pytest.raises(OffsetOutOfRange):
        log.truncate_to(-1)


def test_a_log_starts_anew_anywhere() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    log.append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    log.restart_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.latest_epoch, log.size_bytes) == (100, 100, None, 0)
    log.append_as_leader(batch(b"b"), EPOCH, NOW_MS)
    assert (open_log(disk).log_start_offset, offsets(open_log(disk))) == (100, [(100, 100)])
    log.restart_at(7)
    assert (open_log(disk).log_start_offset, open_log(disk).log_end_offset) == (7, 7)


def test_the_start_of_a_log_is_raised_within_a_segment_and_beyond() -> None:
    log = open_log(SimulatedDisk())
    for _ in range(9):
        log.append_as_leader(batch(b"x" * 50), EPOCH, NOW_MS)
    log.raise_log_start(4)
    assert (log.log_start_offset, log.segments_count) == (4, 2)
    log.raise_log_start(3)
    assert offsets(log)[0] == (4, 4)
    assert log.find_epoch_end(LeaderEpoch(2)) == (2, 4)
    with pytest.raises(OffsetOutOfRange):
        log.read(3, 1, below=9)
    with pytest.raises(OffsetOutOfRange):
        log.raise_log_start(10)


def test_old_segments_go_by_time_and_by_size_but_none_that_is_not_committed() -> None:
    clock = ManualClock()
    log = open_log(SimulatedDisk(), clock, retention_ms=1000)
    for number in range(9):
        log.append_as_leader(batch(b"x" * 50, times_ms=[NOW_MS + number * 100]), EPOCH, NOW_MS)
    assert log.delete_old_segments(NOW_MS + 1300, high_watermark=2) == 0
    assert log.delete_old_segments(NOW_MS + 1300, high_watermark=9) == 1
    assert log.log_start_offset == 3
    assert log.delete_old_segments(NOW_MS + 9000, high_watermark=9) == 2
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (9, 9, 0)
    assert log.delete_old_segments(NOW_MS + 9_000_000, high_watermark=9) == 0
    by_size = open_log(SimulatedDisk(), retention_ms=None, retention_bytes=500)
    for _ in range(9):
        by_size.append_as_leader(batch(b"x" * 50), EPOCH, NOW_MS)
    assert by_size.delete_old_segments(NOW_MS, high_watermark=9) == 1
    assert by_size.size_bytes >= 500


def test_nothing_goes_of_a_log_that_the_cleanup_policy_does_not_have_deleted() -> None:
    log = open_log(SimulatedDisk(), is_deleted=False, retention_ms=1, retention_bytes=1)
    for _ in range(9):
        log.append_as_leader(batch(b"x" * 50), EPOCH, NOW_MS)
    assert log.delete_old_segments(NOW_MS + 10**12, high_watermark=9) == 0


def test_records_are_found_by_time() -> None:
    log = open_log(SimulatedDisk())
    for number in range(0, 20, 2):
        times_ms = [NOW_MS + number * 10, NOW_MS + number * 10 + 10]
        log.append_as_leader(batch(b"x" * 50, b"y", times_ms=times_ms), EPOCH, NOW_MS)
    for wanted in (0, 5, 10, 95, 190):
        offset = -(-wanted // 10)
        assert log.find_offset(NOW_MS + wanted, below=20) == (offset, NOW_MS + offset * 10)
    assert log.find_offset(NOW_MS + 191, below=20) is None
    assert log.find_offset(NOW_MS + 150, below=15) is None
    assert log.find_offset(0, below=20) == (0, NOW_MS)
    assert log.find_latest_offset(below=20) == (19, NOW_MS + 190)
    assert log.find_latest_offset(below=11) == (10, NOW_MS + 100)
    log.raise_log_start(7)
    assert log.find_offset(0, below=20) == (7, NOW_MS + 70)
    assert open_log(SimulatedDisk()).find_latest_offset(below=0) is None


@pytest.mark.parametrize("compression", Compression)
def test_records_are_found_by_time_within_a_batch_however_it_is_compressed(compression: Compression) -> None:
    log = open_log(SimulatedDisk())
    times_ms = [NOW_MS, NOW_MS + 50, NOW_MS + 90, NOW_MS + 20]
    log.append_as_leader(batch(b"a", b"b", b"c", b"d", times_ms=times_ms, attributes=compression), EPOCH, NOW_MS)
    assert log.find_offset(NOW_MS + 30, below=4) == (1, NOW_MS + 50)
    assert log.find_offset(NOW_MS + 51, below=4) == (2, NOW_MS + 90)
    assert log.find_latest_offset(below=4) == (2, NOW_MS + 90)
    assert log.find_latest_offset(below=2) == (1, NOW_MS + 50)
    log.raise_log_start(3)
    assert log.find_offset(NOW_MS, below=4) == (3, NOW_MS + 20)


def test_a_batch_that_cannot_be_decompressed_is_found_by_its_first_offset_and_hides_nothing() -> None:
    log = open_log(SimulatedDisk())
    data = bytearray(batch(b"a", b"b", times_ms=[NOW_MS, NOW_MS + 50], attributes=Compression.ZSTD))
    data[70:] = b"?" * len(data[70:])
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    log.append_as_leader(bytes(data), EPOCH, NOW_MS)
    log.append_as_leader(batch(b"c", times_ms=[NOW_MS + 99]), EPOCH, NOW_MS)
    assert log.find_offset(NOW_MS + 30, below=3) == (0, NOW_MS + 50)
    assert log.find_offset(NOW_MS + 60, below=3) == (2, NOW_MS + 99)


@pytest.mark.parametrize(
    ("records", "count"),
    [
        pytest.param(record(b"", timestamp_delta_ms=9) * 250_001, 250_001, id="records"),
        pytest.param(record(bytes(32 << 20), timestamp_delta_ms=9), 1, id="bytes"),
    ],
)
def test_a_batch_of_too_much_is_found_by_its_header_and_hides_nothing(records: bytes, count: int) -> None:
    log = open_log(SimulatedDisk(), segment_bytes=1 << 20)
    data = batch(
        times_ms=[NOW_MS, NOW_MS + 50],
        records=records,
        attributes=Compression.ZSTD,
        count=count,
        last_offset_delta=count - 1,
    )
    log.append_as_leader(data, EPOCH, NOW_MS)
    log.append_as_leader(batch(b"c", times_ms=[NOW_MS + 40]), EPOCH, NOW_MS)
    assert log.find_offset(NOW_MS + 30, below=count + 1) == (0, NOW_MS + 50)
    assert log.find_offset(NOW_MS + 30, below=count + 1) == log.find_latest_offset(below=count + 1)
    log.raise_log_start(count)
    assert log.find_offset(NOW_MS + 30, below=count + 1) == (count, NOW_MS + 40)


def test_only_a_few_batches_are_read_if_their_records_have_other_timestamps_than_their_headers() -> None:
    log = open_log(SimulatedDisk())
    batches = 20
    for _ in range(batches):
        data = batch(times_ms=[NOW_MS, NOW_MS + 50], records=record(b"a"), attributes=4, count=1, last_offset_delta=0)
        log.append_as_leader(data, EPOCH, NOW_MS)
    assert log.find_offset(NOW_MS + 30, below=batches) == (8, NOW_MS + 50)


@pytest.mark.parametrize("compression", Compression)
def test_a_compacted_log_takes_no_record_without_a_key(compression: Compression) -> None:
    log = open_log(SimulatedDisk(), is_compacted=True)
    keyed = batch(b"a", b"b", keys=[b"k", b""], attributes=compression)
    assert log.append_as_leader(keyed, EPOCH, NOW_MS).last_offset == 1
    with pytest.raises(InvalidRecord, match="record 1 of a batch has no key"):
        log.append_as_leader(batch(b"a", b"b", keys=[b"k", None], attributes=compression), EPOCH, NOW_MS)
    assert log.log_end_offset == 2


def test_what_cannot_be_decompressed_is_not_taken_into_a_compacted_log() -> None:
    log = open_log(SimulatedDisk(), is_compacted=True)
    data = bytearray(batch(b"a", keys=[b"k"], attributes=Compression.LZ4))
    data[61:] = b"?" * len(data[61:])
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    with pytest.raises(CorruptBatch, match="not valid lz4"):
        log.append_as_leader(bytes(data), EPOCH, NOW_MS)


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.SNAPPY])
@pytest.mark.parametrize(("side", "by_ms"), [("before", -61_000), ("after", 61_000)])
def test_a_producer_s_time_is_as_near_to_the_broker_s_as_the_topic_says(
    side: str, by_ms: int, compression: Compression
) -> None:
    limit: dict[str, Any] = {f"message_timestamp_{side}_max_ms": 60_000}
    log = open_log(SimulatedDisk(), **limit)
    times_ms = [NOW_MS - by_ms, NOW_MS + by_ms]
    log.append_as_leader(batch(b"a", times_ms=times_ms[:1], attributes=compression), EPOCH, NOW_MS)
    with pytest.raises(
        InvalidTimestamp, match=f"61000 ms {side} the broker's.*message.timestamp.{side}.max.ms is 60000"
    ):
        log.append_as_leader(batch(b"a", b"b", times_ms=times_ms, attributes=compression), EPOCH, NOW_MS)


def test_a_log_that_starts_within_a_batch_is_searched_from_there() -> None:
    log = open_log(SimulatedDisk(), message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    log.append_as_leader(batch(b"a", b"b", b"c"), EPOCH, NOW_MS)
    log.raise_log_start(1)
    assert log.find_offset(0, below=3) == (1, NOW_MS)
    assert log.find_latest_offset(below=3) == (1, NOW_MS)
    assert log.find_latest_offset(below=1) is None


def test_a_log_that_was_closed_does_nothing_more() -> None:
    log = open_log(SimulatedDisk())
    log.close()
    log.close()
    for use in (lambda: log.read(0, 1, below=1), lambda: log.append_as_follower(b""), lambda: log.truncate_to(0)):
        with pytest.raises(LogOffline) as raised:
            use()
        assert raised.value.error_code is ErrorCode.kafka_storage_error


def test_a_log_is_deleted_with_its_folder() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    log.append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    log.delete()
    assert disk.list(DIRECTORY) == ()


def test_errors_of_the_disk_are_passed_on() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    log.append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    disk.capacity_bytes = 200
    with pytest.raises(DiskFull):
        log.append_as_leader(batch(b"x" * 200), EPOCH, NOW_MS)
    disk.broken = lambda path: path.endswith(".log")
    with pytest.raises(DiskError):
        log.read(0, 1, below=1)


def test_a_batch_that_is_hurt_on_the_disk_is_reported_to_whoever_reads_it() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    log.append_as_leader(batch(b"a"), EPOCH, NOW_MS)
    log.append_as_leader(batch(b"b"), EPOCH, NOW_MS)
    path = FOLDER / f"{0:020d}.log"
    log.close()
    content = bytearray(disk.read_whole(path))
    content[8:12] = b"\x7f\xff\xff\xff"
    disk.damage(path, bytes(content))
    disk.damage(FOLDER / f"{5:020d}.log", replicate(b"c", at=5))
    hurt = open_log(disk, is_clean=True)
    assert hurt.log_end_offset == 6
    with pytest.raises(CorruptBatch):
        hurt.read(0, 100, below=6)
    assert hurt.read(5, 100, below=6) == replicate(b"c", at=5)


def test_every_segment_has_both_of_its_indexes_once_it_is_sealed() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    for _ in range(4):
        log.append_as_leader(batch(b"x" * 300), EPOCH, NOW_MS)
    log.close()
    stems = {name.partition(".")[0] for name in disk.list(FOLDER) if name.endswith(".log")}
    assert len(stems) == 4
    assert {f"{stem}{suffix}" for stem in stems for suffix in (".index", ".timeindex")} < set(disk.list(FOLDER))
