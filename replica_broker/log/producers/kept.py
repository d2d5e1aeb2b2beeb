"""The producer states of one log, in memory and in snapshots beside its segments.

`OFFSET.snapshot` has the states after all batches before the offset. As on stock brokers, there is one for the start of
each segment, and one for the log's end after a clean shutdown, so that opening or truncating a log reads only the
batches after the latest one. Snapshots can always be rebuilt from the batches. A damaged one is removed and an older
one is used. A truncation removes the snapshots above it, because they have batches that are gone.
"""

import re
from collections.abc import Callable, Collection, Iterable, Set
from pathlib import PurePath
from typing import Final

import structlog

from replica_broker.disk.disk import Disk, DiskPath
from replica_broker.log.errors import MalformedFile
from replica_broker.log.producers.snapshot_format import decode_snapshot, encode_snapshot
from replica_broker.log.producers.states import ProducerStates
from replica_broker.log.record_batches import MOST_OFFSET, RecordBatch

log = structlog.get_logger()

SNAPSHOT_SUFFIX: Final = ".snapshot"
_SNAPSHOT: Final = re.compile(rf"([0-9]{{20}}){re.escape(SNAPSHOT_SUFFIX)}")
_MOST_BYTES: Final = 256 << 20
"""Limit of a snapshot's size: five million producers. A larger file is not a snapshot."""

BatchesFrom = Callable[[int], Iterable[RecordBatch]]
"""Returns the batches of a log that do not end before an offset."""


class KeptProducers:
    """The producer states of a log, and their snapshots. Every method may raise `DiskError`."""

    def __init__(self, disk: Disk, folder: DiskPath) -> None:
        self.states = ProducerStates()
        self._disk = disk
        self._folder = PurePath(folder)
        self._offsets: list[int] = []
        """The offsets of the snapshots, rising."""
        self._since = 0
        """The start of the known states. A snapshot at this offset would add nothing."""

    @property
    def snapshots(self) -> tuple[int, ...]:
        """The offsets that have snapshots."""
        return tuple(self._offsets)

    def load(self, batches: BatchesFrom, segments: Set[int], end_offset: int) -> None:
        """Load the states at the log's end. `segments` are the base offsets of the existing segments."""
        found = (_SNAPSHOT.fullmatch(name) for name in self._disk.list(self._folder))
        self._offsets = sorted(int(match[1]) for match in found if match and int(match[1]) <= MOST_OFFSET)
        self._drop([offset for offset in self._offsets[:-1] if offset not in segments])
        self.cut(batches, min(segments), end_offset)

    def cut(self, batches: BatchesFrom, start_offset: int, end_offset: int) -> None:
        """Load the states at the end of a truncated log that starts at `start_offset`."""
        self._drop([offset for offset in self._offsets if not start_offset <= offset <= end_offset])
        self._since = start_offset
        self.states.replace({})
        read_from = self._restore(start_offset)
        for batch in batches(read_from) if read_from < end_offset else ():
            self.states.learn(batch)

    def restart(self, offset: int) -> None:
        """Forget all states: the log is now empty and starts at the offset."""
        self._drop(self._offsets)
        self.states.replace({})
        self._since = offset

    def take_snapshot(self, offset: int) -> None:
        """Write a snapshot of the states, which are those at the offset, unless one exists."""
        if offset > max(self._offsets[-1:] or [self._since]):
            self._disk.write_whole(self._path(offset), encode_snapshot(self.states))
            self._offsets.append(offset)

    def drop_before(self, offset: int) -> None:
        """Remove the snapshots of removed segments."""
        self._drop([one for one in self._offsets if one < offset])

    def _restore(self, start_offset: int) -> int:
        """Load the latest usable snapshot. Return the offset from which batches must be read."""
        while self._offsets:
            offset = self._offsets[-1]
            try:
                self.states.replace(decode_snapshot(self._path(offset), self._read(offset), end_offset=offset))
            except MalformedFile as error:
                log.warning("producer snapshot is unusable, batches are read instead", reason=str(error))
                self._drop([offset])
            else:
                return offset
        return start_offset

    def _read(self, offset: int) -> bytes:
        path = self._path(offset)
        if (size_bytes := self._disk.size(path)) > _MOST_BYTES:
            raise MalformedFile(f"{path}: {size_bytes} bytes are too many for a snapshot")
        return self._disk.read_whole(path)

    def _drop(self, offsets: Collection[int]) -> None:
        """Remove snapshots durably: one that came back after a crash could contain truncated batches."""
        gone = set(offsets)
        for offset in gone:
            self._disk.remove(self._path(offset))
        if gone:
            self._disk.flush_folder(self._folder)
        self._offsets = [offset for offset in self._offsets if offset not in gone]

    def _path(self, offset: int) -> PurePath:
        return self._folder / f"{offset:020d}{SNAPSHOT_SUFFIX}"
