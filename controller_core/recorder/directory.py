"""The directory of a recorder's journal: its own alone, of one cluster, with numbers that go on where they ended.

A controller's journal and a recorder's never share a directory: each numbers the records of an epoch from 0. A recorder's
records are all `inferred`, which tells them apart. A lock keeps a second recorder out; it ends with its process.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller_core.journal.reader import Position, Record, parse
from controller_core.journal.record_encoder import RecordEncoder
from controller_core.journal.records import Line
from controller_core.journal.segments import segments
from controller_core.model.ids import ControllerEpoch

_LOCK: Final = "recorder.lock"


class UnusableDirectory(Exception):
    """The directory cannot be recorded into; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Where the journal in a directory ended."""

    cluster_id: str | None = None
    epoch: ControllerEpoch | None = None
    """None where there are no records."""
    next_seq: int = 0

    def encoder(self) -> RecordEncoder:
        """Goes on with the numbers."""
        return RecordEncoder(epoch=self.epoch, next_seq=self.next_seq)


@contextmanager
def recorders_directory(directory: Path) -> Iterator[Ended]:
    """The directory, made where it is missing, for one recorder. Raises `UnusableDirectory`."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UnusableDirectory(f"--journal-directory {directory} cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ended = _ended(directory)
        except BlockingIOError as error:
            raise UnusableDirectory(
                f"another recorder writes into --journal-directory {directory}: stop it, or use another directory"
            ) from error
        except OSError as error:
            raise UnusableDirectory(f"--journal-directory {directory} cannot be read: {error.strerror}") from error
        yield ended
    finally:
        os.close(descriptor)


def check_cluster(ended: Ended, cluster_id: str | None, directory: Path) -> None:
    """Refuses a directory that has the journal of another cluster. Raises `UnusableDirectory`."""
    if ended.epoch is not None and ended.cluster_id is not None and ended.cluster_id != cluster_id:
        raise UnusableDirectory(
            f"--journal-directory {directory} has the journal of cluster {ended.cluster_id}, this one is "
            f"{cluster_id or 'without an id yet'}: use another directory"
        )


def _ended(directory: Path) -> Ended:
    for path in reversed(segments(directory)):
        line = _last_line(path)
        if line is None:
            continue
        if not line.inferred:
            raise UnusableDirectory(
                f"--journal-directory {directory} has the journal of a controller ({path.name}): use another directory"
            )
        next_seq = line.seq + (line.dropped or 1)
        return Ended(cluster_id=line.cluster_id, epoch=ControllerEpoch(line.controller_epoch), next_seq=next_seq)
    return Ended()


def _last_line(path: Path) -> Line | None:
    """The last whole record of a segment that can be read; None where it has none."""
    texts = path.read_bytes().split(b"\n")[:-1]  # what stands behind the last end of a line is torn
    for number, text in reversed(list(enumerate(texts, start=1))):
        entry = parse(Position(segment=path.name, line=number), text)
        if isinstance(entry, Record):
            return entry.line
    return None
