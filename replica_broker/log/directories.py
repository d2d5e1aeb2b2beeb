"""All log directories of a broker: which one has which log, and that the others live on where one fails.

A directory fails with the first `DiskError` in it. Its logs are offline from then on: their calls raise `LogOffline`, and
whoever owns the replicas is told once. Files that are open outlive their folder, so with each checkpoint it is looked
whether the directories are still where they were.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

import structlog

from controller_core.controller.loop.clock import SystemClock
from controller_core.model.ids import BrokerId, TopicId, TopicName, TopicPartition
from replica_broker.disk.disk import Disk, DiskError, DiskPath
from replica_broker.log.checkpoints.files import Checkpoint
from replica_broker.log.config import LogConfig
from replica_broker.log.directory import LogDirectory
from replica_broker.log.errors import DirectoryRefused, LogOffline
from replica_broker.log.log import Clock, Log

log = structlog.get_logger()

_SYSTEM_CLOCK: Final = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineDirectory:
    """A directory that failed, why, and whose replicas are in it, as far as that is known."""

    path: PurePath
    error: DiskError
    topic_partitions: frozenset[TopicPartition]


Beside = Callable[[Callable[[], None]], Awaitable[None]]
"""Does what blocks for long, and lets the event loop go on meanwhile."""


class LogDirectories:
    """The directories of one broker. All calls come from one thread."""

    def __init__(
        self,
        disk: Disk,
        paths: Sequence[DiskPath],
        *,
        broker_id: BrokerId,
        clock: Clock = _SYSTEM_CLOCK,
        on_offline: Callable[[OfflineDirectory], object] = lambda _: None,
        beside: Beside = asyncio.to_thread,
    ) -> None:
        self.paths = tuple(PurePath(path) for path in paths)
        self.on_offline = on_offline
        self._directories = [LogDirectory(disk, path, self._has_failed) for path in paths]
        self._failed = asyncio.Event()
        self._broker_id = broker_id
        self._clock = clock
        self._beside = beside

    @classmethod
    def opened(
        cls,
        disk: Disk,
        paths: Sequence[DiskPath],
        *,
        broker_id: BrokerId,
        cluster_id: str,
        config_of: Callable[[TopicName], LogConfig],
        clock: Clock = _SYSTEM_CLOCK,
        on_offline: Callable[[OfflineDirectory], object] = lambda _: None,
        beside: Beside = asyncio.to_thread,
    ) -> "LogDirectories":
        """As made, and loaded."""
        directories = cls(disk, paths, broker_id=broker_id, clock=clock, on_offline=on_offline, beside=beside)
        directories.load(cluster_id, config_of)
        return directories

    def load(self, cluster_id: str, config_of: Callable[[TopicName], LogConfig]) -> dict[TopicPartition, Log]:
        """Takes the directories and opens all logs. Those that fail are offline, the others are used.

        Raises `DirectoryInUse` and `DirectoryRefused`; `DiskError` where no directory can be used."""
        try:
            for directory in self._directories:
                with _unless_offline(directory):
                    directory.take(self._broker_id, cluster_id)
            for directory in self._live:
                with _unless_offline(directory):
                    directory.load(config_of, self._clock)
            self._require_usable()
        except BaseException:
            self.abandon()
            raise
        return dict(self.logs)

    @property
    def logs(self) -> Mapping[TopicPartition, Log]:
        """Those that can be used."""
        return {where: its for directory in self._live for where, its in directory.logs.items()}

    @property
    def offline(self) -> frozenset[TopicPartition]:
        """The partitions whose logs are in directories that failed, or cannot be used."""
        failed = {where for directory in self._directories if directory.failure for where in directory.logs}
        return frozenset(failed | {where for directory in self._directories for where in directory.unusable})

    @property
    def live_paths(self) -> tuple[PurePath, ...]:
        return tuple(directory.path for directory in self._live)

    @property
    def offline_paths(self) -> tuple[PurePath, ...]:
        return tuple(directory.path for directory in self._directories if directory.failure is not None)

    def sizes_bytes(self) -> Mapping[PurePath, int]:
        """How large the logs are in each directory that can be used."""
        return {
            directory.path: sum(its.size_bytes for its in directory.logs.values() if not its.is_closed)
            for directory in self._live
        }

    def log_of(self, where: TopicPartition) -> Log | None:
        """None where there is none, or none that can be used."""
        directory = self._directory_of(where)
        return directory.logs[where] if directory else None

    def path_of(self, where: TopicPartition) -> PurePath | None:
        """The directory that has the log."""
        directory = self._directory_of(where)
        return directory.path if directory else None

    def log_for(self, where: TopicPartition, topic_id: TopicId | None, config: LogConfig) -> Log:
        """The log of a partition, which is made in the directory with the fewest where there is none; it has that
        configuration from now on.

        Raises `InconsistentTopicId` where it is an earlier topic's, `LogOffline` where it cannot be used, `DiskError`."""
        if where in self.offline:
            raise LogOffline(f"the log of {where} is in a directory that failed, or cannot be used")
        directory = self._directory_of(where)
        if directory is None:
            if not self._live:
                raise LogOffline("no log directory can be used any more")
            emptiest = min(self._live, key=lambda live: len(live.logs))
            return emptiest.create(where, topic_id, config, self._clock)
        if topic_id is not None:
            directory.learn_topic_id(where, topic_id)
        directory.logs[where].config = config
        return directory.logs[where]

    def topic_id_of(self, where: TopicPartition) -> TopicId | None:
        """None where there is no log, or none that knows."""
        directory = self._directory_of(where)
        return directory.topic_ids.get(where) if directory else None

    def high_watermark_of(self, where: TopicPartition) -> int | None:
        """As it was written down last."""
        directory = self._directory_of(where)
        return directory.high_watermarks.get(where) if directory else None

    def checkpoint_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Writes down how far replicas are committed. A directory that fails with it, or is not there any more, is offline;
        nothing is raised."""
        for directory in self._live:
            with suppress(DiskError):
                directory.require_in_place()
                directory.checkpoint_high_watermarks(offsets)

    async def checkpoint_beside(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Writes down how far replicas are committed, what was flushed, and where logs start, beside all else. A directory
        that fails with it, or is not there any more, is offline; nothing is raised."""
        prepared: dict[LogDirectory, tuple[Checkpoint, ...]] = {}
        for directory in self._live:
            with suppress(DiskError):
                directory.require_in_place()
                prepared[directory] = directory.prepare_checkpoints(high_watermarks)

        await self._beside_each(prepared, lambda directory: directory.write_beside(prepared[directory]))

    def checkpoint_recovery_points(self) -> None:
        """Writes down what was flushed. A directory that fails with it is offline; nothing is raised."""
        for directory in self._live:
            with suppress(DiskError):
                directory.checkpoint_recovery_points()

    def delete(self, where: TopicPartition) -> None:
        """Deletes a log, where there is one. Raises `DiskError`."""
        directory = self._directory_of(where)
        if directory is not None:
            directory.delete(where)

    async def until_none_is_left(self) -> None:
        """Waits until no directory can be used any more, and raises the `DiskError` that says so."""
        while self._live:
            self._failed.clear()
            await self._failed.wait()
        failures = "; ".join(str(directory.failure) for directory in self._directories)
        raise DiskError(f"no log directory can be used any more: {failures}")

    async def flush_beside(self) -> None:
        """Has all that was appended survive a crash of the machine, and writes that down, beside all else. A directory that
        fails with it is offline; nothing is raised."""
        await self._beside_each(self._live, LogDirectory.flush)
        await self.checkpoint_beside({})

    def close(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> None:
        """Closes all logs in order. Directories that fail with it are read at the next start; nothing is raised."""
        self.checkpoint_high_watermarks(high_watermarks or {})
        for directory in self._live:
            with suppress(DiskError):
                directory.close()
        self.abandon()

    def abandon(self) -> None:
        """Closes all files as they are, and gives the locks back; the next start reads what was not flushed."""
        for directory in self._directories:
            directory.abandon()
            directory.release()

    @property
    def _live(self) -> list[LogDirectory]:
        return [directory for directory in self._directories if directory.failure is None]

    def _directory_of(self, where: TopicPartition) -> LogDirectory | None:
        return next((directory for directory in self._live if where in directory.logs), None)

    async def _beside_each(self, directories: Iterable[LogDirectory], act: Callable[[LogDirectory], None]) -> None:
        """Does something with each directory beside all else, and tells then of failures that the other thread met."""

        def act_on_each() -> None:
            for directory in directories:
                with suppress(DiskError):
                    act(directory)

        await self._beside(act_on_each)
        for directory in self._directories:
            directory.tell()

    def _has_failed(self, directory: LogDirectory) -> None:
        error = directory.failure
        assert error is not None
        log.error("log directory failed, its logs are offline", directory=str(directory.path), reason=str(error))
        directory.abandon()
        self._failed.set()
        self.on_offline(OfflineDirectory(path=directory.path, error=error, topic_partitions=frozenset(directory.logs)))

    def _require_usable(self) -> None:
        if not self._live:
            failure = self._directories[0].failure
            raise DiskError(f"no log directory can be used: {failure}") from failure
        seen: dict[TopicPartition, PurePath] = {}
        for directory in self._live:
            for where in directory.logs:
                if where in seen:
                    raise DirectoryRefused(
                        f"{seen[where]} and {directory.path} both have a log of {where}: keep the right one of them"
                    )
                seen[where] = directory.path


@contextmanager
def _unless_offline(directory: LogDirectory) -> Iterator[None]:
    """Lets pass what is no failure of the directory's disk: that it is somebody else's."""
    try:
        yield
    except DiskError:
        if directory.failure is None:
            raise
