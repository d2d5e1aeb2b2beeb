"""One log directory: its lock, its owner, its logs and its checkpoints.

All files have Kafka's names and formats. The marker of a clean shutdown is removed before anything else is read, so
that a crash at any later point leads to a recovery scan.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Final

import structlog

from controller_core.model.ids import BrokerId, TopicId, TopicName, TopicPartition
from replica_broker.disk.disk import Disk, DiskError, DiskPath, Lock
from replica_broker.disk.guarded_disk import GuardedDisk
from replica_broker.log.checkpoints.files import Checkpoint, CheckpointFiles
from replica_broker.log.checkpoints.formats import (
    decode_meta_properties,
    decode_offsets,
    decode_partition_metadata,
    encode_meta_properties,
    encode_partition_metadata,
)
from replica_broker.log.config import LogConfig
from replica_broker.log.errors import DirectoryRefused, InconsistentTopicId, LogError, MalformedFile
from replica_broker.log.folder_names import DELETE_SUFFIX, is_log_folder, topic_partition_of
from replica_broker.log.log import Clock, Log

log = structlog.get_logger()

LOCK: Final = ".lock"
META_PROPERTIES: Final = "meta.properties"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
PARTITION_METADATA: Final = "partition.metadata"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
_CLEAN: Final = b'{"version":0,"brokerEpoch":-1}'
_NO_LOGS: Final = ("-future", "-stray")
"""Folders of a stock broker: a replica that was being moved between directories, or one that nobody owned."""


class LogDirectory:
    """The log directory at a path. Every method may raise `DiskError`, after which the directory is offline."""

    def __init__(self, disk: Disk, path: DiskPath, on_failure: Callable[["LogDirectory"], object]) -> None:
        self.path = PurePath(path)
        self.logs: dict[TopicPartition, Log] = {}
        self.topic_ids: dict[TopicPartition, TopicId] = {}
        self.unusable: dict[TopicPartition, LogError] = {}
        """Logs that this broker cannot use and leaves unchanged, with their checkpoint entries."""
        self.high_watermarks: dict[TopicPartition, int] = {}
        """The high watermarks of the last checkpoint."""
        self._loaded_recovery_points: dict[TopicPartition, int] = {}
        self._loaded_log_starts: dict[TopicPartition, int] = {}
        self._disk = GuardedDisk(disk, lambda _: on_failure(self))
        self._checkpoints = CheckpointFiles(self._disk, self.path)
        self._lock: Lock | None = None

    @property
    def failure(self) -> DiskError | None:
        return self._disk.failure

    def take(self, broker_id: BrokerId, cluster_id: str) -> None:
        """Take the lock and check the owner. Raises `DirectoryInUse`, `DirectoryRefused`."""
        self._disk.make_folder(self.path)
        self._lock = self._disk.lock(self.path / LOCK)
        path = self.path / META_PROPERTIES
        if not self._disk.exists(path):
            self._disk.write_whole(path, encode_meta_properties(broker_id, cluster_id))
            return
        try:
            properties = decode_meta_properties(path, self._disk.read_whole(path))
        except MalformedFile as error:
            raise DirectoryRefused(str(error)) from error
        expected = {"version": "0", "broker.id": str(broker_id), "cluster.id": cluster_id}
        for name, value in expected.items():
            if properties.get(name, value) != value:
                raise DirectoryRefused(
                    f"{path} says {name}={properties[name]}, but this broker has {name}={value}: "
                    "use this broker's own log directory, or an empty one"
                )

    def load(self, config_of: Callable[[TopicName], LogConfig], clock: Clock) -> None:
        """Open all logs, and finish deletions that were interrupted."""
        is_clean = self._disk.exists(self.path / CLEAN_SHUTDOWN)
        # Removed before any log is opened: a crash from here on must lead to a scan at the next start.
        self._disk.remove(self.path / CLEAN_SHUTDOWN)
        self._disk.flush_folder(self.path)
        self.high_watermarks = self._offsets_in(HIGH_WATERMARKS)
        recovery_points = self._loaded_recovery_points = self._offsets_in(RECOVERY_POINTS)
        log_starts = self._loaded_log_starts = self._offsets_in(LOG_STARTS)
        for name in self._disk.list(self.path):
            if name.endswith(DELETE_SUFFIX):
                self._disk.remove_folder(self.path / name)
            elif name.endswith(_NO_LOGS):
                log.warning("folder of a stock broker is ignored", folder=str(self.path / name))
            elif is_log_folder(name):
                where = topic_partition_of(name)
                try:
                    self._load_topic_id(where)
                    opened = Log.open(
                        self._disk,
                        self.path / name,
                        config_of(where.topic),
                        clock,
                        is_clean=is_clean,
                        recovery_point=recovery_points.get(where, 0),
                        log_start_offset=log_starts.get(where, 0),
                    )
                except LogError as error:
                    log.error("log is unusable and left unchanged", folder=str(self.path / name), reason=str(error))
                    self.unusable[where] = error
                else:
                    self._add(opened)

    def create(self, where: TopicPartition, topic_id: TopicId | None, config: LogConfig, clock: Clock) -> Log:
        """Create an empty log."""
        folder = self.path / str(where)
        self._disk.make_folder(folder)
        if topic_id is not None:
            self.learn_topic_id(where, topic_id)
        made = Log.open(self._disk, folder, config, clock)
        self._disk.flush_folder(self.path)
        self._add(made)
        return made

    def learn_topic_id(self, where: TopicPartition, topic_id: TopicId) -> None:
        """Write the topic id of a log. Raises `InconsistentTopicId` if the log belongs to another topic."""
        known = self.topic_ids.get(where)
        if known is None:
            path = self.path / str(where) / PARTITION_METADATA
            self._disk.write_whole(path, encode_partition_metadata(topic_id))
            self.topic_ids[where] = topic_id
        elif known != topic_id:
            raise InconsistentTopicId(f"the log of {where} belongs to the topic with the id {known}, not {topic_id}")

    def delete(self, where: TopicPartition) -> None:
        """Delete a log. Its checkpoint entries go first, because they would be wrong for a new log of the same name."""
        deleted = self.logs.pop(where)
        self.topic_ids.pop(where, None)
        self.high_watermarks.pop(where, None)
        self._checkpoints.write(HIGH_WATERMARKS, self.high_watermarks)
        self.checkpoint_recovery_points()
        deleted.delete()

    def require_in_place(self) -> None:
        """Raise `DiskError` if the locked directory is no longer at its path."""
        if self._lock is not None:
            self._lock.require_in_place()

    def checkpoint_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write the high watermarks."""
        self._learn_high_watermarks(offsets)
        self._checkpoints.write(HIGH_WATERMARKS, self.high_watermarks)

    def checkpoint_recovery_points(self) -> None:
        """Write the recovery points and the log start offsets."""
        self._checkpoints.write(RECOVERY_POINTS, self._recovery_points())
        self._checkpoints.write(LOG_STARTS, self._log_starts())

    def prepare_checkpoints(self, offsets: Mapping[TopicPartition, int]) -> tuple[Checkpoint, ...]:
        """Return all checkpoints as of now, for `write_in_background`."""
        self._learn_high_watermarks(offsets)
        return (
            self._checkpoints.prepare(HIGH_WATERMARKS, self.high_watermarks),
            self._checkpoints.prepare(RECOVERY_POINTS, self._recovery_points()),
            self._checkpoints.prepare(LOG_STARTS, self._log_starts()),
        )

    def write_in_background(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Write the prepared checkpoints. May be called from another thread than the other methods."""
        for checkpoint in checkpoints:
            self._checkpoints.write_in_background(checkpoint)

    def flush(self) -> None:
        """Flush all logs. May be called from another thread than the other methods."""
        for its in tuple(self.logs.values()):
            its.flush()

    def report_failure(self) -> None:
        """Report a failure that another thread met."""
        self._disk.report_failure()

    def close(self) -> None:
        """Close the logs and write the marker of a clean shutdown, unless the end of an unusable log is unknown."""
        for its in self.logs.values():
            its.close()
        self.checkpoint_recovery_points()
        if not self.unusable:
            self._disk.write_whole(self.path / CLEAN_SHUTDOWN, _CLEAN)

    def abandon(self) -> None:
        """Close the files as they are."""
        for its in self.logs.values():
            its.abandon()

    def release(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.release()

    def _learn_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.high_watermarks |= {where: offset for where, offset in offsets.items() if where in self.logs}

    def _recovery_points(self) -> dict[TopicPartition, int]:
        current = {where: its.recovery_point for where, its in self.logs.items()}
        return self._keep_unusable(self._loaded_recovery_points) | current

    def _log_starts(self) -> dict[TopicPartition, int]:
        current = {where: its.log_start_offset for where, its in self.logs.items()}
        return self._keep_unusable(self._loaded_log_starts) | current

    def _keep_unusable(self, loaded: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the loaded entries of the unusable logs, which somebody may repair before the next start."""
        return {where: offset for where, offset in loaded.items() if where in self.unusable}

    def _add(self, opened: Log) -> None:
        opened.on_recovery_point_lowered = self.checkpoint_recovery_points
        self.logs[opened.topic_partition] = opened

    def _load_topic_id(self, where: TopicPartition) -> None:
        path = self.path / str(where) / PARTITION_METADATA
        if self._disk.exists(path):
            self.topic_ids[where] = decode_partition_metadata(path, self._disk.read_whole(path))

    def _offsets_in(self, name: str) -> dict[TopicPartition, int]:
        path = self.path / name
        if not self._disk.exists(path):
            return {}
        try:
            return decode_offsets(path, self._disk.read_whole(path))
        except MalformedFile as error:
            log.warning("unreadable checkpoint is ignored", reason=str(error))
            return {}
