"""The records of a batch: their offsets, timestamps and keys; values are skipped.

A leader decompresses records only if the topic's configuration depends on their keys or timestamps. Otherwise the CRC
and the record count of the batch are enough.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from replica_broker.log.compression import decompress
from replica_broker.log.errors import CorruptBatch, InvalidRecord
from replica_broker.log.record_batches import HEADER_BYTES, MOST_OFFSET, NO_TIMESTAMP, Buffer, Compression, RecordBatch

_LEAST_RECORD_BYTES: Final = 6
"""Attributes, two deltas, a null or empty key and value, no headers: one byte each."""
_LONGEST_VARINT_BITS: Final = 70


class RecordTime(NamedTuple):
    offset: int
    timestamp_ms: int
    key_at: int = 0
    """Position of the key's length in the bytes after the batch header; 0 if no record was read."""


def read_record_times(batch: RecordBatch, behind_header: Buffer) -> Iterator[RecordTime]:
    """Yield the offset and timestamp of each record. `behind_header` is the batch without its header.

    Raises `CorruptBatch`.
    """
    body = bytes(behind_header)
    position = 0
    for number in range(batch.records_count):
        length, position = _varint(body, position)
        end = position + length
        if length < _LEAST_RECORD_BYTES or end > len(body):
            raise CorruptBatch(
                f"record {number} of the batch at offset {batch.base_offset} has the impossible length {length}"
            )
        timestamp_delta_ms, position = _varint(body, position + 1)
        offset_delta, position = _varint(body, position)
        if position > end:
            raise CorruptBatch(f"record {number} of the batch at offset {batch.base_offset} ends within its fields")
        timestamp_ms = (
            batch.max_timestamp_ms if batch.has_log_append_time else batch.first_timestamp_ms + timestamp_delta_ms
        )
        yield RecordTime(batch.base_offset + offset_delta, timestamp_ms, position)
        position = end
    if position != len(body):
        raise CorruptBatch(
            f"{len(body) - position} bytes follow the last record of the batch at offset {batch.base_offset}"
        )


def read_latest_timestamp(batch: RecordBatch, data: Buffer) -> int:
    """Return the largest timestamp of the records, and require that they have the offsets of the header.

    Some clients do not update the largest timestamp of the header, so the records are read. Raises `InvalidRecord`.
    """
    offsets = batch.last_offset - batch.base_offset + 1
    if batch.records_count != offsets or not batch.records_count:
        raise InvalidRecord(f"a batch for {offsets} offsets says {batch.records_count} records")
    if batch.compression is not Compression.NONE:
        if batch.size_bytes == HEADER_BYTES:
            raise InvalidRecord("a batch of compressed records is empty")
        return batch.max_timestamp_ms
    body = memoryview(data)[batch.position + HEADER_BYTES : batch.end]
    latest_ms = NO_TIMESTAMP
    try:
        for expected, record in enumerate(read_record_times(batch, body), start=batch.base_offset):
            if record.offset != expected:
                raise InvalidRecord(f"record {expected - batch.base_offset} of a batch says offset {record.offset}")
            latest_ms = max(latest_ms, record.timestamp_ms)
    except CorruptBatch as error:
        raise InvalidRecord(str(error)) from error
    return min(latest_ms, MOST_OFFSET)


def read_records(batch: RecordBatch, data: Buffer) -> bytes:
    """Return the records of a batch that lies in `data`, decompressed. Raises `CorruptBatch`."""
    return decompress(batch.compression, memoryview(data)[batch.position + HEADER_BYTES : batch.end])


def require_keys(batch: RecordBatch, body: bytes) -> None:
    """Require that each of the decompressed records has a key. Raises `InvalidRecord` and `CorruptBatch`."""
    for number, record in enumerate(read_record_times(batch, body)):
        key_length, _ = _varint(body, record.key_at)
        if key_length < 0:
            raise InvalidRecord(f"record {number} of a batch has no key, but the topic is compacted: add a key")


def _varint(body: bytes, position: int) -> tuple[int, int]:
    """Read a zigzag varint; return it and the position of the next field. Raises `CorruptBatch`."""
    if position < len(body) and (byte := body[position]) < 0x80:  # one byte, by far the most common case
        return (byte >> 1) ^ -(byte & 1), position + 1
    value = shift = 0
    while True:
        if position >= len(body) or shift >= _LONGEST_VARINT_BITS:
            raise CorruptBatch("a number within a record has no end")
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
