"""What a follower makes of its leader's answers: each changes the log and the high watermark at once.

A failed log directory takes the replica offline here, and nothing else: those of other directories are followed on.
"""

import structlog

from replica_broker.counters import BrokerCounters
from replica_broker.log.errors import LogError
from replica_broker.log.record_batches import whole_batches
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
        """The seed's `truncate the log to r.hw`. Returns whether it could."""
        return self._cut(partition, partition.high_watermark)

    def cut(self, partition: Partition, leaders: EpochEnd) -> bool:
        """Cuts by what the leader says of an epoch; returns whether the rest is the leader's."""
        cut = cut_by_epoch(partition.log, leaders, partition.high_watermark)
        return self._cut(partition, cut.offset) and cut.is_complete

    def fit(self, partition: Partition, leader_start: int, leader_end: int) -> bool:
        """Fits the log to the range of its leader's: cut to its end, or begun anew at its start. Returns whether it did not
        fit before."""
        end = partition.replica.end_offset
        if leader_end < end:
            return self._cut(partition, leader_end)
        if leader_start <= end:
            return False
        log.warning(
            "a follower begins anew, as its leader has deleted what comes next",
            partition=str(partition.topic_partition),
            end_offset=end,
            leader_start_offset=leader_start,
        )
        try:
            with self._storage.guarded(partition.topic_partition):
                partition.log.start_anew_at(leader_start)
        except StorageFailed:
            return False
        partition.replica.cut_high_watermark()
        partition.notify()
        return True

    def append(self, partition: Partition, answer: Fetched) -> bool:
        """Appends what was fetched; returns whether it could."""
        try:
            with self._storage.guarded(partition.topic_partition):
                if answer.records:
                    partition.log.append_as_follower(whole_batches(answer.records))
                    self._counters.received_from_leader(len(answer.records))
                replica = partition.replica
                replica.high_watermark = max(replica.high_watermark, min(answer.high_watermark, replica.end_offset))
                if partition.log.log_start_offset < answer.log_start_offset <= replica.high_watermark:
                    partition.log.raise_log_start(answer.log_start_offset)
        except StorageFailed:
            return False
        except LogError as error:
            log.error(
                "what a leader sent cannot be appended", partition=str(partition.topic_partition), reason=str(error)
            )
            return False
        partition.notify()
        return True

    def _cut(self, partition: Partition, offset: int) -> bool:
        if offset < partition.high_watermark:
            log.warning(
                "a follower cuts what was committed, as after an unclean election",
                partition=str(partition.topic_partition),
                offset=offset,
                high_watermark=partition.high_watermark,
            )
        try:
            with self._storage.guarded(partition.topic_partition):
                if offset < partition.log.log_start_offset:
                    partition.log.start_anew_at(offset)
                else:
                    partition.log.truncate_to(offset)
        except StorageFailed:
            return False
        partition.replica.cut_high_watermark()
        partition.notify()
        return True
