"""The markers that end transactions in a log (KIP-98).

Each is a control batch. The leader writes it when the transaction coordinator asks, with the bytes of a stock leader.
"""

import struct
from dataclasses import dataclass
from typing import Final

from controller_core.wire.crc32c import crc32c
from replica_broker.log.record_batches import CRC_FROM, HEADER_BYTES, LENGTH_OVERHEAD_BYTES, MAGIC, NO_SEQUENCE

_TRANSACTIONAL_CONTROL: Final = 0x30
_RECORD: Final = struct.Struct(">bbbbb hh b hi b")
"""The length, no attributes, no timestamp and offset deltas, a key of 4 bytes, a value of 6, no headers."""
_LENGTH, _KEY_LENGTH, _VALUE_LENGTH = 32, 8, 12  # 16, 4 and 6 in zigzag encoding
_CHECKED: Final = struct.Struct(">hiqqqhii")
_UNCHECKED: Final = struct.Struct(">qiibI")
MARKER_BYTES: Final = HEADER_BYTES + _RECORD.size


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOfTransaction:
    """The end of a producer's transaction, as its coordinator reports it."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool


def encode_marker(end: EndOfTransaction, now_ms: int) -> bytes:
    """Return the marker's batch, without an offset and a leader epoch yet."""
    record = _RECORD.pack(
        _LENGTH, 0, 0, 0, _KEY_LENGTH, 0, int(end.is_commit), _VALUE_LENGTH, 0, end.coordinator_epoch, 0
    )
    header = (_TRANSACTIONAL_CONTROL, 0, now_ms, now_ms, end.producer_id, end.producer_epoch, NO_SEQUENCE, 1)
    checked = _CHECKED.pack(*header) + record
    length = len(checked) + CRC_FROM - LENGTH_OVERHEAD_BYTES
    return _UNCHECKED.pack(0, length, -1, MAGIC, crc32c(checked)) + checked
