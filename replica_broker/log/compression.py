"""Compression and decompression of a batch's records in the frames of Kafka's clients, with bounded memory."""

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

import cramjam

from replica_broker.log.errors import CorruptBatch
from replica_broker.log.record_batches import Buffer, Compression

MOST_BYTES: Final = 128 << 20
"""Limit of a decompressed batch. A small batch that decompresses to more is an attack."""
_FIRST_TRY: Final = 16
"""Ratio for the first buffer: text rarely decompresses to more."""
_LEAST_BYTES: Final = 1 << 16
_XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER_BYTES: Final = 16
_LENGTH: Final = struct.Struct(">i")
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 << 10
_LZ4_HEADER: Final = bytes.fromhex("04224d18604082")
"""Header of a frame of independent blocks of at most 64 KiB, the only kind that Java's clients read."""
_LZ4_BLOCK_BYTES: Final = 64 << 10
_LZ4_LENGTH: Final = struct.Struct("<I")
_LZ4_NOT_COMPRESSED: Final = 1 << 31
_LZ4_END: Final = _LZ4_LENGTH.pack(0)
_DECOMPRESS_INTO: Final[dict[Compression, Callable[[Any, Any], int]]] = {
    Compression.GZIP: cramjam.gzip.decompress_into,
    Compression.LZ4: cramjam.lz4.decompress_into,
    Compression.ZSTD: cramjam.zstd.decompress_into,
}


def compress(compression: Compression, records: bytes) -> bytes:
    """Return the records of a batch as clients of every kind can decompress them."""
    match compression:
        case Compression.NONE:
            return records
        case Compression.GZIP:
            return bytes(cramjam.gzip.compress(records))
        case Compression.SNAPPY:
            return _XERIAL_HEADER + b"".join(map(_snappy_framed, _blocks(records, _XERIAL_BLOCK_BYTES)))
        case Compression.LZ4:
            return _LZ4_HEADER + b"".join(map(_lz4_framed, _blocks(records, _LZ4_BLOCK_BYTES))) + _LZ4_END
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(records))


def _blocks(records: bytes, most_bytes: int) -> Iterator[bytes]:
    return (records[position : position + most_bytes] for position in range(0, len(records), most_bytes))


def _snappy_framed(block: bytes) -> bytes:
    compressed = bytes(cramjam.snappy.compress_raw(block))
    return _LENGTH.pack(len(compressed)) + compressed


def _lz4_framed(block: bytes) -> bytes:
    compressed = bytes(cramjam.lz4.compress_block(block, store_size=False))
    if len(compressed) >= len(block):
        return _LZ4_LENGTH.pack(len(block) | _LZ4_NOT_COMPRESSED) + block
    return _LZ4_LENGTH.pack(len(compressed)) + compressed


def decompress(compression: Compression, compressed: Buffer, *, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the records of a batch.

    Raises `CorruptBatch` if they cannot be decompressed or are larger than `most_bytes`.
    """
    data = bytes(compressed)
    try:
        match compression:
            case Compression.NONE:
                return data
            case Compression.SNAPPY:
                return _decompress_snappy(data, most_bytes)
            case _:
                return _decompress_within(_DECOMPRESS_INTO[compression], data, most_bytes)
    except cramjam.DecompressionError as error:
        raise CorruptBatch(
            f"records are not valid {compression.name.lower()}, or exceed {most_bytes} bytes: {error}"
        ) from error


def _decompress_within(decompress_into: Callable[[Any, Any], int], data: bytes, most_bytes: int) -> bytes:
    # The decompressed size is unknown and the buffer limits it, so a small buffer is tried first.
    for size_bytes in (max(_LEAST_BYTES, _FIRST_TRY * len(data)), most_bytes):
        buffer = bytearray(min(size_bytes, most_bytes))
        try:
            return bytes(memoryview(buffer)[: decompress_into(data, buffer)])
        except cramjam.DecompressionError:
            if len(buffer) == most_bytes:
                raise
    raise AssertionError("the last buffer is as large as any")


def _decompress_snappy(data: bytes, most_bytes: int) -> bytes:
    """Decompress snappy: Java's clients frame its blocks in their own way (xerial), others send one bare block."""
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data, most_bytes)
    found = bytearray()
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        if position + _LENGTH.size > len(data):
            raise CorruptBatch("a block of snappy has no length")
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise CorruptBatch(f"a block of snappy says {length} bytes, but {len(data) - position} are left")
        found += _snappy_block(data[position : position + length], most_bytes - len(found))
        position += length
    return bytes(found)


def _snappy_block(block: bytes, most_bytes: int) -> bytes:
    size_bytes = cramjam.snappy.decompress_raw_len(block)
    if size_bytes > most_bytes:
        raise CorruptBatch(f"a block of snappy says {size_bytes} bytes, more than the limit of {most_bytes}")
    buffer = bytearray(size_bytes)
    return bytes(memoryview(buffer)[: cramjam.snappy.decompress_raw_into(block, buffer)])
