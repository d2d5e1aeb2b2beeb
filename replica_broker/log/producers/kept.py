"""The producers of one log as they are kept: in memory, and in snapshots beside its segments.

`OFFSET.snapshot` has the states as all batches before the offset make them. There is one for the start of each segment, and
one for the log's end after a clean end, as stock brokers keep them: so only what is behind the latest is read when
a log is opened or cut. They can always be made anew from the batches. One that is damaged is removed and an older one is
used; one of another past of the log, which was cut below it, never outlives the cut.
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
"""Of a snapshot: of five million producers. One that is larger is none."""

BatchesFrom = Callable[[int], Iterable[RecordBatch]]
"""The batches of a log that do not end before an offset."""


class KeptProducers:
    """The states of a log's producers, and their snapshots. Every method may raise `DiskError`."""

    def __init__(self, disk: Disk, folder: DiskPath) -> None:
        self.states = ProducerStates()
        self._disk = disk
        self._folder = PurePath(folder)
        self._offsets: list[int] = []
        """Of the snapshots, rising."""
        self._since = 0
        """A snapshot there would say nothing that is not known without one."""

    @property
    def snapshots(self) -> tuple[int, ...]:
        """The offsets of which there are snapshots."""
        return tuple(self._offsets)

    def load(self, batches: BatchesFrom, segments: Set[int], end_offset: int) -> None:
        """Learns the states at a log's end. `segments`: where those that it has begin."""
        found = (_SNAPSHOT.fullmatch(name) for name in self._disk.list(self._folder))
        self._offsets = sorted(int(match[1]) for match in found if match and int(match[1]) <= MOST_OFFSET)
        self._drop([offset for offset in self._offsets[:-1] if offset not in segments])
        self.cut(batches, min(segments), end_offset)

    def cut(self, batches: BatchesFrom, start_offset: int, end_offset: int) -> None:
        """Learns the states at an end that the log was cut to; it begins at `start_offset`."""
        self._drop([offset for offset in self._offsets if not start_offset <= offset <= end_offset])
        self._since = start_offset
        self.states.replace({})
        read_from = self._restore(start_offset)
        for batch in batches(read_from) if read_from < end_offset else ():
            self.states.learn(batch)

    def start_anew(self, offset: int) -> None:
        """Nothing is known any more: the log is empty, and begins at the offset."""
        self._drop(self._offsets)
        self.states.replace({})
        self._since = offset

    def take_snapshot(self, offset: int) -> None:
        """Writes down the states, which are those at the offset; nothing where there is a snapshot of that."""
        if offset > max(self._offsets[-1:] or [self._since]):
            self._disk.write_whole(self._path(offset), encode_snapshot(self.states))
            self._offsets.append(offset)

    def drop_before(self, offset: int) -> None:
        """Removes the snapshots of segments that are gone."""
        self._drop([one for one in self._offsets if one < offset])

    def _restore(self, start_offset: int) -> int:
        """Takes the latest snapshot that can be used; the offset from which on batches are to be read."""
        while self._offsets:
            offset = self._offsets[-1]
            try:
                self.states.replace(decode_snapshot(self._path(offset), self._read(offset), end_offset=offset))
            except MalformedFile as error:
                log.warning("snapshot of producers is not used, batches are read instead", reason=str(error))
                self._drop([offset])
            else:
                return offset
        return start_offset

    def _read(self, offset: int) -> bytes:
        path = self._path(offset)
        if (size_bytes := self._disk.size(path)) > _MOST_BYTES:
            raise MalformedFile(f"{path}: {size_bytes} bytes are more than a snapshot has")
        return self._disk.read_whole(path)

    def _drop(self, offsets: Collection[int]) -> None:
        """Also for good: a snapshot that came back after a crash could be of batches that were cut."""
        gone = set(offsets)
        for offset in gone:
            self._disk.remove(self._path(offset))
        if gone:
            self._disk.flush_folder(self._folder)
        self._offsets = [offset for offset in self._offsets if offset not in gone]

    def _path(self, offset: int) -> PurePath:
        return self._folder / f"{offset:020d}{SNAPSHOT_SUFFIX}"
