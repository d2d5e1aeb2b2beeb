"""The checksum CRC-32C of record batches, markers and snapshots."""

from google_crc32c import extend


def crc32c(data: bytes | bytearray | memoryview, before: int = 0) -> int:
    """Return the CRC of the data, or of the data whose CRC is `before` and this data behind it."""
    # The library takes nothing but bytes. A copy costs a small part of the checksum's own time.
    crc: int = extend(before, data if isinstance(data, bytes) else bytes(data))
    return crc
