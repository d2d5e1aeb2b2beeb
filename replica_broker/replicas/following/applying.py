"""Applies the leader's responses to a follower: each changes the log and the high watermark at once.

A failed log directory takes only its own replicas offline; the others are still followed.
"""

import structlog

from replica_broker.counters import BrokerCounters
from replica_broker.log.errors import LogError
from replica_broker.log.record_batches import drop_partial_batch
from replica_broker.replicas.errors import StorageFailed
from replica_broker.replicas.following.truncation import cut_by_epoch
from replica_broker.replicas.partition import Partition
from replica_broker.replicas.requests import EpochEnd, Fetched
from replica_broker.replicas.storage import Storage

log = structlog.get_logger()


class Applying:
    """Changes the logs of followers."""

    def __init__(self, storage: Storage, counters: BrokerCounters) -> None:
        self._storage = storage
        self._counters = counters

    def cut_to_high_watermark(self, partition: Partition) -> bool:
        """Run the seed's `truncate the log to r.hw`. Return True if it succeeded."""
        return self._cut(partition, partition.high_watermark)

    def cut(self, partition: Partition, leaders: EpochEnd) -> bool:
        """Truncate by the leader's end of an epoch. Return True if the rest matches the leader's log."""
        cut = cut_by_epoch(partition.log, leaders, partition.high_watermark)
        return self._cut(partition, cut.offset) and cut.is_complete

    def fit(self, partition: Partition, leader_start: int, leader_end: int) -> bool:
        """Fit the log into the leader's range: truncate it to the leader's end, or restart it at the leader's start.

        Return True if the log did not fit before.
        """
        end = partition.replica.end_offset
        if leader_end < end:
            return self._cut(partition, leader_end)
        if leader_start <= end:
            return False
        log.warning(
            "a follower restarts its log, because the leader has deleted the next messages",
            partition=str(partition.topic_partition),
            end_offset=end,
            leader_start_offset=leader_start,
        )
        try:
            with self._storage.guard(partition.topic_partition):
                partition.log.restart_at(leader_start)
        except StorageFailed:
            return False
        partition.replica.cut_high_watermark()
        partition.notify()
        return True

    def append(self, partition: Partition, answer: Fetched) -> bool:
        """Append the fetched batches. Return True if it succeeded."""
        try:
            with self._storage.guard(partition.topic_partition):
                if answer.records:
                    partition.log.append_as_follower(drop_partial_batch(answer.records))
                    self._counters.count_received_from_leader(len(answer.records))
                replica = partition.replica
                replica.high_watermark = max(replica.high_watermark, min(answer.high_watermark, replica.end_offset))
                if partition.log.log_start_offset < answer.log_start_offset <= replica.high_watermark:
                    partition.log.raise_log_start(answer.log_start_offset)
        except StorageFailed:
            return False
        except LogError as error:
            log.error(
                "batches of the leader cannot be appended", partition=str(partition.topic_partition), reason=str(error)
            )
            return False
        partition.notify()
        return True

    def _cut(self, partition: Partition, offset: int) -> bool:
        if offset < partition.high_watermark:
            log.warning(
                "a follower truncates below its high watermark, as after an unclean election",
                partition=str(partition.topic_partition),
                offset=offset,
                high_watermark=partition.high_watermark,
            )
        try:
            with self._storage.guard(partition.topic_partition):
                if offset < partition.log.log_start_offset:
                    partition.log.restart_at(offset)
                else:
                    partition.log.truncate_to(offset)
        except StorageFailed:
            return False
        partition.replica.cut_high_watermark()
        partition.notify()
        return True
