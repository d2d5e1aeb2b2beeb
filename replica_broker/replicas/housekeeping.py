"""Periodic work for all replicas: checkpoint high watermarks, flush logs, delete old segments.

The seed has a checkpoint thread for each replica. Here one task writes one file for each log directory. A follower that
restarts trusts only its checkpoint, because messages above it may be uncommitted.
"""

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import TopicPartition
from replica_broker.replicas.errors import StorageFailed
from replica_broker.replicas.settings import ReplicaSettings
from replica_broker.replicas.storage import Storage

log = structlog.get_logger()


def high_watermarks(storage: Storage) -> dict[TopicPartition, int]:
    """Return the high watermarks of all online replicas."""
    return {
        topic_partition: partition.high_watermark
        for topic_partition, partition in storage.hosted.items()
        if not partition.is_offline
    }


def checkpoint(storage: Storage) -> None:
    """Write the high watermarks and the recovery points. If a directory fails, the others continue."""
    storage.directories.checkpoint_high_watermarks(high_watermarks(storage))
    storage.directories.checkpoint_recovery_points()
    storage.take_offline()


def delete_old_segments(storage: Storage, now_ms: int) -> None:
    """Delete committed segments that `retention.ms` and `retention.bytes` do not keep."""
    for topic_partition, partition in list(storage.hosted.items()):
        if partition.is_offline:
            continue
        try:
            with storage.guard(topic_partition):
                partition.log.delete_old_segments(now_ms, partition.high_watermark)
        except StorageFailed as error:
            log.warning("old segments could not be deleted", partition=str(topic_partition), reason=str(error))


async def keep_checkpointing(storage: Storage, settings: ReplicaSettings, clock: Clock) -> None:
    """Checkpoint the high watermarks every few seconds, until cancelled."""
    while True:
        await clock.sleep_ms(settings.high_watermark_checkpoint_interval_ms)
        await storage.directories.checkpoint_in_background(high_watermarks(storage))
        storage.take_offline()


async def keep_flushing(storage: Storage, settings: ReplicaSettings, clock: Clock) -> None:
    """Flush all logs every minute, until cancelled.

    Nobody waits for it, because the replicas protect committed messages.
    """
    if settings.flush_interval_ms is None:
        return
    while True:
        await clock.sleep_ms(settings.flush_interval_ms)
        await storage.directories.flush_in_background()
        storage.take_offline()


async def keep_deleting(storage: Storage, settings: ReplicaSettings, clock: Clock) -> None:
    """Delete old segments every few minutes, until cancelled."""
    while True:
        await clock.sleep_ms(settings.retention_check_interval_ms)
        delete_old_segments(storage, clock.now_ms())
