"""The start offset of each leader epoch.

Followers use it to find the point where their log and the leader's diverge (KIP-101).

Both numbers rise from entry to entry. An epoch is in the file before its first batch is in a segment, so the log never
has an unknown epoch. After an unclean shutdown, the epochs of lost batches are removed.
"""

from collections.abc import Iterable
from pathlib import PurePath
from typing import Final, NamedTuple

import structlog

from controller_core.model.ids import NO_EPOCH, LeaderEpoch
from replica_broker.disk.disk import Disk, DiskPath
from replica_broker.log.checkpoints.formats import decode_epochs, encode_epochs
from replica_broker.log.errors import MalformedFile
from replica_broker.log.record_batches import RecordBatch

log = structlog.get_logger()

FILE_NAME: Final = "leader-epoch-checkpoint"
UNKNOWN_OFFSET: Final = -1


class EpochStart(NamedTuple):
    epoch: LeaderEpoch
    start_offset: int


class LeaderEpochs:
    """The leader epochs of one log. Changes write the file and may raise `DiskError`."""

    def __init__(self, disk: Disk, folder: DiskPath) -> None:
        self._disk = disk
        self._path = PurePath(folder) / FILE_NAME
        self._entries: list[EpochStart] = []

    def load(self) -> bool:
        """Read the file. Return False if it is missing or invalid, so that the epochs must be read from the batches."""
        if not self._disk.exists(self._path):
            return False
        try:
            entries = [EpochStart(*pair) for pair in decode_epochs(self._path, self._disk.read_whole(self._path))]
        except MalformedFile as error:
            log.warning("leader epochs are read from the batches", reason=str(error))
            return False
        self._entries = entries
        return True

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> LeaderEpoch | None:
        return self._entries[-1].epoch if self._entries else None

    def assign(self, epoch: LeaderEpoch, start_offset: int) -> None:
        """Record that an epoch starts at an offset, unless it has already started.

        Entries that contradict it were never committed and are removed.
        """
        if epoch < 0 or (
            self._entries and self._entries[-1].epoch == epoch and start_offset >= self._entries[-1].start_offset
        ):
            return
        kept = [entry for entry in self._entries if entry.epoch < epoch and entry.start_offset < start_offset]
        self._replace([*kept, EpochStart(epoch, start_offset)])

    def learn(self, batches: Iterable[RecordBatch]) -> None:
        """Record the later epochs of batches that are in the log or about to be written."""
        for batch in batches:
            if self.latest is None or batch.leader_epoch > self.latest:
                self.assign(batch.leader_epoch, batch.base_offset)

    def find_end(self, epoch: LeaderEpoch, log_end_offset: int) -> tuple[LeaderEpoch, int]:
        """Return the largest epoch up to the given one, and the start of the next (KIP-279).

        Return (-1, -1) if it is unknown.
        """
        if not self._entries or epoch < 0 or epoch > self._entries[-1].epoch:
            return NO_EPOCH, UNKNOWN_OFFSET
        if epoch == self._entries[-1].epoch:
            return epoch, log_end_offset
        following = next(entry for entry in self._entries if entry.epoch > epoch)
        floor = next((entry.epoch for entry in reversed(self._entries) if entry.epoch <= epoch), epoch)
        return floor, following.start_offset

    def cut(self, end_offset: int) -> None:
        """Remove the epochs that start at an offset or after it."""
        kept = [entry for entry in self._entries if entry.start_offset < end_offset]
        if len(kept) < len(self._entries):
            self._replace(kept)

    def cut_before(self, start_offset: int) -> None:
        """Remove the epochs that ended before an offset. The epoch that continues there starts at it."""
        before = [entry for entry in self._entries if entry.start_offset <= start_offset]
        if before and before != [EpochStart(before[-1].epoch, start_offset)]:
            self._replace([EpochStart(before[-1].epoch, start_offset), *self._entries[len(before) :]])

    def clear(self) -> None:
        self._replace([])

    def _replace(self, entries: list[EpochStart]) -> None:
        self._disk.write_whole(self._path, encode_epochs(entries))
        self._entries = entries
