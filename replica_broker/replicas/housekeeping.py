"""What is done every now and then for all replicas: high watermarks written down, logs flushed, old
segments deleted.

The seed has a HW checkpoint thread for each replica; one for all writes one file for each log directory. A follower
that starts again believes its checkpoint and no more: what is above it may be committed, or not.
"""

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import TopicPartition
from replica_broker.replicas.errors import StorageFailed
from replica_broker.replicas.settings import ReplicaSettings
from replica_broker.replicas.storage import Storage

log = structlog.get_logger()


def high_watermarks(storage: Storage) -> dict[TopicPartition, int]:
    """Of all replicas that are not offline."""
    return {
        topic_partition: partition.high_watermark
        for topic_partition, partition in storage.hosted.items()
        if not partition.is_offline
    }


def checkpoint(storage: Storage) -> None:
    """Writes down what is committed, and up to where logs were flushed. Where a directory fails, the others go on."""
    storage.directories.checkpoint_high_watermarks(high_watermarks(storage))
    storage.directories.checkpoint_recovery_points()
    storage.take_offline()


def delete_old_segments(storage: Storage, now_ms: int) -> None:
    """Deletes what `retention.ms` and `retention.bytes` do not keep, of what is committed."""
    for topic_partition, partition in list(storage.hosted.items()):
        if partition.is_offline:
            continue
        try:
            with storage.guarded(topic_partition):
                partition.log.delete_old_segments(now_ms, partition.high_watermark)
        except StorageFailed as error:
            log.warning("old segments could not be deleted", partition=str(topic_partition), reason=str(error))


async def keep_checkpointing(storage: Storage, settings: ReplicaSettings, clock: Clock) -> None:
    """Every few seconds, until it is cancelled."""
    while True:
        await clock.sleep_ms(settings.high_watermark_checkpoint_interval_ms)
        await storage.directories.checkpoint_beside(high_watermarks(storage))
        storage.take_offline()


async def keep_flushing(storage: Storage, settings: ReplicaSettings, clock: Clock) -> None:
    """Every minute, until it is cancelled: replicas hold what is committed, so nobody waits for this."""
    if settings.flush_interval_ms is None:
        return
    while True:
        await clock.sleep_ms(settings.flush_interval_ms)
        await storage.directories.flush_beside()
        storage.take_offline()


async def keep_deleting(storage: Storage, settings: ReplicaSettings, clock: Clock) -> None:
    """Every few minutes, until it is cancelled."""
    while True:
        await clock.sleep_ms(settings.retention_check_interval_ms)
        delete_old_segments(storage, clock.now_ms())
