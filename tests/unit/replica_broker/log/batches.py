"""Record batches as producers make them, field by field."""

import gzip
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import cramjam

from controller_core.model.ids import LeaderEpoch
from controller_core.wire.crc32c import crc32c
from replica_broker.log.record_batches import Compression, place_batches

EPOCH: Final = LeaderEpoch(3)
NOW_MS: Final = 1_700_000_000_000
CONTROL: Final = 0x20
TRANSACTIONAL: Final = 0x10
LOG_APPEND_TIME: Final = 0x08


@dataclass(slots=True)
class ManualClock:
    """A clock that a test moves."""

    time_ms: int = NOW_MS

    def now_ms(self) -> int:
        return self.time_ms


def varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    written = bytearray()
    while zigzag >= 0x80:
        written.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*written, zigzag])


def record(value: bytes, *, offset_delta: int = 0, timestamp_delta_ms: int = 0, key: bytes | None = None) -> bytes:
    named = varint(-1) if key is None else varint(len(key)) + key
    body = b"\0" + varint(timestamp_delta_ms) + varint(offset_delta) + named + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def compress_records(compression: Compression, records: bytes) -> bytes:
    """Compress records as producers do; snappy in the frames of Java's clients."""
    match compression:
        case Compression.GZIP:
            return gzip.compress(records, mtime=0)
        case Compression.LZ4:
            return bytes(cramjam.lz4.compress(records))
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(records))
        case Compression.SNAPPY:
            halves = (records[: len(records) // 2], records[len(records) // 2 :])
            blocks = [bytes(cramjam.snappy.compress_raw(half)) for half in halves]
            frames = b"".join(struct.pack(">i", len(block)) + block for block in blocks)
            return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + frames
        case Compression.NONE:
            return records


def batch(
    *values: bytes,
    times_ms: Sequence[int] | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    attributes: int = 0,
    base_offset: int = 0,
    leader_epoch: int = -1,
    count: int | None = None,
    last_offset_delta: int | None = None,
    max_timestamp_ms: int | None = None,
    records: bytes | None = None,
    keys: Sequence[bytes | None] | None = None,
) -> bytes:
    """Return a batch of those values, without keys if none are given. Further arguments contradict the records."""
    times = times_ms or [NOW_MS] * len(values)
    named = keys or [None] * len(values)
    if records is None:
        records = b"".join(
            record(value, offset_delta=number, timestamp_delta_ms=time_ms - times[0], key=key)
            for number, (value, time_ms, key) in enumerate(zip(values, times, named, strict=True))
        )
    if records:
        records = compress_records(Compression(attributes & 7), records)
    checked = (
        struct.pack(
            ">hiqqqhii",
            attributes,
            len(values) - 1 if last_offset_delta is None else last_offset_delta,
            times[0] if times else -1,
            (max(times) if times else -1) if max_timestamp_ms is None else max_timestamp_ms,
            producer_id,
            producer_epoch,
            base_sequence,
            len(values) if count is None else count,
        )
        + records
    )
    return struct.pack(">qiibI", base_offset, len(checked) + 9, leader_epoch, 2, crc32c(checked)) + checked


def replicate(*values: bytes, at: int, epoch: int = EPOCH) -> bytes:
    """Return the batch as a leader of that epoch stores it, from an offset on."""
    return place_batches(batch(*values), at, LeaderEpoch(epoch), None)


def old_message(magic: int) -> bytes:
    """A message of the format of before Kafka 0.11, whole and with the right CRC."""
    import zlib

    body = bytes([magic, 0]) + (struct.pack(">q", NOW_MS) if magic else b"") + struct.pack(">ii", -1, 2) + b"hi"
    body += bytes(40)  # longer than a header of format 2
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body
