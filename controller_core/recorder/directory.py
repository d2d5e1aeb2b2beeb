"""The directory of a recorder's journal: exclusive, of one cluster, and with record numbers that continue.

A controller's journal and a recorder's never share a directory, because each numbers the records of an epoch from 0. A
recorder's records are all `inferred`, which tells them apart. A lock keeps a second recorder out; it ends with its
process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller_core.journal.changes import Kind
from controller_core.journal.reader import Position, Record, parse
from controller_core.journal.record_encoder import RecordEncoder
from controller_core.journal.records import Line
from controller_core.journal.segments import segments
from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.recorder.event_numbers import Thing, find_thing, read_position

_LOCK: Final = "recorder.lock"
_UNFINISHED: Final = (
    Kind.CONTROLLER_ELECTED, Kind.CONTROLLER_RESIGNED, Kind.RECORDER_STARTED, Kind.SNAPSHOT_STARTED, Kind.GAP,
)  # fmt: skip
"""Records that must be followed by others before a journal can be continued seamlessly."""


class UnusableDirectory(Exception):
    """The directory cannot be recorded into. The message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastEvent:
    """The event of a journal's last record. Its recording may be incomplete."""

    position: int
    """The event's offset in the metadata log."""
    controller_id: BrokerId
    written: frozenset[Thing]
    """The things that the event's records are about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of the journal in a directory."""

    cluster_id: str | None = None
    epoch: ControllerEpoch | None = None
    """None if there are no records."""
    next_seq: int = 0
    last_event: "LastEvent | None" = None
    """None if the journal cannot be continued from there: events were not numbered, or the end may be incomplete."""

    def make_encoder(self) -> RecordEncoder:
        """Return an encoder that continues the numbers."""
        return RecordEncoder(epoch=self.epoch, next_seq=self.next_seq)


NOTHING_YET: Final = Ended()
"""The end of a journal without any record."""


@contextmanager
def open_directory(directory: Path) -> Iterator[Ended]:
    """Open the directory for one recorder, and create it if it is missing. Raises `UnusableDirectory`."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UnusableDirectory(f"--journal-directory {directory} cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ended = _read_end(directory)
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
    """Refuse a directory with the journal of another cluster. Raises `UnusableDirectory`."""
    if ended.epoch is not None and ended.cluster_id is not None and ended.cluster_id != cluster_id:
        raise UnusableDirectory(
            f"--journal-directory {directory} has the journal of cluster {ended.cluster_id}, this one is "
            f"{cluster_id or 'without an id yet'}: use another directory"
        )


def _read_end(directory: Path) -> Ended:
    for path in reversed(segments(directory)):
        line = next(_read_lines_backwards(path), None)
        if line is None:
            continue
        if not line.inferred:
            raise UnusableDirectory(
                f"--journal-directory {directory} has the journal of a controller ({path.name}): use another directory"
            )
        # The record of a gap stands for all dropped records, and uses their numbers.
        next_seq = line.seq + (line.dropped or 1)
        return Ended(
            cluster_id=line.cluster_id,
            epoch=ControllerEpoch(line.controller_epoch),
            next_seq=next_seq,
            last_event=_read_last_event(path, line),
        )
    return Ended()


def _read_last_event(path: Path, last: Line) -> LastEvent | None:
    """Return the event of a segment's last record.

    If the event began in the segment before, it is old or large, and its recorded part is unknown: then return None."""
    position = read_position(last.correlation_id)
    if position is None or last.snapshot or last.kind in _UNFINISHED:
        return None
    written = []
    for line in _read_lines_backwards(path):
        if read_position(line.correlation_id) != position:
            break
        written.append(find_thing(line))
    else:
        return None
    return LastEvent(position=position, controller_id=BrokerId(last.controller_id), written=frozenset(written))


def _read_lines_backwards(path: Path) -> Iterator[Line]:
    """Yield the readable records of a segment, last one first."""
    texts = path.read_bytes().split(b"\n")[:-1]  # an incomplete last line is torn
    for number, text in reversed(list(enumerate(texts, start=1))):
        entry = parse(Position(segment=path.name, line=number), text)
        if isinstance(entry, Record):
            yield entry.line
