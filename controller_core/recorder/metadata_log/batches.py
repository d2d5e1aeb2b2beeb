"""Splits bytes of a metadata log into record batches, as they arrive in answers or in pieces of a snapshot.

These are batches of Kafka's logs (format 2). The quorum writes them uncompressed; only gzip is supported otherwise,
because Python itself has it. A batch counts when it is complete and its CRC matches, so a partial batch at the end of
an answer is waited for, and nothing is guessed."""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from controller_core.wire.crc32c import crc32c

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_EXTENT: Final = struct.Struct(">qi")
_CRC_FROM: Final = 21
_MAGIC: Final = 2
_COMPRESSION: Final = 0x07
_GZIP: Final = 1
_CONTROL: Final = 0x20
_MOST_BATCH_BYTES: Final = 64 << 20
"""Largest batch, and largest result of decompressing one. Controllers write at most 8 MiB into one."""
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_LONGEST_VARINT_BITS: Final = 63


class LogUnreadable(Exception):
    """The quorum sent something that is not a metadata log, or has a later format than this release knows. Retrying
    does not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """A record as stored in the log, as bytes for `records`. Only control records have a key."""

    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBatch:
    """Records that were appended together."""

    base_offset: int
    last_offset: int
    epoch: int
    """The epoch of the leader that appended them."""
    time_ms: int
    """The time by that leader's clock."""
    is_control: bool
    records: tuple[LogRecord, ...]


class BatchReader:
    """Takes bytes in order, and yields complete batches."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    @property
    def is_between_batches(self) -> bool:
        """True if no part of an incomplete batch is left."""
        return not self._bytes

    def read(self, more: bytes) -> Iterator[LogBatch]:
        """Yield the batches that are complete now. Raises `LogUnreadable`."""
        self._bytes += more
        position = 0
        try:
            while (size := _read_size(self._bytes, position)) is not None and position + size <= len(self._bytes):
                yield _parse_batch(bytes(memoryview(self._bytes)[position : position + size]))
                position += size
        finally:
            # Drop what was yielded, even if a later batch is unreadable or the caller stops early.
            del self._bytes[:position]


def _read_size(data: bytearray, position: int) -> int | None:
    """Return the size of the batch at a position; None if its header is incomplete."""
    if len(data) - position < _EXTENT.size:
        return None
    _, length = _EXTENT.unpack_from(data, position)
    size: int = length + _EXTENT.size
    if not _HEADER.size <= size <= _MOST_BATCH_BYTES:
        raise LogUnreadable(f"a batch of the metadata log says that it has {size} bytes")
    return size


def _parse_batch(data: bytes) -> LogBatch:
    (
        base_offset, _, epoch, magic, crc, attributes, last_offset_delta, _, max_time_ms, _, _, _, count,
    ) = _HEADER.unpack_from(data)  # fmt: skip
    if magic != _MAGIC:
        raise LogUnreadable(f"a batch of the metadata log has format {magic}, {_MAGIC} is known")
    if crc32c(memoryview(data)[_CRC_FROM:]) != crc:
        raise LogUnreadable(f"the batch at offset {base_offset} of the metadata log does not have the CRC that it says")
    if base_offset < 0 or not 0 <= count - 1 <= last_offset_delta:
        raise LogUnreadable(f"a batch says offset {base_offset}, {last_offset_delta} more, and {count} records")
    body = _decompress(memoryview(data)[_HEADER.size :], attributes & _COMPRESSION)
    return LogBatch(
        base_offset=base_offset,
        last_offset=base_offset + last_offset_delta,
        epoch=epoch,
        time_ms=max_time_ms,
        is_control=bool(attributes & _CONTROL),
        records=tuple(_parse_records(body, count)),
    )


def _decompress(body: memoryview, compression: int) -> bytes:
    if not compression:
        return bytes(body)
    if compression != _GZIP:
        raise LogUnreadable(f"a batch of the metadata log is compressed in a way that is not read ({compression})")
    unpacking = zlib.decompressobj(wbits=_GZIP_WINDOW)
    try:
        plain = unpacking.decompress(body, _MOST_BATCH_BYTES)
    except zlib.error as error:
        raise LogUnreadable(f"a batch of the metadata log does not decompress: {error}") from error
    if not unpacking.eof:
        raise LogUnreadable(f"a batch of the metadata log does not decompress to {_MOST_BATCH_BYTES} bytes at most")
    return plain


def _parse_records(body: bytes, count: int) -> Iterator[LogRecord]:
    position = 0
    for _ in range(count):
        length, position = varint(body, position)
        end = position + length
        if length < 0 or end > len(body):
            raise LogUnreadable(f"a record of the metadata log says that it has {length} bytes")
        yield _parse_record(body[position:end])
        position = end
    if position != len(body):
        raise LogUnreadable(f"{len(body) - position} bytes follow the last record of a batch of the metadata log")


def _parse_record(content: bytes) -> LogRecord:
    _, position = varint(content, 1)  # behind the attributes, the time
    _, position = varint(content, position)  # and the offset
    key, position = _parse_content(content, position)
    value, position = _parse_content(content, position)
    return LogRecord(key=key, value=value)  # there are never headers behind


def _parse_content(content: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = varint(content, position)
    if length == -1:
        return None, position
    end = position + length
    if length < 0 or end > len(content):
        raise LogUnreadable(f"a part of a record says that it has {length} bytes")
    return content[position:end], end


def varint(content: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag-encoded number, and the position of the next field. Raises `LogUnreadable`."""
    value = shift = 0
    while position < len(content) and shift <= _LONGEST_VARINT_BITS:
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    raise LogUnreadable("a number within a record of the metadata log has no end")
