"""Valid and invalid batches: the bytes may come from anybody."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from controller_core.model.ids import LeaderEpoch
from controller_core.wire.crc32c import crc32c
from replica_broker.log.errors import CorruptBatch, LogError, UnsupportedFormat
from replica_broker.log.record_batches import HEADER_BYTES, Compression, drop_partial_batch, place_batches, read_batches
from replica_broker.log.records import read_record_times
from tests.unit.replica_broker.log.batches import CONTROL, NOW_MS, TRANSACTIONAL, batch, old_message


def patch_field(data: bytes, at: int, form: str, value: int) -> bytes:
    """Put another number into a field, and fix the CRC."""
    written = bytearray(data)
    struct.pack_into(form, written, at, value)
    struct.pack_into(">I", written, 17, crc32c(bytes(written[21:])))
    return bytes(written)


def test_headers_are_read_as_they_were_written() -> None:
    one = batch(b"a", b"bc", times_ms=[NOW_MS, NOW_MS + 5], producer_id=7, producer_epoch=1, base_sequence=2**31 - 1)
    other = batch(b"d", attributes=Compression.GZIP | CONTROL | TRANSACTIONAL, base_offset=40, leader_epoch=9)
    first, second = read_batches(one + other)
    assert (first.position, first.end, second.position) == (0, len(one), len(one))
    assert (first.base_offset, first.last_offset, first.next_offset, first.records_count) == (0, 1, 2, 2)
    assert (first.first_timestamp_ms, first.max_timestamp_ms) == (NOW_MS, NOW_MS + 5)
    assert (first.producer_id, first.producer_epoch, first.base_sequence, first.last_sequence) == (7, 1, 2**31 - 1, 0)
    assert first.has_producer
    assert not first.is_control
    assert (second.base_offset, second.leader_epoch, second.compression) == (40, 9, Compression.GZIP)
    assert second.is_control
    assert second.is_transactional
    assert (second.has_producer, second.last_sequence) == (False, -1)


def test_a_leader_gives_batches_their_offsets_and_its_epoch_without_another_crc() -> None:
    data = batch(b"a", b"b") + batch(b"c")
    found = list(read_batches(place_batches(data, 100, LeaderEpoch(5), None)))
    assert [(it.base_offset, it.last_offset, it.leader_epoch) for it in found] == [(100, 101, 5), (102, 102, 5)]
    assert [it.crc for it in found] == [it.crc for it in read_batches(data)]


def test_a_leader_that_says_the_time_has_every_record_say_it() -> None:
    (found,) = read_batches(written := place_batches(batch(b"a", b"b"), 0, LeaderEpoch(0), NOW_MS + 99))
    assert (found.has_log_append_time, found.max_timestamp_ms) == (True, NOW_MS + 99)
    assert [time.timestamp_ms for time in read_record_times(found, written[HEADER_BYTES:])] == [NOW_MS + 99] * 2


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_older_formats_are_refused_in_words(magic: int) -> None:
    with pytest.raises(UnsupportedFormat, match=r"use a client of Kafka 0\.11 or later") as raised:
        list(read_batches(old_message(magic)))
    assert raised.value.error_code is ErrorCode.unsupported_for_message_format


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(patch_field(batch(b"a"), 8, ">i", 2**31 - 1), id="the largest length"),
        pytest.param(patch_field(batch(b"a"), 8, ">i", -(2**31)), id="the least length"),
        pytest.param(patch_field(batch(b"a"), 8, ">i", 0), id="no length"),
        pytest.param(patch_field(batch(b"a"), 0, ">q", -1), id="an offset below zero"),
        pytest.param(patch_field(batch(b"a", b"b"), 0, ">q", 2**63 - 1), id="offsets beyond the largest"),
        pytest.param(patch_field(batch(b"a"), 23, ">i", -1), id="a last offset before the first"),
        pytest.param(patch_field(batch(b"a"), 57, ">i", 2), id="more records than offsets"),
        pytest.param(patch_field(batch(b"a"), 57, ">i", -1), id="fewer records than none"),
        pytest.param(patch_field(batch(b"a"), 21, ">h", 7), id="a compression that there is not"),
        pytest.param(batch(b"a")[:-1], id="cut"),
        pytest.param(batch(b"a") + b"\0", id="something behind it"),
        pytest.param(b"\0" * 61, id="zeros"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="something else"),
    ],
)
def test_what_makes_no_sense_is_a_corrupt_batch(data: bytes) -> None:
    with pytest.raises((CorruptBatch, UnsupportedFormat)):
        list(read_batches(data))


@given(st.data())
def test_no_byte_behind_the_epoch_can_be_another_one(data: st.DataObject) -> None:
    good = batch(b"hello", b"world", times_ms=[NOW_MS, NOW_MS + 3])
    at = data.draw(st.integers(8, len(good) - 1).filter(lambda at: not 12 <= at < 16))
    other = bytearray(good)
    other[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(LogError):
        list(read_batches(bytes(other)))


_pieces = st.one_of(
    st.binary(max_size=80),
    st.lists(st.binary(max_size=10), min_size=1, max_size=3).map(lambda values: batch(*values)),
    st.builds(
        patch_field,
        st.just(batch(b"a", b"b")),
        st.integers(0, 56),
        st.sampled_from([">b", ">h", ">i"]),
        st.sampled_from([-1, 0, 1, 2, 127, -128]),
    ),
    st.sampled_from([old_message(0), old_message(1)]),
)


@given(st.lists(_pieces, max_size=4).map(b"".join))
def test_any_bytes_are_batches_or_an_error_that_says_why(data: bytes) -> None:
    try:
        found = list(read_batches(data))
    except LogError as error:
        assert str(error)  # noqa: PT017 - both ends are right
    else:
        assert [it.position for it in found] == [0, *(it.end for it in found)][: len(found)]
        assert sum(it.size_bytes for it in found) == len(data)
        assert drop_partial_batch(data) == data
        for it in found:
            try:
                times = list(read_record_times(it, data[it.position + HEADER_BYTES : it.end]))
            except CorruptBatch:
                continue
            assert len(times) == it.records_count


@given(st.integers(0, 200))
def test_a_part_of_a_batch_at_the_end_is_left_out(cut: int) -> None:
    one, other = batch(b"a" * 30), batch(b"b" * 30)
    kept = drop_partial_batch((one + other)[:cut])
    assert kept == (one + other if cut >= len(one + other) else one if cut >= len(one) else b"")
