"""Journals in a local folder: the segments of one controller, or folders of several."""

import asyncio
import os
from pathlib import Path

from controller_core.journal.segments import SUFFIX
from kontroller.history.sources.caps import Caps
from kontroller.history.sources.journal_http import JournalUnreadable
from kontroller.history.watching.journals.journal import Chunk
from kontroller.history.watching.journals.segments import SegmentJournal


class FolderJournal:
    """All journals at or below a folder, including those that appear later. A removed one is forgotten."""

    def __init__(self, folder: Path, caps: Caps | None = None) -> None:
        self._folder = folder
        self._caps = caps
        self._journals: dict[Path, SegmentJournal] = {}

    @property
    def name(self) -> str:
        return str(self._folder)

    async def read(self) -> Chunk:
        directories = await asyncio.to_thread(_directories, self._folder, list(self._journals))
        self._journals = {
            directory: self._journals.get(directory) or SegmentJournal(_Directory(directory), self._caps)
            for directory in directories
        }
        lines: list[bytes] = []
        is_at_end, failure = True, None
        for journal in self._journals.values():
            try:
                chunk = await journal.read()
            except JournalUnreadable as error:
                failure = error
                continue
            lines += chunk.lines
            is_at_end = is_at_end and chunk.is_at_end
        if failure is not None and not lines:
            raise failure
        return Chunk(lines, is_at_end)

    async def close(self) -> None:
        self._journals.clear()


class _Directory:
    """`Segments` in one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def sizes(self) -> dict[str, int]:
        return await asyncio.to_thread(_sizes, self._directory)

    async def part(self, name: str, start: int, length: int) -> bytes:
        return await asyncio.to_thread(_part, self._directory / name, start, length)


def _directories(folder: Path, known: list[Path]) -> list[Path]:
    """Return the directories with segments, and those of the known ones that still exist, because segments may come
    back."""
    if not folder.is_dir():
        raise JournalUnreadable(f"{folder} is not a folder on this machine: give the folder with the segments")
    found = {path.parent for path in folder.rglob(f"*{SUFFIX}")}
    return sorted(found.union(directory for directory in known if directory.is_dir()))


def _sizes(directory: Path) -> dict[str, int]:
    try:
        return {path.name: path.stat().st_size for path in directory.iterdir() if path.suffix == SUFFIX}
    except OSError as error:
        raise JournalUnreadable(f"{directory} cannot be read: {error.strerror}") from error


def _part(path: Path, start: int, length: int) -> bytes:
    try:
        with path.open("rb") as file:
            return os.pread(file.fileno(), length, start)
    except OSError as error:
        raise JournalUnreadable(f"{path} cannot be read: {error.strerror}") from error
