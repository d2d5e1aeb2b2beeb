"""How many bytes lie between two offsets of a leader's log, for MAX_BYTES_LAG and MIN_BYTES_LAG.

The seed's offsets were positions in a file; Kafka's have numbered messages ever since. So a leader notes where its
appends ended, in bytes, and estimates between its notes. It keeps few of them: every second one goes when there are
too many.
"""

from bisect import bisect_right
from typing import Final

_MOST_NOTES: Final = 512


class BytePositions:
    """The notes of one leader, from the start of its log on."""

    def __init__(self, start_offset: int, end_offset: int, size_bytes: int) -> None:
        self._offsets = [start_offset, end_offset] if end_offset > start_offset else [end_offset]
        self._bytes = [0, size_bytes] if end_offset > start_offset else [size_bytes]

    def note(self, end_offset: int, size_bytes: int) -> None:
        """An append of so many bytes has ended before an offset."""
        if len(self._offsets) >= _MOST_NOTES:
            del self._offsets[1:-1:2], self._bytes[1:-1:2]
        self._offsets.append(end_offset)
        self._bytes.append(self._bytes[-1] + size_bytes)

    def between(self, start_offset: int, end_offset: int) -> int:
        """The bytes from one offset to another that is not smaller; else 0."""
        return max(0, round(self._at(end_offset) - self._at(start_offset)))

    def _at(self, offset: int) -> float:
        after = bisect_right(self._offsets, offset)
        if after == 0:
            return self._bytes[0]
        if after == len(self._offsets):
            return self._bytes[-1]
        first, last = self._offsets[after - 1], self._offsets[after]
        share = (offset - first) / (last - first)
        return self._bytes[after - 1] + share * (self._bytes[after] - self._bytes[after - 1])
