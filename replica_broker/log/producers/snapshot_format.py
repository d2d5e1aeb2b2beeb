"""The format of a producer snapshot, as Kafka's `ProducerStateManager` writes it (version 1).

`kafka-dump-log` and stock brokers can read these files, and this broker can read theirs. A file has a version, a
CRC-32C of the rest, and an entry for each producer with its last batch and the start of its open transaction. As in
Kafka, only the last of the five remembered batches is saved: a retry of an earlier one is out of order.
"""

import struct
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from controller_core.wire.crc32c import crc32c
from replica_broker.disk.disk import DiskPath
from replica_broker.log.errors import MalformedFile
from replica_broker.log.producers.states import REMEMBERED_BATCHES, AppendedBatch, ProducerState
from replica_broker.log.record_batches import INT32_MAX, NO_SEQUENCE

VERSION: Final = 1
_HEAD: Final = struct.Struct(">hI")
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")
_NO_OFFSET: Final = -1


def encode_snapshot(states: Iterable[tuple[int, ProducerState]]) -> bytes:
    """Return the snapshot of the producer states."""
    entries = [_entry(producer_id, state) for producer_id, state in states]
    checked = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEAD.pack(VERSION, crc32c(checked)) + checked


def decode_snapshot(path: DiskPath, content: bytes, *, end_offset: int) -> dict[int, ProducerState]:
    """Return the state of each producer id at an offset. Raises `MalformedFile`."""
    if len(content) < _HEAD.size + _COUNT.size:
        raise MalformedFile(f"{path}: {len(content)} bytes are too few for a producer snapshot")
    version, crc = _HEAD.unpack_from(content)
    if version != VERSION:
        raise MalformedFile(f"{path}: expected version {VERSION}, found {version}")
    checked = memoryview(content)[_HEAD.size :]
    if (found := crc32c(checked)) != crc:
        raise MalformedFile(f"{path}: its header says CRC {crc:#010x}, but its bytes have {found:#010x}")
    (count,) = _COUNT.unpack_from(checked)
    if count * _ENTRY.size != len(checked) - _COUNT.size:
        raise MalformedFile(f"{path}: its header says {count} producers, which do not fit {len(checked)} bytes")
    return dict(_entries(path, checked[_COUNT.size :], end_offset))


def _entry(producer_id: int, state: ProducerState) -> bytes:
    sequence, offset, delta = NO_SEQUENCE, _NO_OFFSET, 0
    if state.batches:
        last = state.batches[-1]
        sequence, offset, delta = last.last_sequence, last.last_offset, last.last_offset - last.first_offset
    began = _NO_OFFSET if state.transaction_first_offset is None else state.transaction_first_offset
    return _ENTRY.pack(
        producer_id, state.epoch, sequence, offset, delta, state.last_timestamp_ms, state.coordinator_epoch, began
    )


def _entries(path: DiskPath, entries: memoryview, end_offset: int) -> Iterator[tuple[int, ProducerState]]:
    for producer_id, epoch, sequence, offset, delta, timestamp_ms, coordinator_epoch, began in _ENTRY.iter_unpack(
        entries
    ):
        is_possible = (
            producer_id >= 0
            and epoch >= 0
            and sequence >= NO_SEQUENCE
            and _NO_OFFSET <= offset < end_offset
            and 0 <= delta <= max(offset, 0)
            and _NO_OFFSET <= began < end_offset
        )
        if not is_possible:
            raise MalformedFile(
                f"{path}: producer {producer_id} has epoch {epoch}, sequence {sequence}, {delta} offsets to {offset}, "
                f"and a transaction from {began} on, before offset {end_offset}"
            )
        base_sequence = NO_SEQUENCE if sequence == NO_SEQUENCE else (sequence - delta) & INT32_MAX
        last = AppendedBatch(base_sequence, sequence, offset - delta, offset, timestamp_ms, has_log_append_time=False)
        yield (
            producer_id,
            ProducerState(
                epoch=epoch,
                last_timestamp_ms=timestamp_ms,
                coordinator_epoch=coordinator_epoch,
                transaction_first_offset=None if began == _NO_OFFSET else began,
                batches=deque([] if offset == _NO_OFFSET else [last], maxlen=REMEMBERED_BATCHES),
            ),
        )
