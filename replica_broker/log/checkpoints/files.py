"""The checkpoint files of one log directory. Each has an offset for each log.

A file is written whole and flushed, which may take some tenths of a second. So a thread writes the periodic
checkpoints. The owner's thread may have to write the same file at that time, for example after a truncation. Whichever
thread writes last, the checkpoint that was prepared last stays.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from threading import Lock

from controller_core.model.ids import TopicPartition
from replica_broker.disk.disk import DiskPath
from replica_broker.disk.guarded_disk import GuardedDisk
from replica_broker.log.checkpoints.formats import encode_offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The new content of a file. `number` rises with each checkpoint of the same file."""

    name: str
    content: bytes
    number: int


class CheckpointFiles:
    """The files and their last content. Writes raise `DiskError`."""

    def __init__(self, disk: GuardedDisk, folder: PurePath) -> None:
        self._disk = disk
        self._folder = folder
        self._prepared: Counter[str] = Counter()
        self._latest: Counter[str] = Counter()
        self._written: dict[str, bytes] = {}
        self._writing = Lock()

    def prepare(self, name: str, offsets: Mapping[TopicPartition, int]) -> Checkpoint:
        """Return a checkpoint of the offsets as of now. Called from the owner's thread."""
        self._prepared[name] += 1
        return Checkpoint(name=name, content=encode_offsets(offsets), number=self._prepared[name])

    def write(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Write a file at once. Called from the owner's thread."""
        self._write(self.prepare(name, offsets), self._disk.write_whole)

    def write_in_background(self, checkpoint: Checkpoint) -> None:
        """Write a file, unless a later checkpoint of it is already written. Called from another thread."""
        self._write(checkpoint, self._disk.write_whole_in_background)

    def _write(self, checkpoint: Checkpoint, write_whole: Callable[[DiskPath, bytes], None]) -> None:
        with self._writing:
            if self._is_news(checkpoint):
                write_whole(self._folder / checkpoint.name, checkpoint.content)
                self._written[checkpoint.name] = checkpoint.content

    def _is_news(self, checkpoint: Checkpoint) -> bool:
        if checkpoint.number < self._latest[checkpoint.name]:
            return False
        self._latest[checkpoint.name] = checkpoint.number
        return checkpoint.content != self._written.get(checkpoint.name)
