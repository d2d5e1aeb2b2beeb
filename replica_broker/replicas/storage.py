"""Handles the failure of a log directory: its replicas go offline, all others continue.

`LogDirectories` takes a directory offline at its first `DiskError`, because the result of a failed write is unknown.
All access to logs runs within `Storage.guard`, which then takes the replicas of that directory offline. They stop
leading and following, and answer KAFKA_STORAGE_ERROR until the broker restarts with a working directory. The controller
is notified (`on_directory_failed`), asks by a LeaderAndIsr for the affected replicas (seed 000), and elects other
leaders.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from controller_core.model.ids import TopicPartition
from replica_broker.disk.disk import DiskError
from replica_broker.log.directories import LogDirectories
from replica_broker.log.errors import LogOffline
from replica_broker.replicas.errors import StorageFailed
from replica_broker.replicas.partition import Partition

log = structlog.get_logger()


class Storage:
    """The log directories, and the online and offline replicas in them."""

    def __init__(self, directories: LogDirectories, *, on_directory_failed: Callable[[], object]) -> None:
        self.directories = directories
        self.hosted: dict[TopicPartition, Partition] = {}
        self._on_directory_failed = on_directory_failed
        self._failed = len(directories.offline_paths)
        self._listeners: list[Callable[[Partition], object]] = []

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        """Return True if the log is in a failed directory."""
        return topic_partition in self.directories.offline

    def may_be_offline(self, topic_partition: TopicPartition) -> bool:
        """Return True if the log is in a failed directory, or may have been in one because it is in no other."""
        is_elsewhere = self.directories.find_log(topic_partition) is not None
        return self.is_offline(topic_partition) or (bool(self.directories.offline_paths) and not is_elsewhere)

    def when_offline(self, listener: Callable[[Partition], object]) -> None:
        """Call the listener with each replica that goes offline."""
        self._listeners.append(listener)

    @contextmanager
    def guard(self, topic_partition: TopicPartition) -> Iterator[None]:
        """Convert a failure of the log's directory to `StorageFailed`, after taking its replicas offline."""
        try:
            yield
        except (DiskError, LogOffline) as error:
            self.take_offline()
            raise StorageFailed(topic_partition, f"its log directory failed: {error}") from error

    def take_offline(self) -> None:
        """Take the replicas of newly failed directories offline."""
        for topic_partition, partition in list(self.hosted.items()):
            if not partition.is_offline and self.is_offline(topic_partition):
                self._take_offline(partition)
        if len(self.directories.offline_paths) > self._failed:
            self._failed = len(self.directories.offline_paths)
            log.error("a log directory is offline", directories=[str(path) for path in self.directories.offline_paths])
            self._on_directory_failed()

    def _take_offline(self, partition: Partition) -> None:
        partition.is_offline = True
        partition.proposed = None
        for listener in self._listeners:
            listener(partition)
        partition.notify()
