"""Follows a journal of segments: each to its end, then the next one.

It begins at the newest segment that is followed by a whole snapshot, because older problems do not matter. An
unfinished line is read after it is complete. Lines above the cap are skipped in parts, none of which is valid. A writer
that truncates its file removes half a line, or writes the line again.
"""

from typing import Final, Protocol

from kontroller.history.sources.caps import Caps
from kontroller.history.sources.journal_http import CHUNK_BYTES
from kontroller.history.watching.journals.journal import Chunk

_HEAD_BYTES: Final = 1024
_SNAPSHOT_STARTED: Final = b'"snapshot_started"'
_SNAPSHOT_ENDED: Final = b'"snapshot_ended"'


class Segments(Protocol):
    """The access to segments. Both methods raise `JournalUnreadable`."""

    async def sizes(self) -> dict[str, int]:
        """Return the size of each segment in bytes, by its name. The order of the names is that of the history."""
        ...

    async def part(self, name: str, start: int, length: int) -> bytes:
        """Return up to `length` bytes of a segment."""
        ...


class SegmentJournal:
    """The lines of one directory of segments. Call `read` sequentially."""

    def __init__(self, segments: Segments, caps: Caps | None = None) -> None:
        self._segments = segments
        self._longest_bytes = max((caps or Caps()).line_bytes, CHUNK_BYTES)
        self._name: str | None = None
        self._offset = 0
        self._head = b""
        """The first bytes of the segment. They distinguish it from a later one with the same name."""
        self._chunk_bytes = CHUNK_BYTES

    async def read(self) -> Chunk:
        sizes = await self._segments.sizes()
        # If neither the segment nor a later one is left, the writer has lost its directory and has begun again.
        if sizes and (self._name is None or max(sizes) < self._name):
            self._name, self._offset = await self._find_beginning(sizes), 0
        if self._name is None:
            return Chunk([], True)
        size = sizes.get(self._name, 0)
        if size < self._offset:
            # The writer has truncated the file, or has lost it and begun again with the same name.
            head = self._head[:size]
            is_same = await self._segments.part(self._name, 0, len(head)) == head if head else False
            self._offset = size if is_same else 0
        length = min(self._chunk_bytes, size - self._offset)
        data = await self._segments.part(self._name, self._offset, length) if length else b""
        if not self._offset:
            self._head = data[:_HEAD_BYTES]
        is_full = len(data) == self._chunk_bytes
        lines = self._whole_lines(data)
        later = [name for name in sizes if name > self._name]
        if self._offset < size and (lines or is_full):
            return Chunk(lines, False)
        if not lines and later:
            self._name, self._offset = min(later), 0
        return Chunk(lines, not later)

    def _whole_lines(self, data: bytes) -> list[bytes]:
        # After a long line its part alone is split, because a large part may have millions of lines.
        end = (data.rfind(b"\n") if len(data) <= CHUNK_BYTES else data.find(b"\n")) + 1
        if not end and len(data) == self._longest_bytes:
            end = len(data)
        is_in_a_line = not end and len(data) == self._chunk_bytes
        self._chunk_bytes = min(2 * self._chunk_bytes, self._longest_bytes) if is_in_a_line else CHUNK_BYTES
        self._offset += end
        return data[:end].splitlines()

    async def _find_beginning(self, sizes: dict[str, int]) -> str:
        has_ended = False
        for name in sorted(sizes, reverse=True):
            is_started, is_ended = await self._marks(name, sizes[name])
            has_ended = has_ended or is_ended
            if has_ended and is_started:
                return name
        return min(sizes)

    async def _marks(self, name: str, size: int) -> tuple[bool, bool]:
        """Return if a snapshot starts in a segment, and if one ends there."""
        is_started = is_ended = False
        before = b""
        for start in range(0, size, CHUNK_BYTES):
            data = before + await self._segments.part(name, start, min(CHUNK_BYTES, size - start))
            is_started = is_started or _SNAPSHOT_STARTED in data
            is_ended = is_ended or _SNAPSHOT_ENDED in data
            # A chunk may end within the name of a kind, so keep enough of it for the next search.
            before = data[-len(_SNAPSHOT_STARTED) :]
        return is_started, is_ended
