"""A log on a simulated disk, small enough to have several segments and several index entries."""

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Final

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from replica_broker.disk.disk import Disk
from replica_broker.log.config import LogConfig
from replica_broker.log.log import Log
from replica_broker.log.record_batches import read_batches
from tests.unit.replica_broker.log.batches import ManualClock

DIRECTORY: Final = PurePosixPath("/data")
FOLDER: Final = DIRECTORY / "orders-0"
ORDERS_0: Final = TopicPartition(TopicName("orders"), PartitionId(0))
SMALL: Final = LogConfig(segment_bytes=400, index_interval_bytes=100)


def open_log(
    disk: Disk, clock: ManualClock | None = None, *, is_clean: bool = False, recovery_point: int = 0, **config: Any
) -> Log:
    return Log.open(
        disk,
        FOLDER,
        replace(SMALL, **config),
        clock or ManualClock(),
        is_clean=is_clean,
        recovery_point=recovery_point,
    )


def all_bytes(log: Log) -> bytes:
    """Return the bytes of the log, read batch by batch from its start."""
    found, offset = b"", log.log_start_offset
    while data := log.read(offset, 1, below=log.log_end_offset):
        found += data
        offset = list(read_batches(data))[-1].next_offset
    return found


def offsets(log: Log) -> list[tuple[int, int]]:
    """First and last offset of each batch."""
    return [(batch.base_offset, batch.last_offset) for batch in read_batches(all_bytes(log))]
