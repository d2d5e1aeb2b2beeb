"""The log of one partition's replica, as files in a folder of its own.

An append is first decided (`replica_broker.log.appending`). Then the leader epoch is recorded, the batches are written,
and the producer states are updated. All calls come from one thread, except `flush`, which may run in another one. Every
call may raise `DiskError`, after which the log's directory is offline.
"""

from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Final, Protocol

from controller_core.controller.loop.clock import SystemClock
from controller_core.model.ids import LeaderEpoch
from replica_broker.disk.disk import Disk, DiskPath
from replica_broker.log.appending import (
    Append,
    Appended,
    prepare_follower_append,
    prepare_leader_append,
    prepare_marker_append,
)
from replica_broker.log.config import DEFAULT_LOG_CONFIG, LogConfig
from replica_broker.log.errors import LogOffline, OffsetOutOfRange
from replica_broker.log.folder_names import name_to_delete, topic_partition_of
from replica_broker.log.leader_epochs import LeaderEpochs
from replica_broker.log.producers.kept import KeptProducers
from replica_broker.log.producers.markers import EndOfTransaction
from replica_broker.log.producers.states import ProducerStates
from replica_broker.log.record_batches import MOST_OFFSET, RecordBatch
from replica_broker.log.segments.loading import load_segments
from replica_broker.log.segments.lookups import TimestampedOffset, find_latest_record, find_record
from replica_broker.log.segments.retention import count_to_delete
from replica_broker.log.segments.writing import write

__all__ = ["Appended", "Clock", "Log", "TimestampedOffset"]


class Clock(Protocol):
    """A clock."""

    def now_ms(self) -> int: ...


_SYSTEM_CLOCK: Final = SystemClock()


class Log:
    """The batches of one replica, from `log_start_offset` to before `log_end_offset`."""

    def __init__(
        self,
        disk: Disk,
        folder: DiskPath,
        config: LogConfig,
        clock: Clock,
        *,
        is_clean: bool,
        recovery_point: int,
        log_start_offset: int,
    ) -> None:
        self.folder = PurePath(folder)
        self.topic_partition = topic_partition_of(self.folder.name)
        self.config = config
        """Replaceable. A new configuration applies from the next call on; its index interval, from the next opening on.
        """
        self.on_recovery_point_lowered: Callable[[], None] = lambda: None
        """Called after a truncation below the recovery point, before the log writes again."""
        self.is_closed = False
        self._cuts = 0
        self._disk = disk
        self._clock = clock
        self._segments = load_segments(
            disk,
            folder,
            index_interval_bytes=config.index_interval_bytes,
            is_clean=is_clean,
            recovery_point=recovery_point,
            least_offset=log_start_offset,
            now_ms=clock.now_ms(),
        )
        self._log_start_offset = min(max(log_start_offset, self._segments.first.base_offset), self.log_end_offset)
        self.recovery_point = min(recovery_point, self.log_end_offset)
        """All messages before it survive a crash of the machine."""
        self._epochs = LeaderEpochs(disk, folder)
        self._load_epochs(is_clean=is_clean)
        self._producers = KeptProducers(disk, folder)
        self._load_producers()

    @classmethod
    def open(
        cls,
        disk: Disk,
        folder: DiskPath,
        config: LogConfig = DEFAULT_LOG_CONFIG,
        clock: Clock = _SYSTEM_CLOCK,
        *,
        is_clean: bool = False,
        recovery_point: int = 0,
        log_start_offset: int = 0,
    ) -> "Log":
        """Open the log in a folder, and create it if it does not exist.

        The folder's name has the topic and the partition.

        After an unclean shutdown, the log is scanned from the recovery point on and truncated after the last whole
        batch. Raises `UnsupportedFormat` if the log has messages of an older format, and `ValueError` for a folder with
        another name.
        """
        disk.make_folder(folder)
        return cls(
            disk,
            folder,
            config,
            clock,
            is_clean=is_clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )

    @property
    def log_start_offset(self) -> int:
        return self._log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self._segments.active.next_offset

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def segments_count(self) -> int:
        return len(self._segments)

    @property
    def producers(self) -> ProducerStates:
        """The states of the log's producers. Read-only."""
        return self._producers.states

    @property
    def latest_epoch(self) -> LeaderEpoch | None:
        return self._epochs.latest

    def append_as_leader(self, data: bytes, leader_epoch: LeaderEpoch, now_ms: int) -> Appended:
        """Append the batches of a producer. On a `LogError`, nothing was appended."""
        self._require_open()
        append = prepare_leader_append(
            data,
            self.config,
            self._producers.states,
            first_offset=self.log_end_offset,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
        )
        return self._append(append, now_ms) if isinstance(append, Append) else Appended.make_duplicate(append)

    def append_marker(self, end: EndOfTransaction, leader_epoch: LeaderEpoch, now_ms: int) -> Appended:
        """Append a transaction's end marker. On a `LogError`, nothing was appended."""
        self._require_open()
        append = prepare_marker_append(
            end, self._producers.states, first_offset=self.log_end_offset, leader_epoch=leader_epoch, now_ms=now_ms
        )
        return self._append(append, now_ms)

    def append_as_follower(self, data: bytes) -> Appended:
        """Append the leader's batches unchanged. On a `LogError`, nothing was appended.

        If records were deleted up to the middle of a batch, the leader's log starts there, but it sends whole batches.
        So an empty log that starts there restarts at the first offset of that batch, and keeps its log start offset.
        """
        self._require_open()
        log_start_offset = self.log_start_offset
        append = prepare_follower_append(data, log_start_offset, self.log_end_offset)
        if append.batches and append.batches[0].base_offset < self.log_end_offset:
            self.restart_at(append.batches[0].base_offset)
        appended = self._append(append, self._clock.now_ms())
        self.raise_log_start(log_start_offset)
        return appended

    def read(self, offset: int, max_bytes: int, *, below: int) -> bytes:
        """Return whole batches that start before `below`, from the batch with the offset on.

        They have at most `max_bytes`, but there is at least one batch. Raises `OffsetOutOfRange`.
        """
        self._require_open()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(
                f"offset {offset} of {self.topic_partition} is not between "
                f"{self.log_start_offset} and {self.log_end_offset}"
            )
        return self._segments.read(offset, max_bytes, below)

    def truncate_to(self, offset: int) -> int:
        """Truncate the log at an offset, or at the start of the batch that contains it. Return the new end."""
        self._require_open()
        if offset >= self.log_end_offset:
            self._epochs.cut(self.log_end_offset)  # such as an epoch that started here and has no batch
            return self.log_end_offset
        if offset <= self._segments.first.base_offset:
            self.restart_at(offset)
        else:
            self._segments.cut(offset)
            self._adjust_to_cut()
        return self.log_end_offset

    def restart_at(self, offset: int) -> None:
        """Remove everything and continue at an offset."""
        self._require_open()
        if not 0 <= offset <= MOST_OFFSET:
            raise OffsetOutOfRange(f"{self.topic_partition} cannot begin at {offset}")
        self._segments.restart(offset, self._clock.now_ms())
        self._log_start_offset = offset
        self.recovery_point = offset
        self._cuts += 1
        self._epochs.clear()
        self._producers.restart(offset)
        self.on_recovery_point_lowered()

    def raise_log_start(self, offset: int) -> None:
        """Raise the log start offset. Segments that are wholly before it are removed."""
        self._require_open()
        if offset <= self.log_start_offset:
            return
        if offset > self.log_end_offset:
            raise OffsetOutOfRange(f"{self.topic_partition} ends at {self.log_end_offset}, before {offset}")
        self._log_start_offset = offset
        while len(self._segments) > 1 and self._segments.first.next_offset <= offset:
            self._segments.remove_first()
        self._producers.drop_before(self._segments.first.base_offset)
        self._epochs.cut_before(offset)

    def find_offset(self, timestamp_ms: int, *, below: int) -> TimestampedOffset | None:
        """Return the first record before `below` with this timestamp or a later one."""
        self._require_open()
        return find_record(self._segments, timestamp_ms, self.log_start_offset, below)

    def find_latest_offset(self, *, below: int) -> TimestampedOffset | None:
        """Return the first record before `below` that has the largest timestamp."""
        self._require_open()
        return find_latest_record(self._segments, self.log_start_offset, below)

    def begin_epoch(self, epoch: LeaderEpoch) -> None:
        """Record that the leader of an epoch continues at the log's end."""
        self._require_open()
        self._epochs.assign(epoch, self.log_end_offset)

    def find_epoch_end(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, int]:
        """Return the largest epoch up to the given one, and the start of the next; (-1, -1) if it is unknown."""
        return self._epochs.find_end(epoch, self.log_end_offset)

    def delete_old_segments(self, now_ms: int, high_watermark: int) -> int:
        """Delete the segments that retention does not keep, below the high watermark. Return their number.

        Also forgets idle producers.
        """
        self._require_open()
        self._producers.states.forget_old(now_ms - self.config.producer_id_expiration_ms)
        count = count_to_delete(self._segments, self.config, now_ms, high_watermark)
        if count == len(self._segments):
            self._producers.take_snapshot(self._segments.begin(self.log_end_offset, now_ms).base_offset)
        for _ in range(count):
            self._segments.remove_first()
        if count:
            self._log_start_offset = max(self._log_start_offset, self._segments.first.base_offset)
            self._producers.drop_before(self._segments.first.base_offset)
            self._epochs.cut_before(self._log_start_offset)
        return count

    def flush(self) -> None:
        """Make all appended batches survive a crash of the machine. May be called from another thread."""
        end, cuts = self.log_end_offset, self._cuts
        for segment in self._segments.list_from(self.recovery_point):
            segment.flush()
        if self._cuts == cuts:  # after a truncation, the new batches before `end` are not flushed
            self.recovery_point = end

    def close(self) -> None:
        """Flush the log, write its indexes and a snapshot of the producers, and close it. Idempotent."""
        if not self.is_closed:
            self._segments.active.indexes.seal()
            self._producers.take_snapshot(self.log_end_offset)
            self.flush()
            self.abandon()

    def abandon(self) -> None:
        """Close the files as they are."""
        self.is_closed = True
        self._segments.close()

    def delete(self) -> None:
        """Delete the log. Its folder is renamed first, so that a crash never leaves a partial log."""
        self.abandon()
        renamed = self.folder.with_name(name_to_delete(self.topic_partition))
        self._disk.rename(self.folder, renamed)
        self._disk.flush_folder(self.folder.parent)
        self._disk.remove_folder(renamed)

    def _append(self, append: Append, now_ms: int) -> Appended:
        first_offset = append.batches[0].base_offset if append.batches else self.log_end_offset
        # Before the write, so that no batch on the disk has an epoch that the epoch file lacks.
        self._epochs.learn(append.batches)
        write(self._segments, self._producers, append.data, append.batches, self.config, now_ms)
        return Appended(
            first_offset=first_offset,
            last_offset=self.log_end_offset - 1,
            log_append_time_ms=append.log_append_time_ms,
        )

    def _adjust_to_cut(self) -> None:
        self._cuts += 1
        self._log_start_offset = min(self._log_start_offset, self.log_end_offset)
        self._epochs.cut(self.log_end_offset)
        self._producers.cut(self._batches_from, self._segments.first.base_offset, self.log_end_offset)
        if self.recovery_point > self.log_end_offset:
            self.recovery_point = self.log_end_offset
            self.on_recovery_point_lowered()

    def _load_epochs(self, *, is_clean: bool) -> None:
        is_known = self._epochs.load()
        self._epochs.cut(self.log_end_offset)
        self._epochs.cut_before(self.log_start_offset)
        if is_known and is_clean:
            return
        # An epoch is on the disk before its first batch is appended, so flushed batches have no unknown epochs.
        known_to = self.recovery_point if is_known else self.log_start_offset
        self._epochs.learn(self._segments.batches(from_offset=max(known_to, self.log_start_offset)))

    def _load_producers(self) -> None:
        segments = {segment.base_offset for segment in self._segments}
        self._producers.load(self._batches_from, segments, self.log_end_offset)
        self._producers.states.forget_old(self._clock.now_ms() - self.config.producer_id_expiration_ms)

    def _batches_from(self, offset: int) -> Iterator[RecordBatch]:
        return self._segments.batches(from_offset=offset)

    def _require_open(self) -> None:
        if self.is_closed:
            raise LogOffline(f"the log of {self.topic_partition} is closed")
