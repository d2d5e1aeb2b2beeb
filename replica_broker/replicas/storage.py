"""What happens when a log directory fails: its replicas go offline, and all others live on.

`LogDirectories` takes a directory offline with the first `DiskError` in it: after a failed write nobody knows what is
on it. Whatever touches a log is done within `Storage.guarded`, which takes the replicas of that directory offline
then. They lead and follow no more, and answer KAFKA_STORAGE_ERROR, until the broker starts again with a directory that
works. The controller is told of it (`on_directory_failed`), asks by a LeaderAndIsr which replicas are concerned (seed
000), and elects others.
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
    """The log directories, the replicas in them, and who is offline because of one."""

    def __init__(self, directories: LogDirectories, *, on_directory_failed: Callable[[], object]) -> None:
        self.directories = directories
        self.hosted: dict[TopicPartition, Partition] = {}
        self._on_directory_failed = on_directory_failed
        self._failed = len(directories.offline_paths)
        self._listeners: list[Callable[[Partition], object]] = []

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        """Whether its log is in a directory that failed."""
        return topic_partition in self.directories.offline

    def may_be_offline(self, topic_partition: TopicPartition) -> bool:
        """Whether its log is in a directory that failed, or there is none and it may have been in such a directory."""
        is_elsewhere = self.directories.log_of(topic_partition) is not None
        return self.is_offline(topic_partition) or (bool(self.directories.offline_paths) and not is_elsewhere)

    def when_offline(self, listener: Callable[[Partition], object]) -> None:
        """Calls it with every replica that goes offline."""
        self._listeners.append(listener)

    @contextmanager
    def guarded(self, topic_partition: TopicPartition) -> Iterator[None]:
        """Raises `StorageFailed` for the failure of a log's directory, after taking the replicas in it offline."""
        try:
            yield
        except (DiskError, LogOffline) as error:
            self.take_offline()
            raise StorageFailed(topic_partition, f"its log directory failed: {error}") from error

    def take_offline(self) -> None:
        """Looks for directories that have failed, and takes the replicas in them offline."""
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
