"""Reads a journal: its records in order, its gaps, and its problems. Bad data never raises."""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from pydantic import ValidationError

from controller_core.journal import LINE_BYTES, SEGMENT_BYTES
from controller_core.journal.changes import Kind
from controller_core.journal.records import SCHEMA_VERSION, Line
from controller_core.journal.segments import SUFFIX, segments

_COMPRESSED: Final = f"{SUFFIX}.gz"
"""The end of the names of segments that somebody compressed. Writers leave them alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A line of a segment, counted from 1."""

    segment: str
    line: int

    def __str__(self) -> str:
        return f"{self.segment}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A valid line."""

    position: Position
    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A number of missing records of an epoch, beginning with `first_seq`."""

    position: Position
    controller_epoch: int
    first_seq: int
    count: int
    is_recorded: bool
    """True if the writer recorded the gap. Otherwise it follows from the record numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem in the journal."""

    position: Position
    problem: str
    is_repeated: bool = False
    """True for another copy of a record that was read. Nothing is lost with it."""


Entry: TypeAlias = Record | Gap | Finding


def find_journals(*folders: Path) -> list[Path]:
    """Return the directories at or below these folders that have segments."""
    found = (path for folder in folders for suffix in (SUFFIX, _COMPRESSED) for path in folder.rglob(f"*{suffix}"))
    return sorted({path.parent for path in found})


def read(*directories: Path) -> Iterator[Entry]:
    """Yield the entries of a cluster's journal, which may be spread over the directories of several controllers.

    Segments compressed with gzip are read, too.

    A directory that cannot be listed raises `OSError`. A segment that cannot be read is a finding.
    """
    return check(line for path in segments(*directories, suffixes=(SUFFIX, _COMPRESSED)) for line in _lines(path))


def parse(position: Position, text: bytes) -> Record | Finding:
    """Parse one line without its end."""
    try:
        line = Line.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        return Finding(position=position, problem=f"unreadable record: {where + ': ' if where else ''}{first['msg']}")
    if line.v > SCHEMA_VERSION:
        problem = f"schema version {line.v} is newer than {SCHEMA_VERSION}: read it with a newer Kontroller"
        return Finding(position=position, problem=problem)
    return Record(position=position, line=line)


def check(entries: Iterable[Record | Finding]) -> Iterator[Entry]:
    """Add gaps that follow from the record numbers, and leave out records that come twice."""
    epoch, expected = -1, 0
    for entry in entries:
        if isinstance(entry, Finding):
            yield entry
            continue
        line, position = entry.line, entry.position
        if line.controller_epoch < epoch:
            yield Finding(
                position=position, problem=f"controller epoch {line.controller_epoch} after {epoch}: left out"
            )
            continue
        if line.controller_epoch > epoch:
            # Retention may have deleted earlier segments, so the oldest one can begin with any number.
            expected = line.seq if epoch == -1 else 0
            epoch = line.controller_epoch
        if line.seq < expected:
            problem = f"record {line.seq} of epoch {epoch} comes again: left out"
            yield Finding(position=position, problem=problem, is_repeated=True)
            continue
        if line.seq > expected:
            yield Gap(
                position=position, controller_epoch=epoch, first_seq=expected, count=line.seq - expected, is_recorded=False
            )  # fmt: skip
        expected = line.seq + 1
        if line.kind == Kind.GAP and line.dropped is not None:
            expected = line.seq + line.dropped
            yield Gap(
                position=position, controller_epoch=epoch, first_seq=line.seq, count=line.dropped, is_recorded=True
            )
        else:
            yield entry


def _lines(path: Path) -> Iterator[Record | Finding]:
    number = size = 0
    is_compressed = path.name.endswith(_COMPRESSED)
    try:
        with gzip.open(path) if is_compressed else path.open("rb") as file:
            for number, text in enumerate(iter(partial(file.readline, LINE_BYTES), b""), start=1):
                position = Position(segment=path.name, line=number)
                size += len(text)
                if is_compressed and size > SEGMENT_BYTES:
                    yield Finding(position=position, problem=f"the segment expands to more than {SEGMENT_BYTES} bytes")
                    return
                if not text.endswith(b"\n"):
                    yield Finding(position=position, problem="torn record: the writer stopped in the middle of it")
                else:
                    yield parse(position, text)
    except (OSError, EOFError, zlib.error) as error:
        yield Finding(position=Position(segment=path.name, line=number + 1), problem=f"unreadable segment: {error}")
