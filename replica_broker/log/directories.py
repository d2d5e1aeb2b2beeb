"""All log directories of a broker. If one fails, the others stay in use.

A directory fails with the first `DiskError` in it. Its logs are offline from then on: their calls raise `LogOffline`,
and the owner of the replicas is notified once. Open files survive the removal of their folder, so each checkpoint also
checks that the directories are still in place.
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
    """A directory that failed, the error, and the partitions that are known to be in it."""

    path: PurePath
    error: DiskError
    topic_partitions: frozenset[TopicPartition]


Beside = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a function that blocks for long while the event loop goes on."""


class LogDirectories:
    """The log directories of one broker. All calls come from one thread."""

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
    def open(
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
        """Return the directories after loading them."""
        directories = cls(disk, paths, broker_id=broker_id, clock=clock, on_offline=on_offline, beside=beside)
        directories.load(cluster_id, config_of)
        return directories

    def load(self, cluster_id: str, config_of: Callable[[TopicName], LogConfig]) -> dict[TopicPartition, Log]:
        """Lock the directories and open all logs. Directories that fail are offline, the others are used.

        Raises `DirectoryInUse` and `DirectoryRefused`, and `DiskError` if no directory is usable.
        """
        # All locks first: no log is opened, and so repaired, before every directory is known to be this broker's.
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
        """The usable logs."""
        return {where: its for directory in self._live for where, its in directory.logs.items()}

    @property
    def offline(self) -> frozenset[TopicPartition]:
        """The partitions whose logs are unusable or in failed directories."""
        failed = {where for directory in self._directories if directory.failure for where in directory.logs}
        return frozenset(failed | {where for directory in self._directories for where in directory.unusable})

    @property
    def live_paths(self) -> tuple[PurePath, ...]:
        return tuple(directory.path for directory in self._live)

    @property
    def offline_paths(self) -> tuple[PurePath, ...]:
        return tuple(directory.path for directory in self._directories if directory.failure is not None)

    def sizes_bytes(self) -> Mapping[PurePath, int]:
        """Return the total size of the logs in each usable directory."""
        return {
            directory.path: sum(its.size_bytes for its in directory.logs.values() if not its.is_closed)
            for directory in self._live
        }

    def find_log(self, where: TopicPartition) -> Log | None:
        """Return the log of a partition, or None if there is no usable one."""
        directory = self._find_directory(where)
        return directory.logs[where] if directory else None

    def find_path(self, where: TopicPartition) -> PurePath | None:
        """Return the directory that has the log."""
        directory = self._find_directory(where)
        return directory.path if directory else None

    def open_log(self, where: TopicPartition, topic_id: TopicId | None, config: LogConfig) -> Log:
        """Return the log of a partition with this configuration. Creates it in the directory with the fewest logs.

        Raises `InconsistentTopicId` if the log belongs to an earlier topic, `LogOffline` if it is unusable,
        `DiskError`.
        """
        if where in self.offline:
            raise LogOffline(f"the log of {where} is unusable or in a failed log directory")
        directory = self._find_directory(where)
        if directory is None:
            if not self._live:
                raise LogOffline("all log directories have failed")
            emptiest = min(self._live, key=lambda live: len(live.logs))
            return emptiest.create(where, topic_id, config, self._clock)
        if topic_id is not None:
            directory.learn_topic_id(where, topic_id)
        directory.logs[where].config = config
        return directory.logs[where]

    def find_topic_id(self, where: TopicPartition) -> TopicId | None:
        """Return the topic id of a log, or None if there is no log or its id is unknown."""
        directory = self._find_directory(where)
        return directory.topic_ids.get(where) if directory else None

    def find_high_watermark(self, where: TopicPartition) -> int | None:
        """Return the high watermark of the last checkpoint."""
        directory = self._find_directory(where)
        return directory.high_watermarks.get(where) if directory else None

    def checkpoint_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write the high watermarks. A directory that fails or has disappeared becomes offline; nothing is raised."""
        for directory in self._live:
            with suppress(DiskError):
                directory.require_in_place()
                directory.checkpoint_high_watermarks(offsets)

    async def checkpoint_in_background(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write high watermarks, recovery points and log starts in the background.

        A directory that fails or has disappeared becomes offline; nothing is raised.
        """
        prepared: dict[LogDirectory, tuple[Checkpoint, ...]] = {}
        for directory in self._live:
            with suppress(DiskError):
                directory.require_in_place()
                prepared[directory] = directory.prepare_checkpoints(high_watermarks)

        await self._run_for_each(prepared, lambda directory: directory.write_in_background(prepared[directory]))

    def checkpoint_recovery_points(self) -> None:
        """Write the recovery points. A directory that fails becomes offline; nothing is raised."""
        for directory in self._live:
            with suppress(DiskError):
                directory.checkpoint_recovery_points()

    def delete(self, where: TopicPartition) -> None:
        """Delete a log if it exists. Raises `DiskError`."""
        directory = self._find_directory(where)
        if directory is not None:
            directory.delete(where)

    async def wait_until_all_failed(self) -> None:
        """Wait until no directory is usable, then raise a `DiskError` with all failures."""
        while self._live:
            self._failed.clear()
            await self._failed.wait()
        failures = "; ".join(str(directory.failure) for directory in self._directories)
        raise DiskError(f"all log directories have failed: {failures}")

    async def flush_in_background(self) -> None:
        """Flush all logs in the background and checkpoint the new recovery points.

        A directory that fails becomes offline; nothing is raised.
        """
        await self._run_for_each(self._live, LogDirectory.flush)
        await self.checkpoint_in_background({})

    def close(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> None:
        """Close all logs in order. A directory that fails is scanned at the next start; nothing is raised."""
        self.checkpoint_high_watermarks(high_watermarks or {})
        for directory in self._live:
            with suppress(DiskError):
                directory.close()
        self.abandon()

    def abandon(self) -> None:
        """Close all files as they are and release the locks. The next start scans what was not flushed."""
        for directory in self._directories:
            directory.abandon()
            directory.release()

    @property
    def _live(self) -> list[LogDirectory]:
        return [directory for directory in self._directories if directory.failure is None]

    def _find_directory(self, where: TopicPartition) -> LogDirectory | None:
        return next((directory for directory in self._live if where in directory.logs), None)

    async def _run_for_each(self, directories: Iterable[LogDirectory], act: Callable[[LogDirectory], None]) -> None:
        """Run `act` for each directory in the background, then report the failures that the other thread met."""

        def act_on_each() -> None:
            for directory in directories:
                with suppress(DiskError):
                    act(directory)

        await self._beside(act_on_each)
        for directory in self._directories:
            directory.report_failure()

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
            raise DiskError(f"no log directory is usable: {failure}") from failure
        seen: dict[TopicPartition, PurePath] = {}
        for directory in self._live:
            for where in directory.logs:
                if where in seen:
                    raise DirectoryRefused(
                        f"{seen[where]} and {directory.path} both have a log of {where}: remove the wrong one"
                    )
                seen[where] = directory.path


@contextmanager
def _unless_offline(directory: LogDirectory) -> Iterator[None]:
    """Raise only errors that are no failure of the directory's disk, such as a lock that another process has."""
    try:
        yield
    except DiskError:
        if directory.failure is None:
            raise
