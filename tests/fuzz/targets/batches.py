"""Record batches of producers and segments: unchanged, and again with a correct CRC."""

import struct
from collections.abc import Iterator
from typing import Final

from controller_core.wire.crc32c import crc32c
from replica_broker.log.errors import LogError
from replica_broker.log.record_batches import CRC_FROM, HEADER_BYTES, drop_partial_batch, read_batches, read_header
from replica_broker.log.records import read_latest_timestamp, read_record_times
from tests.fuzz.target import Target
from tests.unit.replica_broker.log.batches import batch, old_message, replicate

_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17


def examples() -> Iterator[bytes]:
    yield batch(b"one", b"two", b"three")
    yield batch(b"once", producer_id=7, producer_epoch=1, base_sequence=3)
    yield batch(b"small", attributes=1)
    yield replicate(b"one", at=5) + replicate(b"two", b"three", at=6)
    yield old_message(1)


def read(data: bytes) -> None:
    _read(data)
    _read(_correct_crc(data))


def _read(data: bytes) -> None:
    try:
        for found in read_batches(drop_partial_batch(data)):
            assert found.end <= len(data)
            read_latest_timestamp(found, data)
            times = list(read_record_times(found, memoryview(data)[found.position + HEADER_BYTES : found.end]))
            assert len(times) == found.records_count
    except LogError:
        return


def _correct_crc(data: bytes) -> bytes:
    """Return the data with a correct CRC of its first batch, which a fuzzer would hardly find."""
    try:
        end = read_header(data).end
    except LogError:
        return data
    return data[:_CRC_AT] + _CRC.pack(crc32c(data[CRC_FROM:end])) + data[CRC_FROM:]


TARGET: Final = Target(name="batches", examples=examples, read=read)
