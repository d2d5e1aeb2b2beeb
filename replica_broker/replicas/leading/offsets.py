"""A leader's lookups in its log: offsets by timestamp (ListOffsets), and ends of epochs (KIP-101)."""

from controller_core.model.ids import LeaderEpoch
from replica_broker.replicas.errors import OffsetNotAvailable
from replica_broker.replicas.partition import Partition
from replica_broker.replicas.requests import EARLIEST, EARLIEST_LOCAL, LATEST, MAX_TIMESTAMP, EpochEnd, ListedOffset


def list_offset(
    partition: Partition, timestamp_ms: int, *, current_leader_epoch: LeaderEpoch, is_follower: bool
) -> ListedOffset:
    """Return the offset of a timestamp or of a special timestamp.

    Consumers see committed messages only. Raises `OffsetNotAvailable` while a new leader does not know the committed
    offset, because the previous leader's answer may have been larger. Raises the errors of `Partition.require_leader`.
    """
    partition.require_leader(current_leader_epoch)
    epoch = partition.leader_epoch
    if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
        return ListedOffset(offset=partition.log.log_start_offset, leader_epoch=epoch)
    if timestamp_ms == LATEST and is_follower:
        return ListedOffset(offset=partition.replica.end_offset, leader_epoch=epoch)
    is_behind = not is_follower and partition.high_watermark < partition.epoch_start_offset
    if timestamp_ms == LATEST:
        _require_known(partition, is_behind=is_behind)
        return ListedOffset(offset=partition.high_watermark, leader_epoch=epoch)
    below = partition.replica.end_offset if is_follower else partition.high_watermark
    if timestamp_ms == MAX_TIMESTAMP:
        found = partition.log.find_latest_offset(below=below)
    else:
        found = partition.log.find_offset(timestamp_ms, below=below)
    if found is None:
        _require_known(partition, is_behind=is_behind)
        return ListedOffset()
    offset, found_ms = found
    return ListedOffset(offset=offset, timestamp_ms=found_ms, leader_epoch=epoch)


def find_epoch_end(partition: Partition, *, current_leader_epoch: LeaderEpoch, asked_epoch: LeaderEpoch) -> EpochEnd:
    """Return the end of the largest epoch up to the requested one. Raises the errors of `Partition.require_leader`."""
    partition.require_leader(current_leader_epoch)
    return EpochEnd(*partition.log.find_epoch_end(asked_epoch))


def _require_known(partition: Partition, *, is_behind: bool) -> None:
    if is_behind:
        raise OffsetNotAvailable(
            partition.topic_partition,
            f"the high watermark {partition.high_watermark} is below the epoch's start {partition.epoch_start_offset}",
        )
