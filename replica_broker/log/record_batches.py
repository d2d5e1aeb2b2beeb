"""Record batches of format 2: their headers, their validity, and the fields that a leader writes.

A batch is a header of 61 bytes and records. `RecordBatch` is a view: the content of a header and its position in the
bytes. `replica_broker.log.records` reads the records. The CRC-32C covers everything from the attributes on, so a leader
can write offsets and its epoch without computing a new one.

The bytes come from producers, leaders and disks, so each number of a header is checked before it is used: a length
never exceeds the bytes that are there.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from controller_core.model.ids import LeaderEpoch
from controller_core.wire.crc32c import crc32c
from replica_broker.log.errors import CorruptBatch, UnsupportedFormat

HEADER_BYTES: Final = 61
LENGTH_OVERHEAD_BYTES: Final = 12
"""Size of the base offset and the length, which the length does not include."""
MAGIC: Final = 2
NO_PRODUCER: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1
MOST_OFFSET: Final = (1 << 63) - 1
INT32_MAX: Final = (1 << 31) - 1

CRC_FROM: Final = 21
MAGIC_AT: Final = 16
_EXTENT: Final = struct.Struct(">qi11xi")
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_BASE_OFFSET: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
_EPOCH: Final = struct.Struct(">i")
_EPOCH_AT: Final = 12
_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17
_ATTRIBUTES: Final = struct.Struct(">h")
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_MAX_TIMESTAMP_AT: Final = 35

_COMPRESSION_BITS: Final = 0x07
_LOG_APPEND_TIME_BIT: Final = 0x08
_TRANSACTIONAL_BIT: Final = 0x10
_CONTROL_BIT: Final = 0x20

Buffer: TypeAlias = bytes | bytearray | memoryview


class Compression(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBatch:
    """The content of a batch's header, and its position in the bytes."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    leader_epoch: LeaderEpoch
    crc: int
    records_count: int
    first_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    compression: Compression
    has_log_append_time: bool
    is_transactional: bool
    is_control: bool

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def end(self) -> int:
        """The position of the next batch."""
        return self.position + self.size_bytes

    @property
    def has_producer(self) -> bool:
        """True if an idempotent producer sent the batch."""
        return self.producer_id != NO_PRODUCER

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record. Sequences wrap around to 0 after the largest."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset - self.base_offset) & INT32_MAX


class BatchExtent(NamedTuple):
    """The part of a header that separates one batch from the next."""

    base_offset: int
    last_offset: int
    size_bytes: int


def read_extent(data: Buffer, position: int) -> BatchExtent:
    """Read the extent of a batch. Raises `CorruptBatch` if the header is incomplete or its numbers are impossible."""
    if len(data) - position < HEADER_BYTES:
        raise CorruptBatch(f"{len(data) - position} bytes are too few for a batch's header")
    base_offset, length, last_offset_delta = _EXTENT.unpack_from(data, position)
    size_bytes = length + LENGTH_OVERHEAD_BYTES
    if size_bytes < HEADER_BYTES or base_offset < 0 or not 0 <= last_offset_delta < MOST_OFFSET - base_offset:
        raise CorruptBatch(
            f"impossible batch header: offset {base_offset}, last offset delta {last_offset_delta}, length {length}"
        )
    return BatchExtent(base_offset, base_offset + last_offset_delta, size_bytes)


def read_header(data: Buffer, position: int = 0, *, at: int | None = None) -> RecordBatch:
    """Read the header at a position of the bytes. `at` is that position in the file from which the bytes come.

    Does not check that the batch is whole. Raises `CorruptBatch` and `UnsupportedFormat`.
    """
    if len(data) - position > MAGIC_AT:
        require_magic_2(data, position)
    if len(data) - position < HEADER_BYTES:
        raise CorruptBatch(f"{len(data) - position} bytes at {position} are too few for a batch's header")
    (
        base_offset, length, leader_epoch, _, crc, attributes, last_offset_delta, first_timestamp_ms, max_timestamp_ms,
        producer_id, producer_epoch, base_sequence, records_count,
    ) = _HEADER.unpack_from(data, position)  # fmt: skip
    size_bytes = length + LENGTH_OVERHEAD_BYTES
    if size_bytes < HEADER_BYTES:
        raise CorruptBatch(f"the batch at {position} says {size_bytes} bytes, fewer than its header's {HEADER_BYTES}")
    if base_offset < 0 or last_offset_delta < 0 or base_offset > MOST_OFFSET - 1 - last_offset_delta:
        raise CorruptBatch(
            f"the batch at {position} has the impossible offset {base_offset} with delta {last_offset_delta}"
        )
    if not 0 <= records_count <= last_offset_delta + 1:
        raise CorruptBatch(f"the batch at {position} says {records_count} records for {last_offset_delta + 1} offsets")
    if attributes & _COMPRESSION_BITS > Compression.ZSTD:
        raise CorruptBatch(f"the batch at {position} has the unknown codec {attributes & _COMPRESSION_BITS}")
    return RecordBatch(
        position=position if at is None else at,
        size_bytes=size_bytes,
        base_offset=base_offset,
        last_offset=base_offset + last_offset_delta,
        leader_epoch=LeaderEpoch(leader_epoch),
        crc=crc,
        records_count=records_count,
        first_timestamp_ms=first_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        compression=Compression(attributes & _COMPRESSION_BITS),
        has_log_append_time=bool(attributes & _LOG_APPEND_TIME_BIT),
        is_transactional=bool(attributes & _TRANSACTIONAL_BIT),
        is_control=bool(attributes & _CONTROL_BIT),
    )


def require_magic_2(data: Buffer, position: int) -> None:
    """Raise `UnsupportedFormat` for the formats 0 and 1, and `CorruptBatch` for an unknown one."""
    magic = data[position + MAGIC_AT]
    if magic in (0, 1):
        raise UnsupportedFormat(
            f"messages have format {magic}, but this broker supports only format {MAGIC}: "
            "use a client of Kafka 0.11 or later"
        )
    if magic != MAGIC:
        raise CorruptBatch(f"the batch at {position} has the unknown format {magic}")


def read_batches(data: Buffer) -> Iterator[RecordBatch]:
    """Yield the batches, each whole and with a valid CRC. Raises `CorruptBatch`, `UnsupportedFormat`."""
    view = memoryview(data)
    position = 0
    while position < len(view):
        batch = read_header(view, position)
        if batch.end > len(view):
            raise CorruptBatch(
                f"the batch at {position} says {batch.size_bytes} bytes, but {len(view) - position} are there"
            )
        found = crc32c(view[position + CRC_FROM : batch.end])
        if found != batch.crc:
            raise CorruptBatch(f"the batch at {position} says CRC {batch.crc:#010x}, but its bytes have {found:#010x}")
        yield batch
        position = batch.end


def drop_partial_batch(data: bytes) -> bytes:
    """Return the bytes without a partial batch at their end. Raises `CorruptBatch`."""
    position = 0
    while len(data) - position >= HEADER_BYTES:
        size_bytes = read_extent(data, position).size_bytes
        if position + size_bytes > len(data):
            break
        position += size_bytes
    return data if position == len(data) else data[:position]


def place_batches(data: Buffer, first_offset: int, leader_epoch: LeaderEpoch, log_append_time_ms: int | None) -> bytes:
    """Return the batches with the fields that a leader sets: offsets, leader epoch and, for LogAppendTime, the
    timestamp.

    The bytes are batches that `read_batches` accepted.
    """
    written = bytearray(data)
    position, offset = 0, first_offset
    while position < len(written):
        batch = read_header(written, position)
        _BASE_OFFSET.pack_into(written, position, offset)
        _EPOCH.pack_into(written, position + _EPOCH_AT, leader_epoch)
        if log_append_time_ms is not None:
            (attributes,) = _ATTRIBUTES.unpack_from(written, position + CRC_FROM)
            _ATTRIBUTES.pack_into(written, position + CRC_FROM, attributes | _LOG_APPEND_TIME_BIT)
            set_max_timestamp(written, batch, log_append_time_ms)
        offset += batch.last_offset - batch.base_offset + 1
        position = batch.end
    return bytes(written)


def replace_records(header: Buffer, records: bytes, compression: Compression) -> bytes:
    """Return a batch with this header and records that are compressed by another codec."""
    written = bytearray(header) + records
    _LENGTH.pack_into(written, _LENGTH_AT, len(written) - LENGTH_OVERHEAD_BYTES)
    (attributes,) = _ATTRIBUTES.unpack_from(written, CRC_FROM)
    _ATTRIBUTES.pack_into(written, CRC_FROM, attributes & ~_COMPRESSION_BITS | compression)
    _CRC.pack_into(written, _CRC_AT, crc32c(memoryview(written)[CRC_FROM:]))
    return bytes(written)


def set_max_timestamp(written: bytearray, batch: RecordBatch, max_timestamp_ms: int) -> None:
    """Write the largest timestamp into the header of a batch, and the new CRC."""
    _MAX_TIMESTAMP.pack_into(written, batch.position + _MAX_TIMESTAMP_AT, max_timestamp_ms)
    crc = crc32c(memoryview(written)[batch.position + CRC_FROM : batch.end])
    _CRC.pack_into(written, batch.position + _CRC_AT, crc)
